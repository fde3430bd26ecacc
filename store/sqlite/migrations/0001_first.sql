-- The first schema. All times are microseconds since the Unix epoch, UTC; 0 is
-- "not set". Text compares by bytes.

-- A run's row: identity, and a cache of what its events say. The number is
-- never used twice, not even after the run was deleted (AUTOINCREMENT), so what
-- is kept under it can never be taken for another run's.
CREATE TABLE durable_runs (
  no              INTEGER PRIMARY KEY AUTOINCREMENT,
  id              TEXT    NOT NULL UNIQUE CHECK (id <> ''),
  workflow        TEXT    NOT NULL,
  initial_version TEXT    NOT NULL,
  parent          TEXT    NOT NULL,
  parent_key      TEXT    NOT NULL,
  forked_from     TEXT    NOT NULL,
  input_hash      BLOB    NOT NULL CHECK (length(input_hash) = 16),
  queue           TEXT    NOT NULL,
  partition       TEXT    NOT NULL,
  dedup           TEXT    NOT NULL,
  trace           TEXT    NOT NULL,
  created_at      INTEGER NOT NULL,

  version         TEXT    NOT NULL,
  status          TEXT    NOT NULL CHECK (status IN
    ('pending', 'running', 'resuming', 'waiting', 'interrupted', 'completed', 'failed', 'cancelled')),
  code            TEXT    NOT NULL,
  reason          TEXT    NOT NULL,
  recoverable     INTEGER NOT NULL CHECK (recoverable IN (0, 1)),
  owner           TEXT    NOT NULL,
  epoch           INTEGER NOT NULL CHECK (epoch > 0),
  branch          INTEGER NOT NULL,
  generation      INTEGER NOT NULL,
  resumes         INTEGER NOT NULL,
  strikes         INTEGER NOT NULL,
  priority        INTEGER NOT NULL,
  inbox           INTEGER NOT NULL CHECK (inbox BETWEEN 0 AND 268435455),
  seen            INTEGER NOT NULL,
  cancel_asked    INTEGER NOT NULL CHECK (cancel_asked IN (0, 1)),
  paused          INTEGER NOT NULL CHECK (paused IN (0, 1)),
  archived_seq    INTEGER NOT NULL,
  started_at      INTEGER NOT NULL,
  updated_at      INTEGER NOT NULL,
  ended_at        INTEGER NOT NULL,
  wake_at         INTEGER NOT NULL,
  deadline_at     INTEGER NOT NULL,
  attributes      INTEGER NOT NULL, -- how many there are in durable_attributes

  -- What a claim that names no runs looks for, kept by the database so that it
  -- cannot disagree with the row. ready is NULL for a run that nobody is to
  -- take, else the kind of readiness; ready_at is since when, or from when on
  -- where a timer decides (2 and 5).
  ready INTEGER GENERATED ALWAYS AS (
    CASE
      WHEN paused AND NOT cancel_asked THEN NULL
      WHEN status = 'pending' THEN iif(wake_at = 0, 1, 2)
      WHEN status = 'interrupted' AND code IN ('', 'not_registered') THEN 3
      WHEN status = 'waiting' AND (inbox > seen OR cancel_asked) THEN 4
      WHEN status = 'waiting' AND wake_at <> 0 THEN 5
    END) VIRTUAL,
  ready_at INTEGER GENERATED ALWAYS AS (
    CASE WHEN wake_at <> 0 AND status IN ('pending', 'waiting') AND NOT (status = 'waiting' AND (inbox > seen OR cancel_asked))
      THEN wake_at ELSE created_at END) VIRTUAL
) STRICT;

-- Listing, newest or oldest first.
CREATE INDEX durable_runs_created ON durable_runs (created_at, no);
CREATE INDEX durable_runs_status ON durable_runs (status, created_at, no);
CREATE INDEX durable_runs_parent ON durable_runs (parent) WHERE parent <> '';
-- What a claim takes, in lanes: within one, the order is that of the index.
CREATE INDEX durable_runs_ready ON durable_runs (owner, queue, workflow, version, priority, ready, ready_at, no) WHERE ready IS NOT NULL;
-- Who owns unfinished runs, and which timer of theirs is next.
CREATE INDEX durable_runs_owned ON durable_runs (owner, workflow, version, wake_at) WHERE status NOT IN ('completed', 'failed', 'cancelled');
CREATE INDEX durable_runs_mail ON durable_runs (owner, no) WHERE inbox > seen;
-- At most one unfinished run per queue and value (S12).
CREATE UNIQUE INDEX durable_runs_dedup ON durable_runs (queue, dedup) WHERE dedup <> '' AND status NOT IN ('completed', 'failed', 'cancelled');

-- The log. place is (run number << 28) | seq: a run's events stand together in
-- the tree, in order, under an integer key, and one look finds the event before
-- another. At most 2^28 - 1 events a run and 2^35 - 1 runs.
CREATE TABLE durable_events (
  place   INTEGER PRIMARY KEY,
  epoch   INTEGER NOT NULL,
  branch  INTEGER NOT NULL,
  type    TEXT    NOT NULL,
  key     TEXT    NOT NULL,
  attempt INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  at      INTEGER NOT NULL,
  took    INTEGER NOT NULL, -- microseconds
  active  INTEGER NOT NULL, -- microseconds
  steps   INTEGER NOT NULL,
  data    TEXT,
  payload BLOB,
  sum     INTEGER NOT NULL
) STRICT;

CREATE TABLE durable_branches (
  run_no     INTEGER NOT NULL,
  n          INTEGER NOT NULL,
  parent     INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  cutoff     INTEGER NOT NULL,
  cut_scope  TEXT    NOT NULL,
  reason     TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (run_no, n)
) STRICT, WITHOUT ROWID;

-- Messages, placed like events; they stay as long as the run.
CREATE TABLE durable_inbox (
  place   INTEGER PRIMARY KEY,
  run_no  INTEGER NOT NULL,
  kind    TEXT    NOT NULL,
  name    TEXT    NOT NULL,
  id      TEXT    NOT NULL,
  at      INTEGER NOT NULL,
  data    TEXT,
  payload BLOB
) STRICT;
CREATE UNIQUE INDEX durable_inbox_once ON durable_inbox (run_no, kind, id);

CREATE TABLE durable_attributes (
  run_no INTEGER NOT NULL,
  name   TEXT    NOT NULL,
  value  TEXT    NOT NULL,
  PRIMARY KEY (run_no, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX durable_attributes_value ON durable_attributes (name, value, run_no);

-- Exclusive keys and the run that holds each.
CREATE TABLE durable_holds (
  key    TEXT    NOT NULL PRIMARY KEY,
  run_no INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX durable_holds_run ON durable_holds (run_no);

CREATE TABLE durable_executors (
  no         INTEGER PRIMARY KEY AUTOINCREMENT,
  id         TEXT    NOT NULL UNIQUE,
  name       TEXT    NOT NULL,
  host       TEXT    NOT NULL,
  boot       TEXT    NOT NULL,
  pid        INTEGER NOT NULL,
  lease      INTEGER NOT NULL, -- microseconds
  serves     TEXT    NOT NULL, -- JSON
  started_at INTEGER NOT NULL,
  beat_at    INTEGER NOT NULL,
  -- Identity of the boot under which its process holds the lock on its file;
  -- empty: none is held; 'gone': the lock was found free.
  presence   TEXT    NOT NULL
) STRICT;

-- For people at a shell: SELECT * FROM durable_history WHERE run = 'order-42';
CREATE VIEW durable_history AS
SELECT r.id AS run, e.place & 268435455 AS seq, e.branch, strftime('%Y-%m-%d %H:%M:%f', e.at / 1000000.0, 'unixepoch') AS time,
  e.type, e.key, e.attempt, e.took / 1000 AS took_ms, e.data, CAST(e.payload AS TEXT) AS payload
FROM durable_runs AS r JOIN durable_events AS e ON e.place > r.no << 28 AND e.place < (r.no + 1) << 28
ORDER BY e.place;
