-- Requests of programs that speak SQL.

-- name: requests_waiting
SELECT EXISTS (SELECT 1 FROM durable_requests WHERE done_at IS NULL AND no > ?1)

-- name: requests_take
-- The first open ones, and how many bytes each holds. Starts of workflows that are not
-- in ?2 are left to others until ?3 after they were inserted.
SELECT no, octet_length(coalesce(input, '')) + octet_length(coalesce(attributes, '')) + octet_length(coalesce(headers, '')) + octet_length(coalesce(reason, ''))
     + octet_length(coalesce(run_id, '')) + octet_length(coalesce(workflow, '')) + octet_length(coalesce(version, '')) + octet_length(coalesce(queue, ''))
     + octet_length(coalesce(partition, '')) + octet_length(coalesce(dedup, '')) + octet_length(coalesce(name, '')) + octet_length(coalesce(signal_id, '')) AS size
FROM durable_requests
WHERE done_at IS NULL AND no > ?1 AND (kind <> 'start' OR workflow IN (SELECT value FROM json_each(?2)) OR created_at <= ?3)
ORDER BY no LIMIT ?4

-- name: requests_read
SELECT no, kind, coalesce(run_id, ''), coalesce(workflow, ''), coalesce(version, ''), coalesce(queue, ''), coalesce(partition, ''), coalesce(dedup, ''),
       coalesce(priority, 0), coalesce(wake_at, 0), coalesce(attributes, ''), coalesce(headers, ''), coalesce(input, ''), coalesce(name, ''),
       coalesce(signal_id, ''), coalesce(reason, ''), created_at
FROM durable_requests WHERE no = ?1

-- name: requests_before (own)
-- Whether an earlier request that names the same run is open.
SELECT EXISTS (SELECT 1 FROM durable_requests WHERE done_at IS NULL AND run_id = ?1 AND no < ?2)

-- name: requests_answer
UPDATE durable_requests SET done_at = ?2, run_id = coalesce(nullif(?3, ''), run_id), code = nullif(?4, ''), error = nullif(?5, '') WHERE no = ?1

-- name: requests_drop
DELETE FROM durable_requests WHERE no IN (SELECT no FROM durable_requests WHERE done_at < ?1 ORDER BY done_at, no LIMIT ?2)
