-- Queues, schedules and requests by SQL.
--
-- Queues: how they are limited, and the runs in line for a place in each.
ALTER TABLE durable_queues
  ADD COLUMN revision      bigint  NOT NULL DEFAULT 0, -- 0: it was never put
  ADD COLUMN max_placed    bigint  NOT NULL DEFAULT 0,
  ADD COLUMN max_partition bigint  NOT NULL DEFAULT 0,
  ADD COLUMN rate          bigint  NOT NULL DEFAULT 0,
  ADD COLUMN per           bigint  NOT NULL DEFAULT 0,
  ADD COLUMN paused        boolean NOT NULL DEFAULT false,
  ADD COLUMN reason        text    COLLATE "C" NOT NULL DEFAULT '',
  ADD COLUMN updated_at    bigint  NOT NULL DEFAULT 0,
  ADD COLUMN turn          text    COLLATE "C" NOT NULL DEFAULT '', -- the partition that had the last turn
  ADD COLUMN begun         bigint  NOT NULL DEFAULT 0; -- how many claims of single runs durable_queue_begun has counted

-- The claims that began runs of a queue with a rate: a row for those of one
-- transaction. first is how many there were before, so the number of claims in a
-- window is a difference, and is not counted.
CREATE TABLE durable_queue_begun (
  queue text   COLLATE "C" NOT NULL,
  first bigint NOT NULL,
  at    bigint NOT NULL,
  PRIMARY KEY (queue, first)
);
CREATE INDEX durable_queue_begun_at_idx ON durable_queue_begun (queue, at, first);

-- The runs in line, by partition and rank (store.Rank), but for those that had to wait
-- for a time, and these.
CREATE INDEX durable_runs_line_idx ON durable_runs
  (status, workflow, version, queue, partition, (created_at - priority * 3600000000), no)
  WHERE queue <> '' AND NOT paused
    AND (status = 'pending' AND wake_at = 0 AND NOT cancel_asked OR status = 'interrupted' AND code IN ('', 'not_registered'));
CREATE INDEX durable_runs_timed_idx ON durable_runs (queue, partition, workflow, version, priority, wake_at, no)
  WHERE queue <> '' AND status = 'pending' AND wake_at <> 0 AND NOT paused AND NOT cancel_asked;
-- Those that were cancelled before they began.
CREATE INDEX durable_runs_cancel_idx ON durable_runs (status, workflow, version, queue, no)
  WHERE queue <> '' AND cancel_asked AND status IN ('pending', 'interrupted');
-- Those that nobody may take.
CREATE INDEX durable_runs_aside_idx ON durable_runs (queue)
  WHERE queue <> '' AND (status = 'pending' AND paused OR status = 'interrupted' AND (paused OR code NOT IN ('', 'not_registered')));
-- The runs that hold a place.
CREATE INDEX durable_runs_placed_idx ON durable_runs (queue, partition)
  WHERE queue <> '' AND status IN ('running', 'resuming', 'waiting');
DROP INDEX durable_runs_executing_idx;
-- What needs no place.
DROP INDEX durable_runs_pending_idx;
CREATE INDEX durable_runs_pending_idx ON durable_runs (workflow, version, priority DESC, created_at, no)
  WHERE queue = '' AND status = 'pending' AND wake_at = 0 AND NOT paused;
DROP INDEX durable_runs_interrupted_idx;
CREATE INDEX durable_runs_interrupted_idx ON durable_runs (workflow, version, priority DESC, created_at, no)
  WHERE queue = '' AND status = 'interrupted' AND code IN ('', 'not_registered') AND NOT paused;

-- Schedules. What is to be done when one is due is in its data, which is the
-- engine's. Those that are not due cost nothing: the index is in the order in which
-- they become due, without those that never do.
CREATE TABLE durable_schedules (
  name       text   COLLATE "C" PRIMARY KEY,
  revision   bigint NOT NULL,
  due        bigint NOT NULL,
  data       bytea  NOT NULL,
  updated_at bigint NOT NULL
);
CREATE INDEX durable_schedules_due_idx ON durable_schedules (due, name) WHERE due <> 0;

-- Requests of programs that speak SQL. A program inserts a row, within a transaction of
-- its own; an engine carries it out and writes into the row what became of it.
-- docs/guides/from-sql.md says how to use it. NULL is the same as empty or 0.
CREATE TABLE durable_requests (
  no         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind       text   COLLATE "C" NOT NULL CHECK (kind IN ('start', 'signal', 'cancel')),
  run_id     text   COLLATE "C", -- of a start: NULL if one is to be made
  workflow   text   COLLATE "C", -- from here on: of a start
  version    text   COLLATE "C",
  queue      text   COLLATE "C",
  partition  text   COLLATE "C",
  dedup      text   COLLATE "C",
  priority   integer,
  wake_at    bigint CHECK (wake_at >= 0), -- microseconds since 1970, UTC; NULL: at once
  attributes text   COLLATE "C", -- JSON object of strings
  headers    text   COLLATE "C", -- JSON object of strings
  input      text   COLLATE "C", -- JSON: the input of a start, the value of a signal
  name       text   COLLATE "C", -- of a signal
  signal_id  text   COLLATE "C", -- of a signal: a run takes one of each id
  reason     text   COLLATE "C", -- of a cancel
  created_at bigint NOT NULL DEFAULT (extract(epoch FROM clock_timestamp())::numeric * 1000000::numeric)::bigint,
  -- The answer.
  done_at    bigint, -- NULL: there is none yet
  code       text   COLLATE "C", -- why it was not carried out; NULL: it was
  error      text   COLLATE "C", -- the same for people
  CONSTRAINT a_start_needs_a_workflow CHECK (kind <> 'start' OR workflow IS NOT NULL),
  CONSTRAINT a_signal_needs_a_run_and_a_name CHECK (kind <> 'signal' OR (run_id IS NOT NULL AND name IS NOT NULL)),
  CONSTRAINT a_cancel_needs_a_run CHECK (kind <> 'cancel' OR run_id IS NOT NULL)
);
CREATE INDEX durable_requests_open_idx ON durable_requests (no) WHERE done_at IS NULL;
-- A hash, since the id of a run may be as long as anybody likes here.
CREATE INDEX durable_requests_run_idx  ON durable_requests (md5(run_id), no) WHERE done_at IS NULL;
CREATE INDEX durable_requests_done_idx ON durable_requests (done_at, no) WHERE done_at IS NOT NULL;
-- begin: PostgreSQL
-- Engines that listen hear of a request when its transaction commits. The trigger
-- runs with the rights of whoever inserts, and needs none; once per statement, and the
-- server sends equal notices of one transaction once.
CREATE OR REPLACE FUNCTION durable_tell_requests() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN PERFORM pg_catalog.pg_notify('durable_requests', TG_TABLE_SCHEMA::pg_catalog.text); RETURN NULL; END $$;
CREATE TRIGGER durable_requests_told AFTER INSERT ON durable_requests
  FOR EACH STATEMENT EXECUTE FUNCTION durable_tell_requests();
-- end: PostgreSQL
