-- What is listed is found by an index that has it alone, however many runs there are.
CREATE INDEX durable_runs_code_idx ON durable_runs (code, created_at, no) WHERE code <> '';
CREATE INDEX durable_runs_ended_idx ON durable_runs (ended_at) WHERE ended_at <> 0;
-- The kinds of unfinished runs are found along it, so the queue is in it too.
DROP INDEX durable_runs_kind_idx;
CREATE INDEX durable_runs_kind_idx ON durable_runs (status, code, workflow, version, queue);
