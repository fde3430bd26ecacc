-- Queues, schedules and requests by SQL.
--
-- Queues: how they are limited, and the runs in line for a place in each.

-- The columns that say what a claim looks for change. They are computed and not
-- stored, so this writes no row.
DROP INDEX durable_runs_ready;
ALTER TABLE durable_runs DROP COLUMN ready;

-- What a run of a named queue needs a place for: 1 to begin, 2 to go on, 3 to begin
-- when wake_at has come; 0 if nobody is to take it for now. NULL: it needs none.
ALTER TABLE durable_runs ADD COLUMN line INTEGER GENERATED ALWAYS AS (
    CASE
      WHEN queue = '' OR status NOT IN ('pending', 'interrupted') THEN NULL
      WHEN status = 'pending' AND cancel_asked THEN NULL
      WHEN paused AND NOT cancel_asked THEN 0
      WHEN status = 'interrupted' THEN iif(code IN ('', 'not_registered'), 2, 0)
      WHEN wake_at = 0 THEN 1
      ELSE 3
    END) VIRTUAL;
-- Delayed runs are in line by priority first: within one, those whose time has come
-- stand before the others.
ALTER TABLE durable_runs ADD COLUMN level INTEGER GENERATED ALWAYS AS (
    CASE WHEN status = 'pending' AND wake_at <> 0 THEN priority ELSE 0 END) VIRTUAL;
-- Since when it is due, an hour earlier for each step of priority. No time is later than
-- 2^60 here (in the year 38505), so that nothing overflows.
ALTER TABLE durable_runs ADD COLUMN rank INTEGER GENERATED ALWAYS AS (
    min(CASE WHEN status = 'pending' AND wake_at <> 0 THEN wake_at ELSE created_at END, 1152921504606846976)
      - priority * 3600000000) VIRTUAL;
-- As before, but a run that needs a place in a queue is in line instead.
ALTER TABLE durable_runs ADD COLUMN ready INTEGER GENERATED ALWAYS AS (
    CASE
      WHEN line IS NOT NULL THEN NULL
      WHEN paused AND NOT cancel_asked THEN NULL
      WHEN status = 'pending' THEN iif(wake_at = 0, 1, 2)
      WHEN status = 'interrupted' AND code IN ('', 'not_registered') THEN 3
      WHEN status = 'waiting' AND (inbox > seen OR cancel_asked) THEN 4
      WHEN status = 'waiting' AND wake_at <> 0 THEN 5
    END) VIRTUAL;
CREATE INDEX durable_runs_ready ON durable_runs (owner, queue, workflow, version, priority, ready, ready_at, no) WHERE ready IS NOT NULL;

-- Who is next, in each partition. The priority is there so that since when a run is due can be
-- told from the index.
CREATE INDEX durable_runs_line ON durable_runs (owner, queue, workflow, version, line, level, partition, rank, no, priority) WHERE line IS NOT NULL;
-- Whose time has come.
CREATE INDEX durable_runs_delayed ON durable_runs (owner, queue, workflow, version, wake_at) WHERE line = 3;
-- The runs that hold a place.
CREATE INDEX durable_runs_placed ON durable_runs (queue, partition, status) WHERE queue <> '' AND status IN ('running', 'resuming', 'waiting');

CREATE TABLE durable_queues (
  name              TEXT    NOT NULL PRIMARY KEY,
  revision          INTEGER NOT NULL,
  max               INTEGER NOT NULL,
  max_per_partition INTEGER NOT NULL,
  rate              INTEGER NOT NULL,
  per               INTEGER NOT NULL, -- microseconds
  paused            INTEGER NOT NULL CHECK (paused IN (0, 1)),
  reason            TEXT    NOT NULL,
  updated_at        INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The partition that had the last turn; '' before the first.
CREATE TABLE durable_queue_turns (
  queue     TEXT NOT NULL PRIMARY KEY,
  partition TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- How many runs began when, of queues with a rate, and how many in all up to then: how many
-- began within a window follows from its first and its last row.
CREATE TABLE durable_queue_begun (
  queue TEXT    NOT NULL,
  at    INTEGER NOT NULL,
  n     INTEGER NOT NULL,
  upto  INTEGER NOT NULL,
  PRIMARY KEY (queue, at)
) STRICT, WITHOUT ROWID;

-- Schedules. What is to be done when one is due is in its data, which is the
-- engine's. Those that are not due cost nothing: the index is in the order in which
-- they become due, without those that never do.
CREATE TABLE durable_schedules (
  name       TEXT    NOT NULL PRIMARY KEY CHECK (name <> ''),
  revision   INTEGER NOT NULL CHECK (revision > 0),
  due        INTEGER NOT NULL CHECK (due >= 0),
  data       BLOB    NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX durable_schedules_due ON durable_schedules (due, name) WHERE due <> 0;

-- Requests of programs that speak SQL. A program inserts a row, within a transaction of
-- its own; an engine carries it out and writes into the row what became of it.
-- docs/guides/from-sql.md says how to use it. NULL is the same as empty or 0.
CREATE TABLE durable_requests (
  no         INTEGER PRIMARY KEY AUTOINCREMENT,
  kind       TEXT    NOT NULL CHECK (kind IN ('start', 'signal', 'cancel')),
  run_id     TEXT,    -- of a start: NULL if one is to be made
  workflow   TEXT,    -- from here on: of a start
  version    TEXT,
  queue      TEXT,
  partition  TEXT,
  dedup      TEXT,
  priority   INTEGER CHECK (priority BETWEEN -2147483648 AND 2147483647),
  wake_at    INTEGER CHECK (wake_at >= 0), -- microseconds since 1970, UTC; NULL: at once
  attributes TEXT,    -- JSON object of strings
  headers    TEXT,    -- JSON object of strings
  input      TEXT,    -- JSON: the input of a start, the value of a signal
  name       TEXT,    -- of a signal
  signal_id  TEXT,    -- of a signal: a run takes one of each id
  reason     TEXT,    -- of a cancel
  created_at INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)),
  -- The answer.
  done_at    INTEGER, -- NULL: there is none yet
  code       TEXT,    -- why it was not carried out; NULL: it was
  error      TEXT,    -- the same for people
  CONSTRAINT a_start_needs_a_workflow CHECK (kind <> 'start' OR workflow IS NOT NULL),
  CONSTRAINT a_signal_needs_a_run_and_a_name CHECK (kind <> 'signal' OR (run_id IS NOT NULL AND name IS NOT NULL)),
  CONSTRAINT a_cancel_needs_a_run CHECK (kind <> 'cancel' OR run_id IS NOT NULL)
) STRICT;
CREATE INDEX durable_requests_open ON durable_requests (no) WHERE done_at IS NULL;
CREATE INDEX durable_requests_run ON durable_requests (run_id, no) WHERE done_at IS NULL;
CREATE INDEX durable_requests_done ON durable_requests (done_at, no) WHERE done_at IS NOT NULL;
