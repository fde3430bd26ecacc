-- For those who look: how many runs there are of each kind, and which are the
-- newest in a status. So few distinct values make of the first an index of seven
-- bytes a run, which is counted without a look at the table. What moves a run
-- from one kind to another changes its status, which other indexes are about
-- already, so no update is dearer for them that was cheap (heap-only).
CREATE INDEX durable_runs_kind_idx   ON durable_runs (status, code, workflow, version);
CREATE INDEX durable_runs_status_idx ON durable_runs (status, created_at, no);
CREATE INDEX durable_runs_paused_idx ON durable_runs (created_at, no) WHERE paused;
