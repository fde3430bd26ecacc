-- Rows of runs.

-- name: run_by_id
SELECT no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code,
       reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at,
       updated_at, ended_at, wake_at, deadline_at, attributes
FROM durable_runs WHERE id = $1

-- name: run_numbers (own)
SELECT id, no FROM durable_runs WHERE id = ANY($1::text[])

-- name: lock_wait (own)
-- How long this transaction waits for a lock, in milliseconds.
SELECT pg_catalog.set_config('lock_timeout', $1, true)

-- name: lock_runs (own)
-- Locks the rows of a transaction, all at once and sorted, so that no two
-- transactions wait for each other. There is always a row, for the clock.
WITH locked AS MATERIALIZED (
  SELECT no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code,
         reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at,
         updated_at, ended_at, wake_at, deadline_at, attributes
  FROM durable_runs WHERE id = ANY($1::text[]) ORDER BY id FOR UPDATE
)
SELECT (extract(epoch FROM pg_catalog.clock_timestamp())::numeric * 1000000::numeric)::bigint AS now, locked.*
FROM (SELECT 1) one LEFT JOIN locked ON true

-- name: insert_runs (own)
-- A run that already exists is skipped, and its Change decided again.
INSERT INTO durable_runs (id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason,
  recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at,
  ended_at, wake_at, deadline_at, attributes)
SELECT u.id, u.workflow, u.initial_version, u.parent, u.parent_key, u.forked_from, u.input_hash, u.queue, u.partition, u.dedup, u.trace, u.created_at,
       u.version, u.status, u.code, u.reason, u.recoverable, u.owner, u.epoch, u.branch, u.generation, u.resumes, u.strikes, u.priority, u.inbox, u.seen,
       u.cancel_asked, u.paused, u.archived_seq, u.started_at, u.updated_at, u.ended_at, u.wake_at, u.deadline_at, u.attributes
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bytea[], $8::text[], $9::text[], $10::text[], $11::text[], $12::bigint[],
            $13::text[], $14::text[], $15::text[], $16::text[], $17::boolean[], $18::text[], $19::bigint[], $20::integer[], $21::integer[], $22::integer[],
            $23::integer[], $24::integer[], $25::bigint[], $26::bigint[], $27::boolean[], $28::boolean[], $29::bigint[], $30::bigint[], $31::bigint[],
            $32::bigint[], $33::bigint[], $34::bigint[], $35::bigint[])
  AS u (id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason,
        recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at,
        ended_at, wake_at, deadline_at, attributes)
ORDER BY u.id
ON CONFLICT (id) DO NOTHING
RETURNING id, no

-- name: update_runs (own)
-- Everything that may change in the rows of a transaction, which holds their
-- locks.
UPDATE durable_runs r SET
  version = u.version, status = u.status, code = u.code, reason = u.reason, recoverable = u.recoverable, owner = u.owner, epoch = u.epoch,
  branch = u.branch, generation = u.generation, resumes = u.resumes, strikes = u.strikes, priority = u.priority, inbox = u.inbox, seen = u.seen,
  cancel_asked = u.cancel_asked, paused = u.paused, archived_seq = u.archived_seq, started_at = u.started_at, updated_at = u.updated_at,
  ended_at = u.ended_at, wake_at = u.wake_at, deadline_at = u.deadline_at, attributes = u.attributes
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::boolean[], $7::text[], $8::bigint[], $9::integer[], $10::integer[], $11::integer[],
            $12::integer[], $13::integer[], $14::bigint[], $15::bigint[], $16::boolean[], $17::boolean[], $18::bigint[], $19::bigint[], $20::bigint[],
            $21::bigint[], $22::bigint[], $23::bigint[], $24::bigint[])
  AS u (no, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused,
        archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes)
WHERE r.no = u.no

-- name: dedup_holders (own)
SELECT r.id, r.queue, r.dedup FROM unnest($1::text[], $2::text[]) AS d (queue, dedup)
JOIN durable_runs r ON r.queue = d.queue AND r.dedup = d.dedup
WHERE r.dedup <> '' AND r.status NOT IN ('completed', 'failed', 'cancelled')

-- name: holds (own)
SELECT h.name, r.id FROM durable_holds h JOIN durable_runs r ON r.no = h.run_no
WHERE h.name = ANY($1::text[]) ORDER BY h.name FOR UPDATE OF h

-- name: insert_holds (own)
INSERT INTO durable_holds (name, run_no)
SELECT u.name, u.run_no FROM unnest($1::text[], $2::bigint[]) AS u (name, run_no) ORDER BY u.name

-- name: release_holds (own)
DELETE FROM durable_holds WHERE run_no = ANY($1::bigint[])

-- name: attributes_of
SELECT run_no AS no, name, value FROM durable_attributes WHERE run_no = ANY($1::bigint[])

-- name: delete_attributes (own)
DELETE FROM durable_attributes WHERE run_no = ANY($1::bigint[])

-- name: insert_attributes (own)
INSERT INTO durable_attributes (run_no, name, value)
SELECT u.run_no, u.name, u.value FROM unnest($1::bigint[], $2::text[], $3::text[]) AS u (run_no, name, value)

-- name: branches_of
SELECT n, parent, generation, cutoff, cut_scope, reason, created_at FROM durable_branches WHERE run_no = $1 ORDER BY n

-- name: branch_numbers (own)
SELECT run_no, n FROM durable_branches WHERE run_no = ANY($1::bigint[])

-- name: insert_branches (own)
INSERT INTO durable_branches (run_no, n, parent, generation, cutoff, cut_scope, reason, created_at)
SELECT * FROM unnest($1::bigint[], $2::integer[], $3::integer[], $4::integer[], $5::bigint[], $6::text[], $7::text[], $8::bigint[])

-- name: messages_of
SELECT seq, kind, name, id, at, data, payload FROM durable_inbox WHERE run_no = $1 AND seq > $2 ORDER BY seq

-- name: inbox_ids (own)
-- Which of these messages were delivered before (S14).
SELECT u.ord FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[]) AS u (ord, run_no, kind, id)
JOIN durable_inbox m ON m.run_no = u.run_no AND m.kind = u.kind AND pg_catalog.md5(m.id) = pg_catalog.md5(u.id) AND m.id = u.id

-- name: insert_messages (own)
INSERT INTO durable_inbox (run_no, seq, kind, name, id, at, data, payload)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[], $8::bytea[])

-- name: lock_for_delete (own)
SELECT no, id, status, owner, epoch FROM durable_runs WHERE id = ANY($1::text[]) ORDER BY id FOR UPDATE

-- name: delete_runs (own)
DELETE FROM durable_runs WHERE no = ANY($1::bigint[])

-- name: delete_events (own)
DELETE FROM durable_events WHERE run_no = ANY($1::bigint[])

-- name: delete_branches (own)
DELETE FROM durable_branches WHERE run_no = ANY($1::bigint[])

-- name: delete_inbox (own)
DELETE FROM durable_inbox WHERE run_no = ANY($1::bigint[])

-- name: runs_left (own)
SELECT pg_catalog.count(*) FROM durable_runs WHERE no = ANY($1::bigint[])
