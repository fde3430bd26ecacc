-- Queues and the runs in line for a place in them.
--
-- A lane is the runs of one status, workflow, version and queue. In every statement
-- the conditions of an index are written as in the migration: the server recognises
-- them by their text.

-- name: queue_add (own)
INSERT INTO durable_queues (name) SELECT n.name FROM pg_catalog.unnest($1::text[]) AS n (name) ORDER BY n.name
ON CONFLICT (name) DO NOTHING

-- name: queue_put (own)
UPDATE durable_queues SET revision = $2 + 1, max_placed = $3, max_partition = $4, rate = $5, per = $6, paused = $7, reason = $8,
  updated_at = (extract(epoch FROM pg_catalog.clock_timestamp())::numeric * 1000000::numeric)::bigint
WHERE name = $1 AND revision = $2

-- name: queues_of (own)
SELECT name, revision, max_placed, max_partition, rate, per, paused, reason, updated_at, turn, begun
FROM durable_queues WHERE name = ANY($1::text[])

-- name: queue_lock (own)
-- For a claim from a queue with limits: one at a time, and after those that found
-- the queue without limits.
SELECT name, revision, max_placed, max_partition, rate, per, paused, reason, updated_at, turn, begun
FROM durable_queues WHERE name = ANY($1::text[]) ORDER BY name FOR UPDATE

-- name: queue_share (own)
-- For claims from queues without limits, which do not wait for each other. A claim
-- that finds a limit, put meanwhile, waits for them.
SELECT name, revision, max_placed, max_partition, rate, per, paused, reason, updated_at, turn, begun
FROM durable_queues WHERE name = ANY($1::text[]) ORDER BY name FOR KEY SHARE

-- name: queue_use (own)
-- What is in use of queues: runs that hold a place, if that is limited, and claims
-- within the window, if there is a rate: their number, and the time of the one whose
-- age decides when the next run may begin. ahead: some are from the future.
WITH clock AS MATERIALIZED (SELECT (extract(epoch FROM pg_catalog.clock_timestamp())::numeric * 1000000::numeric)::bigint AS now)
SELECT q.name, clock.now,
       CASE WHEN q.max_placed > 0 THEN (
         SELECT pg_catalog.count(*) FROM durable_runs r
         WHERE r.queue = q.name AND r.queue <> '' AND r.status IN ('running', 'resuming', 'waiting')) ELSE 0 END AS placed,
       COALESCE(q.begun - w.first, 0) AS begun,
       COALESCE((SELECT b.at FROM durable_queue_begun b WHERE b.queue = q.name AND b.first <= greatest(w.first, q.begun - q.rate) ORDER BY b.first DESC LIMIT 1), 0) AS at,
       EXISTS (SELECT 1 FROM durable_queue_begun b WHERE b.queue = q.name AND b.at > clock.now) AS ahead
FROM clock CROSS JOIN durable_queues q
LEFT JOIN LATERAL (
  SELECT b.first FROM durable_queue_begun b WHERE q.rate > 0 AND b.queue = q.name AND b.at > clock.now - q.per ORDER BY b.at, b.first LIMIT 1) w ON true
WHERE q.name = ANY($1::text[])

-- name: queue_parts (own)
-- The same by partition, where there is one.
SELECT r.queue, r.partition, pg_catalog.count(*) FROM durable_runs r
WHERE r.queue = ANY($1::text[]) AND r.queue <> '' AND r.status IN ('running', 'resuming', 'waiting') GROUP BY r.queue, r.partition

-- name: queue_turns (own)
-- Saves where the turn is, $4 runs of a rate later. A queue without limits that is
-- locked stays as it is: its turn is not worth a wait.
WITH free AS MATERIALIZED (SELECT q.name FROM durable_queues q WHERE q.name = ANY($1::text[]) ORDER BY q.name FOR NO KEY UPDATE SKIP LOCKED)
UPDATE durable_queues q SET turn = u.turn, begun = q.begun + u.n
FROM unnest($1::text[], $2::text[], $3::bigint[]) AS u (name, turn, n) JOIN free ON free.name = u.name
WHERE q.name = u.name

-- name: begun_add (own)
INSERT INTO durable_queue_begun (queue, first, at)
SELECT u.queue, u.first, u.at FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS u (queue, first, at)

-- name: begun_forget (own)
-- Those at or before a time.
DELETE FROM durable_queue_begun b USING unnest($1::text[], $2::bigint[]) AS u (queue, at)
WHERE b.queue = u.queue AND b.at <= u.at

-- name: begun_clamp (own)
-- The clock has gone back: claims that it remembers for later count as of now.
UPDATE durable_queue_begun SET at = $2 WHERE queue = $1 AND at > $2

-- name: lanes_listed (own)
-- Which of the listed queues, $3, have runs in line that do not wait for a time.
SELECT st.status, s.workflow, s.version, q.queue
FROM unnest($1::text[], $2::text[]) AS s (workflow, version)
CROSS JOIN pg_catalog.unnest(ARRAY['pending', 'interrupted']) AS st (status)
CROSS JOIN pg_catalog.unnest($3::text[]) AS q (queue)
CROSS JOIN LATERAL (
  SELECT 1 FROM durable_runs r
  WHERE r.queue <> '' AND NOT r.paused
    AND (r.status = 'pending' AND r.wake_at = 0 AND NOT r.cancel_asked OR r.status = 'interrupted' AND r.code IN ('', 'not_registered'))
    AND r.status = st.status AND r.workflow = s.workflow AND r.version = s.version AND r.queue = q.queue
  ORDER BY r.partition LIMIT 1) h

-- name: lanes_any (own)
-- Which queues have, from lane to lane.
WITH RECURSIVE lanes (status, workflow, version, queue) AS (
  SELECT st.status, s.workflow, s.version, (
    SELECT r.queue FROM durable_runs r
    WHERE r.queue <> '' AND NOT r.paused
      AND (r.status = 'pending' AND r.wake_at = 0 AND NOT r.cancel_asked OR r.status = 'interrupted' AND r.code IN ('', 'not_registered'))
      AND r.status = st.status AND r.workflow = s.workflow AND r.version = s.version
    ORDER BY r.queue LIMIT 1)
  FROM unnest($1::text[], $2::text[]) AS s (workflow, version)
  CROSS JOIN pg_catalog.unnest(ARRAY['pending', 'interrupted']) AS st (status)
  UNION ALL
  SELECT l.status, l.workflow, l.version, (
    SELECT r.queue FROM durable_runs r
    WHERE r.queue <> '' AND NOT r.paused
      AND (r.status = 'pending' AND r.wake_at = 0 AND NOT r.cancel_asked OR r.status = 'interrupted' AND r.code IN ('', 'not_registered'))
      AND r.status = l.status AND r.workflow = l.workflow AND r.version = l.version AND r.queue > l.queue
    ORDER BY r.queue LIMIT 1)
  FROM lanes l WHERE l.queue IS NOT NULL
)
SELECT status, workflow, version, queue FROM lanes WHERE queue IS NOT NULL

-- name: line_parts (own)
-- The next partitions of lanes, from partition to partition, for each lane (given by
-- its place in the arrays) from low on and, if high is not NULL, up to high. $7 $8
-- are pairs of queue and partition that are full: they do not count for $9, how many
-- are wanted.
WITH RECURSIVE parts (ord, status, workflow, version, queue, high, most, partition, n) AS (
  SELECT l.ord, l.status, l.workflow, l.version, l.queue, l.high, l.most, (
    SELECT r.partition FROM durable_runs r
    WHERE r.queue <> '' AND NOT r.paused
      AND (r.status = 'pending' AND r.wake_at = 0 AND NOT r.cancel_asked OR r.status = 'interrupted' AND r.code IN ('', 'not_registered'))
      AND r.status = l.status AND r.workflow = l.workflow AND r.version = l.version AND r.queue = l.queue AND r.partition >= l.low
    ORDER BY r.partition LIMIT 1), 0::bigint
  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $9::bigint[])
    WITH ORDINALITY AS l (status, workflow, version, queue, low, high, most, ord)
  UNION ALL
  SELECT p.ord, p.status, p.workflow, p.version, p.queue, p.high, p.most, (
    SELECT r.partition FROM durable_runs r
    WHERE r.queue <> '' AND NOT r.paused
      AND (r.status = 'pending' AND r.wake_at = 0 AND NOT r.cancel_asked OR r.status = 'interrupted' AND r.code IN ('', 'not_registered'))
      AND r.status = p.status AND r.workflow = p.workflow AND r.version = p.version AND r.queue = p.queue AND r.partition > p.partition
    ORDER BY r.partition LIMIT 1),
    p.n + CASE WHEN (p.queue, p.partition) IN (SELECT f.queue, f.partition FROM unnest($7::text[], $8::text[]) AS f (queue, partition)) THEN 0 ELSE 1 END
  FROM parts p WHERE p.partition IS NOT NULL AND p.n < p.most AND (p.high IS NULL OR p.partition < p.high)
)
SELECT p.ord, p.partition, (p.queue, p.partition) IN (SELECT f.queue, f.partition FROM unnest($7::text[], $8::text[]) AS f (queue, partition)) AS full
FROM parts p WHERE p.partition IS NOT NULL AND p.n < p.most AND (p.high IS NULL OR p.partition <= p.high)

-- name: line_heads (own)
-- The first runs of partitions of lanes, as many of each as $7 says. $6 are the owners
-- whose runs may be claimed.
SELECT l.ord, h.no, h.rank
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $7::bigint[])
  WITH ORDINALITY AS l (status, workflow, version, queue, partition, most, ord)
CROSS JOIN LATERAL (
  SELECT r.no, r.created_at - r.priority * 3600000000 AS rank FROM durable_runs r
  WHERE r.queue <> '' AND NOT r.paused
    AND (r.status = 'pending' AND r.wake_at = 0 AND NOT r.cancel_asked OR r.status = 'interrupted' AND r.code IN ('', 'not_registered'))
    AND r.status = l.status AND r.workflow = l.workflow AND r.version = l.version AND r.queue = l.queue AND r.partition = l.partition
    AND r.owner = ANY($6::text[])
  ORDER BY r.created_at - r.priority * 3600000000, r.no LIMIT l.most) h

-- name: timed_parts (own)
-- The same where so many runs had to wait for a time, and are due, that a claim does not
-- look at all of them: from each partition, workflow, version and priority to the next,
-- of which the first run is the one that is due first. $1 are queues, $9 now.
WITH RECURSIVE parts (ord, queue, high, most, partition, workflow, version, priority, good, n) AS (
  SELECT l.ord, l.queue, l.high, l.most, f.partition, f.workflow, f.version, f.priority,
    f.wake_at <= $9 AND (f.workflow, f.version) IN (SELECT s.workflow, s.version FROM unnest($5::text[], $6::text[]) AS s (workflow, version)), 0::bigint
  FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) WITH ORDINALITY AS l (queue, low, high, most, ord)
  CROSS JOIN LATERAL (
    SELECT r.partition, r.workflow, r.version, r.priority, r.wake_at FROM durable_runs r
    WHERE r.queue <> '' AND r.status = 'pending' AND r.wake_at <> 0 AND NOT r.paused AND NOT r.cancel_asked
      AND r.queue = l.queue AND r.partition >= l.low
    ORDER BY r.partition, r.workflow, r.version, r.priority, r.wake_at LIMIT 1) f
  UNION ALL
  SELECT p.ord, p.queue, p.high, p.most, f.partition, f.workflow, f.version, f.priority,
    f.wake_at <= $9 AND (f.workflow, f.version) IN (SELECT s.workflow, s.version FROM unnest($5::text[], $6::text[]) AS s (workflow, version)),
    p.n + CASE WHEN p.good AND p.partition <> f.partition
      AND (p.queue, p.partition) NOT IN (SELECT f.queue, f.partition FROM unnest($7::text[], $8::text[]) AS f (queue, partition)) THEN 1 ELSE 0 END
  FROM parts p CROSS JOIN LATERAL (
    SELECT r.partition, r.workflow, r.version, r.priority, r.wake_at FROM durable_runs r
    WHERE r.queue <> '' AND r.status = 'pending' AND r.wake_at <> 0 AND NOT r.paused AND NOT r.cancel_asked
      AND r.queue = p.queue AND (r.partition, r.workflow, r.version, r.priority) > (p.partition, p.workflow, p.version, p.priority)
    ORDER BY r.partition, r.workflow, r.version, r.priority, r.wake_at LIMIT 1) f
  WHERE p.n < p.most AND (p.high IS NULL OR p.partition <= p.high)
)
SELECT p.ord, p.partition, (p.queue, p.partition) IN (SELECT f.queue, f.partition FROM unnest($7::text[], $8::text[]) AS f (queue, partition)) AS full,
       p.workflow, p.version, p.priority
FROM parts p WHERE p.good AND p.n < p.most AND (p.high IS NULL OR p.partition <= p.high)

-- name: timed_heads (own)
-- The first runs of partitions, workflows, versions and priorities that are due at $8,
-- as many of each as $7 says. $6 are the owners whose runs may be claimed.
SELECT l.ord, h.no, h.rank
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::integer[], $7::bigint[])
  WITH ORDINALITY AS l (workflow, version, queue, partition, priority, most, ord)
CROSS JOIN LATERAL (
  SELECT r.no, r.wake_at - r.priority * 3600000000 AS rank FROM durable_runs r
  WHERE r.queue <> '' AND r.status = 'pending' AND r.wake_at <> 0 AND NOT r.paused AND NOT r.cancel_asked
    AND r.queue = l.queue AND r.partition = l.partition AND r.workflow = l.workflow AND r.version = l.version AND r.priority = l.priority
    AND r.wake_at <= $8 AND r.owner = ANY($6::text[])
  ORDER BY r.wake_at, r.no LIMIT l.most) h

-- name: queues_put (own)
-- The queues that were put: all ($2), or those named.
SELECT name, revision, max_placed, max_partition, rate, per, paused, reason, updated_at, turn, begun
FROM durable_queues WHERE revision > 0 AND ($2::boolean OR name = ANY($1::text[])) ORDER BY name

-- name: queue_counts (own)
-- The unfinished runs of queues, all ($2) or those named, by partition: how many hold a
-- place, are in line, are delayed, and since when the first in line is due. A queue with
-- none of these is there, too.
WITH RECURSIVE clock AS MATERIALIZED (SELECT (extract(epoch FROM pg_catalog.clock_timestamp())::numeric * 1000000::numeric)::bigint AS now),
aside (queue) AS (
  SELECT (SELECT r.queue FROM durable_runs r
    WHERE r.queue <> '' AND (r.status = 'pending' AND r.paused OR r.status = 'interrupted' AND (r.paused OR r.code NOT IN ('', 'not_registered')))
    ORDER BY r.queue LIMIT 1)
  UNION ALL
  SELECT (SELECT r.queue FROM durable_runs r
    WHERE r.queue <> '' AND (r.status = 'pending' AND r.paused OR r.status = 'interrupted' AND (r.paused OR r.code NOT IN ('', 'not_registered')))
      AND r.queue > a.queue ORDER BY r.queue LIMIT 1)
  FROM aside a WHERE a.queue IS NOT NULL
)
SELECT c.queue, c.partition, pg_catalog.sum(c.placed)::bigint, pg_catalog.sum(c.lined)::bigint, pg_catalog.sum(c.delayed)::bigint,
       COALESCE(pg_catalog.min(c.since), 0)
FROM (
  SELECT r.queue, r.partition, pg_catalog.count(*) AS placed, 0::bigint AS lined, 0::bigint AS delayed, NULL::bigint AS since
  FROM durable_runs r
  WHERE r.queue <> '' AND r.status IN ('running', 'resuming', 'waiting') AND ($2::boolean OR r.queue = ANY($1::text[]))
  GROUP BY r.queue, r.partition
  UNION ALL
  SELECT r.queue, r.partition, 0, pg_catalog.count(*), 0, pg_catalog.min(r.created_at)
  FROM durable_runs r
  WHERE r.queue <> '' AND NOT r.paused
    AND (r.status = 'pending' AND r.wake_at = 0 AND NOT r.cancel_asked OR r.status = 'interrupted' AND r.code IN ('', 'not_registered'))
    AND ($2::boolean OR r.queue = ANY($1::text[]))
  GROUP BY r.queue, r.partition
  UNION ALL
  SELECT r.queue, r.partition, 0, pg_catalog.count(*), 0, pg_catalog.min(r.wake_at)
  FROM clock CROSS JOIN durable_runs r
  WHERE r.queue <> '' AND r.status = 'pending' AND r.wake_at <> 0 AND NOT r.paused AND NOT r.cancel_asked
    AND r.wake_at <= clock.now AND ($2::boolean OR r.queue = ANY($1::text[]))
  GROUP BY r.queue, r.partition
  UNION ALL
  SELECT r.queue, r.partition, 0, 0, pg_catalog.count(*), NULL
  FROM clock CROSS JOIN durable_runs r
  WHERE r.queue <> '' AND r.status = 'pending' AND r.wake_at <> 0 AND NOT r.paused AND NOT r.cancel_asked
    AND r.wake_at > clock.now AND ($2::boolean OR r.queue = ANY($1::text[]))
  GROUP BY r.queue, r.partition
  UNION ALL
  SELECT r.queue, r.partition, 0, 1, 0, r.created_at FROM durable_runs r
  WHERE r.queue <> '' AND r.cancel_asked AND r.status IN ('pending', 'interrupted') AND r.status = 'interrupted' AND r.paused
    AND r.code IN ('', 'not_registered') AND ($2::boolean OR r.queue = ANY($1::text[]))
  UNION ALL
  SELECT a.queue, '', 0, 0, 0, NULL FROM aside a WHERE a.queue IS NOT NULL AND ($2::boolean OR a.queue = ANY($1::text[]))
  UNION ALL
  SELECT r.queue, r.partition, 0, 0, 0, NULL FROM durable_runs r
  WHERE r.queue <> '' AND r.cancel_asked AND r.status IN ('pending', 'interrupted') AND ($2::boolean OR r.queue = ANY($1::text[]))
) c GROUP BY c.queue, c.partition

-- name: queue_ahead (own)
-- Whether a run is in line for a place, and how many of its queue and partition come
-- before it. The lanes of all workflows are found from one to the next. The sum of two
-- ranks may need more than 64 bits.
WITH RECURSIVE clock AS MATERIALIZED (SELECT (extract(epoch FROM pg_catalog.clock_timestamp())::numeric * 1000000::numeric)::bigint AS now),
me AS MATERIALIZED (
  SELECT r.no, r.queue, r.partition,
    CASE WHEN r.wake_at <> 0 AND r.status = 'pending' THEN least(r.wake_at, clock.now) ELSE r.created_at END - r.priority * 3600000000 AS rank,
    r.queue <> '' AND (NOT r.paused OR r.cancel_asked)
      AND (r.status = 'interrupted' AND r.code IN ('', 'not_registered') OR r.status = 'pending' AND NOT r.cancel_asked AND r.wake_at <= clock.now) AS lined
  FROM durable_runs r CROSS JOIN clock WHERE r.id = ANY($1::text[])),
lanes (status, workflow, version) AS (
  (SELECT r.status, r.workflow, r.version FROM durable_runs r
   WHERE r.queue <> '' AND NOT r.paused
     AND (r.status = 'pending' AND r.wake_at = 0 AND NOT r.cancel_asked OR r.status = 'interrupted' AND r.code IN ('', 'not_registered'))
   ORDER BY r.status, r.workflow, r.version LIMIT 1)
  UNION ALL
  SELECT n.status, n.workflow, n.version FROM lanes l CROSS JOIN LATERAL (
    SELECT r.status, r.workflow, r.version FROM durable_runs r
    WHERE r.queue <> '' AND NOT r.paused
      AND (r.status = 'pending' AND r.wake_at = 0 AND NOT r.cancel_asked OR r.status = 'interrupted' AND r.code IN ('', 'not_registered'))
      AND (r.status, r.workflow, r.version) > (l.status, l.workflow, l.version)
    ORDER BY r.status, r.workflow, r.version LIMIT 1) n
),
timed (workflow, version, priority) AS (
  SELECT f.workflow, f.version, f.priority FROM me CROSS JOIN LATERAL (
    SELECT r.workflow, r.version, r.priority FROM durable_runs r
    WHERE r.queue <> '' AND r.status = 'pending' AND r.wake_at <> 0 AND NOT r.paused AND NOT r.cancel_asked
      AND r.queue = me.queue AND r.partition = me.partition
    ORDER BY r.workflow, r.version, r.priority LIMIT 1) f
  UNION ALL
  SELECT n.workflow, n.version, n.priority FROM timed l CROSS JOIN me CROSS JOIN LATERAL (
    SELECT r.workflow, r.version, r.priority FROM durable_runs r
    WHERE r.queue <> '' AND r.status = 'pending' AND r.wake_at <> 0 AND NOT r.paused AND NOT r.cancel_asked
      AND r.queue = me.queue AND r.partition = me.partition
      AND (r.workflow, r.version, r.priority) > (l.workflow, l.version, l.priority)
    ORDER BY r.workflow, r.version, r.priority LIMIT 1) n
)
SELECT me.lined, CASE WHEN NOT me.lined THEN 0 ELSE
  (SELECT pg_catalog.count(*) FROM lanes l JOIN durable_runs r
     ON r.queue <> '' AND NOT r.paused
      AND (r.status = 'pending' AND r.wake_at = 0 AND NOT r.cancel_asked OR r.status = 'interrupted' AND r.code IN ('', 'not_registered'))
      AND r.status = l.status AND r.workflow = l.workflow AND r.version = l.version AND r.queue = me.queue AND r.partition = me.partition
      AND (r.created_at - r.priority * 3600000000, r.no) < (me.rank, me.no))
  + (SELECT pg_catalog.count(*) FROM timed l CROSS JOIN clock JOIN durable_runs r
     ON r.queue <> '' AND r.status = 'pending' AND r.wake_at <> 0 AND NOT r.paused AND NOT r.cancel_asked
      AND r.queue = me.queue AND r.partition = me.partition AND r.workflow = l.workflow AND r.version = l.version AND r.priority = l.priority
      AND r.wake_at <= clock.now
      AND (r.wake_at, r.no) < (least(greatest(me.rank::numeric + l.priority::numeric * 3600000000, 0), 9223372036854775807)::bigint, me.no))
  + (SELECT pg_catalog.count(*) FROM durable_runs r
     WHERE r.queue <> '' AND r.cancel_asked AND r.status IN ('pending', 'interrupted') AND r.status = 'interrupted' AND r.paused
       AND r.code IN ('', 'not_registered') AND r.queue = me.queue AND r.partition = me.partition
       AND (r.created_at - r.priority * 3600000000, r.no) < (me.rank, me.no))
  END
FROM me
