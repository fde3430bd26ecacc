-- Statements of schedules.

-- name: schedule
SELECT name, revision, due, data, updated_at FROM durable_schedules WHERE name = ?1

-- name: schedule_insert
INSERT INTO durable_schedules (name, revision, due, data, updated_at) VALUES (?1, ?2, ?3, ?4, ?5)

-- name: schedule_update
UPDATE durable_schedules SET revision = ?2, due = ?3, data = ?4, updated_at = ?5 WHERE name = ?1

-- name: schedule_delete
DELETE FROM durable_schedules WHERE name = ?1

-- name: schedules
SELECT name, revision, due, data, updated_at FROM durable_schedules ORDER BY name

-- name: schedules_named
SELECT name, revision, due, data, updated_at FROM durable_schedules WHERE name IN (SELECT value FROM json_each(?1)) ORDER BY name

-- name: schedules_due
-- The first ?2 of those that are due at ?1, and the first that is not.
SELECT * FROM (SELECT name, revision, due, data, updated_at FROM durable_schedules WHERE due <> 0 AND due <= ?1 ORDER BY due, name LIMIT ?2)
UNION ALL
SELECT * FROM (SELECT name, revision, due, x'' AS data, updated_at FROM durable_schedules WHERE due <> 0 AND due > ?1 ORDER BY due, name LIMIT 1)
