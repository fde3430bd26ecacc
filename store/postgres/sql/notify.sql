-- Notices to other processes.

-- name: notify (own)
-- In its own transaction that does not wait for the disk: NOTIFY holds a
-- server-wide lock until its transaction has committed, and a lost notice costs
-- no more than the time to the next beat.
SELECT pg_catalog.set_config('synchronous_commit', 'off', true), pg_catalog.pg_notify($1, $2)

-- name: notify_in_tx (own)
SELECT pg_catalog.pg_notify($1, $2)
