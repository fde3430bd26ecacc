-- Statements of a claim.

-- name: claim_by_number (own)
-- A run and the last event of its log: with data and payload only if that is the first one and small,
-- and whether it is the whole history of a run that nobody has begun (store.Claim.Created).
SELECT r.no, r.id, r.workflow, r.initial_version, r.parent, r.parent_key, r.forked_from, r.input_hash, r.queue, r.partition, r.dedup, r.trace, r.created_at,
  r.version, r.status, r.code, r.reason, r.recoverable, r.owner, r.epoch, r.branch, r.generation, r.resumes, r.strikes, r.priority, r.inbox, r.seen, r.cancel_asked,
  r.paused, r.archived_seq, r.started_at, r.updated_at, r.ended_at, r.wake_at, r.deadline_at, r.attributes,
  e.place & 268435455, e.epoch, e.branch, e.type, e.key, e.attempt, e.ordinal, e.at, e.took, e.active, e.steps,
  CASE WHEN e.place & 268435455 = 1 AND coalesce(octet_length(e.data), 0) + coalesce(octet_length(e.payload), 0) <= 16384 THEN e.data END,
  CASE WHEN e.place & 268435455 = 1 AND coalesce(octet_length(e.data), 0) + coalesce(octet_length(e.payload), 0) <= 16384 THEN e.payload END, e.sum,
  e.place & 268435455 = 1 AND coalesce(octet_length(e.data), 0) + coalesce(octet_length(e.payload), 0) <= 16384 AND r.status = 'pending' AND r.inbox = 0
    AND NOT EXISTS (SELECT 1 FROM durable_branches AS b WHERE b.run_no = r.no) AS whole
FROM durable_runs AS r
LEFT JOIN durable_events AS e ON e.place = (SELECT max(l.place) FROM durable_events AS l WHERE l.place > r.no << 28 AND l.place < (r.no + 1) << 28)
WHERE r.no = ?1

-- name: claim_by_id (own)
SELECT r.no, r.id, r.workflow, r.initial_version, r.parent, r.parent_key, r.forked_from, r.input_hash, r.queue, r.partition, r.dedup, r.trace, r.created_at,
  r.version, r.status, r.code, r.reason, r.recoverable, r.owner, r.epoch, r.branch, r.generation, r.resumes, r.strikes, r.priority, r.inbox, r.seen, r.cancel_asked,
  r.paused, r.archived_seq, r.started_at, r.updated_at, r.ended_at, r.wake_at, r.deadline_at, r.attributes,
  e.place & 268435455, e.epoch, e.branch, e.type, e.key, e.attempt, e.ordinal, e.at, e.took, e.active, e.steps,
  CASE WHEN e.place & 268435455 = 1 AND coalesce(octet_length(e.data), 0) + coalesce(octet_length(e.payload), 0) <= 16384 THEN e.data END,
  CASE WHEN e.place & 268435455 = 1 AND coalesce(octet_length(e.data), 0) + coalesce(octet_length(e.payload), 0) <= 16384 THEN e.payload END, e.sum,
  e.place & 268435455 = 1 AND coalesce(octet_length(e.data), 0) + coalesce(octet_length(e.payload), 0) <= 16384 AND r.status = 'pending' AND r.inbox = 0
    AND NOT EXISTS (SELECT 1 FROM durable_branches AS b WHERE b.run_no = r.no) AS whole
FROM durable_runs AS r
LEFT JOIN durable_events AS e ON e.place = (SELECT max(l.place) FROM durable_events AS l WHERE l.place > r.no << 28 AND l.place < (r.no + 1) << 28)
WHERE r.id = ?1

-- name: lanes (own)
-- The lanes that hold a ready run: a walk from the head of one lane to the head
-- of the next, so that a lane costs one or two lookups however many runs wait
-- in it. ready_at is that of the head, the smallest of the lane. The next lane
-- is the one that differs in the last column, else in the column before it, and
-- so on: with a single row comparison instead, SQLite would read through the
-- lane.
WITH RECURSIVE lane (no) AS (
  SELECT (SELECT no FROM durable_runs WHERE ready IS NOT NULL
    ORDER BY owner, queue, workflow, version, priority, ready, ready_at, no LIMIT 1)
  UNION ALL
  SELECT coalesce(
    (SELECT n.no FROM durable_runs AS n WHERE n.ready IS NOT NULL AND n.owner = r.owner AND n.queue = r.queue AND n.workflow = r.workflow AND n.version = r.version AND n.priority = r.priority AND n.ready > r.ready
      ORDER BY n.ready, n.ready_at, n.no LIMIT 1),
    (SELECT n.no FROM durable_runs AS n WHERE n.ready IS NOT NULL AND n.owner = r.owner AND n.queue = r.queue AND n.workflow = r.workflow AND n.version = r.version AND n.priority > r.priority
      ORDER BY n.priority, n.ready, n.ready_at, n.no LIMIT 1),
    (SELECT n.no FROM durable_runs AS n WHERE n.ready IS NOT NULL AND n.owner = r.owner AND n.queue = r.queue AND n.workflow = r.workflow AND n.version > r.version
      ORDER BY n.version, n.priority, n.ready, n.ready_at, n.no LIMIT 1),
    (SELECT n.no FROM durable_runs AS n WHERE n.ready IS NOT NULL AND n.owner = r.owner AND n.queue = r.queue AND n.workflow > r.workflow
      ORDER BY n.workflow, n.version, n.priority, n.ready, n.ready_at, n.no LIMIT 1),
    (SELECT n.no FROM durable_runs AS n WHERE n.ready IS NOT NULL AND n.owner = r.owner AND n.queue > r.queue
      ORDER BY n.queue, n.workflow, n.version, n.priority, n.ready, n.ready_at, n.no LIMIT 1),
    (SELECT n.no FROM durable_runs AS n WHERE n.ready IS NOT NULL AND n.owner > r.owner
      ORDER BY n.owner, n.queue, n.workflow, n.version, n.priority, n.ready, n.ready_at, n.no LIMIT 1))
  FROM lane JOIN durable_runs AS r ON r.no = lane.no
)
SELECT r.owner, r.queue, r.workflow, r.version, r.priority, r.ready, r.ready_at FROM lane JOIN durable_runs AS r ON r.no = lane.no

-- name: lane_heads (own)
-- The first runs of a lane that are ready at ?7.
SELECT no, wake_at, created_at FROM durable_runs
WHERE owner = ?1 AND queue = ?2 AND workflow = ?3 AND version = ?4 AND priority = ?5 AND ready = ?6 AND ready IS NOT NULL
  AND (ready_at <= ?7 OR ready NOT IN (2, 5))
ORDER BY ready_at, no LIMIT ?8
