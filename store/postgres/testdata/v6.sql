-- A store as a program of this schema version has left it. It is never changed.

CREATE TABLE durable_schema (version integer PRIMARY KEY, name text NOT NULL, applied_at bigint NOT NULL);

-- The first schema. Times are microseconds since 1970 (UTC), durations are
-- microseconds; 0 means not set. Text that is compared or sorted collates by
-- bytes, so that the order does not depend on the server's locale.

CREATE TABLE durable_runs (
  no              bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- never used twice
  id              text    COLLATE "C" NOT NULL,
  workflow        text    COLLATE "C" NOT NULL,
  initial_version text    COLLATE "C" NOT NULL,
  parent          text    COLLATE "C" NOT NULL,
  parent_key      text    COLLATE "C" NOT NULL,
  forked_from     text    COLLATE "C" NOT NULL,
  input_hash      bytea   NOT NULL,
  queue           text    COLLATE "C" NOT NULL,
  partition       text    COLLATE "C" NOT NULL,
  dedup           text    COLLATE "C" NOT NULL,
  trace           text    COLLATE "C" NOT NULL,
  created_at      bigint  NOT NULL,
  version         text    COLLATE "C" NOT NULL,
  status          text    COLLATE "C" NOT NULL CHECK (status IN
    ('pending', 'running', 'resuming', 'waiting', 'interrupted', 'completed', 'failed', 'cancelled')),
  code            text    COLLATE "C" NOT NULL,
  reason          text    COLLATE "C" NOT NULL,
  recoverable     boolean NOT NULL,
  owner           text    COLLATE "C" NOT NULL,
  epoch           bigint  NOT NULL CHECK (epoch > 0),
  branch          integer NOT NULL,
  generation      integer NOT NULL,
  resumes         integer NOT NULL,
  strikes         integer NOT NULL,
  priority        integer NOT NULL,
  inbox           bigint  NOT NULL,
  seen            bigint  NOT NULL,
  cancel_asked    boolean NOT NULL,
  paused          boolean NOT NULL,
  archived_seq    bigint  NOT NULL,
  started_at      bigint  NOT NULL,
  updated_at      bigint  NOT NULL,
  ended_at        bigint  NOT NULL,
  wake_at         bigint  NOT NULL,
  deadline_at     bigint  NOT NULL,
  attributes      bigint  NOT NULL, -- how many rows the attributes table has for it
  -- A column of its own, because the planner has statistics of columns alone:
  -- it takes inbox > seen for a third of all rows.
  mail            boolean NOT NULL GENERATED ALWAYS AS (inbox > seen OR cancel_asked) STORED
) WITH (fillfactor = 85);

CREATE UNIQUE INDEX durable_runs_id_idx      ON durable_runs (id);
CREATE        INDEX durable_runs_created_idx ON durable_runs (created_at, no);
CREATE        INDEX durable_runs_parent_idx  ON durable_runs (parent) WHERE parent <> '';
CREATE        INDEX durable_runs_owner_idx   ON durable_runs (owner)  WHERE owner <> '';
CREATE UNIQUE INDEX durable_runs_dedup_idx   ON durable_runs (queue, dedup)
  WHERE dedup <> '' AND status NOT IN ('completed', 'failed', 'cancelled');
-- What a claim looks for, in lanes that it reads only where they are its own:
-- by workflow, version and queue for what nobody began, by owner for the rest.
CREATE INDEX durable_runs_pending_idx ON durable_runs
  (workflow, version, queue, priority DESC, (CASE WHEN wake_at <> 0 THEN wake_at ELSE created_at END), no) WHERE status = 'pending';
CREATE INDEX durable_runs_interrupted_idx ON durable_runs (workflow, version, queue, priority DESC, created_at, no)
  WHERE status = 'interrupted' AND code IN ('', 'not_registered');
CREATE INDEX durable_runs_wake_idx ON durable_runs (owner, status, wake_at) WHERE wake_at <> 0;
CREATE INDEX durable_runs_mail_idx ON durable_runs (owner, status, no) WHERE mail;
CREATE INDEX durable_runs_executing_idx ON durable_runs (queue) WHERE status IN ('running', 'resuming');

-- The log. No foreign key: checking it would lock the run's row at every
-- checkpoint, and the fence of an append needs no more than this table.
CREATE TABLE durable_events (
  run_no  bigint  NOT NULL,
  seq     bigint  NOT NULL,
  epoch   bigint  NOT NULL,
  branch  integer NOT NULL,
  type    text    COLLATE "C" NOT NULL,
  key     text    COLLATE "C" NOT NULL,
  attempt integer NOT NULL,
  ordinal integer NOT NULL,
  at      bigint  NOT NULL,
  took    bigint  NOT NULL,
  active  bigint  NOT NULL,
  steps   integer NOT NULL,
  data    text    COLLATE "C", -- JSON; of type text, since jsonb refuses \u0000
  payload bytea,
  sum     bigint  NOT NULL,
  PRIMARY KEY (run_no, seq)
);

CREATE TABLE durable_branches (
  run_no     bigint  NOT NULL,
  n          integer NOT NULL,
  parent     integer NOT NULL,
  generation integer NOT NULL,
  cutoff     bigint  NOT NULL,
  cut_scope  text    COLLATE "C" NOT NULL,
  reason     text    COLLATE "C" NOT NULL,
  created_at bigint  NOT NULL,
  PRIMARY KEY (run_no, n)
);

CREATE TABLE durable_inbox (
  run_no  bigint NOT NULL,
  seq     bigint NOT NULL,
  kind    text   COLLATE "C" NOT NULL,
  name    text   COLLATE "C" NOT NULL,
  id      text   COLLATE "C" NOT NULL,
  at      bigint NOT NULL,
  data    text   COLLATE "C",
  payload bytea,
  PRIMARY KEY (run_no, seq)
);
-- An id may be longer than an index entry, so the entry holds its hash too, and
-- the check of the id itself is the reader's.
CREATE UNIQUE INDEX durable_inbox_id_idx ON durable_inbox (run_no, kind, md5(id));

CREATE TABLE durable_attributes (
  run_no bigint NOT NULL,
  name   text   COLLATE "C" NOT NULL,
  value  text   COLLATE "C" NOT NULL,
  PRIMARY KEY (run_no, name)
);
-- A hash, since a value may be longer than an entry of a tree.
CREATE INDEX durable_attributes_value_idx ON durable_attributes USING hash (value);

-- Exclusive keys and who holds them.
CREATE TABLE durable_holds (
  name   text   COLLATE "C" PRIMARY KEY,
  run_no bigint NOT NULL
);
CREATE INDEX durable_holds_run_idx ON durable_holds (run_no);

CREATE TABLE durable_executors (
  no         bigint GENERATED ALWAYS AS IDENTITY,
  id         text   COLLATE "C" PRIMARY KEY,
  name       text   COLLATE "C" NOT NULL,
  host       text   COLLATE "C" NOT NULL,
  boot       text   COLLATE "C" NOT NULL,
  pid        bigint NOT NULL,
  lease      bigint NOT NULL,
  serves     text   COLLATE "C" NOT NULL,
  started_at bigint NOT NULL,
  beat_at    bigint NOT NULL,
  presence   text   COLLATE "C" NOT NULL
);

-- A row per queue with a limit. Whoever claims from the queue locks it, so that
-- the limit is exact.
CREATE TABLE durable_queues (
  name text COLLATE "C" PRIMARY KEY
);

-- For people: the log with readable times and payloads.
CREATE VIEW durable_history AS
SELECT r.id AS run, e.seq, e.branch, e.type, e.key, e.attempt, to_timestamp(e.at / 1000000.0) AS at,
       e.took / 1000.0 AS took_ms, e.data, encode(e.payload, 'escape') AS payload, e.epoch, e.sum
FROM durable_events e JOIN durable_runs r ON r.no = e.run_no;

-- For those who look: how many runs there are of each kind, and which are the
-- newest in a status. So few distinct values make of the first an index of seven
-- bytes a run, which is counted without a look at the table. What moves a run
-- from one kind to another changes its status, which other indexes are about
-- already, so no update is dearer for them that was cheap (heap-only).
CREATE INDEX durable_runs_kind_idx   ON durable_runs (status, code, workflow, version);
CREATE INDEX durable_runs_status_idx ON durable_runs (status, created_at, no);
CREATE INDEX durable_runs_paused_idx ON durable_runs (created_at, no) WHERE paused;

-- What cannot be claimed must cost a claim and a beat nothing, however much of
-- it there is: runs that are delayed or asleep, runs of workflows that are not
-- served, runs that are paused. So every condition is a column or the condition
-- of an index, and none is left to be tried row by row.
--
-- What waits for nothing, in the order of claiming.
DROP INDEX durable_runs_pending_idx;
CREATE INDEX durable_runs_pending_idx ON durable_runs (workflow, version, queue, priority DESC, created_at, no)
  WHERE status = 'pending' AND wake_at = 0 AND NOT paused;
DROP INDEX durable_runs_interrupted_idx;
CREATE INDEX durable_runs_interrupted_idx ON durable_runs (workflow, version, queue, priority DESC, created_at, no)
  WHERE status = 'interrupted' AND code IN ('', 'not_registered') AND NOT paused;
-- What waits for its time, in lanes: the first of each lane says when it has come.
CREATE INDEX durable_runs_lane_idx ON durable_runs (status, workflow, version, queue, owner, priority, wake_at, no)
  WHERE wake_at <> 0 AND NOT paused;
DROP INDEX durable_runs_wake_idx;
CREATE INDEX durable_runs_wake_idx ON durable_runs (owner, wake_at) WHERE wake_at <> 0 AND owner <> '';
-- What has mail: for whoever may claim it, and for its owner.
DROP INDEX durable_runs_mail_idx;
CREATE INDEX durable_runs_mail_idx ON durable_runs (status, workflow, version, paused, queue, owner, no) WHERE mail;
CREATE INDEX durable_runs_news_idx ON durable_runs (owner, no) WHERE mail AND owner <> '';

-- Queues, schedules and requests by SQL.
--
-- Queues: how they are limited, and the runs in line for a place in each.
ALTER TABLE durable_queues
  ADD COLUMN revision      bigint  NOT NULL DEFAULT 0, -- 0: it was never put
  ADD COLUMN max_placed    bigint  NOT NULL DEFAULT 0,
  ADD COLUMN max_partition bigint  NOT NULL DEFAULT 0,
  ADD COLUMN rate          bigint  NOT NULL DEFAULT 0,
  ADD COLUMN per           bigint  NOT NULL DEFAULT 0,
  ADD COLUMN paused        boolean NOT NULL DEFAULT false,
  ADD COLUMN reason        text    COLLATE "C" NOT NULL DEFAULT '',
  ADD COLUMN updated_at    bigint  NOT NULL DEFAULT 0,
  ADD COLUMN turn          text    COLLATE "C" NOT NULL DEFAULT '', -- the partition that had the last turn
  ADD COLUMN begun         bigint  NOT NULL DEFAULT 0; -- how many claims of single runs durable_queue_begun has counted

-- The claims that began runs of a queue with a rate: a row for those of one
-- transaction. first is how many there were before, so the number of claims in a
-- window is a difference, and is not counted.
CREATE TABLE durable_queue_begun (
  queue text   COLLATE "C" NOT NULL,
  first bigint NOT NULL,
  at    bigint NOT NULL,
  PRIMARY KEY (queue, first)
);
CREATE INDEX durable_queue_begun_at_idx ON durable_queue_begun (queue, at, first);

-- The runs in line, by partition and rank (store.Rank), but for those that had to wait
-- for a time, and these.
CREATE INDEX durable_runs_line_idx ON durable_runs
  (status, workflow, version, queue, partition, (created_at - priority * 3600000000), no)
  WHERE queue <> '' AND NOT paused
    AND (status = 'pending' AND wake_at = 0 AND NOT cancel_asked OR status = 'interrupted' AND code IN ('', 'not_registered'));
CREATE INDEX durable_runs_timed_idx ON durable_runs (queue, partition, workflow, version, priority, wake_at, no)
  WHERE queue <> '' AND status = 'pending' AND wake_at <> 0 AND NOT paused AND NOT cancel_asked;
-- Those that were cancelled before they began.
CREATE INDEX durable_runs_cancel_idx ON durable_runs (status, workflow, version, queue, no)
  WHERE queue <> '' AND cancel_asked AND status IN ('pending', 'interrupted');
-- Those that nobody may take.
CREATE INDEX durable_runs_aside_idx ON durable_runs (queue)
  WHERE queue <> '' AND (status = 'pending' AND paused OR status = 'interrupted' AND (paused OR code NOT IN ('', 'not_registered')));
-- The runs that hold a place.
CREATE INDEX durable_runs_placed_idx ON durable_runs (queue, partition)
  WHERE queue <> '' AND status IN ('running', 'resuming', 'waiting');
DROP INDEX durable_runs_executing_idx;
-- What needs no place.
DROP INDEX durable_runs_pending_idx;
CREATE INDEX durable_runs_pending_idx ON durable_runs (workflow, version, priority DESC, created_at, no)
  WHERE queue = '' AND status = 'pending' AND wake_at = 0 AND NOT paused;
DROP INDEX durable_runs_interrupted_idx;
CREATE INDEX durable_runs_interrupted_idx ON durable_runs (workflow, version, priority DESC, created_at, no)
  WHERE queue = '' AND status = 'interrupted' AND code IN ('', 'not_registered') AND NOT paused;

-- Schedules. What is to be done when one is due is in its data, which is the
-- engine's. Those that are not due cost nothing: the index is in the order in which
-- they become due, without those that never do.
CREATE TABLE durable_schedules (
  name       text   COLLATE "C" PRIMARY KEY,
  revision   bigint NOT NULL,
  due        bigint NOT NULL,
  data       bytea  NOT NULL,
  updated_at bigint NOT NULL
);
CREATE INDEX durable_schedules_due_idx ON durable_schedules (due, name) WHERE due <> 0;

-- Requests of programs that speak SQL. A program inserts a row, within a transaction of
-- its own; an engine carries it out and writes into the row what became of it.
-- docs/guides/from-sql.md says how to use it. NULL is the same as empty or 0.
CREATE TABLE durable_requests (
  no         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind       text   COLLATE "C" NOT NULL CHECK (kind IN ('start', 'signal', 'cancel')),
  run_id     text   COLLATE "C", -- of a start: NULL if one is to be made
  workflow   text   COLLATE "C", -- from here on: of a start
  version    text   COLLATE "C",
  queue      text   COLLATE "C",
  partition  text   COLLATE "C",
  dedup      text   COLLATE "C",
  priority   integer,
  wake_at    bigint CHECK (wake_at >= 0), -- microseconds since 1970, UTC; NULL: at once
  attributes text   COLLATE "C", -- JSON object of strings
  headers    text   COLLATE "C", -- JSON object of strings
  input      text   COLLATE "C", -- JSON: the input of a start, the value of a signal
  name       text   COLLATE "C", -- of a signal
  signal_id  text   COLLATE "C", -- of a signal: a run takes one of each id
  reason     text   COLLATE "C", -- of a cancel
  created_at bigint NOT NULL DEFAULT (extract(epoch FROM clock_timestamp())::numeric * 1000000::numeric)::bigint,
  -- The answer.
  done_at    bigint, -- NULL: there is none yet
  code       text   COLLATE "C", -- why it was not carried out; NULL: it was
  error      text   COLLATE "C", -- the same for people
  CONSTRAINT a_start_needs_a_workflow CHECK (kind <> 'start' OR workflow IS NOT NULL),
  CONSTRAINT a_signal_needs_a_run_and_a_name CHECK (kind <> 'signal' OR (run_id IS NOT NULL AND name IS NOT NULL)),
  CONSTRAINT a_cancel_needs_a_run CHECK (kind <> 'cancel' OR run_id IS NOT NULL)
);
CREATE INDEX durable_requests_open_idx ON durable_requests (no) WHERE done_at IS NULL;
-- A hash, since the id of a run may be as long as anybody likes here.
CREATE INDEX durable_requests_run_idx  ON durable_requests (md5(run_id), no) WHERE done_at IS NULL;
CREATE INDEX durable_requests_done_idx ON durable_requests (done_at, no) WHERE done_at IS NOT NULL;
-- begin: PostgreSQL
-- Engines that listen hear of a request when its transaction commits. The trigger
-- runs with the rights of whoever inserts, and needs none; once per statement, and the
-- server sends equal notices of one transaction once.
CREATE OR REPLACE FUNCTION durable_tell_requests() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN PERFORM pg_catalog.pg_notify('durable_requests', TG_TABLE_SCHEMA::pg_catalog.text); RETURN NULL; END $$;
CREATE TRIGGER durable_requests_told AFTER INSERT ON durable_requests
  FOR EACH STATEMENT EXECUTE FUNCTION durable_tell_requests();
-- end: PostgreSQL

-- What is listed is found by an index that has it alone, however many runs there are.
CREATE INDEX durable_runs_code_idx ON durable_runs (code, created_at, no) WHERE code <> '';
CREATE INDEX durable_runs_ended_idx ON durable_runs (ended_at) WHERE ended_at <> 0;
-- The kinds of unfinished runs are found along it, so the queue is in it too.
DROP INDEX durable_runs_kind_idx;
CREATE INDEX durable_runs_kind_idx ON durable_runs (status, code, workflow, version, queue);

-- Which runs have an attribute: a tree, because a hash index puts all entries of one value into a
-- chain of pages, which every further entry walks along to its end. The entry holds the hash of
-- the value, which may be longer than an entry; the check of the value itself is the reader's.
DROP INDEX durable_attributes_value_idx;
CREATE INDEX durable_attributes_value_idx ON durable_attributes (name, md5(value));

INSERT INTO durable_attributes (run_no, name, value) OVERRIDING SYSTEM VALUE VALUES ('14', 'customer', 'Zoë 🚚');
INSERT INTO durable_attributes (run_no, name, value) OVERRIDING SYSTEM VALUE VALUES ('14', 'empty', '');
INSERT INTO durable_attributes (run_no, name, value) OVERRIDING SYSTEM VALUE VALUES ('14', 'quote', E'a''b"c\\d%_');

INSERT INTO durable_branches (run_no, n, parent, generation, cutoff, cut_scope, reason, created_at) OVERRIDING SYSTEM VALUE VALUES ('14', '1', '0', '3', '4', '', 'for a reason', '1790000000000009');
INSERT INTO durable_branches (run_no, n, parent, generation, cutoff, cut_scope, reason, created_at) OVERRIDING SYSTEM VALUE VALUES ('14', '2', '1', '3', '5', 'items[3]', 'for a reason', '1790000000000009');

INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('1', '1', '1795491124330293', '0', 'workflow_created', '', '0', '0', '1795491124334468', '0', '1701', '0', '{"seed":"aead3ce93b0f7470","run":{"workflow":"order","version":"1","created_at":1795491124330293}}', E'\\x686631206a736f6e20696e744031202d202d2066633338643730630a31', '3878186184');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('1', '2', '1795491124330293', '0', 'workflow_started', '', '0', '0', '1795491124334468', '0', '1701', '0', '{"executor":"ex-c00f252ae127499497","name":"vintage","host":"vm","pid":24255}', NULL, '65502258');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('1', '3', '1795491124330293', '0', 'step_completed', 'reserve', '1', '1', '1795491124354612', '5', '65', '1', NULL, E'\\x686631206a736f6e20696e744031202d202d2032663231656465370a3130', '2067702688');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('1', '4', '1795491124330293', '0', 'attempt_failed', 'charge', '1', '2', '1795491124365261', '31', '10714', '1', '{"error":{"message":"the bank is closed","go":"*errors.errorString"},"next_at":1795491124366193,"max":5}', NULL, '2741111553');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('1', '5', '1795491124330293', '0', 'attempt_failed', 'charge', '2', '2', '1795491124366540', '13', '11993', '1', '{"error":{"message":"the bank is closed","go":"*errors.errorString"},"next_at":1795491124368241,"max":5}', NULL, '73833225');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('1', '6', '1795491124330293', '0', 'step_completed', 'charge', '3', '2', '1795491124369211', '24', '14664', '2', NULL, E'\\x686631206a736f6e20696e744031202d202d2063653161396431300a3132', '1296514049');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('1', '7', '1795491124330294', '0', 'workflow_completed', '', '0', '0', '1795491124369529', '0', '14983', '2', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2031383963376161320a226f7264657220313a20313222', '3875603906');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('10', '1', '1790000000000000', '0', 'workflow_created', '', '0', '0', '1790000000000000', '0', '0', '0', NULL, E'\\x7b22696e707574223a317d', '3328366856');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('10', '2', '1790000000000000', '0', 'step_completed', 'a', '0', '0', '1790000000000001', '0', '0', '0', NULL, E'\\x00ff', '1840513178');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('11', '1', '1790000000000000', '0', 'workflow_created', '', '0', '0', '1790000000000000', '0', '0', '0', NULL, E'\\x7b22696e707574223a317d', '1764268068');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('11', '2', '1790000000000000', '0', 'step_completed', 'a', '0', '0', '1790000000000001', '0', '0', '0', NULL, E'\\x00ff', '323702045');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('12', '1', '1790000000000000', '0', 'workflow_created', '', '0', '0', '1790000000000000', '0', '0', '0', NULL, E'\\x7b22696e707574223a317d', '1514634100');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('12', '2', '1790000000000000', '0', 'step_completed', 'a', '0', '0', '1790000000000001', '0', '0', '0', NULL, E'\\x00ff', '2986753923');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('13', '1', '1790000000000000', '0', 'workflow_created', '', '0', '0', '1790000000000000', '0', '0', '0', NULL, E'\\x7b22696e707574223a317d', '3311399820');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('13', '2', '1790000000000000', '0', 'step_completed', 'a', '0', '0', '1790000000000001', '0', '0', '0', NULL, E'\\x00ff', '2917194990');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '1', '1790000000000000', '0', 'workflow_created', '', '0', '0', '1790000000000000', '0', '0', '0', NULL, E'\\x7b22696e707574223a317d', '1874032374');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '10', '1790000000000000', '0', 'run_claimed', 'scope[8]/ké#2', '2', '8', '1790000000000009', '8', '8000000', '8', E'{"n":8,"t":"\\u0000 ü"}', E'\\x0008ff0a', '926554780');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '11', '1790000000000000', '0', 'workflow_paused', 'scope[9]/ké#2', '0', '9', '1790000000000010', '9', '9000000', '9', E'{"n":9,"t":"\\u0000 ü"}', E'\\x0009ff0a', '4241458818');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '12', '1790000000000000', '0', 'workflow_unpaused', 'scope[10]/ké#2', '1', '10', '1790000000000011', '10', '10000000', '10', E'{"n":10,"t":"\\u0000 ü"}', E'\\x000aff0a', '2003575911');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '13', '1790000000000000', '0', 'failures_reset', 'scope[11]/ké#2', '2', '11', '1790000000000012', '11', '11000000', '11', E'{"n":11,"t":"\\u0000 ü"}', E'\\x000bff0a', '3581955513');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '14', '1790000000000000', '0', 'attributes_set', 'scope[12]/ké#2', '0', '12', '1790000000000013', '12', '12000000', '12', E'{"n":12,"t":"\\u0000 ü"}', E'\\x000cff0a', '3906682275');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '15', '1790000000000000', '0', 'input_replaced', 'scope[13]/ké#2', '1', '13', '1790000000000014', '13', '13000000', '13', E'{"n":13,"t":"\\u0000 ü"}', E'\\x000dff0a', '771810037');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '16', '1790000000000000', '0', 'step_started', 'scope[14]/ké#2', '2', '14', '1790000000000015', '14', '14000000', '14', E'{"n":14,"t":"\\u0000 ü"}', E'\\x000eff0a', '749085509');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '17', '1790000000000000', '0', 'step_completed', 'scope[15]/ké#2', '0', '15', '1790000000000016', '15', '15000000', '15', E'{"n":15,"t":"\\u0000 ü"}', E'\\x000fff0a', '1809886758');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '18', '1790000000000000', '0', 'step_failed', 'scope[16]/ké#2', '1', '16', '1790000000000017', '16', '16000000', '16', E'{"n":16,"t":"\\u0000 ü"}', E'\\x0010ff0a', '2372304170');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '19', '1790000000000000', '0', 'attempt_failed', 'scope[17]/ké#2', '2', '17', '1790000000000018', '17', '17000000', '17', E'{"n":17,"t":"\\u0000 ü"}', E'\\x0011ff0a', '3308360425');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '2', '1790000000000000', '0', 'workflow_started', 'scope[0]/ké#2', '0', '0', '1790000000000001', '0', '0', '0', E'{"n":0,"t":"\\u0000 ü"}', E'\\x0000ff0a', '3645547005');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '20', '1790000000000000', '0', 'progress_saved', 'scope[18]/ké#2', '0', '18', '1790000000000019', '18', '18000000', '18', E'{"n":18,"t":"\\u0000 ü"}', E'\\x0012ff0a', '989143410');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '21', '1790000000000000', '0', 'wait_requested', 'scope[19]/ké#2', '1', '19', '1790000000000020', '19', '19000000', '19', E'{"n":19,"t":"\\u0000 ü"}', E'\\x0013ff0a', '2605707364');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '22', '1790000000000000', '0', 'signal_received', 'scope[20]/ké#2', '2', '20', '1790000000000021', '20', '20000000', '20', E'{"n":20,"t":"\\u0000 ü"}', E'\\x0014ff0a', '2004021500');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '23', '1790000000000000', '0', 'wait_timed_out', 'scope[21]/ké#2', '0', '21', '1790000000000022', '21', '21000000', '21', E'{"n":21,"t":"\\u0000 ü"}', E'\\x0015ff0a', '2788393032');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '24', '1790000000000000', '0', 'wait_closed', 'scope[22]/ké#2', '1', '22', '1790000000000023', '22', '22000000', '22', E'{"n":22,"t":"\\u0000 ü"}', E'\\x0016ff0a', '1122381228');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '25', '1790000000000000', '0', 'timer_set', 'scope[23]/ké#2', '2', '23', '1790000000000024', '23', '23000000', '23', E'{"n":23,"t":"\\u0000 ü"}', E'\\x0017ff0a', '2678469746');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '26', '1790000000000000', '0', 'timer_fired', 'scope[24]/ké#2', '0', '24', '1790000000000025', '24', '24000000', '24', E'{"n":24,"t":"\\u0000 ü"}', E'\\x0018ff0a', '424423200');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '27', '1790000000000000', '0', 'child_started', 'scope[25]/ké#2', '1', '25', '1790000000000026', '25', '25000000', '25', E'{"n":25,"t":"\\u0000 ü"}', E'\\x0019ff0a', '516872611');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '28', '1790000000000000', '0', 'child_finished', 'scope[26]/ké#2', '2', '26', '1790000000000027', '26', '26000000', '26', E'{"n":26,"t":"\\u0000 ü"}', E'\\x001aff0a', '3949229596');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '29', '1790000000000000', '0', 'item_completed', 'scope[27]/ké#2', '0', '27', '1790000000000028', '27', '27000000', '27', E'{"n":27,"t":"\\u0000 ü"}', E'\\x001bff0a', '1677398899');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '3', '1790000000000000', '0', 'workflow_completed', 'scope[1]/ké#2', '1', '1', '1790000000000002', '1', '1000000', '1', E'{"n":1,"t":"\\u0000 ü"}', E'\\x0001ff0a', '1025971597');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '30', '1790000000000000', '0', 'item_failed', 'scope[28]/ké#2', '1', '28', '1790000000000029', '28', '28000000', '28', E'{"n":28,"t":"\\u0000 ü"}', E'\\x001cff0a', '778642702');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '31', '1790000000000000', '0', 'first_won', 'scope[29]/ké#2', '2', '29', '1790000000000030', '29', '29000000', '29', E'{"n":29,"t":"\\u0000 ü"}', E'\\x001dff0a', '3457559358');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '32', '1790000000000000', '0', 'cancel_received', 'scope[30]/ké#2', '0', '30', '1790000000000031', '30', '30000000', '30', E'{"n":30,"t":"\\u0000 ü"}', E'\\x001eff0a', '2700473231');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '33', '1790000000000000', '0', 'compensated', 'scope[31]/ké#2', '1', '31', '1790000000000032', '31', '31000000', '31', E'{"n":31,"t":"\\u0000 ü"}', E'\\x001fff0a', '1319839516');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '34', '1790000000000000', '0', 'patched', 'scope[32]/ké#2', '2', '32', '1790000000000033', '32', '32000000', '32', E'{"n":32,"t":"\\u0000 ü"}', E'\\x0020ff0a', '4249410901');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '35', '1790000000000000', '0', 'published', 'scope[33]/ké#2', '0', '33', '1790000000000034', '33', '33000000', '33', E'{"n":33,"t":"\\u0000 ü"}', E'\\x0021ff0a', '931762296');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '36', '1790000000000000', '0', 'edited', 'scope[34]/ké#2', '1', '34', '1790000000000035', '34', '34000000', '34', E'{"n":34,"t":"\\u0000 ü"}', E'\\x0022ff0a', '3133549539');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '37', '1790000000000000', '0', 'jump_requested', 'scope[35]/ké#2', '2', '35', '1790000000000036', '35', '35000000', '35', E'{"n":35,"t":"\\u0000 ü"}', E'\\x0023ff0a', '3065864259');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '38', '1790000000000000', '0', 'jump_activated', 'scope[36]/ké#2', '0', '36', '1790000000000037', '36', '36000000', '36', E'{"n":36,"t":"\\u0000 ü"}', E'\\x0024ff0a', '961531977');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '39', '1790000000000000', '1', 'workflow_recovered', '', '0', '0', '1790000000000038', '0', '0', '0', '{}', NULL, '1794557461');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '4', '1790000000000000', '0', 'workflow_failed', 'scope[2]/ké#2', '2', '2', '1790000000000003', '2', '2000000', '2', E'{"n":2,"t":"\\u0000 ü"}', E'\\x0002ff0a', '2078531569');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '40', '1790000000000000', '2', 'workflow_recovered', '', '0', '0', '1790000000000039', '0', '0', '0', '{}', NULL, '4240446984');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '5', '1790000000000000', '0', 'workflow_cancelled', 'scope[3]/ké#2', '0', '3', '1790000000000004', '3', '3000000', '3', E'{"n":3,"t":"\\u0000 ü"}', E'\\x0003ff0a', '3437770935');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '6', '1790000000000000', '0', 'workflow_interrupted', 'scope[4]/ké#2', '1', '4', '1790000000000005', '4', '4000000', '4', E'{"n":4,"t":"\\u0000 ü"}', E'\\x0004ff0a', '2534459781');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '7', '1790000000000000', '0', 'workflow_recovered', 'scope[5]/ké#2', '2', '5', '1790000000000006', '5', '5000000', '5', E'{"n":5,"t":"\\u0000 ü"}', E'\\x0005ff0a', '253085962');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '8', '1790000000000000', '0', 'workflow_continued', 'scope[6]/ké#2', '0', '6', '1790000000000007', '6', '6000000', '6', E'{"n":6,"t":"\\u0000 ü"}', E'\\x0006ff0a', '2227766023');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '9', '1790000000000000', '0', 'run_resumed', 'scope[7]/ké#2', '1', '7', '1790000000000008', '7', '7000000', '7', E'{"n":7,"t":"\\u0000 ü"}', E'\\x0007ff0a', '1122076724');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('2', '1', '1795491124563602', '0', 'workflow_created', '', '0', '0', '1795491124563684', '0', '11', '0', '{"seed":"6932eb95eb632c0c","run":{"workflow":"approval","version":"1","created_at":1795491124563602}}', E'\\x686631206a736f6e20696e744031202d202d2066633338643730630a31', '1297800354');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('2', '2', '1795491124563602', '0', 'workflow_started', '', '0', '0', '1795491124563684', '0', '11', '0', '{"executor":"ex-c00f252ae127499497","name":"vintage","host":"vm","pid":24255}', NULL, '343565252');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('2', '3', '1795491124563602', '0', 'step_completed', 'ask', '1', '1', '1795491124564437', '5', '61', '1', NULL, NULL, '2037596996');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('2', '4', '1795491124563602', '0', 'wait_requested', 'answer', '0', '2', '1795491124564951', '0', '576', '1', '{"name":"answer","prompt":"Ship it?","sample":""}', NULL, '1351812048');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('3', '1', '1795491124594088', '0', 'workflow_created', '', '0', '0', '1795491124594151', '0', '15', '0', '{"seed":"6191b768876aee73","run":{"workflow":"nap","version":"1","created_at":1795491124594088}}', E'\\x686631206a736f6e20696e744031202d202d2038346661303165620a373030', '259257777');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('3', '2', '1795491124594088', '0', 'workflow_started', '', '0', '0', '1795491124594151', '0', '15', '0', '{"executor":"ex-c00f252ae127499497","name":"vintage","host":"vm","pid":24255}', NULL, '3839671359');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('3', '3', '1795491124594088', '0', 'timer_set', 'sleep', '0', '1', '1795491124594799', '0', '105', '0', '{"until":1795491125294735}', NULL, '3790196776');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('4', '1', '1795491124595811', '0', 'workflow_created', '', '0', '0', '1795491124595916', '0', '6', '0', '{"seed":"f0b95601b4278f52","run":{"workflow":"broken","version":"1","created_at":1795491124595811}}', E'\\x686631206a736f6e20696e744031202d202d2066633338643730630a31', '1558731714');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('4', '2', '1795491124595811', '0', 'workflow_started', '', '0', '0', '1795491124595916', '0', '6', '0', '{"executor":"ex-c00f252ae127499497","name":"vintage","host":"vm","pid":24255}', NULL, '1460583455');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('4', '3', '1795491124595811', '0', 'step_failed', 'fail', '1', '1', '1795491124596395', '3', '28', '1', '{"error":{"message":"no such item","go":"*errors.errorString"},"max":1}', NULL, '2661107273');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('4', '4', '1795491124595812', '0', 'workflow_failed', '', '0', '0', '1795491124596800', '0', '433', '1', '{"error":{"message":"step fail: no such item","type":"durable.StepError","value":{"run_id":"broken-1","key":"fail","attempt":1,"max":1},"causes":[{"message":"no such item","go":"*errors.errorString"}]},"code":"error","reason":"step fail: no such item","recoverable":true}', NULL, '7752870');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('5', '1', '1795491124605702', '0', 'workflow_created', '', '0', '0', '1795491124605766', '0', '5', '0', '{"seed":"22ac7d43a869c71c","run":{"workflow":"order","version":"1","created_at":1795491124605702}}', E'\\x686631206a736f6e20696e744031202d202d2065663638323466380a32', '695629930');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('5', '2', '1795491124605702', '0', 'workflow_started', '', '0', '0', '1795491124605766', '0', '5', '0', '{"executor":"ex-c00f252ae127499497","name":"vintage","host":"vm","pid":24255}', NULL, '2181921438');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('5', '3', '1795491124605702', '0', 'step_completed', 'reserve', '1', '1', '1795491124607794', '4', '27', '1', NULL, E'\\x686631206a736f6e20696e744031202d202d2031626336343537650a3230', '2071513460');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('5', '4', '1795491124605702', '0', 'attempt_failed', 'charge', '1', '2', '1795491124608530', '16', '763', '1', '{"error":{"message":"the bank is closed","go":"*errors.errorString"},"next_at":1795491124609533,"max":5}', NULL, '900329670');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('5', '5', '1795491124605702', '0', 'attempt_failed', 'charge', '2', '2', '1795491124609885', '20', '2118', '1', '{"error":{"message":"the bank is closed","go":"*errors.errorString"},"next_at":1795491124611806,"max":5}', NULL, '461876699');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('5', '6', '1795491124605703', '0', 'workflow_interrupted', '', '0', '0', '1795491124707154', '0', '99387', '1', '{"executor":"ex-c00f252ae127499497"}', NULL, '421748662');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('6', '1', '1790000000000000', '0', 'workflow_created', '', '0', '0', '1790000000000000', '0', '0', '0', NULL, E'\\x7b22696e707574223a317d', '2030026508');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('6', '2', '1790000000000000', '0', 'step_completed', 'a', '0', '0', '1790000000000001', '0', '0', '0', NULL, E'\\x00ff', '2765955683');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('7', '1', '1790000000000000', '0', 'workflow_created', '', '0', '0', '1790000000000000', '0', '0', '0', NULL, E'\\x7b22696e707574223a317d', '333148345');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('7', '2', '1790000000000000', '0', 'step_completed', 'a', '0', '0', '1790000000000001', '0', '0', '0', NULL, E'\\x00ff', '920878174');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('8', '1', '1790000000000000', '0', 'workflow_created', '', '0', '0', '1790000000000000', '0', '0', '0', NULL, E'\\x7b22696e707574223a317d', '3065157424');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('8', '2', '1790000000000000', '0', 'step_completed', 'a', '0', '0', '1790000000000001', '0', '0', '0', NULL, E'\\x00ff', '871314081');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('9', '1', '1790000000000000', '0', 'workflow_created', '', '0', '0', '1790000000000000', '0', '0', '0', NULL, E'\\x7b22696e707574223a317d', '1964052242');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('9', '2', '1790000000000000', '0', 'step_completed', 'a', '0', '0', '1790000000000001', '0', '0', '0', NULL, E'\\x00ff', '2734024592');

INSERT INTO durable_executors (no, id, name, host, boot, pid, lease, serves, started_at, beat_at, presence) OVERRIDING SYSTEM VALUE VALUES ('3', 'gone', 'it crashed', 'host', 'boot', '7', '1000', '[{"Workflow":"by hand","Versions":["v1","v2"]}]', '1795491124627774', '1795491124627774', '');
SELECT setval(pg_get_serial_sequence('durable_executors', 'no'), (SELECT max(no) FROM durable_executors));

INSERT INTO durable_holds (name, run_no) OVERRIDING SYSTEM VALUE VALUES ('desk', '14');
INSERT INTO durable_holds (name, run_no) OVERRIDING SYSTEM VALUE VALUES ('worktree:/tmp/x', '14');

INSERT INTO durable_inbox (run_no, seq, kind, name, id, at, data, payload) OVERRIDING SYSTEM VALUE VALUES ('14', '1', 'signal', 'go', 's0', '1790000000000000', '{"a":1}', E'\\x00ff');
INSERT INTO durable_inbox (run_no, seq, kind, name, id, at, data, payload) OVERRIDING SYSTEM VALUE VALUES ('14', '2', 'signal', 'go', 's1', '1790000000000000', '{"a":1}', E'\\x00ff');
INSERT INTO durable_inbox (run_no, seq, kind, name, id, at, data, payload) OVERRIDING SYSTEM VALUE VALUES ('6', '1', 'child', 'child', 'k0', '1790000000000000', NULL, NULL);
INSERT INTO durable_inbox (run_no, seq, kind, name, id, at, data, payload) OVERRIDING SYSTEM VALUE VALUES ('6', '2', 'child', 'child', 'k1', '1790000000000000', NULL, NULL);
INSERT INTO durable_inbox (run_no, seq, kind, name, id, at, data, payload) OVERRIDING SYSTEM VALUE VALUES ('9', '1', 'pause', '', 'c0', '1790000000000000', NULL, NULL);
INSERT INTO durable_inbox (run_no, seq, kind, name, id, at, data, payload) OVERRIDING SYSTEM VALUE VALUES ('9', '2', 'cancel', '', 'c1', '1790000000000000', NULL, NULL);



SELECT setval(pg_get_serial_sequence('durable_requests', 'no'), (SELECT max(no) FROM durable_requests));

INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('1', 'order-1', 'order', '1', '', '', '', E'\\x6b86b273ff34fce19d6b804eff5a3f57', '', '', '', '', '1795491124330293', '1', 'completed', '', '', 'false', '', '1795491124330294', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '0', '1795491124330293', '1795491124373127', '1795491124369529', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('10', 'is-interrupted', 'by hand', 'v1', '', '', '', E'\\x00000000000000000000000000000000', '', '', '', '', '1790000000000000', 'v1', 'interrupted', 'definition_changed', 'it was changed', 'false', '', '1790000000000000', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '0', '0', '1795491124687111', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('11', 'is-completed', 'by hand', 'v1', '', '', '', E'\\x00000000000000000000000000000000', '', '', '', '', '1790000000000000', 'v1', 'completed', '', '', 'false', '', '1790000000000000', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '0', '0', '1795491124687287', '1790000000000005', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('12', 'is-failed', 'by hand', 'v1', '', '', '', E'\\x00000000000000000000000000000000', '', '', '', '', '1790000000000000', 'v1', 'failed', '', '', 'false', '', '1790000000000000', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '0', '0', '1795491124687554', '1790000000000005', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('13', 'is-cancelled', 'by hand', 'v1', '', '', '', E'\\x00000000000000000000000000000000', '', '', '', '', '1790000000000000', 'v1', 'cancelled', '', '', 'false', '', '1790000000000000', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '0', '0', '1795491124687725', '1790000000000005', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('14', 'everything', 'by hand', 'v1', 'is-completed', 'items[3]/child', 'is-failed', E'\\x0100ff00000000000000000000000000', 'mail', 'tenant 7', 'once', '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', '1790000000000000', 'v2', 'waiting', 'code', E'reason ü "''\\', 'true', '', '1790000000000000', '2', '3', '4', '2', '-5', '2', '0', 'false', 'true', '1', '1790000000000001', '1795491124704356', '0', '1790000001000001', '1790003600000007', '3');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('2', 'approval-1', 'approval', '1', '', '', '', E'\\x6b86b273ff34fce19d6b804eff5a3f57', '', '', '', '', '1795491124563602', '1', 'waiting', 'approval', 'Ship it?', 'false', 'ex-c00f252ae127499497', '1795491124563602', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '0', '1795491124563602', '1795491124567426', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('3', 'nap-1', 'nap', '1', '', '', '', E'\\x99ee50221221864d50c60baea6f14d8a', '', '', '', '', '1795491124594088', '1', 'waiting', '', '', 'false', 'ex-c00f252ae127499497', '1795491124594088', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '0', '1795491124594088', '1795491124597336', '0', '1795491125294735', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('4', 'broken-1', 'broken', '1', '', '', '', E'\\x6b86b273ff34fce19d6b804eff5a3f57', '', '', '', '', '1795491124595811', '1', 'failed', 'error', 'step fail: no such item', 'true', '', '1795491124595812', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '0', '1795491124595811', '1795491124599485', '1795491124596800', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('5', 'order-2', 'order', '1', '', '', '', E'\\xd4735e3a265e16eee03f59718b9b5d03', '', '', '', '', '1795491124605702', '1', 'interrupted', '', '', 'false', '', '1795491124605703', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '0', '1795491124605702', '1795491124710626', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('6', 'is-pending', 'by hand', 'v1', '', '', '', E'\\x00000000000000000000000000000000', '', '', '', '', '1790000000000000', 'v1', 'pending', '', '', 'false', '', '1790000000000000', '0', '0', '0', '0', '0', '2', '0', 'false', 'false', '0', '0', '1795491124704356', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('7', 'is-running', 'by hand', 'v1', '', '', '', E'\\x00000000000000000000000000000000', '', '', '', '', '1790000000000000', 'v1', 'running', '', '', 'false', 'gone', '1790000000000000', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '0', '0', '1795491124686395', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('8', 'is-resuming', 'by hand', 'v1', '', '', '', E'\\x00000000000000000000000000000000', '', '', '', '', '1790000000000000', 'v1', 'resuming', '', '', 'false', 'gone', '1790000000000000', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '0', '0', '1795491124686696', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('9', 'is-waiting', 'by hand', 'v1', '', '', '', E'\\x00000000000000000000000000000000', '', '', '', '', '1790000000000000', 'v1', 'waiting', '', '', 'false', '', '1790000000000000', '0', '0', '0', '0', '0', '2', '0', 'true', 'false', '0', '0', '1795491124704356', '0', '0', '0', '0');
SELECT setval(pg_get_serial_sequence('durable_runs', 'no'), (SELECT max(no) FROM durable_runs));


INSERT INTO durable_schema (version, name, applied_at) OVERRIDING SYSTEM VALUE VALUES ('1', 'init', '1795491124194952');
INSERT INTO durable_schema (version, name, applied_at) OVERRIDING SYSTEM VALUE VALUES ('2', 'kinds', '1795491124201425');
INSERT INTO durable_schema (version, name, applied_at) OVERRIDING SYSTEM VALUE VALUES ('3', 'lanes', '1795491124203498');
INSERT INTO durable_schema (version, name, applied_at) OVERRIDING SYSTEM VALUE VALUES ('4', 'queues_schedules_requests', '1795491124256689');
INSERT INTO durable_schema (version, name, applied_at) OVERRIDING SYSTEM VALUE VALUES ('5', 'scale', '1795491124263316');
INSERT INTO durable_schema (version, name, applied_at) OVERRIDING SYSTEM VALUE VALUES ('6', 'attributes', '1795491124266638');

