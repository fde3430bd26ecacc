-- The first schema. Times are microseconds since 1970 (UTC), durations are
-- microseconds; 0 means not set. Text that is compared or sorted collates by
-- bytes, so that the order does not depend on the server's locale.

CREATE TABLE durable_runs (
  no              bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- never used twice
  id              text    COLLATE "C" NOT NULL,
  workflow        text    COLLATE "C" NOT NULL,
  initial_version text    COLLATE "C" NOT NULL,
  parent          text    COLLATE "C" NOT NULL,
  parent_key      text    COLLATE "C" NOT NULL,
  forked_from     text    COLLATE "C" NOT NULL,
  input_hash      bytea   NOT NULL,
  queue           text    COLLATE "C" NOT NULL,
  partition       text    COLLATE "C" NOT NULL,
  dedup           text    COLLATE "C" NOT NULL,
  trace           text    COLLATE "C" NOT NULL,
  created_at      bigint  NOT NULL,
  version         text    COLLATE "C" NOT NULL,
  status          text    COLLATE "C" NOT NULL CHECK (status IN
    ('pending', 'running', 'resuming', 'waiting', 'interrupted', 'completed', 'failed', 'cancelled')),
  code            text    COLLATE "C" NOT NULL,
  reason          text    COLLATE "C" NOT NULL,
  recoverable     boolean NOT NULL,
  owner           text    COLLATE "C" NOT NULL,
  epoch           bigint  NOT NULL CHECK (epoch > 0),
  branch          integer NOT NULL,
  generation      integer NOT NULL,
  resumes         integer NOT NULL,
  strikes         integer NOT NULL,
  priority        integer NOT NULL,
  inbox           bigint  NOT NULL,
  seen            bigint  NOT NULL,
  cancel_asked    boolean NOT NULL,
  paused          boolean NOT NULL,
  archived_seq    bigint  NOT NULL,
  started_at      bigint  NOT NULL,
  updated_at      bigint  NOT NULL,
  ended_at        bigint  NOT NULL,
  wake_at         bigint  NOT NULL,
  deadline_at     bigint  NOT NULL,
  attributes      bigint  NOT NULL, -- how many rows the attributes table has for it
  -- A column of its own, because the planner has statistics of columns alone:
  -- it takes inbox > seen for a third of all rows.
  mail            boolean NOT NULL GENERATED ALWAYS AS (inbox > seen OR cancel_asked) STORED
) WITH (fillfactor = 85);

CREATE UNIQUE INDEX durable_runs_id_idx      ON durable_runs (id);
CREATE        INDEX durable_runs_created_idx ON durable_runs (created_at, no);
CREATE        INDEX durable_runs_parent_idx  ON durable_runs (parent) WHERE parent <> '';
CREATE        INDEX durable_runs_owner_idx   ON durable_runs (owner)  WHERE owner <> '';
CREATE UNIQUE INDEX durable_runs_dedup_idx   ON durable_runs (queue, dedup)
  WHERE dedup <> '' AND status NOT IN ('completed', 'failed', 'cancelled');
-- What a claim looks for, in lanes that it reads only where they are its own:
-- by workflow, version and queue for what nobody began, by owner for the rest.
CREATE INDEX durable_runs_pending_idx ON durable_runs
  (workflow, version, queue, priority DESC, (CASE WHEN wake_at <> 0 THEN wake_at ELSE created_at END), no) WHERE status = 'pending';
CREATE INDEX durable_runs_interrupted_idx ON durable_runs (workflow, version, queue, priority DESC, created_at, no)
  WHERE status = 'interrupted' AND code IN ('', 'not_registered');
CREATE INDEX durable_runs_wake_idx ON durable_runs (owner, status, wake_at) WHERE wake_at <> 0;
CREATE INDEX durable_runs_mail_idx ON durable_runs (owner, status, no) WHERE mail;
CREATE INDEX durable_runs_executing_idx ON durable_runs (queue) WHERE status IN ('running', 'resuming');

-- The log. No foreign key: checking it would lock the run's row at every
-- checkpoint, and the fence of an append needs no more than this table.
CREATE TABLE durable_events (
  run_no  bigint  NOT NULL,
  seq     bigint  NOT NULL,
  epoch   bigint  NOT NULL,
  branch  integer NOT NULL,
  type    text    COLLATE "C" NOT NULL,
  key     text    COLLATE "C" NOT NULL,
  attempt integer NOT NULL,
  ordinal integer NOT NULL,
  at      bigint  NOT NULL,
  took    bigint  NOT NULL,
  active  bigint  NOT NULL,
  steps   integer NOT NULL,
  data    text    COLLATE "C", -- JSON; of type text, since jsonb refuses \u0000
  payload bytea,
  sum     bigint  NOT NULL,
  PRIMARY KEY (run_no, seq)
);

CREATE TABLE durable_branches (
  run_no     bigint  NOT NULL,
  n          integer NOT NULL,
  parent     integer NOT NULL,
  generation integer NOT NULL,
  cutoff     bigint  NOT NULL,
  cut_scope  text    COLLATE "C" NOT NULL,
  reason     text    COLLATE "C" NOT NULL,
  created_at bigint  NOT NULL,
  PRIMARY KEY (run_no, n)
);

CREATE TABLE durable_inbox (
  run_no  bigint NOT NULL,
  seq     bigint NOT NULL,
  kind    text   COLLATE "C" NOT NULL,
  name    text   COLLATE "C" NOT NULL,
  id      text   COLLATE "C" NOT NULL,
  at      bigint NOT NULL,
  data    text   COLLATE "C",
  payload bytea,
  PRIMARY KEY (run_no, seq)
);
-- An id may be longer than an index entry, so the entry holds its hash too, and
-- the check of the id itself is the reader's.
CREATE UNIQUE INDEX durable_inbox_id_idx ON durable_inbox (run_no, kind, md5(id));

CREATE TABLE durable_attributes (
  run_no bigint NOT NULL,
  name   text   COLLATE "C" NOT NULL,
  value  text   COLLATE "C" NOT NULL,
  PRIMARY KEY (run_no, name)
);
-- A hash, since a value may be longer than an entry of a tree.
CREATE INDEX durable_attributes_value_idx ON durable_attributes USING hash (value);

-- Exclusive keys and who holds them.
CREATE TABLE durable_holds (
  name   text   COLLATE "C" PRIMARY KEY,
  run_no bigint NOT NULL
);
CREATE INDEX durable_holds_run_idx ON durable_holds (run_no);

CREATE TABLE durable_executors (
  no         bigint GENERATED ALWAYS AS IDENTITY,
  id         text   COLLATE "C" PRIMARY KEY,
  name       text   COLLATE "C" NOT NULL,
  host       text   COLLATE "C" NOT NULL,
  boot       text   COLLATE "C" NOT NULL,
  pid        bigint NOT NULL,
  lease      bigint NOT NULL,
  serves     text   COLLATE "C" NOT NULL,
  started_at bigint NOT NULL,
  beat_at    bigint NOT NULL,
  presence   text   COLLATE "C" NOT NULL
);

-- A row per queue with a limit. Whoever claims from the queue locks it, so that
-- the limit is exact.
CREATE TABLE durable_queues (
  name text COLLATE "C" PRIMARY KEY
);

-- For people: the log with readable times and payloads.
CREATE VIEW durable_history AS
SELECT r.id AS run, e.seq, e.branch, e.type, e.key, e.attempt, to_timestamp(e.at / 1000000.0) AS at,
       e.took / 1000.0 AS took_ms, e.data, encode(e.payload, 'escape') AS payload, e.epoch, e.sum
FROM durable_events e JOIN durable_runs r ON r.no = e.run_no;
