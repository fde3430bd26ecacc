-- Statements of schedules.

-- name: schedule
-- The schedule as it is now, and the clock. There is always a row.
SELECT clock.now, s.name, s.revision, s.due, s.data, s.updated_at
FROM (SELECT (extract(epoch FROM pg_catalog.clock_timestamp())::numeric * 1000000::numeric)::bigint AS now) clock
LEFT JOIN durable_schedules s ON s.name = $1

-- name: schedule_insert
INSERT INTO durable_schedules (name, revision, due, data, updated_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (name) DO NOTHING

-- name: schedule_update
UPDATE durable_schedules SET revision = $2, due = $3, data = $4, updated_at = $5 WHERE name = $1 AND revision = $6

-- name: schedule_delete
-- The revision keeps a statement that the server begins late from the next schedule of the name.
DELETE FROM durable_schedules WHERE name = $1 AND revision = $2

-- name: schedules
SELECT name, revision, due, data, updated_at FROM durable_schedules ORDER BY name

-- name: schedules_named
SELECT name, revision, due, data, updated_at FROM durable_schedules WHERE name = ANY ($1::text[]) ORDER BY name

-- name: schedules_due
-- The first $1 of those that are due, and the first that is not. There is always
-- a row, for the clock.
WITH clock AS MATERIALIZED (SELECT (extract(epoch FROM pg_catalog.clock_timestamp())::numeric * 1000000::numeric)::bigint AS now)
SELECT clock.now, s.name, s.revision, s.due, s.data, s.updated_at
FROM clock LEFT JOIN LATERAL (
  (SELECT d.name, d.revision, d.due, d.data, d.updated_at FROM durable_schedules d WHERE d.due <> 0 AND d.due <= clock.now ORDER BY d.due, d.name LIMIT $1::bigint)
  UNION ALL
  (SELECT n.name, n.revision, n.due, ''::bytea, n.updated_at FROM durable_schedules n WHERE n.due <> 0 AND n.due > clock.now ORDER BY n.due, n.name LIMIT 1)
) s ON true
ORDER BY s.due, s.name
