-- Claims: these statements choose and lock runs. What claims one is append_claim
-- (event.sql) and update_runs (run.sql), in one transaction (../claim.go).
-- $2 are the owners whose runs may be claimed: none (''), and executors
-- that are not live. $3 $4 are pairs of workflow and version served.

-- name: due (own)
-- What a claim may take, in order: priority, then longest wait. $1 now, $5
-- queues whose waiting runs may be taken, $6 queues with room, $7 how many. Runs
-- with a timer are searched lane by lane, from the head of one lane to the head
-- of the next: a lane costs two index lookups, however many runs sleep in it.
WITH RECURSIVE lanes (status, workflow, version, queue, owner, priority) AS (
  SELECT st.status, s.workflow, s.version, f.queue, f.owner, f.priority
  FROM unnest($3::text[], $4::text[]) AS s (workflow, version)
  CROSS JOIN pg_catalog.unnest(ARRAY['pending', 'waiting']) AS st (status)
  CROSS JOIN LATERAL (
    SELECT r.queue, r.owner, r.priority FROM durable_runs r
    WHERE r.status = st.status AND r.workflow = s.workflow AND r.version = s.version AND r.wake_at <> 0 AND NOT r.paused
    ORDER BY r.queue, r.owner, r.priority LIMIT 1) f
  UNION ALL
  SELECT l.status, l.workflow, l.version, n.queue, n.owner, n.priority
  FROM lanes l CROSS JOIN LATERAL (
    SELECT r.queue, r.owner, r.priority FROM durable_runs r
    WHERE r.status = l.status AND r.workflow = l.workflow AND r.version = l.version AND r.wake_at <> 0 AND NOT r.paused
      AND (r.queue, r.owner, r.priority) > (l.queue, l.owner, l.priority)
    ORDER BY r.queue, r.owner, r.priority LIMIT 1) n
)
SELECT c.no, c.queue, c.status FROM (
  SELECT h.* FROM unnest($3::text[], $4::text[]) AS s (workflow, version)
  CROSS JOIN pg_catalog.unnest($6::text[]) AS q (queue)
  CROSS JOIN LATERAL (
    SELECT r.no, r.queue, r.status, r.priority, r.created_at AS since
    FROM durable_runs r
    WHERE r.status = 'pending' AND r.wake_at = 0 AND NOT r.paused
      AND r.workflow = s.workflow AND r.version = s.version AND r.queue = q.queue AND r.owner = ANY($2::text[])
    ORDER BY r.priority DESC, r.created_at, r.no LIMIT $7) h
  UNION ALL
  SELECT h.* FROM lanes l CROSS JOIN LATERAL (
    SELECT r.no, r.queue, r.status, r.priority, r.wake_at
    FROM durable_runs r
    WHERE r.status = l.status AND r.workflow = l.workflow AND r.version = l.version AND r.queue = l.queue AND r.owner = l.owner
      AND r.priority = l.priority AND r.wake_at <> 0 AND NOT r.paused AND r.wake_at <= $1
    ORDER BY r.wake_at, r.no LIMIT $7) h
  WHERE l.owner = ANY($2::text[]) AND l.queue = ANY(CASE WHEN l.status = 'waiting' THEN $5::text[] ELSE $6::text[] END)
  UNION ALL
  SELECT h.* FROM unnest($3::text[], $4::text[]) AS s (workflow, version)
  CROSS JOIN pg_catalog.unnest($6::text[]) AS q (queue)
  CROSS JOIN LATERAL (
    SELECT r.no, r.queue, r.status, r.priority, CASE WHEN r.wake_at <> 0 AND r.wake_at <= $1 THEN r.wake_at ELSE r.created_at END
    FROM durable_runs r
    WHERE r.status = 'interrupted' AND r.code IN ('', 'not_registered') AND NOT r.paused
      AND r.workflow = s.workflow AND r.version = s.version AND r.queue = q.queue AND r.owner = ANY($2::text[])
    ORDER BY r.priority DESC, 5, r.no LIMIT $7) h
  UNION ALL
  SELECT h.* FROM unnest($3::text[], $4::text[]) AS s (workflow, version)
  CROSS JOIN pg_catalog.unnest($5::text[]) AS q (queue)
  CROSS JOIN pg_catalog.unnest($2::text[]) AS o (owner)
  CROSS JOIN LATERAL (
    SELECT r.no, r.queue, r.status, r.priority, r.created_at
    FROM durable_runs r
    WHERE r.status = 'waiting' AND r.workflow = s.workflow AND r.version = s.version AND r.paused = false AND r.queue = q.queue
      AND r.owner = o.owner AND r.mail AND NOT (r.wake_at <> 0 AND r.wake_at <= $1)
    ORDER BY r.no) h
  UNION ALL
  -- Paused, and a cancel was asked for.
  SELECT h.* FROM unnest($3::text[], $4::text[]) AS s (workflow, version)
  CROSS JOIN pg_catalog.unnest(ARRAY['pending', 'waiting', 'interrupted']) AS st (status)
  CROSS JOIN LATERAL (
    SELECT r.no, r.queue, r.status, r.priority, CASE WHEN r.wake_at <> 0 AND r.wake_at <= $1 THEN r.wake_at ELSE r.created_at END
    FROM durable_runs r
    WHERE r.status = st.status AND r.workflow = s.workflow AND r.version = s.version AND r.paused = true AND r.mail AND r.cancel_asked
      AND r.owner = ANY($2::text[]) AND r.queue = ANY(CASE WHEN st.status = 'waiting' THEN $5::text[] ELSE $6::text[] END)
      AND (r.status <> 'pending' OR r.wake_at <= $1) AND (r.status <> 'interrupted' OR r.code IN ('', 'not_registered'))
    ORDER BY r.queue, r.owner, r.no) h
) c ORDER BY c.priority DESC, c.since, c.no LIMIT $7

-- name: named (own)
-- Those of the named runs that a claim may take, in the order given.
SELECT r.no FROM pg_catalog.unnest($1::text[]) WITH ORDINALITY AS i (id, ord) JOIN durable_runs r ON r.id = i.id
WHERE r.status NOT IN ('completed', 'failed', 'cancelled') AND NOT (r.status = 'interrupted' AND r.code NOT IN ('', 'not_registered'))
  AND NOT r.paused AND r.owner = ANY($2::text[])
  AND (r.workflow, r.version) IN (SELECT s.workflow, s.version FROM unnest($3::text[], $4::text[]) AS s (workflow, version))
ORDER BY i.ord

-- name: claim_lock (own)
-- The row and the last event of a run, unless another transaction has it locked.
SELECT (extract(epoch FROM pg_catalog.clock_timestamp())::numeric * 1000000::numeric)::bigint AS now,
       r.no, r.id, r.workflow, r.initial_version, r.parent, r.parent_key, r.forked_from, r.input_hash, r.queue, r.partition, r.dedup, r.trace, r.created_at,
       r.version, r.status, r.code, r.reason, r.recoverable, r.owner, r.epoch, r.branch, r.generation, r.resumes, r.strikes, r.priority, r.inbox, r.seen,
       r.cancel_asked, r.paused, r.archived_seq, r.started_at, r.updated_at, r.ended_at, r.wake_at, r.deadline_at, r.attributes,
       e.run_no, e.seq, e.epoch, e.branch, e.type, e.key, e.attempt, e.ordinal, e.at, e.took, e.active, e.steps, e.data, e.payload, e.sum
FROM durable_runs r
CROSS JOIN LATERAL (SELECT * FROM durable_events l WHERE l.run_no = r.no ORDER BY l.seq DESC LIMIT 1) e
WHERE r.no = $1 FOR UPDATE OF r SKIP LOCKED

-- name: claim_lock_wait (own)
-- The same, once the transaction that has it locked has finished.
SELECT (extract(epoch FROM pg_catalog.clock_timestamp())::numeric * 1000000::numeric)::bigint AS now,
       r.no, r.id, r.workflow, r.initial_version, r.parent, r.parent_key, r.forked_from, r.input_hash, r.queue, r.partition, r.dedup, r.trace, r.created_at,
       r.version, r.status, r.code, r.reason, r.recoverable, r.owner, r.epoch, r.branch, r.generation, r.resumes, r.strikes, r.priority, r.inbox, r.seen,
       r.cancel_asked, r.paused, r.archived_seq, r.started_at, r.updated_at, r.ended_at, r.wake_at, r.deadline_at, r.attributes,
       e.run_no, e.seq, e.epoch, e.branch, e.type, e.key, e.attempt, e.ordinal, e.at, e.took, e.active, e.steps, e.data, e.payload, e.sum
FROM durable_runs r
CROSS JOIN LATERAL (SELECT * FROM durable_events l WHERE l.run_no = r.no ORDER BY l.seq DESC LIMIT 1) e
WHERE r.no = $1 FOR UPDATE OF r

-- name: run_after_claim (own)
-- For a claim whose answer was lost: the run, if the claim took effect.
SELECT r.no, r.id, r.workflow, r.initial_version, r.parent, r.parent_key, r.forked_from, r.input_hash, r.queue, r.partition, r.dedup, r.trace, r.created_at,
       r.version, r.status, r.code, r.reason, r.recoverable, r.owner, r.epoch, r.branch, r.generation, r.resumes, r.strikes, r.priority, r.inbox, r.seen,
       r.cancel_asked, r.paused, r.archived_seq, r.started_at, r.updated_at, r.ended_at, r.wake_at, r.deadline_at, r.attributes,
       e.run_no, e.seq, e.epoch, e.branch, e.type, e.key, e.attempt, e.ordinal, e.at, e.took, e.active, e.steps, e.data, e.payload, e.sum
FROM durable_runs r JOIN durable_events e ON e.run_no = r.no AND e.seq = $4
WHERE r.no = $1 AND r.owner = $2 AND r.epoch = $3 AND e.epoch = $3

-- name: queue_add (own)
INSERT INTO durable_queues (name) VALUES ($1) ON CONFLICT (name) DO NOTHING

-- name: queue_lock (own)
SELECT name FROM durable_queues WHERE name = $1 FOR UPDATE

-- name: queue_executing
SELECT queue, pg_catalog.count(*) FROM durable_runs
WHERE queue = ANY($1::text[]) AND status IN ('running', 'resuming') GROUP BY queue

-- name: lock_run (own)
SELECT no FROM durable_runs WHERE no = $1 FOR UPDATE
