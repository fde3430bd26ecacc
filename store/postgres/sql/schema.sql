-- The schema version. See migrations/ for the tables themselves.

-- name: schema_exclude (own)
-- Keeps two processes that open a new database from migrating it at once.
SELECT pg_catalog.pg_advisory_xact_lock(1146440258, 0)

-- name: schema_exists
SELECT pg_catalog.to_regclass('durable_schema') IS NOT NULL

-- name: schema_create
CREATE TABLE durable_schema (version integer PRIMARY KEY, name text NOT NULL, applied_at bigint NOT NULL)

-- name: schema_version
SELECT COALESCE(pg_catalog.max(version), 0) FROM durable_schema

-- name: schema_record
INSERT INTO durable_schema (version, name, applied_at) VALUES ($1, $2, $3)

-- name: schema_filled
-- Whether there is anything to lose.
SELECT EXISTS (SELECT 1 FROM durable_runs)

-- name: schema_owners (own)
-- Executors whose lease has not expired. Every version of the program runs this
-- on every version of the schema, so these columns stay.
SELECT id, beat_at FROM durable_executors WHERE beat_at + lease > (extract(epoch FROM pg_catalog.clock_timestamp())::numeric * 1000000::numeric)::bigint ORDER BY id

-- name: schema_ahead (own)
-- Executors whose last beat lies in the future: the clock was set back since, or
-- belongs to another server.
SELECT id, beat_at, lease FROM durable_executors WHERE beat_at > (extract(epoch FROM pg_catalog.clock_timestamp())::numeric * 1000000::numeric)::bigint

-- name: relations (own)
-- What is ours in a schema, by name, from any version of the program. The tables
-- come in the order in which transactions lock them: a claim begins with its
-- queue, everything else with the run, and only then is the log written.
SELECT c.relname, c.relkind::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'v') AND c.relname::text LIKE 'durable\_%'
ORDER BY c.relkind = 'v', c.relname <> 'durable_queues', c.relname <> 'durable_runs', c.relname

-- name: rights_of (own)
-- Statements that give our tables in schema $2 the owners, and the rights of others, that
-- those of schema $1 have.
WITH pair AS (
  SELECT o.oid AS old, c.oid AS new, c.relname, c.relkind, o.relacl, o.relowner, c.relowner AS now
  FROM pg_class o JOIN pg_namespace n ON n.oid = o.relnamespace AND n.nspname = $1
  JOIN pg_class c ON c.relname = o.relname JOIN pg_namespace m ON m.oid = c.relnamespace AND m.nspname = $2
  WHERE o.relkind IN ('r', 'p', 'v') AND c.relkind IN ('r', 'p', 'v') AND o.relname::text LIKE 'durable\_%'
), rights AS (
  SELECT p.relname, p.relowner, ''::text AS part, a.grantee, a.privilege_type, a.is_grantable
  FROM pair p CROSS JOIN LATERAL pg_catalog.aclexplode(p.relacl) AS a
  UNION ALL
  SELECT p.relname, p.relowner, pg_catalog.format(' (%I)', t.attname), a.grantee, a.privilege_type, a.is_grantable
  FROM pair p JOIN pg_attribute t ON t.attrelid = p.old AND t.attnum > 0 AND NOT t.attisdropped
  JOIN pg_attribute u ON u.attrelid = p.new AND u.attname = t.attname AND NOT u.attisdropped
  CROSS JOIN LATERAL pg_catalog.aclexplode(t.attacl) AS a
)
SELECT statement FROM (
  SELECT 1 AS step, pg_catalog.format('ALTER %s %I.%I OWNER TO %I', CASE WHEN relkind = 'v' THEN 'VIEW' ELSE 'TABLE' END, $2::text, relname, pg_catalog.pg_get_userbyid(relowner)) AS statement
  FROM pair WHERE relowner <> now
  UNION ALL
  SELECT 2, pg_catalog.format('GRANT %s%s ON %I.%I TO %s%s', privilege_type, part, $2::text, relname,
    CASE WHEN grantee = 0 THEN 'PUBLIC' ELSE pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(grantee)::text) END, CASE WHEN is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
  FROM rights WHERE grantee <> relowner
) AS s ORDER BY step, statement

-- name: no_time_limits (own)
-- Covers the limits of every server version. It also keeps other schemas out of
-- the search path: a migration uses only the server's own functions.
SELECT pg_catalog.set_config(name, value, true)
FROM (VALUES ('search_path', 'pg_catalog, pg_temp'), ('statement_timeout', '0'), ('lock_timeout', '0'), ('idle_in_transaction_session_timeout', '0'), ('transaction_timeout', '0'))
  AS setting (name, value)
WHERE pg_catalog.current_setting(name, true) IS NOT NULL

-- name: lock_holders (own)
-- Sessions that hold locks on our tables, the oldest transaction first.
SELECT pg_catalog.format('process %s, %s, in a transaction for %s s', a.pid, coalesce(nullif(a.application_name, ''), 'no name'),
              extract(epoch FROM pg_catalog.clock_timestamp() - a.xact_start)::bigint)
FROM pg_stat_activity a
WHERE a.xact_start IS NOT NULL AND a.pid <> pg_catalog.pg_backend_pid() AND a.pid IN (
  SELECT l.pid FROM pg_locks l JOIN pg_class c ON c.oid = l.relation JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE l.granted AND n.nspname = $1 AND c.relname::text LIKE 'durable\_%')
ORDER BY a.xact_start LIMIT 3

-- name: columns_of (own)
-- The columns of a table that hold written data, not those the server computes.
-- identity says that the server numbers the rows.
SELECT a.attname, a.attidentity <> '' AS identity FROM pg_attribute a
JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relname = $2 AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY a.attnum

-- name: replicated (own)
-- A lock, which is a write that changes nothing: its commit waits for the replicas that a commit waits for.
-- Where there are none it takes no lock.
SELECT version FROM durable_schema
WHERE version = 1 AND COALESCE(pg_catalog.current_setting('synchronous_standby_names', true), '') <> '' FOR KEY SHARE
