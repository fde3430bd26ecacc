-- Executors and their beats.

-- name: executors
-- All executors, the clock, since when the server runs, which presence locks
-- are held, and who owns runs (found from owner to owner along the index).
-- There is always a row.
SELECT (extract(epoch FROM pg_catalog.clock_timestamp())::numeric * 1000000::numeric)::bigint AS now,
       (extract(epoch FROM pg_catalog.pg_postmaster_start_time())::numeric * 1000000::numeric)::bigint AS up,
       (SELECT COALESCE(pg_catalog.string_agg(l.objid::text, ','), '') FROM pg_locks l
        WHERE l.locktype = 'advisory' AND l.classid = 1146440258::oid AND l.objsubid = 2 AND l.granted
          AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = pg_catalog.current_database())) AS held,
       (WITH RECURSIVE owners AS (
          (SELECT r.owner FROM durable_runs r WHERE r.owner <> '' ORDER BY r.owner LIMIT 1)
          UNION ALL
          SELECT (SELECT r.owner FROM durable_runs r WHERE r.owner <> '' AND r.owner > o.owner ORDER BY r.owner LIMIT 1)
          FROM owners o WHERE o.owner IS NOT NULL)
        SELECT COALESCE(pg_catalog.json_agg(o.owner), '[]')::text FROM owners o WHERE o.owner IS NOT NULL) AS owners,
       e.id, e.name, e.host, e.boot, e.pid, e.lease, e.serves, e.started_at, e.beat_at, e.presence
FROM (SELECT 1) one LEFT JOIN durable_executors e ON true ORDER BY e.started_at, e.no

-- name: executors_portable (own)
-- The same for servers without session locks.
SELECT (extract(epoch FROM pg_catalog.clock_timestamp())::numeric * 1000000::numeric)::bigint AS now, 0::bigint AS up, '' AS held,
       (WITH RECURSIVE owners AS (
          (SELECT r.owner FROM durable_runs r WHERE r.owner <> '' ORDER BY r.owner LIMIT 1)
          UNION ALL
          SELECT (SELECT r.owner FROM durable_runs r WHERE r.owner <> '' AND r.owner > o.owner ORDER BY r.owner LIMIT 1)
          FROM owners o WHERE o.owner IS NOT NULL)
        SELECT COALESCE(pg_catalog.json_agg(o.owner), '[]')::text FROM owners o WHERE o.owner IS NOT NULL) AS owners,
       e.id, e.name, e.host, e.boot, e.pid, e.lease, e.serves, e.started_at, e.beat_at, e.presence
FROM (SELECT 1) one LEFT JOIN durable_executors e ON true ORDER BY e.started_at, e.no

-- name: executor_beat
-- Returns the clock, and when the lease before this beat ended.
WITH clock AS MATERIALIZED (SELECT (extract(epoch FROM pg_catalog.clock_timestamp())::numeric * 1000000::numeric)::bigint AS now),
     old AS MATERIALIZED (SELECT beat_at + lease AS until FROM durable_executors WHERE id = $1)
INSERT INTO durable_executors AS e (id, name, host, boot, pid, lease, serves, started_at, beat_at, presence)
SELECT $1::text, $2::text, $3::text, $4::text, $5::bigint, $6::bigint, $7::text, clock.now, clock.now, $8::text FROM clock
ON CONFLICT (id) DO UPDATE SET name = excluded.name, host = excluded.host, boot = excluded.boot, pid = excluded.pid,
  lease = excluded.lease, serves = excluded.serves, beat_at = excluded.beat_at, presence = excluded.presence
RETURNING e.beat_at, (SELECT until FROM old)

-- name: executor_delete
WITH old AS (DELETE FROM durable_executors WHERE id = $1 RETURNING beat_at + lease AS until)
SELECT (extract(epoch FROM pg_catalog.clock_timestamp())::numeric * 1000000::numeric)::bigint, (SELECT until FROM old)

-- name: set_presence (own)
UPDATE durable_executors SET presence = $2 WHERE id = $1

-- name: executor_expire
-- The last beat lay in the future, and was not renewed for a lease: from now on
-- the record says what this process has found out.
UPDATE durable_executors SET beat_at = $3 WHERE id = $1 AND beat_at = $2

-- name: forget_executors (own)
-- Executors that disappeared without leaving a day ago and own nothing.
DELETE FROM durable_executors e
WHERE e.beat_at + e.lease < (extract(epoch FROM pg_catalog.clock_timestamp())::numeric * 1000000::numeric)::bigint - 86400000000
  AND NOT EXISTS (SELECT 1 FROM durable_runs r WHERE r.owner = e.id)

-- name: look (own)
-- The results of a beat: mail, the next wake-up, and whether something is due.
-- $1 now, $2 to $4 as in claim.sql, $5 the executor; '' when it leaves, and
-- owns nothing. The lanes are those of a claim. An executor that serves nothing,
-- such as a terminal, only asks about its own runs.
WITH RECURSIVE lanes (status, workflow, version, queue, owner, priority) AS (
  SELECT st.status, s.workflow, s.version, f.queue, f.owner, f.priority
  FROM unnest($3::text[], $4::text[]) AS s (workflow, version)
  CROSS JOIN pg_catalog.unnest(ARRAY['pending', 'running', 'resuming', 'waiting', 'interrupted']) AS st (status)
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
SELECT 'mail' AS kind, l.id AS name, l.inbox AS n, l.no AS ord
FROM (SELECT r.id, r.inbox, r.no FROM durable_runs r
      WHERE r.owner = $5 AND r.owner <> '' AND r.mail AND r.inbox > r.seen ORDER BY r.no) l
UNION ALL
(SELECT 'next', '', r.wake_at, 0::bigint FROM durable_runs r
 WHERE r.owner = $5 AND r.owner <> '' AND r.wake_at <> 0 AND r.wake_at > $1 ORDER BY r.wake_at LIMIT 1)
UNION ALL
(SELECT 'next', '', h.wake_at, 0::bigint FROM lanes l CROSS JOIN LATERAL (
   SELECT r.wake_at FROM durable_runs r
   WHERE r.status = l.status AND r.workflow = l.workflow AND r.version = l.version AND r.queue = l.queue AND r.owner = l.owner
      AND r.priority = l.priority AND r.wake_at <> 0 AND NOT r.paused AND r.wake_at > $1 AND NOT (r.status = 'interrupted' AND r.code NOT IN ('', 'not_registered'))
   ORDER BY r.wake_at LIMIT 1) h
 WHERE l.owner = ANY($2::text[]) ORDER BY h.wake_at LIMIT 1)
UNION ALL
(SELECT 'due', '', 0::bigint, 0::bigint FROM lanes l CROSS JOIN LATERAL (
   SELECT 1 FROM durable_runs r
   WHERE r.status = l.status AND r.workflow = l.workflow AND r.version = l.version AND r.queue = l.queue AND r.owner = l.owner
      AND r.priority = l.priority AND r.wake_at <> 0 AND NOT r.paused AND r.wake_at <= $1
   ORDER BY r.wake_at LIMIT 1) h
 WHERE l.status IN ('pending', 'waiting') AND l.owner = ANY($2::text[]) LIMIT 1)
UNION ALL
(SELECT 'due', '', 0::bigint, 0::bigint FROM unnest($3::text[], $4::text[]) AS s (workflow, version)
 CROSS JOIN LATERAL (
   SELECT 1 FROM durable_runs r
   WHERE r.queue = '' AND r.status = 'pending' AND r.wake_at = 0 AND NOT r.paused AND r.workflow = s.workflow AND r.version = s.version
     AND r.owner = ANY($2::text[])
   ORDER BY r.priority DESC LIMIT 1) h
 LIMIT 1)
UNION ALL
(SELECT 'due', '', 0::bigint, 0::bigint FROM unnest($3::text[], $4::text[]) AS s (workflow, version)
 CROSS JOIN LATERAL (
   SELECT 1 FROM durable_runs r
   WHERE r.queue = '' AND r.status = 'interrupted' AND r.code IN ('', 'not_registered') AND NOT r.paused AND r.workflow = s.workflow AND r.version = s.version
     AND r.owner = ANY($2::text[])
   ORDER BY r.priority DESC LIMIT 1) h
 LIMIT 1)
UNION ALL
-- In line for a place in a queue, or cancelled there.
(SELECT 'due', '', 0::bigint, 0::bigint FROM unnest($3::text[], $4::text[]) AS s (workflow, version)
 CROSS JOIN pg_catalog.unnest(ARRAY['pending', 'interrupted']) AS st (status)
 CROSS JOIN LATERAL (
   SELECT 1 FROM durable_runs r
   WHERE r.queue <> '' AND NOT r.paused
     AND (r.status = 'pending' AND r.wake_at = 0 AND NOT r.cancel_asked OR r.status = 'interrupted' AND r.code IN ('', 'not_registered'))
     AND r.status = st.status AND r.workflow = s.workflow AND r.version = s.version AND r.owner = ANY($2::text[])
   ORDER BY r.queue LIMIT 1) h
 LIMIT 1)
UNION ALL
(SELECT 'due', '', 0::bigint, 0::bigint FROM unnest($3::text[], $4::text[]) AS s (workflow, version)
 CROSS JOIN LATERAL (
   SELECT 1 FROM durable_runs r
   WHERE r.queue <> '' AND r.cancel_asked AND r.status IN ('pending', 'interrupted') AND r.status = 'pending'
     AND r.workflow = s.workflow AND r.version = s.version AND NOT r.paused AND r.wake_at <= $1 AND r.owner = ANY($2::text[])
   ORDER BY r.queue LIMIT 1) h
 LIMIT 1)
UNION ALL
(SELECT 'due', '', 0::bigint, 0::bigint FROM unnest($3::text[], $4::text[]) AS s (workflow, version)
 CROSS JOIN LATERAL (
   SELECT 1 FROM durable_runs r
   WHERE r.status = 'waiting' AND r.workflow = s.workflow AND r.version = s.version AND r.paused = false AND r.mail
     AND r.owner = ANY($2::text[])
   ORDER BY r.queue LIMIT 1) h
 LIMIT 1)
UNION ALL
-- Paused, and a cancel was asked for.
(SELECT 'due', '', 0::bigint, 0::bigint FROM unnest($3::text[], $4::text[]) AS s (workflow, version)
 CROSS JOIN pg_catalog.unnest(ARRAY['pending', 'waiting', 'interrupted']) AS st (status)
 CROSS JOIN LATERAL (
   SELECT 1 FROM durable_runs r
   WHERE r.status = st.status AND r.workflow = s.workflow AND r.version = s.version AND r.paused = true AND r.mail AND r.cancel_asked
     AND r.owner = ANY($2::text[])
     AND (r.status <> 'pending' OR r.wake_at <= $1) AND (r.status <> 'interrupted' OR r.code IN ('', 'not_registered'))
   ORDER BY r.queue LIMIT 1) h
 LIMIT 1)
ORDER BY 1, 4, 2
