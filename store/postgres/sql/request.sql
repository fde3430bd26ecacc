-- Requests of programs that speak SQL.

-- name: requests_waiting
SELECT EXISTS (SELECT 1 FROM durable_requests WHERE done_at IS NULL AND no > $1)

-- name: requests_take
-- The first open ones that no other drain has taken, and how many bytes each holds.
-- Starts of workflows that are not in $2 are left to others for $3 microseconds.
SELECT no, pg_catalog.octet_length(coalesce(input, ''))::bigint + pg_catalog.octet_length(coalesce(attributes, '')) + pg_catalog.octet_length(coalesce(headers, '')) + pg_catalog.octet_length(coalesce(reason, ''))
     + pg_catalog.octet_length(coalesce(run_id, '')) + pg_catalog.octet_length(coalesce(workflow, '')) + pg_catalog.octet_length(coalesce(version, '')) + pg_catalog.octet_length(coalesce(queue, ''))
     + pg_catalog.octet_length(coalesce(partition, '')) + pg_catalog.octet_length(coalesce(dedup, '')) + pg_catalog.octet_length(coalesce(name, '')) + pg_catalog.octet_length(coalesce(signal_id, '')) AS size
FROM durable_requests
WHERE done_at IS NULL AND no > $1
  AND (kind <> 'start' OR workflow = ANY($2::text[]) OR created_at <= (extract(epoch FROM pg_catalog.clock_timestamp())::numeric * 1000000::numeric)::bigint - $3)
ORDER BY no LIMIT $4 FOR UPDATE SKIP LOCKED

-- name: requests_read
SELECT no, kind, coalesce(run_id, ''), coalesce(workflow, ''), coalesce(version, ''), coalesce(queue, ''), coalesce(partition, ''), coalesce(dedup, ''),
       coalesce(priority, 0)::bigint, coalesce(wake_at, 0), coalesce(attributes, ''), coalesce(headers, ''), coalesce(input, ''), coalesce(name, ''),
       coalesce(signal_id, ''), coalesce(reason, ''), created_at
FROM durable_requests WHERE no = ANY($1::bigint[]) ORDER BY no

-- name: requests_first (own)
-- The first open requests that name a run, $2 of each at most.
SELECT w.run_id, f.no
FROM pg_catalog.unnest($1::text[]) AS w (run_id) CROSS JOIN LATERAL (
  SELECT r.no FROM durable_requests AS r
  WHERE r.done_at IS NULL AND pg_catalog.md5(r.run_id) = pg_catalog.md5(w.run_id) AND r.run_id = w.run_id ORDER BY r.no LIMIT $2) AS f
ORDER BY f.no

-- name: requests_answer
UPDATE durable_requests AS r
SET done_at = $1, run_id = coalesce(nullif(a.run_id, ''), r.run_id), code = nullif(a.code, ''), error = nullif(a.error, '')
FROM unnest($2::bigint[], $3::text[], $4::text[], $5::text[]) AS a (no, run_id, code, error)
WHERE r.no = a.no AND r.done_at IS NULL

-- name: requests_drop
DELETE FROM durable_requests WHERE no IN (SELECT no FROM durable_requests WHERE done_at < $1 ORDER BY done_at, no LIMIT $2)
