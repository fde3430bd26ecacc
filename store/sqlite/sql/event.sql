-- Statements on the log. place is (run number << 28) | seq.

-- name: append
-- The plain checkpoint, and its own fence (S3). If the event before it does not
-- exist or has another epoch than the writer's, the epoch is NULL, which the column
-- refuses; if its place is taken, the primary key does. Both leave no row and no error.
-- Not INSERT ... SELECT ... WHERE EXISTS: SQLite makes a temporary table for a SELECT that
-- reads the table it writes to, which costs half as much again.
INSERT OR IGNORE INTO durable_events (place, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum)
VALUES (?1, (SELECT ?2 FROM durable_events WHERE place = ?1 - 1 AND epoch = ?15), ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)

-- name: append_checked (own)
-- For events whose fence was checked in the same transaction.
INSERT INTO durable_events (place, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)

-- name: event_fence (own)
SELECT epoch, sum FROM durable_events WHERE place = ?1

-- name: event_last (own)
-- Between the places of seq 0 of this run and of the next run, both exclusive.
SELECT place & 268435455 AS seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum
FROM durable_events WHERE place > ?1 AND place < ?2 ORDER BY place DESC LIMIT 1

-- name: events_last_of (own)
-- The last event of each run whose number is in the JSON array.
SELECT e.place >> 28 AS no, e.place & 268435455 AS seq, e.epoch, e.branch, e.type, e.key, e.attempt, e.ordinal, e.at, e.took, e.active, e.steps,
  e.data, e.payload, e.sum
FROM json_each(?1) AS j
JOIN durable_events AS e ON e.place = (SELECT max(l.place) FROM durable_events AS l WHERE l.place > j.value << 28 AND l.place < (j.value + 1) << 28)

-- name: events_up
SELECT place & 268435455 AS seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum
FROM durable_events WHERE place > ?1 AND place < ?2 ORDER BY place

-- name: events_packed (own)
-- The events between two places as one value: holdfast_pack is the store's own (package pack). A
-- large event is left out, and not even read: the gap that it leaves tells the reader of it.
SELECT holdfast_pack(place & 268435455, epoch, branch, attempt, ordinal, at, took, active, steps, sum, type, key, data, payload)
  FILTER (WHERE ifnull(octet_length(data), 0) <= 4096 AND ifnull(octet_length(payload), 0) <= 4096)
FROM durable_events WHERE place > ?1 AND place < ?2

-- name: events_down (own)
SELECT place & 268435455 AS seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum
FROM durable_events WHERE place > ?1 AND place < ?2 ORDER BY place DESC

-- name: events_delete (own)
DELETE FROM durable_events WHERE place > ?1 AND place < ?2
