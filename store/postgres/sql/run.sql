-- Rows of runs.

-- name: load_runs (own)
-- All there is to load of runs, as of one moment: the rows and what belongs to them, one below the
-- other, since that is one statement; what a row is comes second, after the place of the run among
-- those asked for. $1 ids; the rest is what the cursors say: $2 after which event, $3 how many of the
-- last ones, $4 whether any, $5 after which message. 0 is a row, in its columns; 1 an attribute,
-- 2 a branch, 3 a message, 4 the last event, 5 an event to begin with, each in columns of the same
-- types (../set.go). Of the events there are 128 at most, and 64 KiB: what comes behind them is
-- read when it is wanted. The inner queries have limits so that no plan reads a whole table to
-- join it: it is made once, and maybe while the tables are empty.
WITH asked AS MATERIALIZED (
  SELECT i.ord, i.after, i.tail, i.wanted, i.message, r.*
  FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::boolean[], $5::bigint[]) WITH ORDINALITY AS i (run, after, tail, wanted, message, ord)
  CROSS JOIN LATERAL (
    SELECT no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status,
       code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq,
       started_at, updated_at, ended_at, wake_at, deadline_at, attributes
    FROM durable_runs q WHERE q.id = i.run LIMIT 1) r
),
ended AS MATERIALIZED (
  SELECT a.ord, a.no, a.wanted, CASE WHEN a.tail > 0 THEN greatest(a.after, e.seq - a.tail) ELSE a.after END AS low, e.*
  FROM asked a CROSS JOIN LATERAL (
    SELECT l.run_no, l.seq, l.epoch, l.branch, l.type, l.key, l.attempt, l.ordinal, l.at, l.took, l.active, l.steps, l.data, l.payload, l.sum
    FROM durable_events l WHERE l.run_no = a.no ORDER BY l.seq DESC LIMIT 1) e
)
SELECT a.ord, 0 AS part,
       a.no, a.id, a.workflow, a.initial_version, a.parent, a.parent_key, a.forked_from, a.input_hash, a.queue, a.partition, a.dedup, a.trace,
       a.created_at, a.version, a.status, a.code, a.reason, a.recoverable, a.owner, a.epoch, a.branch, a.generation, a.resumes, a.strikes, a.priority,
       a.inbox, a.seen, a.cancel_asked, a.paused, a.archived_seq, a.started_at, a.updated_at, a.ended_at, a.wake_at, a.deadline_at, a.attributes
FROM asked a
UNION ALL
SELECT a.ord, 1,
       t.run_no, NULL, NULL, NULL, NULL, t.name, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, t.value, NULL, NULL, NULL, NULL, NULL,
       NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM asked a CROSS JOIN LATERAL (
  SELECT x.run_no, x.name, x.value FROM durable_attributes x WHERE x.run_no = a.no ORDER BY x.name OFFSET 0) t
WHERE a.attributes > 0
UNION ALL
SELECT a.ord, 2,
       b.run_no, NULL, NULL, NULL, NULL, b.cut_scope, NULL, NULL, NULL, NULL, NULL, NULL, b.created_at, NULL, NULL, NULL, b.reason, NULL, NULL, NULL,
       b.n, b.parent, b.generation, NULL, NULL, b.cutoff, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM asked a CROSS JOIN LATERAL (
  SELECT x.run_no, x.n, x.parent, x.generation, x.cutoff, x.cut_scope, x.reason, x.created_at FROM durable_branches x WHERE x.run_no = a.no ORDER BY x.n OFFSET 0) b
UNION ALL
SELECT a.ord, 3,
       m.run_no, m.id, NULL, NULL, m.kind, m.name, NULL, m.payload, NULL, NULL, NULL, NULL, m.at, NULL, NULL, NULL, m.data, NULL, NULL, NULL, NULL,
       NULL, NULL, NULL, NULL, m.seq, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM asked a CROSS JOIN LATERAL (
  SELECT x.run_no, x.seq, x.kind, x.name, x.id, x.at, x.data, x.payload FROM durable_inbox x WHERE x.run_no = a.no AND x.seq > a.message ORDER BY x.seq OFFSET 0) m
WHERE a.inbox > a.message
UNION ALL
SELECT d.ord, 4,
       d.run_no, NULL, NULL, NULL, d.type, d.key, NULL, d.payload, NULL, NULL, NULL, NULL, d.at, NULL, NULL, NULL, d.data, NULL, NULL, d.epoch,
       d.branch, d.attempt, d.ordinal, d.steps, NULL, d.seq, d.took, NULL, NULL, NULL, d.active, d.sum, NULL, NULL, NULL, NULL
FROM ended d
UNION ALL
SELECT d.ord, 5,
       e.run_no, NULL, NULL, NULL, e.type, e.key, NULL, e.payload, NULL, NULL, NULL, NULL, e.at, NULL, NULL, NULL, e.data, NULL, NULL, e.epoch,
       e.branch, e.attempt, e.ordinal, e.steps, NULL, e.seq, e.took, NULL, NULL, NULL, e.active, e.sum, NULL, NULL, NULL, NULL
FROM ended d CROSS JOIN LATERAL (
  SELECT l.run_no, l.seq, l.epoch, l.branch, l.type, l.key, l.attempt, l.ordinal, l.at, l.took, l.active, l.steps, l.data, l.payload, l.sum,
         pg_catalog.sum(COALESCE(pg_catalog.octet_length(l.data), 0) + COALESCE(pg_catalog.octet_length(l.payload), 0)) OVER (ORDER BY l.seq ROWS UNBOUNDED PRECEDING) AS size
  FROM durable_events l WHERE l.run_no = d.no AND l.seq > d.low AND l.seq <= d.low + 128 ORDER BY l.seq OFFSET 0) e
WHERE d.wanted AND e.size <= 65536

-- name: load_inboxes (own)
-- The messages of runs behind a number, for a caller that looks at nothing else: $1 ids, $2 after
-- which message. A run without any has one row, without a message.
SELECT i.ord, r.no, m.seq, m.kind, m.name, m.id, m.at, m.data, m.payload
FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS i (run, message, ord)
CROSS JOIN LATERAL (SELECT q.no FROM durable_runs q WHERE q.id = i.run LIMIT 1) r
LEFT JOIN LATERAL (
  SELECT x.seq, x.kind, x.name, x.id, x.at, x.data, x.payload FROM durable_inbox x
  WHERE x.run_no = r.no AND x.seq > i.message ORDER BY x.seq OFFSET 0) m ON true

-- name: kinds (own)
-- The kinds of unfinished runs, found from one to the next along the index.
WITH RECURSIVE kinds (status, code, workflow, version, queue) AS (
  SELECT f.status, f.code, f.workflow, f.version, f.queue
  FROM pg_catalog.unnest(ARRAY['pending', 'running', 'resuming', 'waiting', 'interrupted']) AS st (status)
  CROSS JOIN LATERAL (
    SELECT r.status, r.code, r.workflow, r.version, r.queue FROM durable_runs r WHERE r.status = st.status
    ORDER BY r.code, r.workflow, r.version, r.queue LIMIT 1) f
  UNION ALL
  SELECT n.status, n.code, n.workflow, n.version, n.queue
  FROM kinds k CROSS JOIN LATERAL (
    SELECT r.status, r.code, r.workflow, r.version, r.queue FROM durable_runs r
    WHERE r.status = k.status AND (r.code, r.workflow, r.version, r.queue) > (k.code, k.workflow, k.version, k.queue)
    ORDER BY r.code, r.workflow, r.version, r.queue LIMIT 1) n
)
SELECT DISTINCT workflow, version, queue FROM kinds

-- name: run_numbers (own)
SELECT id, no, updated_at FROM durable_runs WHERE id = ANY($1::text[])

-- name: lock_wait (own)
-- How long this transaction waits for a lock, in milliseconds.
SELECT pg_catalog.set_config('lock_timeout', $1, true)

-- name: lock_runs (own)
-- Locks the rows of a transaction, all at once and sorted, so that no two
-- transactions wait for each other. There is always a row, for the clock.
WITH locked AS MATERIALIZED (
  SELECT no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code,
         reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at,
         updated_at, ended_at, wake_at, deadline_at, attributes
  FROM durable_runs WHERE id = ANY($1::text[]) ORDER BY id FOR UPDATE
)
SELECT (extract(epoch FROM pg_catalog.clock_timestamp())::numeric * 1000000::numeric)::bigint AS now, locked.*
FROM (SELECT 1) one LEFT JOIN locked ON true

-- name: insert_runs (own)
-- A run that already exists is skipped, and its Change decided again.
INSERT INTO durable_runs (id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason,
  recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at,
  ended_at, wake_at, deadline_at, attributes)
SELECT u.id, u.workflow, u.initial_version, u.parent, u.parent_key, u.forked_from, u.input_hash, u.queue, u.partition, u.dedup, u.trace, u.created_at,
       u.version, u.status, u.code, u.reason, u.recoverable, u.owner, u.epoch, u.branch, u.generation, u.resumes, u.strikes, u.priority, u.inbox, u.seen,
       u.cancel_asked, u.paused, u.archived_seq, u.started_at, u.updated_at, u.ended_at, u.wake_at, u.deadline_at, u.attributes
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bytea[], $8::text[], $9::text[], $10::text[], $11::text[], $12::bigint[],
            $13::text[], $14::text[], $15::text[], $16::text[], $17::boolean[], $18::text[], $19::bigint[], $20::integer[], $21::integer[], $22::integer[],
            $23::integer[], $24::integer[], $25::bigint[], $26::bigint[], $27::boolean[], $28::boolean[], $29::bigint[], $30::bigint[], $31::bigint[],
            $32::bigint[], $33::bigint[], $34::bigint[], $35::bigint[])
  AS u (id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason,
        recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at,
        ended_at, wake_at, deadline_at, attributes)
ORDER BY u.id
ON CONFLICT (id) DO NOTHING
RETURNING id, no

-- name: create_run (own)
-- One run without attributes, and its first event or two: the type of the second one may be NULL.
-- A run that is there, or whose Dedup is taken, is not created, and its Change decided again;
-- one that appears meanwhile makes the insert fail. Returns its number, and the time.
WITH made AS (
  INSERT INTO durable_runs (id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason,
    recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at,
    ended_at, wake_at, deadline_at, attributes)
  SELECT $1::text, $2::text, $3::text, $4::text, $5::text, $6::text, $7::bytea, $8::text, $9::text, $10::text, $11::text, $12::bigint, $13::text,
         $14::text, $15::text, $16::text, $17::boolean, $18::text, $19::bigint, $20::integer, $21::integer, $22::integer, $23::integer, $24::integer,
         $25::bigint, $26::bigint, $27::boolean, $28::boolean, $29::bigint, $30::bigint, (extract(epoch FROM pg_catalog.clock_timestamp())::numeric *
         1000000::numeric)::bigint, $31::bigint, $32::bigint, $33::bigint, $34::bigint
  WHERE NOT EXISTS (SELECT 1 FROM durable_runs r WHERE r.id = $1)
    AND ($10 = '' OR NOT EXISTS (
      SELECT 1 FROM durable_runs r
      WHERE r.queue = $8 AND r.dedup = $10 AND r.dedup <> '' AND r.status NOT IN ('completed', 'failed', 'cancelled')))
  RETURNING no, updated_at
),
appended AS (
  INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum)
  SELECT m.no, e.*
  FROM made m CROSS JOIN (VALUES
    ($35::bigint, $36::bigint, $37::integer, $38::text, $39::text, $40::integer, $41::integer, $42::bigint, $43::bigint, $44::bigint, $45::integer,
     $46::text, $47::bytea, $48::bigint),
    ($49::bigint, $50::bigint, $51::integer, $52::text, $53::text, $54::integer, $55::integer, $56::bigint, $57::bigint, $58::bigint, $59::integer,
     $60::text, $61::bytea, $62::bigint)) AS e (seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum)
  WHERE e.type IS NOT NULL
)
SELECT m.no, m.updated_at FROM made m

-- name: create_runs (own)
-- Many runs, in the order of their ids, with their first events and attributes. One that is there,
-- or whose Dedup is taken, is skipped, and its Change decided again. The joins cannot be loops,
-- which would take the square of the time: loops do not carry out a FULL JOIN.
WITH made AS (
  INSERT INTO durable_runs (id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason,
    recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at,
    ended_at, wake_at, deadline_at, attributes)
  SELECT u.id, u.workflow, u.initial_version, u.parent, u.parent_key, u.forked_from, u.input_hash, u.queue, u.partition, u.dedup, u.trace, u.created_at,
         u.version, u.status, u.code, u.reason, u.recoverable, u.owner, u.epoch, u.branch, u.generation, u.resumes, u.strikes, u.priority, u.inbox, u.seen,
         u.cancel_asked, u.paused, u.archived_seq, u.started_at, clock.now, u.ended_at, u.wake_at, u.deadline_at, u.attributes
  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bytea[], $8::text[], $9::text[], $10::text[], $11::text[],
              $12::bigint[], $13::text[], $14::text[], $15::text[], $16::text[], $17::boolean[], $18::text[], $19::bigint[], $20::integer[],
              $21::integer[], $22::integer[], $23::integer[], $24::integer[], $25::bigint[], $26::bigint[], $27::boolean[], $28::boolean[], $29::bigint[],
              $30::bigint[], $31::bigint[], $32::bigint[], $33::bigint[], $34::bigint[])
    AS u (id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code,
          reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at,
          ended_at, wake_at, deadline_at, attributes)
  CROSS JOIN (SELECT (extract(epoch FROM pg_catalog.clock_timestamp())::numeric * 1000000::numeric)::bigint AS now) clock
  ON CONFLICT DO NOTHING
  RETURNING id, no, updated_at
),
appended AS (
  INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum)
  SELECT m.no, e.seq, e.epoch, e.branch, e.type, e.key, e.attempt, e.ordinal, e.at, e.took, e.active, e.steps, e.data, e.payload, e.sum
  FROM made m FULL JOIN unnest($35::text[], $36::bigint[], $37::bigint[], $38::integer[], $39::text[], $40::text[], $41::integer[], $42::integer[], $43::bigint[],
              $44::bigint[], $45::bigint[], $46::integer[], $47::text[], $48::bytea[], $49::bigint[])
    AS e (run, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) ON e.run = m.id
  WHERE COALESCE(m.no, 0) > 0
),
described AS (
  INSERT INTO durable_attributes (run_no, name, value)
  SELECT m.no, a.name, a.value
  FROM made m FULL JOIN unnest($50::text[], $51::text[], $52::text[]) AS a (run, name, value) ON a.run = m.id
  WHERE COALESCE(m.no, 0) > 0 AND COALESCE(a.run, '') <> ''
)
SELECT m.id, m.no, m.updated_at FROM made m

-- name: update_runs (own)
-- Everything that may change in the rows of a transaction, which holds their
-- locks.
UPDATE durable_runs r SET
  version = u.version, status = u.status, code = u.code, reason = u.reason, recoverable = u.recoverable, owner = u.owner, epoch = u.epoch,
  branch = u.branch, generation = u.generation, resumes = u.resumes, strikes = u.strikes, priority = u.priority, inbox = u.inbox, seen = u.seen,
  cancel_asked = u.cancel_asked, paused = u.paused, archived_seq = u.archived_seq, started_at = u.started_at, updated_at = u.updated_at,
  ended_at = u.ended_at, wake_at = u.wake_at, deadline_at = u.deadline_at, attributes = u.attributes
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::boolean[], $7::text[], $8::bigint[], $9::integer[], $10::integer[], $11::integer[],
            $12::integer[], $13::integer[], $14::bigint[], $15::bigint[], $16::boolean[], $17::boolean[], $18::bigint[], $19::bigint[], $20::bigint[],
            $21::bigint[], $22::bigint[], $23::bigint[], $24::bigint[])
  AS u (no, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused,
        archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes)
WHERE r.no = u.no

-- name: dedup_holders (own)
SELECT r.id, r.queue, r.dedup FROM unnest($1::text[], $2::text[]) AS d (queue, dedup)
JOIN durable_runs r ON r.queue = d.queue AND r.dedup = d.dedup
WHERE r.dedup <> '' AND r.status NOT IN ('completed', 'failed', 'cancelled')

-- name: holds (own)
SELECT h.name, r.id FROM durable_holds h JOIN durable_runs r ON r.no = h.run_no
WHERE h.name = ANY($1::text[]) ORDER BY h.name FOR UPDATE OF h

-- name: insert_holds (own)
INSERT INTO durable_holds (name, run_no)
SELECT u.name, u.run_no FROM unnest($1::text[], $2::bigint[]) AS u (name, run_no) ORDER BY u.name

-- name: release_holds (own)
DELETE FROM durable_holds WHERE run_no = ANY($1::bigint[])

-- name: attributes_of
SELECT run_no AS no, name, value FROM durable_attributes WHERE run_no = ANY($1::bigint[])

-- name: delete_attributes (own)
DELETE FROM durable_attributes WHERE run_no = ANY($1::bigint[])

-- name: insert_attributes (own)
INSERT INTO durable_attributes (run_no, name, value)
SELECT u.run_no, u.name, u.value FROM unnest($1::bigint[], $2::text[], $3::text[]) AS u (run_no, name, value)

-- name: branch_numbers (own)
SELECT run_no, n FROM durable_branches WHERE run_no = ANY($1::bigint[])

-- name: insert_branches (own)
INSERT INTO durable_branches (run_no, n, parent, generation, cutoff, cut_scope, reason, created_at)
SELECT * FROM unnest($1::bigint[], $2::integer[], $3::integer[], $4::integer[], $5::bigint[], $6::text[], $7::text[], $8::bigint[])

-- name: inbox_ids (own)
-- Which of these messages were delivered before (S14).
SELECT u.ord FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[]) AS u (ord, run_no, kind, id)
JOIN durable_inbox m ON m.run_no = u.run_no AND m.kind = u.kind AND pg_catalog.md5(m.id) = pg_catalog.md5(u.id) AND m.id = u.id

-- name: insert_messages (own)
INSERT INTO durable_inbox (run_no, seq, kind, name, id, at, data, payload)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[], $8::bytea[])

-- name: send_message (own)
-- One message to a run that has not ended, unless it was delivered before (S14). The number comes from
-- the version of the row that this statement gets to see after a wait. A message that was delivered
-- meanwhile makes the insert fail. Returns the number, and who owns the run.
WITH numbered AS (
  UPDATE durable_runs r SET inbox = r.inbox + 1, archived_seq = least(r.archived_seq, 1), cancel_asked = r.cancel_asked OR $8::boolean,
    wake_at = CASE WHEN $8 AND r.status = 'pending' THEN 0 ELSE r.wake_at END,
    updated_at = greatest(r.updated_at, (extract(epoch FROM pg_catalog.clock_timestamp())::numeric * 1000000::numeric)::bigint)
  WHERE r.id = $1::text AND r.status NOT IN ('completed', 'failed', 'cancelled')
    AND (SELECT pg_catalog.count(*) FROM (
      SELECT 1 FROM durable_inbox m WHERE m.run_no = r.no AND m.kind = $2::text AND pg_catalog.md5(m.id) = pg_catalog.md5($4::text) AND m.id = $4 LIMIT 1) before) = 0
  RETURNING r.no, r.inbox, r.owner
),
delivered AS (
  INSERT INTO durable_inbox (run_no, seq, kind, name, id, at, data, payload)
  SELECT n.no, n.inbox, $2, $3::text, $4, $5::bigint, $6::text, $7::bytea FROM numbered n
)
SELECT n.inbox, n.owner FROM numbered n

-- name: send_messages (own)
-- The same for many, in the order of their receivers. change says which Change a message belongs to, and
-- size how many messages that has: all of them are delivered, or none. nth is a message's place in its
-- Change. Returns those that were delivered, with their numbers and
-- the owners of the runs.
WITH target AS MATERIALIZED (
  SELECT u.*, r.no, r.inbox, r.status, r.owner
  FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::text[], $9::bytea[], $10::boolean[],
              $11::bigint[]) WITH ORDINALITY
    AS u (change, size, run, kind, name, id, at, data, payload, cancel, nth, ord)
  JOIN durable_runs r ON r.id = u.run
  ORDER BY u.ord FOR UPDATE OF r
),
fit AS MATERIALIZED (
  SELECT t.change FROM target t
  WHERE t.status NOT IN ('completed', 'failed', 'cancelled')
    AND (SELECT pg_catalog.count(*) FROM (
      SELECT 1 FROM durable_inbox m WHERE m.run_no = t.no AND m.kind = t.kind AND pg_catalog.md5(m.id) = pg_catalog.md5(t.id) AND m.id = t.id LIMIT 1) before) = 0
  GROUP BY t.change HAVING pg_catalog.count(*) = pg_catalog.min(t.size)
),
numbered AS MATERIALIZED (
  SELECT t.*, pg_catalog.row_number() OVER (PARTITION BY t.no ORDER BY t.ord) AS place FROM target t WHERE t.change IN (SELECT f.change FROM fit f)
),
delivered AS (
  INSERT INTO durable_inbox (run_no, seq, kind, name, id, at, data, payload)
  SELECT n.no, n.inbox + n.place, n.kind, n.name, n.id, n.at, n.data, n.payload FROM numbered n
),
updated AS (
  UPDATE durable_runs r SET inbox = r.inbox + n.messages, archived_seq = least(r.archived_seq, 1), cancel_asked = r.cancel_asked OR n.cancel,
    wake_at = CASE WHEN n.cancel AND r.status = 'pending' THEN 0 ELSE r.wake_at END,
    updated_at = greatest(r.updated_at, (extract(epoch FROM pg_catalog.clock_timestamp())::numeric * 1000000::numeric)::bigint)
  FROM (SELECT m.no, pg_catalog.count(*) AS messages, pg_catalog.bool_or(m.cancel) AS cancel FROM numbered m GROUP BY m.no) n
  WHERE r.no = n.no
)
SELECT n.change, n.nth, n.inbox + n.place, n.owner FROM numbered n

-- name: lock_for_delete (own)
SELECT no, id, status, owner, epoch FROM durable_runs WHERE id = ANY($1::text[]) ORDER BY id FOR UPDATE

-- name: delete_runs (own)
DELETE FROM durable_runs WHERE no = ANY($1::bigint[])

-- name: delete_events (own)
DELETE FROM durable_events WHERE run_no = ANY($1::bigint[])

-- name: delete_branches (own)
DELETE FROM durable_branches WHERE run_no = ANY($1::bigint[])

-- name: delete_inbox (own)
DELETE FROM durable_inbox WHERE run_no = ANY($1::bigint[])

-- name: runs_left (own)
SELECT pg_catalog.count(*) FROM durable_runs WHERE no = ANY($1::bigint[])
