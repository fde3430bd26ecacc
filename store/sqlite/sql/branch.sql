-- Statements on branches.

-- name: branch_insert (own)
INSERT INTO durable_branches (run_no, n, parent, generation, cutoff, cut_scope, reason, created_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)

-- name: branches_of (own)
SELECT n, parent, generation, cutoff, cut_scope, reason, created_at FROM durable_branches WHERE run_no = ?1 ORDER BY n

-- name: branches_delete (own)
DELETE FROM durable_branches WHERE run_no = ?1
