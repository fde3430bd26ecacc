-- Claims: these statements choose, lock and change runs, in one transaction with
-- take_runs (event.sql); those of queue.sql choose among the runs in line
-- (../claim.go).
-- $2 are the owners whose runs may be claimed: none (''), and executors
-- that are not live. $3 $4 are pairs of workflow and version served.

-- name: due (own)
-- What a claim may take. $1 now, $5 the queues it takes from besides the unnamed one,
-- $6 from all. First what needs no place in a queue, in order: priority, then longest
-- wait; $7 how many. Runs with a timer are searched lane by lane, from the head of one
-- lane to the head of the next: a lane costs two index lookups, however many runs sleep
-- in it. Then, with lined true, runs in line for a place that had a timer, or were
-- paused; $8 of each lane.
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
),
boxes (workflow, version, queue) AS (
  SELECT s.workflow, s.version, (
    SELECT r.queue FROM durable_runs r
    WHERE r.status = 'waiting' AND r.workflow = s.workflow AND r.version = s.version AND r.paused = false AND r.mail ORDER BY r.queue LIMIT 1)
  FROM unnest($3::text[], $4::text[]) AS s (workflow, version)
  UNION ALL
  SELECT b.workflow, b.version, (
    SELECT r.queue FROM durable_runs r
    WHERE r.status = 'waiting' AND r.workflow = b.workflow AND r.version = b.version AND r.paused = false AND r.mail AND r.queue > b.queue
    ORDER BY r.queue LIMIT 1)
  FROM boxes b WHERE b.queue IS NOT NULL
)
(SELECT c.no, c.queue, c.partition, c.status, c.priority, c.since, false AS lined FROM (
  SELECT h.* FROM unnest($3::text[], $4::text[]) AS s (workflow, version)
  CROSS JOIN LATERAL (
    SELECT r.no, r.queue, r.partition, r.status, r.priority, r.created_at AS since
    FROM durable_runs r
    WHERE r.queue = '' AND r.status = 'pending' AND r.wake_at = 0 AND NOT r.paused
      AND r.workflow = s.workflow AND r.version = s.version AND r.owner = ANY($2::text[])
    ORDER BY r.priority DESC, r.created_at, r.no LIMIT $7) h
  UNION ALL
  SELECT h.* FROM lanes l CROSS JOIN LATERAL (
    SELECT r.no, r.queue, r.partition, r.status, r.priority, r.wake_at
    FROM durable_runs r
    WHERE r.status = l.status AND r.workflow = l.workflow AND r.version = l.version AND r.queue = l.queue AND r.owner = l.owner
      AND r.priority = l.priority AND r.wake_at <> 0 AND NOT r.paused AND r.wake_at <= $1
    ORDER BY r.wake_at, r.no LIMIT $7) h
  WHERE l.owner = ANY($2::text[])
    AND (l.queue = '' OR l.status = 'waiting' AND ($6::boolean OR l.queue = ANY($5::text[])))
  UNION ALL
  SELECT h.* FROM unnest($3::text[], $4::text[]) AS s (workflow, version)
  CROSS JOIN LATERAL (
    SELECT r.no, r.queue, r.partition, r.status, r.priority, r.created_at
    FROM durable_runs r
    WHERE r.queue = '' AND r.status = 'interrupted' AND r.code IN ('', 'not_registered') AND NOT r.paused
      AND r.workflow = s.workflow AND r.version = s.version AND r.owner = ANY($2::text[])
    ORDER BY r.priority DESC, r.created_at, r.no LIMIT $7) h
  UNION ALL
  SELECT h.* FROM boxes b
  CROSS JOIN pg_catalog.unnest($2::text[]) AS o (owner)
  CROSS JOIN LATERAL (
    SELECT r.no, r.queue, r.partition, r.status, r.priority, r.created_at
    FROM durable_runs r
    WHERE r.status = 'waiting' AND r.workflow = b.workflow AND r.version = b.version AND r.paused = false AND r.queue = b.queue
      AND r.owner = o.owner AND r.mail AND NOT (r.wake_at <> 0 AND r.wake_at <= $1)
    ORDER BY r.no) h
  WHERE b.queue = '' OR $6::boolean OR b.queue = ANY($5::text[])
  UNION ALL
  -- Paused, and a cancel was asked for.
  SELECT h.* FROM unnest($3::text[], $4::text[]) AS s (workflow, version)
  CROSS JOIN pg_catalog.unnest(ARRAY['pending', 'waiting', 'interrupted']) AS st (status)
  CROSS JOIN LATERAL (
    SELECT r.no, r.queue, r.partition, r.status, r.priority, CASE WHEN r.wake_at <> 0 AND r.wake_at <= $1 AND r.status <> 'interrupted' THEN r.wake_at ELSE r.created_at END
    FROM durable_runs r
    WHERE r.status = st.status AND r.workflow = s.workflow AND r.version = s.version AND r.paused = true AND r.mail AND r.cancel_asked
      AND r.owner = ANY($2::text[]) AND (r.queue = '' OR st.status = 'waiting' AND ($6::boolean OR r.queue = ANY($5::text[])))
      AND (r.status <> 'pending' OR r.wake_at <= $1) AND (r.status <> 'interrupted' OR r.code IN ('', 'not_registered'))
    ORDER BY r.queue, r.owner, r.no) h
  UNION ALL
  -- Of a queue, and cancelled before it began: it executes nothing.
  SELECT h.* FROM unnest($3::text[], $4::text[]) AS s (workflow, version)
  CROSS JOIN LATERAL (
    SELECT r.no, r.queue, r.partition, r.status, r.priority, CASE WHEN r.wake_at <> 0 THEN r.wake_at ELSE r.created_at END
    FROM durable_runs r
    WHERE r.queue <> '' AND r.cancel_asked AND r.status IN ('pending', 'interrupted') AND r.status = 'pending'
      AND r.workflow = s.workflow AND r.version = s.version
      AND r.wake_at <= $1 AND r.owner = ANY($2::text[]) AND ($6::boolean OR r.queue = ANY($5::text[]))
    ORDER BY r.queue, r.no) h
) c ORDER BY c.priority DESC, c.since, c.no LIMIT $7)
UNION ALL
SELECT h.* FROM lanes l CROSS JOIN LATERAL (
  SELECT r.no, r.queue, r.partition, r.status, r.priority, r.wake_at, true
  FROM durable_runs r
  WHERE r.status = l.status AND r.workflow = l.workflow AND r.version = l.version AND r.queue = l.queue AND r.owner = l.owner
    AND r.priority = l.priority AND r.wake_at <> 0 AND NOT r.paused AND r.wake_at <= $1 AND NOT r.cancel_asked
  ORDER BY r.wake_at, r.no LIMIT $8) h
WHERE l.status = 'pending' AND l.queue <> '' AND l.owner = ANY($2::text[]) AND ($6::boolean OR l.queue = ANY($5::text[]))
UNION ALL
SELECT h.* FROM unnest($3::text[], $4::text[]) AS s (workflow, version)
CROSS JOIN LATERAL (
  SELECT r.no, r.queue, r.partition, r.status, r.priority, r.created_at, true
  FROM durable_runs r
  WHERE r.queue <> '' AND r.cancel_asked AND r.status IN ('pending', 'interrupted') AND r.status = 'interrupted'
    AND r.workflow = s.workflow AND r.version = s.version AND r.paused AND r.code IN ('', 'not_registered')
    AND r.owner = ANY($2::text[]) AND ($6::boolean OR r.queue = ANY($5::text[]))
  ORDER BY r.queue, r.no) h

-- name: named (own)
-- Those of the named runs that a claim may take, in the order given.
SELECT r.no, r.queue, r.partition, r.status, r.priority, r.created_at, r.queue <> '' AND (r.status = 'interrupted' OR r.status = 'pending' AND NOT r.cancel_asked)
FROM pg_catalog.unnest($1::text[]) WITH ORDINALITY AS i (id, ord) JOIN durable_runs r ON r.id = i.id
WHERE r.status NOT IN ('completed', 'failed', 'cancelled') AND NOT (r.status = 'interrupted' AND r.code NOT IN ('', 'not_registered'))
  AND NOT r.paused AND r.owner = ANY($2::text[])
  AND (r.workflow, r.version) IN (SELECT s.workflow, s.version FROM unnest($3::text[], $4::text[]) AS s (workflow, version))
ORDER BY i.ord

-- name: claim_lock (own)
-- The rows and the last events of runs, in the order given, $2 at most, without those
-- that another transaction has locked. A claim needs of the last event neither data nor
-- payload, unless it is the only one and small (store.Claim.Created). They are left out in the
-- inner query: the server copies its whole row for each candidate, because of the lock.
SELECT (extract(epoch FROM pg_catalog.clock_timestamp())::numeric * 1000000::numeric)::bigint AS now,
       r.no, r.id, r.workflow, r.initial_version, r.parent, r.parent_key, r.forked_from, r.input_hash, r.queue, r.partition, r.dedup, r.trace, r.created_at,
       r.version, r.status, r.code, r.reason, r.recoverable, r.owner, r.epoch, r.branch, r.generation, r.resumes, r.strikes, r.priority, r.inbox, r.seen,
       r.cancel_asked, r.paused, r.archived_seq, r.started_at, r.updated_at, r.ended_at, r.wake_at, r.deadline_at, r.attributes,
       e.run_no, e.seq, e.epoch, e.branch, e.type, e.key, e.attempt, e.ordinal, e.at, e.took, e.active, e.steps, e.data, e.payload, e.sum, e.whole
FROM pg_catalog.unnest($1::bigint[]) WITH ORDINALITY AS i (no, ord) JOIN durable_runs r ON r.no = i.no
CROSS JOIN LATERAL (
  SELECT l.run_no, l.seq, l.epoch, l.branch, l.type, l.key, l.attempt, l.ordinal, l.at, l.took, l.active, l.steps,
         CASE WHEN l.seq = 1 AND COALESCE(pg_catalog.octet_length(l.data), 0) + COALESCE(pg_catalog.octet_length(l.payload), 0) <= 16384 THEN l.data END AS data,
         CASE WHEN l.seq = 1 AND COALESCE(pg_catalog.octet_length(l.data), 0) + COALESCE(pg_catalog.octet_length(l.payload), 0) <= 16384 THEN l.payload END AS payload,
         l.sum, l.seq = 1 AND COALESCE(pg_catalog.octet_length(l.data), 0) + COALESCE(pg_catalog.octet_length(l.payload), 0) <= 16384 AS whole
  FROM durable_events l WHERE l.run_no = r.no ORDER BY l.seq DESC LIMIT 1) e
ORDER BY i.ord LIMIT $2 FOR UPDATE OF r SKIP LOCKED

-- name: claim_lock_wait (own)
-- The same, once the transactions that have them locked have finished.
SELECT (extract(epoch FROM pg_catalog.clock_timestamp())::numeric * 1000000::numeric)::bigint AS now,
       r.no, r.id, r.workflow, r.initial_version, r.parent, r.parent_key, r.forked_from, r.input_hash, r.queue, r.partition, r.dedup, r.trace, r.created_at,
       r.version, r.status, r.code, r.reason, r.recoverable, r.owner, r.epoch, r.branch, r.generation, r.resumes, r.strikes, r.priority, r.inbox, r.seen,
       r.cancel_asked, r.paused, r.archived_seq, r.started_at, r.updated_at, r.ended_at, r.wake_at, r.deadline_at, r.attributes,
       e.run_no, e.seq, e.epoch, e.branch, e.type, e.key, e.attempt, e.ordinal, e.at, e.took, e.active, e.steps, e.data, e.payload, e.sum, e.whole
FROM pg_catalog.unnest($1::bigint[]) WITH ORDINALITY AS i (no, ord) JOIN durable_runs r ON r.no = i.no
CROSS JOIN LATERAL (
  SELECT l.run_no, l.seq, l.epoch, l.branch, l.type, l.key, l.attempt, l.ordinal, l.at, l.took, l.active, l.steps,
         CASE WHEN l.seq = 1 AND COALESCE(pg_catalog.octet_length(l.data), 0) + COALESCE(pg_catalog.octet_length(l.payload), 0) <= 16384 THEN l.data END AS data,
         CASE WHEN l.seq = 1 AND COALESCE(pg_catalog.octet_length(l.data), 0) + COALESCE(pg_catalog.octet_length(l.payload), 0) <= 16384 THEN l.payload END AS payload,
         l.sum, l.seq = 1 AND COALESCE(pg_catalog.octet_length(l.data), 0) + COALESCE(pg_catalog.octet_length(l.payload), 0) <= 16384 AS whole
  FROM durable_events l WHERE l.run_no = r.no ORDER BY l.seq DESC LIMIT 1) e
ORDER BY i.ord LIMIT $2 FOR UPDATE OF r

-- name: named_rows (own)
-- Runs that a claim names, with their attributes and last events: what it decides by. version is
-- which version of the row that is. There is a row for each id.
SELECT i.ord, (extract(epoch FROM pg_catalog.clock_timestamp())::numeric * 1000000::numeric)::bigint AS now, r.row_version, r.named,
       r.no, r.id, r.workflow, r.initial_version, r.parent, r.parent_key, r.forked_from, r.input_hash, r.queue, r.partition, r.dedup, r.trace, r.created_at,
       r.version, r.status, r.code, r.reason, r.recoverable, r.owner, r.epoch, r.branch, r.generation, r.resumes, r.strikes, r.priority, r.inbox, r.seen,
       r.cancel_asked, r.paused, r.archived_seq, r.started_at, r.updated_at, r.ended_at, r.wake_at, r.deadline_at, r.attributes,
       e.run_no, e.seq, e.epoch, e.branch, e.type, e.key, e.attempt, e.ordinal, e.at, e.took, e.active, e.steps, e.data, e.payload, e.sum, e.whole
FROM pg_catalog.unnest($1::text[]) WITH ORDINALITY AS i (id, ord)
LEFT JOIN LATERAL (
  SELECT q.xmin::text AS row_version, CASE WHEN q.attributes > 0 THEN (
           SELECT pg_catalog.json_object_agg(a.name, a.value)::text FROM durable_attributes a WHERE a.run_no = q.no) END AS named, q.*
  FROM durable_runs q WHERE q.id = i.id LIMIT 1) r ON true
LEFT JOIN LATERAL (
  SELECT l.run_no, l.seq, l.epoch, l.branch, l.type, l.key, l.attempt, l.ordinal, l.at, l.took, l.active, l.steps,
         CASE WHEN l.seq = 1 AND COALESCE(pg_catalog.octet_length(l.data), 0) + COALESCE(pg_catalog.octet_length(l.payload), 0) <= 16384 THEN l.data END AS data,
         CASE WHEN l.seq = 1 AND COALESCE(pg_catalog.octet_length(l.data), 0) + COALESCE(pg_catalog.octet_length(l.payload), 0) <= 16384 THEN l.payload END AS payload,
         l.sum, l.seq = 1 AND COALESCE(pg_catalog.octet_length(l.data), 0) + COALESCE(pg_catalog.octet_length(l.payload), 0) <= 16384 AS whole
  FROM durable_events l WHERE l.run_no = r.no ORDER BY l.seq DESC LIMIT 1) e ON true

-- name: take_seen (own)
-- take_runs for runs that were seen without a lock. Those are left out, and do not come back, that
-- another transaction has locked, whose rows have changed since ($22 their versions), or
-- whose owners have: $23 $24 are the executors that were gone, and their last beats.
WITH fit AS MATERIALIZED (
  SELECT r.no FROM unnest($1::bigint[], $22::text[]) AS u (no, version) JOIN durable_runs r ON r.no = u.no
  WHERE r.xmin::text = u.version
    AND (SELECT pg_catalog.count(*) FROM durable_executors x WHERE x.id = r.owner AND x.id <> ALL (
           SELECT g.id FROM unnest($23::text[], $24::bigint[]) AS g (id, beat_at) WHERE g.beat_at = x.beat_at)) = 0
  FOR UPDATE OF r SKIP LOCKED
),
appended AS (
  INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum)
  SELECT e.run_no, e.seq, e.epoch, e.branch, e.type, e.key, e.attempt, e.ordinal, e.at, e.took, e.active, e.steps, e.data, e.payload, e.sum
  FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::integer[], $5::text[], $6::text[], $7::integer[], $8::integer[], $9::bigint[],
              $10::bigint[], $11::bigint[], $12::integer[], $13::text[], $14::bytea[], $15::bigint[])
    AS e (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum)
  WHERE e.run_no IN (SELECT f.no FROM fit f)
  ORDER BY e.run_no
  ON CONFLICT (run_no, seq) DO NOTHING
  RETURNING run_no
)
UPDATE durable_runs r SET status = u.status, owner = $16::text, epoch = u.epoch, strikes = u.strikes, resumes = u.resumes, started_at = u.started_at,
  updated_at = u.updated_at
FROM unnest($1::bigint[], $17::text[], $3::bigint[], $18::integer[], $19::integer[], $20::bigint[], $21::bigint[])
  AS u (no, status, epoch, strikes, resumes, started_at, updated_at)
WHERE r.no = u.no AND (u.no IN (SELECT a.run_no FROM appended a)) IS TRUE
RETURNING r.no

-- name: run_after_claim (own)
-- For a claim whose answer was lost: the run, if the claim took effect.
SELECT r.no, r.id, r.workflow, r.initial_version, r.parent, r.parent_key, r.forked_from, r.input_hash, r.queue, r.partition, r.dedup, r.trace, r.created_at,
       r.version, r.status, r.code, r.reason, r.recoverable, r.owner, r.epoch, r.branch, r.generation, r.resumes, r.strikes, r.priority, r.inbox, r.seen,
       r.cancel_asked, r.paused, r.archived_seq, r.started_at, r.updated_at, r.ended_at, r.wake_at, r.deadline_at, r.attributes,
       e.run_no, e.seq, e.epoch, e.branch, e.type, e.key, e.attempt, e.ordinal, e.at, e.took, e.active, e.steps, e.data, e.payload, e.sum
FROM durable_runs r JOIN durable_events e ON e.run_no = r.no AND e.seq = $4
WHERE r.no = $1 AND r.owner = $2 AND r.epoch = $3 AND e.epoch = $3

-- name: renew_run (own)
-- Nothing but another version of the row: a take_seen that the server has yet to begin leaves the
-- run out then.
UPDATE durable_runs SET owner = owner WHERE no = $1

-- name: lock_run (own)
SELECT no FROM durable_runs WHERE no = $1 FOR UPDATE
