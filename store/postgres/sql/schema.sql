-- The schema version. See migrations/ for the tables themselves.

-- name: schema_exclude (own)
-- Two processes that open a new database do not migrate it at once.
SELECT pg_advisory_xact_lock(1146440258, 0)

-- name: schema_exists
SELECT to_regclass('durable_schema') IS NOT NULL

-- name: schema_create
CREATE TABLE durable_schema (version integer PRIMARY KEY, name text NOT NULL, applied_at bigint NOT NULL)

-- name: schema_version
SELECT COALESCE(max(version), 0) FROM durable_schema

-- name: schema_record
INSERT INTO durable_schema (version, name, applied_at) VALUES ($1, $2, $3)

-- name: schema_filled
-- Whether there is anything to lose.
SELECT EXISTS (SELECT 1 FROM durable_runs)
