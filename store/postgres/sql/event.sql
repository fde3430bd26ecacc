-- The log. The fence of an append (S3): the event before it exists and has the
-- writer's epoch.

-- name: append
-- One event, one round trip, no lock on the run's row. The row must still
-- exist: an append that was in progress while the run was deleted may have left
-- an event behind, which looks like a predecessor.
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum)
SELECT $1::bigint, $2::bigint, $3::bigint, $4::integer, $5::text, $6::text, $7::integer, $8::integer, $9::bigint, $10::bigint, $11::bigint,
       $12::integer, $13::text, $14::bytea, $15::bigint
WHERE EXISTS (SELECT 1 FROM durable_events p WHERE p.run_no = $1 AND p.seq = $2 - 1 AND p.epoch = $3)
  AND EXISTS (SELECT 1 FROM durable_runs r WHERE r.no = $1)

-- name: append_within (own)
-- The same in the transaction of a step, if that has written something. Outside of it, because
-- the step has ended it by SQL of its own, nothing is written.
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum)
SELECT $1::bigint, $2::bigint, $3::bigint, $4::integer, $5::text, $6::text, $7::integer, $8::integer, $9::bigint, $10::bigint, $11::bigint,
       $12::integer, $13::text, $14::bytea, $15::bigint
WHERE EXISTS (SELECT 1 FROM durable_events p WHERE p.run_no = $1 AND p.seq = $2 - 1 AND p.epoch = $3)
  AND EXISTS (SELECT 1 FROM durable_runs r WHERE r.no = $1)
  AND pg_catalog.txid_current_if_assigned() IS NOT NULL

-- name: append_many (own)
-- Many events of many runs. pred is the event before the first of a Change and
-- fence the epoch it must have: 0 means any, and pred 0 means that there is
-- none. All events of a Change get the same answer, so it is written whole or
-- not at all; the statement returns what was written. A Change whose place in
-- the log is taken is skipped here instead of failing the statement on the
-- primary key, and so is one whose run is gone.
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum)
SELECT e.run_no, e.seq, e.epoch, e.branch, e.type, e.key, e.attempt, e.ordinal, e.at, e.took, e.active, e.steps, e.data, e.payload, e.sum
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::integer[], $5::text[], $6::text[], $7::integer[], $8::integer[], $9::bigint[],
            $10::bigint[], $11::bigint[], $12::integer[], $13::text[], $14::bytea[], $15::bigint[], $16::bigint[], $17::bigint[])
  AS e (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum, pred, fence)
WHERE (e.pred = 0 OR EXISTS (
         SELECT 1 FROM durable_events p WHERE p.run_no = e.run_no AND p.seq = e.pred AND (p.epoch = e.fence OR e.fence = 0)))
  AND (SELECT pg_catalog.count(*) FROM (SELECT 1 FROM durable_events d WHERE d.run_no = e.run_no AND d.seq > e.pred LIMIT 1) taken) = 0
  AND (SELECT pg_catalog.count(*) FROM durable_runs r WHERE r.no = e.run_no) = 1
RETURNING run_no

-- name: carry_out (own)
-- append_many for Changes of which some also change the row of their run: $18 to $39, one
-- element a run, in the order of run ids, in which everything locks; the pred of their events is
-- NULL. A pred of NULL in the row's part says that the Change has no events, and take that it takes the
-- epoch of a run without an owner. The row is locked before it is checked, so what is read of it is its last
-- state; everything else is read as of the beginning of the statement. An event that has come
-- since takes the place of one to insert, which then fails. A key that was taken since would not
-- be released: whoever takes one moves updated_at, so a Change that releases is left alone if the
-- row is not as it was then. A Change without events has no place in the log, which would be taken if the
-- server began with this statement late: $39 is the updated_at that was read for it, and each Change moves that on. Returns the runs that got their events, and how those were whose row
-- was changed.
WITH change AS MATERIALIZED (
  SELECT u.*, r.status AS was, r.owner AS owned, r.paused AS stopped, r.epoch AS at, r.inbox AS received, r.cancel_asked AS asked,
         r.updated_at AS updated
  FROM unnest($18::bigint[], $19::bigint[], $20::bigint[], $21::bigint[], $22::boolean[], $23::text[], $24::text[], $25::bigint[], $26::text[],
              $27::text[], $28::text[], $29::boolean[], $30::bigint[], $31::boolean[], $32::boolean[], $33::bigint[], $34::bigint[], $35::bigint[],
              $36::bigint[], $37::boolean[], $38::boolean[], $39::bigint[]) WITH ORDINALITY
    AS u (no, fence, pred, inbox, no_cancel, befores, status, epoch, version, code, reason, recoverable, seen, cancel_asked, paused, started_at,
          ended_at, wake_at, deadline_at, release, take, as_of, ord)
  JOIN durable_runs r ON r.no = u.no
  ORDER BY u.ord FOR UPDATE OF r
),
fit AS MATERIALIZED (
  SELECT c.* FROM change c
  WHERE c.at = c.fence AND (c.inbox IS NULL OR c.inbox = c.received) AND NOT (c.no_cancel AND c.asked)
    AND (c.befores IS NULL OR pg_catalog.strpos(c.befores, c.was || ',') > 0)
    AND (c.as_of IS NULL OR c.as_of = c.updated)
    AND (NOT c.release OR (SELECT s.updated_at FROM durable_runs s WHERE s.no = c.no) = c.updated)
    AND NOT (c.take AND c.owned <> '')
    AND (c.pred IS NULL OR (
      SELECT pg_catalog.count(*) FROM durable_events p WHERE p.run_no = c.no AND p.seq = c.pred AND (p.epoch = c.fence OR c.take)) = 1)
    AND (SELECT pg_catalog.count(*) FROM (SELECT 1 FROM durable_events d WHERE d.run_no = c.no AND d.seq > c.pred LIMIT 1) taken) = 0
),
clock AS MATERIALIZED (SELECT (extract(epoch FROM pg_catalog.clock_timestamp())::numeric * 1000000::numeric)::bigint AS now),
appended AS (
  INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum)
  SELECT e.run_no, e.seq, e.epoch, e.branch, e.type, e.key, e.attempt, e.ordinal, e.at, e.took, e.active, e.steps, e.data, e.payload, e.sum
  FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::integer[], $5::text[], $6::text[], $7::integer[], $8::integer[], $9::bigint[],
              $10::bigint[], $11::bigint[], $12::integer[], $13::text[], $14::bytea[], $15::bigint[], $16::bigint[], $17::bigint[])
    AS e (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum, pred, fence)
  WHERE CASE WHEN e.pred IS NULL THEN e.run_no IN (SELECT f.no FROM fit f) ELSE
    EXISTS (SELECT 1 FROM durable_events p WHERE p.run_no = e.run_no AND p.seq = e.pred AND p.epoch = e.fence)
    AND (SELECT pg_catalog.count(*) FROM (SELECT 1 FROM durable_events d WHERE d.run_no = e.run_no AND d.seq > e.pred LIMIT 1) taken) = 0
    AND (SELECT pg_catalog.count(*) FROM durable_runs r WHERE r.no = e.run_no) = 1 END
  RETURNING run_no
),
updated AS (
  UPDATE durable_runs r SET
    version = COALESCE(f.version, r.version), status = COALESCE(f.status, r.status), code = COALESCE(f.code, r.code), reason = COALESCE(f.reason, r.reason),
    recoverable = COALESCE(f.recoverable, r.recoverable), owner = CASE WHEN f.epoch IS NULL THEN r.owner ELSE '' END, epoch = COALESCE(f.epoch, r.epoch),
    seen = COALESCE(f.seen, r.seen), cancel_asked = COALESCE(f.cancel_asked, r.cancel_asked), paused = COALESCE(f.paused, r.paused),
    started_at = COALESCE(f.started_at, r.started_at), ended_at = COALESCE(f.ended_at, r.ended_at), wake_at = COALESCE(f.wake_at, r.wake_at),
    deadline_at = COALESCE(f.deadline_at, r.deadline_at), updated_at = greatest(r.updated_at + 1, clock.now)
  FROM fit f CROSS JOIN clock WHERE r.no = f.no
),
released AS (
  DELETE FROM durable_holds h USING fit f WHERE h.run_no = f.no AND f.release
)
SELECT f.no, f.was, f.owned, f.stopped FROM fit f
UNION ALL
SELECT a.run_no, NULL, NULL, NULL FROM appended a WHERE a.run_no NOT IN (SELECT f.no FROM fit f)

-- name: change_run (own)
-- carry_out for one Change of one event. What it asks of the row is asked again of the version that it
-- gets to see after a wait; everything else is read as of the beginning of the statement. A run that
-- holds keys is left to carry_out. Returns how the row is
-- afterwards.
WITH updated AS (
  UPDATE durable_runs r SET
    version = COALESCE($23::text, r.version), status = COALESCE($21::text, r.status), code = COALESCE($24::text, r.code), reason = COALESCE($25::text,
    r.reason), recoverable = COALESCE($26::boolean, r.recoverable), owner = CASE WHEN $22::bigint IS NULL THEN r.owner ELSE '' END, epoch =
    COALESCE($22::bigint, r.epoch), seen = COALESCE($27::bigint, r.seen), cancel_asked = COALESCE($28::boolean, r.cancel_asked), paused =
    COALESCE($29::boolean, r.paused), started_at = COALESCE($30::bigint, r.started_at), ended_at = COALESCE($31::bigint, r.ended_at), wake_at =
    COALESCE($32::bigint, r.wake_at), deadline_at = COALESCE($33::bigint, r.deadline_at), updated_at = greatest(r.updated_at, (extract(epoch FROM
    pg_catalog.clock_timestamp())::numeric * 1000000::numeric)::bigint)
  WHERE r.no = $1::bigint AND r.epoch = $3::bigint
    AND ($17::bigint IS NULL OR r.inbox = $17) AND NOT ($18::boolean AND r.cancel_asked)
    AND ($19::text IS NULL OR pg_catalog.strpos($19, r.status || ',') > 0) AND NOT ($20::boolean AND r.owner <> '')
    AND (NOT $34::boolean OR (SELECT s.updated_at FROM durable_runs s WHERE s.no = r.no) = r.updated_at
      AND (SELECT pg_catalog.count(*) FROM (SELECT 1 FROM durable_holds h WHERE h.run_no = r.no LIMIT 1) held) = 0)
    AND EXISTS (SELECT 1 FROM durable_events p WHERE p.run_no = $1 AND p.seq = $2::bigint - 1 AND (p.epoch = $3 OR $20))
  RETURNING r.no, r.owner, r.status, r.paused
),
appended AS (
  INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum)
  SELECT u.no, $2, $4::bigint, $5::integer, $6::text, $7::text, $8::integer, $9::integer, $10::bigint, $11::bigint, $12::bigint, $13::integer, $14::text,
         $15::bytea, $16::bigint
  FROM updated u
)
SELECT u.owner, u.status, u.paused FROM updated u

-- name: receive (own)
-- change_run for a run that sends a message to itself: the message and its receipt. The message gets the
-- number after $16, which the run still has, or nothing is written.
WITH updated AS (
  UPDATE durable_runs r SET
    inbox = r.inbox + 1, archived_seq = least(r.archived_seq, 1), status = COALESCE($18::text, r.status), code = COALESCE($19::text, r.code),
    reason = COALESCE($20::text, r.reason), seen = COALESCE($21::bigint, r.seen), wake_at = COALESCE($22::bigint, r.wake_at),
    updated_at = greatest(r.updated_at, (extract(epoch FROM pg_catalog.clock_timestamp())::numeric * 1000000::numeric)::bigint)
  WHERE r.no = $1::bigint AND r.epoch = $3::bigint AND r.inbox = $16::bigint AND pg_catalog.strpos($17::text, r.status || ',') > 0
    AND EXISTS (SELECT 1 FROM durable_events p WHERE p.run_no = $1 AND p.seq = $2::bigint - 1 AND p.epoch = $3)
  RETURNING r.no, r.inbox, r.owner, r.status, r.paused
),
delivered AS (
  INSERT INTO durable_inbox (run_no, seq, kind, name, id, at, data, payload)
  SELECT u.no, u.inbox, $23::text, $24::text, $25::text, $26::bigint, $27::text, $28::bytea FROM updated u
),
appended AS (
  INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum)
  SELECT u.no, $2, $3, $4::integer, $5::text, $6::text, $7::integer, $8::integer, $9::bigint, $10::bigint, $11::bigint, $12::integer, $13::text,
         $14::bytea, $15::bigint
  FROM updated u
)
SELECT u.owner, u.status, u.paused FROM updated u

-- name: take_runs (own)
-- The events of claims, and what they change in rows, which are locked. Plain appends take
-- no lock on the row, so the place of an event may be taken meanwhile: then its run does not
-- come back, and the claim reads the log again. alone: there is nothing of the run but its row and
-- its log. That is looked at here, because the statement that has waited for the lock on the row
-- saw everything else as it was before.
WITH appended AS (
  INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum)
  SELECT e.run_no, e.seq, e.epoch, e.branch, e.type, e.key, e.attempt, e.ordinal, e.at, e.took, e.active, e.steps, e.data, e.payload, e.sum
  FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::integer[], $5::text[], $6::text[], $7::integer[], $8::integer[], $9::bigint[],
              $10::bigint[], $11::bigint[], $12::integer[], $13::text[], $14::bytea[], $15::bigint[])
    AS e (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum)
  ORDER BY e.run_no
  ON CONFLICT (run_no, seq) DO NOTHING
  RETURNING run_no
)
UPDATE durable_runs r SET status = u.status, owner = $16::text, epoch = u.epoch, strikes = u.strikes, resumes = u.resumes, started_at = u.started_at,
  updated_at = u.updated_at
FROM unnest($1::bigint[], $17::text[], $3::bigint[], $18::integer[], $19::integer[], $20::bigint[], $21::bigint[])
  AS u (no, status, epoch, strikes, resumes, started_at, updated_at)
WHERE r.no = u.no AND (u.no IN (SELECT a.run_no FROM appended a)) IS TRUE
RETURNING r.no, r.inbox = 0 AND (SELECT pg_catalog.count(*) FROM (SELECT 1 FROM durable_branches b WHERE b.run_no = r.no LIMIT 1) branches) = 0 AS alone

-- name: read_back (own)
-- The outcome of Changes whose events were not written (S6): for each, the
-- run's number and the event at the requested Seq.
SELECT c.ord, r.no, e.epoch, e.sum
FROM unnest($1::bigint[], $2::text[], $3::bigint[]) AS c (ord, id, seq)
LEFT JOIN durable_runs r ON r.id = c.id
LEFT JOIN durable_events e ON e.run_no = r.no AND e.seq = c.seq

-- name: log_heads (own)
-- Where the logs of runs end.
SELECT n.no, l.seq, l.epoch FROM pg_catalog.unnest($1::bigint[]) AS n (no)
CROSS JOIN LATERAL (SELECT e.seq, e.epoch FROM durable_events e WHERE e.run_no = n.no ORDER BY e.seq DESC LIMIT 1) l

-- name: events_up
SELECT run_no AS no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum
FROM durable_events WHERE run_no = $1 AND seq > $2 AND seq <= $3 ORDER BY seq

-- name: events_of_branches (own)
SELECT run_no AS no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum
FROM durable_events WHERE run_no = $1 AND seq > $2 AND seq <= $3 AND branch = ANY($4::integer[]) ORDER BY seq

-- name: places_down (own)
-- From the end of the log, the minimum that shows which events a lineage has.
SELECT seq, branch, key FROM durable_events WHERE run_no = $1 AND seq > $2 AND seq < $3 ORDER BY seq DESC

-- name: sweep_events (own)
-- Events whose run is gone, left by an append that was in progress while the
-- run was deleted. A walk over the primary key, so that a run costs one lookup
-- however long its log is. A run and its first event become visible together,
-- so a run that is just being created is never swept.
WITH RECURSIVE walk (run_no) AS (
  (SELECT run_no FROM durable_events ORDER BY run_no LIMIT 1)
  UNION ALL
  SELECT (SELECT e.run_no FROM durable_events e WHERE e.run_no > w.run_no ORDER BY e.run_no LIMIT 1) FROM walk w WHERE w.run_no IS NOT NULL
)
DELETE FROM durable_events WHERE run_no IN (
  SELECT w.run_no FROM walk w WHERE w.run_no IS NOT NULL AND NOT EXISTS (SELECT 1 FROM durable_runs r WHERE r.no = w.run_no))
