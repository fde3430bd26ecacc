-- Statements of executors.

-- name: executors
SELECT id, name, host, boot, pid, lease, serves, started_at, beat_at, presence FROM durable_executors ORDER BY no

-- name: executor_beat
INSERT INTO durable_executors (id, name, host, boot, pid, lease, serves, started_at, beat_at, presence)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, ?9)
ON CONFLICT (id) DO UPDATE SET name = excluded.name, host = excluded.host, boot = excluded.boot, pid = excluded.pid,
  lease = excluded.lease, serves = excluded.serves, beat_at = excluded.beat_at, presence = excluded.presence

-- name: executor_beat_again (own)
-- A beat, if the last one was at ?3 and, since this connection had changed ?4 rows and the
-- data had version ?5, neither it nor another one has written.
UPDATE durable_executors SET beat_at = ?2
WHERE id = ?1 AND beat_at = ?3 AND total_changes() = ?4 AND (SELECT data_version FROM pragma_data_version) = ?5

-- name: written (own)
-- What executor_beat_again compares.
SELECT data_version, total_changes() FROM pragma_data_version

-- name: executor_gone (own)
UPDATE durable_executors SET presence = 'gone' WHERE id = ?1

-- name: executor_expire
-- The last beat lay in the future, and was not renewed for a lease: from now on
-- the record says what this process has found out.
UPDATE durable_executors SET beat_at = ?3 WHERE id = ?1 AND beat_at = ?2

-- name: executor_delete
DELETE FROM durable_executors WHERE id = ?1

-- name: owned_lanes (own)
-- The owners and kinds of unfinished runs: workflow, version and queue, and the next timer
-- after ?1 of each: of all runs, and of those that may be claimed when it fires.
-- A walk over the index, as in lanes.
WITH RECURSIVE lane (no) AS (
  SELECT (SELECT no FROM durable_runs WHERE status <> 'completed' AND status <> 'failed' AND status <> 'cancelled' ORDER BY owner, workflow, version, queue LIMIT 1)
  UNION ALL
  SELECT coalesce(
    (SELECT n.no FROM durable_runs AS n WHERE n.status <> 'completed' AND n.status <> 'failed' AND n.status <> 'cancelled' AND n.owner = r.owner AND n.workflow = r.workflow AND n.version = r.version AND n.queue > r.queue
      ORDER BY n.queue LIMIT 1),
    (SELECT n.no FROM durable_runs AS n WHERE n.status <> 'completed' AND n.status <> 'failed' AND n.status <> 'cancelled' AND n.owner = r.owner AND n.workflow = r.workflow AND n.version > r.version
      ORDER BY n.version, n.queue LIMIT 1),
    (SELECT n.no FROM durable_runs AS n WHERE n.status <> 'completed' AND n.status <> 'failed' AND n.status <> 'cancelled' AND n.owner = r.owner AND n.workflow > r.workflow
      ORDER BY n.workflow, n.version, n.queue LIMIT 1),
    (SELECT n.no FROM durable_runs AS n WHERE n.status <> 'completed' AND n.status <> 'failed' AND n.status <> 'cancelled' AND n.owner > r.owner
      ORDER BY n.owner, n.workflow, n.version, n.queue LIMIT 1))
  FROM lane JOIN durable_runs AS r ON r.no = lane.no
)
SELECT o.owner, o.workflow, o.version, o.queue,
  (SELECT min(r.wake_at) FROM durable_runs AS r
    WHERE r.status <> 'completed' AND r.status <> 'failed' AND r.status <> 'cancelled' AND r.owner = o.owner AND r.workflow = o.workflow AND r.version = o.version AND r.queue = o.queue
      AND r.wake_at > ?1) AS next_own,
  (SELECT r.wake_at FROM durable_runs AS r
    WHERE r.status <> 'completed' AND r.status <> 'failed' AND r.status <> 'cancelled' AND r.owner = o.owner AND r.workflow = o.workflow AND r.version = o.version AND r.queue = o.queue
      AND r.wake_at > ?1 AND NOT r.paused AND NOT (r.status = 'interrupted' AND r.code NOT IN ('', 'not_registered'))
    ORDER BY r.wake_at LIMIT 1) AS next_free
FROM lane JOIN durable_runs AS o ON o.no = lane.no

-- name: owners (own)
-- Who owns unfinished runs, found from owner to owner along the index.
WITH RECURSIVE owners (owner) AS (
  SELECT min(owner) FROM durable_runs WHERE status <> 'completed' AND status <> 'failed' AND status <> 'cancelled'
  UNION ALL
  SELECT (SELECT min(r.owner) FROM durable_runs AS r WHERE r.status <> 'completed' AND r.status <> 'failed' AND r.status <> 'cancelled' AND r.owner > owners.owner)
  FROM owners WHERE owner IS NOT NULL
)
SELECT owner FROM owners WHERE owner <> ''

-- name: mail_of (own)
SELECT id, inbox FROM durable_runs WHERE owner = ?1 AND inbox > seen AND status <> 'completed' AND status <> 'failed' AND status <> 'cancelled' ORDER BY no
