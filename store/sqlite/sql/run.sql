-- Statements on the rows of runs.

-- name: run_number (own)
SELECT no FROM durable_runs WHERE id = ?1

-- name: run_head (own)
-- What a Change checks before it writes.
SELECT no, status, owner, epoch, cancel_asked, updated_at, queue, dedup, workflow, input_hash, parent, parent_key, inbox
FROM durable_runs WHERE id = ?1

-- name: run_by_id (own)
SELECT no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at,
  version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked,
  paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes
FROM durable_runs WHERE id = ?1

-- name: run_by_number (own)
SELECT no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at,
  version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked,
  paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes
FROM durable_runs WHERE no = ?1

-- name: run_insert (own)
INSERT INTO durable_runs (id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace,
  created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen,
  cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28,
  ?29, ?30, ?31, ?32, ?33, ?34, ?35)

-- name: run_dedup (own)
-- The unfinished run that has this Dedup in this queue (S12).
SELECT id FROM durable_runs
WHERE queue = ?1 AND dedup = ?2 AND dedup <> '' AND status NOT IN ('completed', 'failed', 'cancelled')

-- name: run_delete (own)
DELETE FROM durable_runs WHERE no = ?1

-- name: attributes_of
SELECT run_no, name, value FROM durable_attributes WHERE run_no IN (SELECT value FROM json_each(?1))

-- name: attribute_insert (own)
INSERT INTO durable_attributes (run_no, name, value) VALUES (?1, ?2, ?3)

-- name: attributes_delete (own)
DELETE FROM durable_attributes WHERE run_no = ?1

-- name: hold_of (own)
SELECT h.run_no, r.id FROM durable_holds AS h JOIN durable_runs AS r ON r.no = h.run_no WHERE h.key = ?1

-- name: hold_insert (own)
INSERT INTO durable_holds (key, run_no) VALUES (?1, ?2)

-- name: holds_delete (own)
DELETE FROM durable_holds WHERE run_no = ?1
