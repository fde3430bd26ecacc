-- What is listed is found by an index that has it alone, however many runs there are.
-- All are partial, or about what never changes while a run executes.
CREATE INDEX durable_runs_paused ON durable_runs (created_at, no) WHERE paused;
CREATE INDEX durable_runs_code ON durable_runs (code, created_at, no) WHERE code <> '';
CREATE INDEX durable_runs_queue ON durable_runs (queue, created_at, no) WHERE queue <> '';
CREATE INDEX durable_runs_ended ON durable_runs (ended_at) WHERE ended_at <> 0;
-- The kinds of unfinished runs are found along it, so the queue is in it too.
DROP INDEX durable_runs_owned;
CREATE INDEX durable_runs_owned ON durable_runs (owner, workflow, version, queue, wake_at) WHERE status NOT IN ('completed', 'failed', 'cancelled');
-- Ended runs with an owner, of which there are next to none.
CREATE INDEX durable_runs_owned_ended ON durable_runs (owner) WHERE owner <> '' AND status IN ('completed', 'failed', 'cancelled');
