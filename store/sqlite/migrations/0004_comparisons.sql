-- SQLite makes a temporary tree for each `IN` of more than two values in the condition of an index, each
-- time that a row is written. Comparisons say the same without one.
--
-- A statement uses an index only if it says so in the same words. durable_runs_dedup and durable_runs_placed
-- keep theirs: most runs are in neither, which is found out before.
DROP INDEX durable_runs_owned;
CREATE INDEX durable_runs_owned ON durable_runs (owner, workflow, version, queue, wake_at)
  WHERE status <> 'completed' AND status <> 'failed' AND status <> 'cancelled';
DROP INDEX durable_runs_owned_ended;
CREATE INDEX durable_runs_owned_ended ON durable_runs (owner)
  WHERE owner <> '' AND (status = 'completed' OR status = 'failed' OR status = 'cancelled');
