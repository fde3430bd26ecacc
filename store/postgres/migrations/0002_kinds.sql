-- For those who look: how many runs there are of each kind, and the few of a
-- rare one. So few distinct values make an index of seven bytes a run, which is
-- counted without a look at the table; what moves a run from one kind to another
-- changes its status, which other indexes are about already, so no update is
-- dearer for it that was cheap (heap-only).
CREATE INDEX durable_runs_kind_idx   ON durable_runs (status, code, workflow, version);
CREATE INDEX durable_runs_paused_idx ON durable_runs (created_at, no) WHERE paused;
