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
  ADD COLUMN begun         bigint  NOT NULL DEFAULT 0; -- how many claims of single runs durable_begun has counted

-- The claims that began runs of a queue with a rate: a row for those of one
-- transaction. first is how many there were before, so the number of claims in a
-- window is a difference, and is not counted.
CREATE TABLE durable_begun (
  queue text   COLLATE "C" NOT NULL,
  first bigint NOT NULL,
  at    bigint NOT NULL,
  PRIMARY KEY (queue, first)
);
CREATE INDEX durable_begun_at_idx ON durable_begun (queue, at, first);

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
