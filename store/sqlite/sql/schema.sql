-- The version of the schema. This table never changes, because every version of
-- the program reads it.

-- name: schema_exists
SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'durable_schema'

-- name: schema_create
CREATE TABLE durable_schema (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT

-- name: schema_version
SELECT coalesce(max(version), 0) FROM durable_schema

-- name: schema_record
INSERT INTO durable_schema (version, name, applied_at) VALUES (?1, ?2, ?3)

-- name: schema_filled
-- Whether there is anything to lose.
SELECT EXISTS (SELECT 1 FROM durable_runs)
