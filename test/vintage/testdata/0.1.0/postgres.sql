CREATE TABLE bookings (amount integer NOT NULL);

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

INSERT INTO bookings (amount) OVERRIDING SYSTEM VALUE VALUES ('5');

INSERT INTO durable_attributes (run_no, name, value) OVERRIDING SYSTEM VALUE VALUES ('14', 'customer', 'Zoë');
INSERT INTO durable_attributes (run_no, name, value) OVERRIDING SYSTEM VALUE VALUES ('14', 'region', 'north');

INSERT INTO durable_branches (run_no, n, parent, generation, cutoff, cut_scope, reason, created_at) OVERRIDING SYSTEM VALUE VALUES ('15', '1', '0', '0', '3', '', 'two was wrong', '1795845161210066');
INSERT INTO durable_branches (run_no, n, parent, generation, cutoff, cut_scope, reason, created_at) OVERRIDING SYSTEM VALUE VALUES ('7', '1', '1', '1', '4', '', 'continued', '1795845161057326');
INSERT INTO durable_branches (run_no, n, parent, generation, cutoff, cut_scope, reason, created_at) OVERRIDING SYSTEM VALUE VALUES ('7', '2', '2', '2', '7', '', 'continued', '1795845161061029');

INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('1', '1', '1795845160939922', '0', 'workflow_created', '', '0', '0', '1795845160940152', '0', '8', '0', '{"seed":"46e4bb121c38e60b","run":{"workflow":"changed","version":"1","created_at":1795845160939922}}', E'\\x686631206a736f6e20696e744031202d202d2066633338643730630a31', '3807868561');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('1', '2', '1795845160939922', '0', 'workflow_started', '', '0', '0', '1795845160940152', '0', '8', '0', '{"executor":"ex-e071a3e2e84bf5cdce","build":"market of a release","name":"market","host":"vm","pid":19320}', NULL, '3578596463');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('1', '3', '1795845160939922', '0', 'step_completed', 'old', '1', '1', '1795845160941891', '22', '74', '1', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2034383865313439320a226f6c6422', '437616719');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('1', '4', '1795845160939923', '0', 'workflow_interrupted', '', '0', '0', '1795845160961316', '0', '19499', '1', '{"executor":"ex-e071a3e2e84bf5cdce"}', NULL, '388324099');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('1', '5', '1795845160939924', '0', 'run_resumed', '', '0', '0', '1795845161021259', '0', '19499', '1', '{"executor":"ex-997c5217edaaece3a3","name":"market","host":"vm","pid":19320}', NULL, '1115043650');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('1', '6', '1795845160939925', '0', 'workflow_interrupted', '', '0', '0', '1795845161024064', '0', '20552', '1', E'{"error":{"message":"Definition changed: changed-1 (changed) stopped at call 1, still resumable.\\n    recorded   code now\\n\\u003e 1 old        new   /work/wt/release/test/vintage/market_test.go:297\\nnew stands where old was recorded: it was inserted, or old was renamed or removed. Make it legal:\\n  if durable.Patched(ctx, \\"new\\") { … as it is now } else { … as it was recorded: old }\\nOr run this with the code it was started with, version 1, build market of a release.","type":"durable.DefinitionChangedError","value":{"RunID":"changed-1","Workflow":"changed","Scope":"","Recorded":["old"],"Ordinal":1,"Call":"new","Source":"/work/wt/release/test/vintage/market_test.go:297","Detail":"","Change":"inserted or renamed","RecordedBy":{"Version":"1","Build":"market of a release","Executor":"market","At":1795845160940152,"First":true}}},"executor":"ex-997c5217edaaece3a3","code":"definition_changed","reason":"Definition changed: changed-1 (changed) stopped at call 1, still resumable.\\n    recorded   code now\\n\\u003e 1 old        new   /work/wt/release/test/vintage/market_test.go:297\\nnew stands where old was recorded: it was inserted, or old was renamed or removed. Make it legal:\\n  if durable.Patched(ctx, \\"new\\") { … as it is now } else { … as it was recorded: old }\\nOr run this with the code it was started with, version 1, build market of a release."}', NULL, '71165993');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('10', '1', '1795845161082810', '0', 'workflow_created', '', '0', '0', '1795845161082867', '0', '31', '0', '{"seed":"04c3f284cf618eb4","run":{"workflow":"approval","version":"1","created_at":1795845161082810}}', E'\\x686631206a736f6e20696e744031202d202d2066633338643730630a31', '1451014864');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('10', '2', '1795845161082810', '0', 'workflow_started', '', '0', '0', '1795845161082867', '0', '31', '0', '{"executor":"ex-997c5217edaaece3a3","name":"market","host":"vm","pid":19320}', NULL, '3620903873');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('10', '3', '1795845161082810', '0', 'wait_requested', 'ship', '0', '1', '1795845161083421', '0', '62', '0', '{"name":"ship","prompt":"Ship it?","sample":""}', NULL, '3769648213');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('11', '1', '1795845161089347', '0', 'workflow_created', '', '0', '0', '1795845161089399', '0', '9', '0', '{"seed":"fdea96a5f12c0ad2","run":{"workflow":"late","version":"1","created_at":1795845161089347}}', E'\\x686631206a736f6e20696e744031202d202d2065663638323466380a32', '3017540093');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('11', '2', '1795845161089347', '0', 'workflow_started', '', '0', '0', '1795845161089399', '0', '9', '0', '{"executor":"ex-997c5217edaaece3a3","name":"market","host":"vm","pid":19320}', NULL, '854995530');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('11', '3', '1795845161089347', '0', 'timer_set', 'sleep', '0', '1', '1795845161098626', '0', '8815', '0', '{"until":1795845163089845}', NULL, '2867221650');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('12', '1', '1795845161104436', '0', 'workflow_created', '', '0', '0', '1795845161104553', '0', '9', '0', '{"seed":"06635ae2e01a76c2","run":{"workflow":"together","version":"1","created_at":1795845161104436}}', E'\\x686631206a736f6e20696e744031202d202d2066633338643730630a31', '2841120644');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('12', '2', '1795845161104436', '0', 'workflow_started', '', '0', '0', '1795845161104553', '0', '9', '0', '{"executor":"ex-997c5217edaaece3a3","name":"market","host":"vm","pid":19320}', NULL, '3417628416');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('12', '3', '1795845161104436', '0', 'step_started', 'quick', '0', '1', '1795845161105249', '0', '96', '0', '{"kind":"branch"}', NULL, '3253618606');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('12', '4', '1795845161104436', '0', 'step_started', 'slow', '0', '2', '1795845161105261', '0', '108', '0', '{"kind":"branch"}', NULL, '2654855438');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('12', '5', '1795845161104436', '0', 'wait_requested', 'slow/go', '0', '1', '1795845161105333', '0', '180', '0', '{"name":"go","beside":true,"sample":""}', NULL, '3671867065');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('12', '6', '1795845161104436', '0', 'step_completed', 'quick/run', '1', '1', '1795845161105572', '5', '419', '1', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2061343266623463350a22717569636b22', '1326195346');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('12', '7', '1795845161104436', '0', 'step_completed', 'quick', '0', '1', '1795845161105915', '0', '762', '1', '{"kind":"branch"}', E'\\x686631206a736f6e20737472696e674031202d202d2061343266623463350a22717569636b22', '1016407164');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('12', '8', '1795845161104436', '0', 'first_won', 'race', '0', '3', '1795845161106098', '0', '945', '1', NULL, NULL, '4285188045');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('13', '1', '1795845161111012', '0', 'workflow_created', '', '0', '0', '1795845161111082', '0', '43', '0', '{"seed":"22d0080bd88b7522","run":{"workflow":"bank","version":"1","created_at":1795845161111012}}', E'\\x686631206a736f6e20696e744031202d202d2033626132343031330a35', '3580888227');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('13', '2', '1795845161111012', '0', 'workflow_started', '', '0', '0', '1795845161111082', '0', '43', '0', '{"executor":"ex-997c5217edaaece3a3","name":"market","host":"vm","pid":19320}', NULL, '485742287');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('13', '3', '1795845161111012', '0', 'step_completed', 'book', '1', '1', '1795845161120314', '7586', '7653', '1', NULL, E'\\x686631206a736f6e20696e744031202d202d2033626132343031330a35', '2389779622');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('13', '4', '1795845161111012', '0', 'wait_requested', 'go', '0', '2', '1795845161122874', '0', '10214', '1', '{"name":"go","sample":""}', NULL, '4016098585');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '1', '1795845161125508', '0', 'workflow_created', '', '0', '0', '1795845161125549', '0', '11', '0', '{"seed":"1e6d56703c9578a7","headers":{"tenant":"seven"},"deadline":3372645161125508,"exclusive":["desk"],"attributes":{"region":"north"},"run":{"workflow":"told","version":"1","created_at":1795845161125508}}', E'\\x686631206a736f6e20696e744031202d202d2063396339633331300a34', '3455264586');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '2', '1795845161125508', '0', 'workflow_started', '', '0', '0', '1795845161125549', '0', '11', '0', '{"executor":"ex-997c5217edaaece3a3","name":"market","host":"vm","pid":19320}', NULL, '2213781067');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '3', '1795845161125508', '0', 'published', 'state', '0', '1', '1795845161132235', '0', '97', '0', '{"name":"state"}', E'\\x686631206a736f6e20636172744031202d202d2064646632363763360a7b224974656d73223a347d', '1729699759');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '4', '1795845161125508', '0', 'attributes_set', 'attributes', '0', '2', '1795845161132503', '0', '365', '0', '{"attributes":{"customer":"Zoë","region":"north"}}', NULL, '583255516');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '5', '1795845161125508', '0', 'wait_requested', 'go', '0', '3', '1795845161133437', '0', '1298', '0', '{"name":"go","sample":""}', NULL, '4117822545');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '6', '1795845161125509', '0', 'workflow_paused', '', '0', '0', '1795845161188831', '0', '56693', '0', '{"executor":"ex-997c5217edaaece3a3","reason":"a person looks at it","message":1}', NULL, '3007935062');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('15', '1', '1795845161138280', '0', 'workflow_created', '', '0', '0', '1795845161138361', '0', '6', '0', '{"seed":"2d73da1c0d549d91","declared":["one","two","three"],"run":{"workflow":"steps","version":"1","created_at":1795845161138280}}', E'\\x686631206a736f6e20696e744031202d202d2066633338643730630a31', '2232682376');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('15', '10', '1795845161138286', '1', 'run_resumed', '', '0', '0', '1795845161211163', '0', '62899', '1', '{"executor":"ex-997c5217edaaece3a3","resumed":true,"name":"market","host":"vm","pid":19320}', NULL, '2537672010');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('15', '11', '1795845161138286', '1', 'step_completed', 'two', '1', '2', '1795845161215723', '6', '65715', '2', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2033656132613736640a2274776f22', '1704494300');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('15', '12', '1795845161138286', '1', 'step_completed', 'three', '1', '3', '1795845161215871', '1', '65863', '3', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2033333933366338610a22746872656522', '2817595540');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('15', '13', '1795845161138286', '1', 'wait_requested', 'go', '0', '4', '1795845161216079', '0', '66071', '3', '{"name":"go","sample":""}', NULL, '1970187249');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('15', '2', '1795845161138280', '0', 'workflow_started', '', '0', '0', '1795845161138361', '0', '6', '0', '{"executor":"ex-997c5217edaaece3a3","name":"market","host":"vm","pid":19320}', NULL, '720319156');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('15', '3', '1795845161138280', '0', 'step_completed', 'one', '1', '1', '1795845161138972', '4', '241', '1', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2031343433646565380a226f6e6522', '1076167263');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('15', '4', '1795845161138280', '0', 'step_completed', 'two', '1', '2', '1795845161139160', '2', '429', '2', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2033656132613736640a2274776f22', '492306273');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('15', '5', '1795845161138280', '0', 'step_completed', 'three', '1', '3', '1795845161139257', '1', '526', '3', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2033333933366338610a22746872656522', '2138368144');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('15', '6', '1795845161138280', '0', 'wait_requested', 'go', '0', '4', '1795845161139351', '0', '619', '3', '{"name":"go","sample":""}', NULL, '2563441578');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('15', '7', '1795845161138281', '0', 'workflow_paused', '', '0', '0', '1795845161201630', '0', '62899', '3', '{"executor":"ex-997c5217edaaece3a3","reason":"to jump back to event 3","message":1}', NULL, '2742857081');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('15', '8', '1795845161138283', '0', 'jump_requested', '', '0', '0', '1795845161208376', '0', '62899', '3', '{"executor":"ex-997c5217edaaece3a3","reason":"two was wrong","to_branch":1,"cutoff":3}', NULL, '1734677314');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('15', '9', '1795845161138285', '1', 'jump_activated', '', '0', '0', '1795845161210066', '0', '62899', '1', '{"cut":{"parent":0,"cutoff":3,"sum":1734677314},"cutoff":3,"executor":"ex-997c5217edaaece3a3","message":1,"reason":"two was wrong","to_branch":1}', NULL, '752106131');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('16', '1', '1795845161145178', '0', 'workflow_created', '', '0', '0', '1795845161145226', '0', '5', '0', '{"seed":"e5df99644e8aff4c","declared":["one","two","three"],"run":{"workflow":"steps","version":"1","created_at":1795845161145178}}', E'\\x686631206a736f6e20696e744031202d202d2066633338643730630a31', '1721363758');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('16', '2', '1795845161145178', '0', 'workflow_started', '', '0', '0', '1795845161145226', '0', '5', '0', '{"executor":"ex-997c5217edaaece3a3","name":"market","host":"vm","pid":19320}', NULL, '3671125774');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('16', '3', '1795845161145178', '0', 'step_completed', 'one', '1', '1', '1795845161145490', '2', '13', '1', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2031343433646565380a226f6e6522', '4027781679');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('16', '4', '1795845161145178', '0', 'step_completed', 'two', '1', '2', '1795845161145870', '1', '393', '2', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2033656132613736640a2274776f22', '4179845973');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('16', '5', '1795845161145178', '0', 'step_completed', 'three', '1', '3', '1795845161146006', '1', '529', '3', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2033333933366338610a22746872656522', '901920640');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('16', '6', '1795845161145178', '0', 'wait_requested', 'go', '0', '4', '1795845161146162', '0', '686', '3', '{"name":"go","sample":""}', NULL, '659816739');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('17', '1', '1795845161151150', '0', 'workflow_created', '', '0', '0', '1795845161151179', '0', '5', '0', '{"seed":"22cedb2357189baf","run":{"workflow":"approval","version":"1","created_at":1795845161151150}}', E'\\x686631206a736f6e20696e744031202d202d2066633338643730630a31', '1964589601');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('17', '2', '1795845161151150', '0', 'workflow_started', '', '0', '0', '1795845161151179', '0', '5', '0', '{"executor":"ex-997c5217edaaece3a3","name":"market","host":"vm","pid":19320}', NULL, '2174511038');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('17', '3', '1795845161151150', '0', 'wait_requested', 'ship', '0', '1', '1795845161151565', '0', '47', '0', '{"name":"ship","prompt":"Ship it?","sample":""}', NULL, '3455073849');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('17', '4', '1795845161151151', '0', 'workflow_cancelled', '', '0', '0', '1795845161197377', '0', '45859', '0', '{"reason":"nobody wants it"}', NULL, '1454556878');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('18', '1', '1795845161157530', '0', 'workflow_created', '', '0', '0', '1795845161157603', '0', '8', '0', '{"seed":"0843f359ffabf53d","run":{"workflow":"broken","version":"1","created_at":1795845161157530}}', E'\\x686631206a736f6e20696e744031202d202d2030653533353430660a30', '1280099492');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('18', '2', '1795845161157530', '0', 'workflow_started', '', '0', '0', '1795845161157603', '0', '8', '0', '{"executor":"ex-997c5217edaaece3a3","name":"market","host":"vm","pid":19320}', NULL, '370110587');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('18', '3', '1795845161157531', '0', 'workflow_completed', '', '0', '0', '1795845161160103', '0', '2163', '0', NULL, E'\\x686631206a736f6e20737472696e674031207a737464202d2065346235383163310a28b52ffda082380100dc000014012261206c6172676520726573756c743b200154100433d9ff135d000008220154000f317e78fe1f', '1313923718');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('19', '1', '1795845161166433', '0', 'workflow_created', '', '0', '0', '1795845161166463', '0', '5', '0', '{"seed":"a5674c7266796aec","run":{"workflow":"broken","version":"1","created_at":1795845161166433}}', E'\\x686631206a736f6e20696e744031202d202d2066633338643730630a31', '462605853');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('19', '2', '1795845161166433', '0', 'workflow_started', '', '0', '0', '1795845161166463', '0', '5', '0', '{"executor":"ex-997c5217edaaece3a3","name":"market","host":"vm","pid":19320}', NULL, '758013319');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('19', '3', '1795845161166433', '0', 'attempt_failed', 'fail', '1', '1', '1795845161173413', '2', '75', '0', '{"error":{"message":"the bank is closed","sentinel":"market.bank"},"next_at":1795845161174335,"max":2}', NULL, '3100607310');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('19', '4', '1795845161166433', '0', 'step_failed', 'fail', '2', '1', '1795845161176607', '3', '3269', '1', '{"error":{"message":"the bank is closed","sentinel":"market.bank"},"max":2}', NULL, '2633543321');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('19', '5', '1795845161166434', '0', 'workflow_failed', '', '0', '0', '1795845161176943', '0', '3605', '1', '{"error":{"message":"step fail: attempt 2 of 2: the bank is closed","type":"durable.StepError","value":{"run_id":"broken-1","key":"fail","attempt":2,"max":2},"causes":[{"message":"the bank is closed","sentinel":"market.bank"}]},"code":"error","reason":"step fail: attempt 2 of 2: the bank is closed","recoverable":true}', NULL, '2487689906');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('2', '1', '1795845160941773', '0', 'workflow_created', '', '0', '0', '1795845160941999', '0', '4', '0', '{"seed":"5575fff9ef7f1cf9","run":{"workflow":"priced","version":"1","created_at":1795845160941773}}', E'\\x686631206a736f6e20696e744031202d202d2032663231656465370a3130', '2324105264');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('2', '2', '1795845160941773', '0', 'workflow_started', '', '0', '0', '1795845160941999', '0', '4', '0', '{"executor":"ex-e071a3e2e84bf5cdce","build":"market of a release","name":"market","host":"vm","pid":19320}', NULL, '2613664715');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('2', '3', '1795845160941773', '0', 'patched', '~patched:tax', '0', '1', '1795845160942940', '0', '58', '0', '{"name":"tax"}', NULL, '4215567855');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('2', '4', '1795845160941773', '0', 'wait_requested', 'go', '0', '1', '1795845160943085', '0', '203', '0', '{"name":"go","sample":""}', NULL, '3027013097');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('20', '1', '1795845161219140', '0', 'workflow_created', '', '0', '0', '1795845161145226', '0', '0', '0', '{"seed":"f08cc1b431278565","declared":["one","two","three"],"fork":{"from":"steps-2","seeds":[{"seed":"e5df99644e8aff4c","until":4}]},"run":{"workflow":"steps","version":"1","forked_from":"steps-2","created_at":1795845161219140}}', E'\\x686631206a736f6e20696e744031202d202d2066633338643730630a31', '416967726');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('20', '2', '1795845161219140', '0', 'step_completed', 'one', '1', '1', '1795845161145490', '2', '13', '1', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2031343433646565380a226f6e6522', '1153819188');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('20', '3', '1795845161219140', '0', 'step_completed', 'two', '1', '2', '1795845161145870', '1', '393', '2', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2033656132613736640a2274776f22', '3720129797');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('20', '4', '1795845161219140', '0', 'step_completed', 'three', '1', '3', '1795845161146006', '1', '529', '3', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2033333933366338610a22746872656522', '4273519472');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('20', '5', '1795845161219141', '0', 'run_resumed', '', '0', '0', '1795845161220438', '0', '529', '3', '{"executor":"ex-997c5217edaaece3a3","resumed":true,"name":"market","host":"vm","pid":19320}', NULL, '3143051373');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('20', '6', '1795845161219141', '0', 'wait_requested', 'go', '0', '4', '1795845161226364', '0', '1323', '3', '{"name":"go","sample":""}', NULL, '1147257197');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('21', '1', '1795845161232715', '0', 'workflow_created', '', '0', '0', '1795845161232791', '0', '7', '0', '{"seed":"1b15288cd43eb978","run":{"workflow":"order","version":"1","created_at":1795845161232715}}', E'\\x686631206a736f6e20696e744031202d202d2031643033613766620a33', '3069450950');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('21', '2', '1795845161232715', '0', 'workflow_started', '', '0', '0', '1795845161232791', '0', '7', '0', '{"executor":"ex-997c5217edaaece3a3","name":"market","host":"vm","pid":19320}', NULL, '2241238042');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('21', '3', '1795845161232715', '0', 'step_completed', 'reserve', '1', '1', '1795845161233228', '25', '45', '1', '{"input":"4e07408562bedb8b60ce05c1decfe3ad"}', E'\\x686631206a736f6e20636172744031202d202d2061373966616538330a7b224974656d73223a337d', '2352439026');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('21', '4', '1795845161232715', '0', 'step_completed', 'look', '1', '2', '1795845161233416', '3', '233', '2', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2036396566663533630a226c6f6f6b22', '319620681');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('21', '5', '1795845161232715', '0', 'attempt_failed', 'charge', '1', '3', '1795845161233463', '44', '280', '2', '{"error":{"message":"attempt 1: the bank is closed","go":"*fmt.wrapError","causes":[{"message":"the bank is closed","sentinel":"market.bank"}]},"next_at":1795845161234367,"max":5,"notes":{"bank":"answer 1"}}', NULL, '1844486391');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('21', '6', '1795845161232715', '0', 'attempt_failed', 'charge', '2', '3', '1795845161236476', '18', '3292', '2', '{"error":{"message":"attempt 2: the bank is closed","go":"*fmt.wrapError","causes":[{"message":"the bank is closed","sentinel":"market.bank"}]},"next_at":1795845161238234,"max":5,"notes":{"bank":"answer 2"}}', NULL, '3252082774');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('21', '7', '1795845161232715', '0', 'progress_saved', 'charge', '3', '3', '1795845161239945', '0', '6762', '2', NULL, E'\\x686631206a736f6e2076696e746167655f746573742e73657373696f6e4031202d202d2061356135626539350a7b224944223a22732d33227d', '47855189');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('22', '1', '1795845161244387', '0', 'workflow_created', '', '0', '0', '1795845161244431', '0', '7', '0', '{"seed":"3641307e296205d9","run":{"workflow":"pay","version":"1","created_at":1795845161244387}}', E'\\x686631206a736f6e20696e744031202d202d2066633338643730630a31', '1617479630');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('22', '2', '1795845161244387', '0', 'workflow_started', '', '0', '0', '1795845161244431', '0', '7', '0', '{"executor":"ex-997c5217edaaece3a3","name":"market","host":"vm","pid":19320}', NULL, '3655620422');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('22', '3', '1795845161244387', '0', 'step_started', 'pay', '1', '1', '1795845161246128', '0', '95', '0', '{"once":true}', NULL, '3878263407');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('23', '1', '1795845161251476', '0', 'workflow_created', '', '0', '0', '1795845161251555', '0', '42', '0', '{"seed":"8afd3d19d83384ac","run":{"workflow":"list","version":"1","created_at":1795845161251476}}', E'\\x686631206a736f6e20696e744031202d202d2066633338643730630a31', '4280772358');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('23', '2', '1795845161251476', '0', 'workflow_started', '', '0', '0', '1795845161251555', '0', '42', '0', '{"executor":"ex-997c5217edaaece3a3","name":"market","host":"vm","pid":19320}', NULL, '4081101345');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('23', '3', '1795845161251476', '0', 'step_started', 'fruit', '0', '1', '1795845161252031', '0', '53', '0', '{"kind":"map"}', NULL, '88848104');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('23', '4', '1795845161251476', '0', 'step_completed', 'fruit[0]/wash', '1', '1', '1795845161252077', '6', '99', '1', '{"item":"5feceb66ffc86f38"}', E'\\x686631206a736f6e20737472696e674031202d202d2064316535353036640a226672756974203022', '344987089');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('23', '5', '1795845161251476', '0', 'item_completed', 'fruit[0]', '0', '1', '1795845161252359', '0', '380', '1', '{"input":"5feceb66ffc86f38","items":5}', E'\\x686631206a736f6e20737472696e674031202d202d2064316535353036640a226672756974203022', '3671432545');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('23', '6', '1795845161251476', '0', 'step_completed', 'fruit[1]/wash', '1', '1', '1795845161252554', '2', '576', '2', '{"item":"6b86b273ff34fce1"}', E'\\x686631206a736f6e20737472696e674031202d202d2063323437633831610a226672756974203122', '2308358256');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('23', '7', '1795845161251476', '0', 'item_completed', 'fruit[1]', '0', '2', '1795845161252733', '0', '754', '2', '{"input":"6b86b273ff34fce1","items":5}', E'\\x686631206a736f6e20737472696e674031202d202d2063323437633831610a226672756974203122', '944263682');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('23', '8', '1795845161251476', '0', 'step_failed', 'fruit[2]/wash', '1', '1', '1795845161252881', '1', '902', '3', '{"item":"d4735e3a265e16ee","error":{"message":"rotten","go":"*errors.errorString","permanent":true},"max":1}', NULL, '2518815078');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('23', '9', '1795845161251476', '0', 'item_failed', 'fruit[2]', '0', '3', '1795845161253125', '0', '1147', '3', '{"error":{"message":"step fruit[2]/wash: rotten","type":"durable.StepError","value":{"run_id":"list-1","key":"fruit[2]/wash","attempt":1,"max":1,"permanent":true},"causes":[{"message":"rotten","go":"*errors.errorString"}]},"input":"d4735e3a265e16ee","items":5,"attempts":1}', NULL, '1624534081');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('24', '1', '1795845161257508', '0', 'workflow_created', '', '0', '0', '1795845161257551', '0', '5', '0', '{"seed":"ce89abe021e06d48","run":{"workflow":"stream","version":"1","created_at":1795845161257508}}', E'\\x686631206a736f6e20696e744031202d202d2033626132343031330a35', '891788083');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('24', '2', '1795845161257508', '0', 'workflow_started', '', '0', '0', '1795845161257551', '0', '5', '0', '{"executor":"ex-997c5217edaaece3a3","name":"market","host":"vm","pid":19320}', NULL, '3655548862');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('24', '3', '1795845161257508', '0', 'step_started', 'numbers', '0', '1', '1795845161258010', '0', '41', '0', '{"kind":"map"}', NULL, '1150767963');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('24', '4', '1795845161257508', '0', 'step_completed', 'numbers[0]/square', '1', '1', '1795845161258050', '1', '82', '1', '{"item":"5feceb66ffc86f38"}', E'\\x686631206a736f6e20696e744031202d202d2030653533353430660a30', '3369951211');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('24', '5', '1795845161257508', '0', 'item_completed', 'numbers[0]', '0', '1', '1795845161258269', '0', '301', '1', '{"input":"5feceb66ffc86f38"}', E'\\x686631206a736f6e20696e744031202d202d2030653533353430660a30', '3084547914');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('24', '6', '1795845161257508', '0', 'step_completed', 'numbers[1]/square', '1', '1', '1795845161258459', '10', '491', '2', '{"item":"6b86b273ff34fce1"}', E'\\x686631206a736f6e20696e744031202d202d2066633338643730630a31', '804843944');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('24', '7', '1795845161257508', '0', 'item_completed', 'numbers[1]', '0', '2', '1795845161258636', '0', '668', '2', '{"input":"6b86b273ff34fce1"}', E'\\x686631206a736f6e20696e744031202d202d2066633338643730630a31', '69134057');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('24', '8', '1795845161257508', '0', 'step_completed', 'numbers[2]/square', '1', '1', '1795845161258779', '1', '810', '3', '{"item":"d4735e3a265e16ee"}', E'\\x686631206a736f6e20696e744031202d202d2063396339633331300a34', '2003708517');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('24', '9', '1795845161257508', '0', 'item_completed', 'numbers[2]', '0', '3', '1795845161258916', '0', '948', '3', '{"input":"d4735e3a265e16ee"}', E'\\x686631206a736f6e20696e744031202d202d2063396339633331300a34', '2742455927');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('25', '1', '1795845161263222', '0', 'workflow_created', '', '0', '0', '1795845161263263', '0', '16', '0', '{"seed":"2d0bc7a6507506d4","run":{"workflow":"saga","version":"1","created_at":1795845161263222}}', E'\\x686631206a736f6e20696e744031202d202d2066633338643730630a31', '3814310224');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('25', '2', '1795845161263222', '0', 'workflow_started', '', '0', '0', '1795845161263263', '0', '16', '0', '{"executor":"ex-997c5217edaaece3a3","name":"market","host":"vm","pid":19320}', NULL, '1808530641');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('25', '3', '1795845161263222', '0', 'step_completed', 'flight', '1', '1', '1795845161263649', '36', '49', '1', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2039336236326533340a22666c6967687422', '3982667983');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('25', '4', '1795845161263222', '0', 'step_completed', 'hotel', '1', '2', '1795845161263799', '1', '200', '2', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2063336539333432350a22686f74656c22', '4231313991');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('25', '5', '1795845161263222', '0', 'step_failed', 'car', '1', '3', '1795845161263926', '1', '326', '3', '{"error":{"message":"the bank is closed","sentinel":"market.bank","permanent":true},"max":1}', NULL, '1467197149');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('25', '6', '1795845161263222', '0', 'step_completed', '~undo/undo hotel', '1', '1', '1795845161264103', '3', '504', '4', '{"undoes":["hotel","flight"]}', NULL, '3182587398');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('26', '1', '1795845161269567', '0', 'workflow_created', '', '0', '0', '1795845161269602', '0', '7', '0', '{"seed":"1305e008de78b3fb","run":{"workflow":"mail","version":"1","queue":"mail","partition":"tenant","created_at":1795845161269567}}', E'\\x686631206a736f6e20696e744031202d202d2066633338643730630a31', '4242055584');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('26', '2', '1795845161269568', '0', 'workflow_started', '', '0', '0', '1795845161270105', '0', '7', '0', '{"executor":"ex-997c5217edaaece3a3","name":"market","host":"vm","pid":19320}', NULL, '2152651241');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('27', '1', '1795845161280833', '0', 'workflow_created', '', '0', '0', '1795845161280867', '0', '5', '0', '{"seed":"b3d8db465475aa9e","run":{"workflow":"mail","version":"1","queue":"mail","partition":"tenant","dedup":"once","priority":9,"created_at":1795845161280833}}', E'\\x686631206a736f6e20696e744031202d202d2065663638323466380a32', '732903111');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('28', '1', '1795845161281295', '0', 'workflow_created', '', '0', '0', '1795845161281355', '0', '2', '0', '{"seed":"dace6fa91c9d96b6","run":{"workflow":"mail","version":"1","queue":"mail","partition":"tenant","priority":1,"created_at":1795845161281295}}', E'\\x686631206a736f6e20696e744031202d202d2031643033613766620a33', '862435953');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('29', '1', '1795845161284465', '0', 'workflow_created', '', '0', '0', '1795845161284533', '0', '13', '0', '{"seed":"798661c5fde95e76","run":{"workflow":"mail","version":"1","queue":"mail","partition":"tenant","start_at":1795845166284465,"created_at":1795845161284465}}', E'\\x686631206a736f6e20696e744031202d202d2063396339633331300a34', '2735682298');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('3', '1', '1795845161002665', '0', 'workflow_created', '', '0', '0', '1795845161002665', '0', '0', '0', '{"seed":"4e84646b5586891d","run":{"workflow":"tick","version":"1","created_at":1795845161002665},"scheduled":{"schedule":"tick","at":1795845161000000}}', E'\\x686631206a736f6e20696e744031202d202d2064613939333065340a37', '947776736');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('3', '2', '1795845161002666', '0', 'workflow_started', '', '0', '0', '1795845161003229', '0', '0', '0', '{"executor":"ex-997c5217edaaece3a3","name":"market","host":"vm","pid":19320}', NULL, '2452460489');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('3', '3', '1795845161002666', '0', 'step_completed', 'tick', '1', '1', '1795845161007636', '5', '204', '1', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2066636562633466310a227469636b20372066616c736522', '4089125350');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('3', '4', '1795845161002667', '0', 'workflow_completed', '', '0', '0', '1795845161007812', '0', '380', '1', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2066636562633466310a227469636b20372066616c736522', '2821997451');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('30', '1', '1795845162002722', '0', 'workflow_created', '', '0', '0', '1795845162002722', '0', '0', '0', '{"seed":"a57d81657b729f75","run":{"workflow":"tick","version":"1","created_at":1795845162002722},"scheduled":{"schedule":"tick","at":1795845162000000}}', E'\\x686631206a736f6e20696e744031202d202d2064613939333065340a37', '2245002234');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('30', '2', '1795845162002723', '0', 'workflow_started', '', '0', '0', '1795845162004366', '0', '0', '0', '{"executor":"ex-997c5217edaaece3a3","name":"market","host":"vm","pid":19320}', NULL, '2677512002');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('30', '3', '1795845162002723', '0', 'step_completed', 'tick', '1', '1', '1795845162011599', '5', '203', '1', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2066636562633466310a227469636b20372066616c736522', '3103144227');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('30', '4', '1795845162002724', '0', 'workflow_completed', '', '0', '0', '1795845162011813', '0', '416', '1', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2066636562633466310a227469636b20372066616c736522', '92915887');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('4', '1', '1795845161035834', '0', 'workflow_created', '', '0', '0', '1795845161035875', '0', '11', '0', '{"seed":"b6309ff68029eb0d","run":{"workflow":"family","version":"1","created_at":1795845161035834}}', E'\\x686631206a736f6e20696e744031202d202d2066633338643730630a31', '284806475');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('4', '2', '1795845161035834', '0', 'workflow_started', '', '0', '0', '1795845161035875', '0', '11', '0', '{"executor":"ex-997c5217edaaece3a3","name":"market","host":"vm","pid":19320}', NULL, '3988544781');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('4', '3', '1795845161035834', '0', 'child_started', 'child', '0', '1', '1795845161039629', '0', '129', '0', '{"child":"family-1-one","chosen":true}', NULL, '2303140500');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('4', '4', '1795845161035834', '0', 'child_started', 'child#2', '0', '2', '1795845161042162', '0', '2663', '0', '{"child":"family-1-two","chosen":true}', NULL, '1992694581');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('4', '5', '1795845161035834', '0', 'child_finished', 'child', '0', '1', '1795845161051794', '0', '12295', '0', '{"status":"completed","name":"child","message":1,"recoverable":false}', E'\\x686631206a736f6e20737472696e674031202d202d2037383765616166380a22776f726b206f662061206368696c6422', '3206403362');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('5', '1', '1795845161039554', '0', 'workflow_created', '', '0', '0', '1795845161039593', '0', '4', '0', '{"seed":"a49e348ac4821d9f","run":{"workflow":"child","version":"1","parent":"family-1","parent_key":"child","created_at":1795845161039554}}', E'\\x686631206a736f6e20696e744031202d202d2030653533353430660a30', '3277330616');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('5', '2', '1795845161039554', '0', 'workflow_started', '', '0', '0', '1795845161039593', '0', '4', '0', '{"executor":"ex-997c5217edaaece3a3","name":"market","host":"vm","pid":19320}', NULL, '605304797');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('5', '3', '1795845161039554', '0', 'step_completed', 'work', '1', '1', '1795845161042222', '4', '23', '1', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2037383765616166380a22776f726b206f662061206368696c6422', '1239390262');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('5', '4', '1795845161039555', '0', 'workflow_completed', '', '0', '0', '1795845161046876', '0', '4677', '1', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2037383765616166380a22776f726b206f662061206368696c6422', '3281053176');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('6', '1', '1795845161042130', '0', 'workflow_created', '', '0', '0', '1795845161042157', '0', '3', '0', '{"seed":"948e0af162df7751","run":{"workflow":"child","version":"1","parent":"family-1","parent_key":"child#2","created_at":1795845161042130}}', E'\\x686631206a736f6e20696e744031202d202d2066633338643730630a31', '3074403304');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('6', '2', '1795845161042130', '0', 'workflow_started', '', '0', '0', '1795845161042157', '0', '3', '0', '{"executor":"ex-997c5217edaaece3a3","name":"market","host":"vm","pid":19320}', NULL, '3878852305');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('6', '3', '1795845161042130', '0', 'wait_requested', 'go', '0', '1', '1795845161043353', '0', '62', '0', '{"name":"go","sample":""}', NULL, '3199951502');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('7', '1', '1795845161050853', '0', 'workflow_created', '', '0', '0', '1795845161050884', '0', '6', '0', '{"seed":"b86038b1c127dee4","run":{"workflow":"renew","version":"1","created_at":1795845161050853}}', E'\\x686631206a736f6e20696e744031202d202d2066633338643730630a31', '599726486');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('7', '10', '1795845161050853', '2', 'wait_requested', 'go', '0', '2', '1795845161062496', '0', '2447', '1', '{"name":"go","sample":""}', NULL, '2201466365');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('7', '2', '1795845161050853', '0', 'workflow_started', '', '0', '0', '1795845161050884', '0', '6', '0', '{"executor":"ex-997c5217edaaece3a3","name":"market","host":"vm","pid":19320}', NULL, '3509115672');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('7', '3', '1795845161050853', '0', 'step_completed', 'work', '1', '1', '1795845161056487', '29', '55', '1', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2033303235326533630a22776f726b206f6620612067656e65726174696f6e22', '1013899804');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('7', '4', '1795845161050853', '0', 'workflow_continued', '', '0', '0', '1795845161057365', '0', '933', '1', '{"generation":1}', E'\\x686631206a736f6e20696e744031202d202d2065663638323466380a32', '4287625435');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('7', '5', '1795845161050853', '1', 'workflow_started', '', '0', '0', '1795845161057365', '0', '933', '0', '{"seed":"841c7092d1efa7e6","executor":"ex-997c5217edaaece3a3","name":"market","generation":1,"sum":4287625435,"run":{"workflow":"renew","version":"1","created_at":1795845161050853},"host":"vm","pid":19320}', E'\\x686631206a736f6e20696e744031202d202d2065663638323466380a32', '3708790478');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('7', '6', '1795845161050853', '1', 'step_completed', 'work', '1', '1', '1795845161060401', '2', '1305', '1', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2033303235326533630a22776f726b206f6620612067656e65726174696f6e22', '111934046');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('7', '7', '1795845161050853', '1', 'workflow_continued', '', '0', '0', '1795845161061040', '0', '1944', '1', '{"generation":2}', E'\\x686631206a736f6e20696e744031202d202d2031643033613766620a33', '657921186');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('7', '8', '1795845161050853', '2', 'workflow_started', '', '0', '0', '1795845161061040', '0', '1944', '0', '{"seed":"0b0ebda1adcd7492","executor":"ex-997c5217edaaece3a3","name":"market","generation":2,"sum":657921186,"run":{"workflow":"renew","version":"1","created_at":1795845161050853},"host":"vm","pid":19320}', E'\\x686631206a736f6e20696e744031202d202d2031643033613766620a33', '250668617');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('7', '9', '1795845161050853', '2', 'step_completed', 'work', '1', '1', '1795845161062285', '2', '2235', '1', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2033303235326533630a22776f726b206f6620612067656e65726174696f6e22', '3359694730');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('8', '1', '1795845161067229', '0', 'workflow_created', '', '0', '0', '1795845161067338', '0', '37', '0', '{"seed":"cc50d21c37715e81","run":{"workflow":"inbox","version":"1","created_at":1795845161067229}}', E'\\x686631206a736f6e20696e744031202d202d2066633338643730630a31', '773436187');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('8', '2', '1795845161067229', '0', 'workflow_started', '', '0', '0', '1795845161067338', '0', '37', '0', '{"executor":"ex-997c5217edaaece3a3","name":"market","host":"vm","pid":19320}', NULL, '2167407386');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('8', '3', '1795845161067229', '0', 'wait_requested', 'go', '0', '1', '1795845161069243', '0', '69', '0', '{"name":"go","sample":""}', NULL, '1082790171');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('9', '1', '1795845161076324', '0', 'workflow_created', '', '0', '0', '1795845161076358', '0', '6', '0', '{"seed":"605c5ffb4f4aaa50","run":{"workflow":"ask","version":"1","created_at":1795845161076324}}', E'\\x686631206a736f6e20696e744031202d202d2066633338643730630a31', '3818945568');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('9', '2', '1795845161076324', '0', 'workflow_started', '', '0', '0', '1795845161076358', '0', '6', '0', '{"executor":"ex-997c5217edaaece3a3","name":"market","host":"vm","pid":19320}', NULL, '720720465');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('9', '3', '1795845161076324', '0', 'wait_requested', 'double', '0', '1', '1795845161076917', '0', '121', '0', '{"kind":"wait for a request","name":"double"}', NULL, '799780877');

INSERT INTO durable_executors (no, id, name, host, boot, pid, lease, serves, started_at, beat_at, presence) OVERRIDING SYSTEM VALUE VALUES ('3', 'ex-997c5217edaaece3a3', 'market', 'vm', '1938f354-378f-4edb-80eb-366859051e48', '19320', '1000000', '[{"Workflow":"mail","Versions":["","1"]},{"Workflow":"bank","Versions":["","1"]},{"Workflow":"pay","Versions":["","1"]},{"Workflow":"family","Versions":["","1"]},{"Workflow":"late","Versions":["","1"]},{"Workflow":"together","Versions":["","1"]},{"Workflow":"ask","Versions":["","1"]},{"Workflow":"priced","Versions":["","1","2"]},{"Workflow":"steps","Versions":["","1"]},{"Workflow":"broken","Versions":["","1"]},{"Workflow":"tick","Versions":["","1"]},{"Workflow":"list","Versions":["","1"]},{"Workflow":"saga","Versions":["","1"]},{"Workflow":"renew","Versions":["","1"]},{"Workflow":"inbox","Versions":["","1"]},{"Workflow":"approval","Versions":["","1"]},{"Workflow":"changed","Versions":["","1"]},{"Workflow":"told","Versions":["","1"]},{"Workflow":"order","Versions":["","1"]},{"Workflow":"child","Versions":["","1"]},{"Workflow":"stream","Versions":["","1"]}]', '1795845160983111', '1795845162031032', '');
SELECT setval(pg_get_serial_sequence('durable_executors', 'no'), (SELECT max(no) FROM durable_executors));

INSERT INTO durable_holds (name, run_no) OVERRIDING SYSTEM VALUE VALUES ('desk', '14');

INSERT INTO durable_inbox (run_no, seq, kind, name, id, at, data, payload) OVERRIDING SYSTEM VALUE VALUES ('14', '1', 'pause', '', 'ex-2777428116b1010c4f', '1795845161180798', '{"reason":"a person looks at it","sum":"4ccf3728"}', NULL);
INSERT INTO durable_inbox (run_no, seq, kind, name, id, at, data, payload) OVERRIDING SYSTEM VALUE VALUES ('15', '1', 'pause', '', 'ex-aaa1ae14ab1c83da4a', '1795845161200013', '{"reason":"to jump back to event 3","jump":true,"sum":"b1e1426d"}', NULL);
INSERT INTO durable_inbox (run_no, seq, kind, name, id, at, data, payload) OVERRIDING SYSTEM VALUE VALUES ('17', '1', 'cancel', '', 'cancel', '1795845161195164', '{"reason":"nobody wants it","sum":"224ca7f0"}', NULL);
INSERT INTO durable_inbox (run_no, seq, kind, name, id, at, data, payload) OVERRIDING SYSTEM VALUE VALUES ('4', '1', 'child', 'child', 'family-1-one@1795845161039554', '1795845161046870', '{"status":"completed","workflow":"child","life":1795845161039554,"sum":"bcc7525e"}', E'\\x686631206a736f6e20737472696e674031202d202d2037383765616166380a22776f726b206f662061206368696c6422');
INSERT INTO durable_inbox (run_no, seq, kind, name, id, at, data, payload) OVERRIDING SYSTEM VALUE VALUES ('8', '1', 'signal', 'later', 'ex-5dc9090884c23fb2e7', '1795845161067225', '{"sum":"21681767"}', E'\\x686631206a736f6e20737472696e674031202d202d2031343433646565380a226f6e6522');
INSERT INTO durable_inbox (run_no, seq, kind, name, id, at, data, payload) OVERRIDING SYSTEM VALUE VALUES ('8', '2', 'signal', 'later', 'second', '1795845161179202', '{"sum":"9e8edf43"}', E'\\x686631206a736f6e20737472696e674031202d202d2033656132613736640a2274776f22');


INSERT INTO durable_queues (name, revision, max_placed, max_partition, rate, per, paused, reason, updated_at, turn, begun) OVERRIDING SYSTEM VALUE VALUES ('mail', '1', '1', '0', '0', '0', 'false', '', '1795845160892799', 'tenant', '0');

SELECT setval(pg_get_serial_sequence('durable_requests', 'no'), (SELECT max(no) FROM durable_requests));

INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('1', 'changed-1', 'changed', '1', '', '', '', E'\\x6b86b273ff34fce19d6b804eff5a3f57', '', '', '', '', '1795845160939922', '1', 'interrupted', 'definition_changed', 'Definition changed: changed-1 (changed) stopped at call 1, still resumable.
    recorded   code now
> 1 old        new   /work/wt/release/test/vintage/market_test.go:297
new stands where old was recorded: it was inserted, or old was renamed or removed. Make it legal:
  if durable.Patched(ctx, "new") { … as it is now } else { … as it was recorded: old }
Or run this with the code it was started with, version 1, build market of a release.', 'false', '', '1795845160939925', '0', '0', '1', '0', '0', '0', '0', 'false', 'false', '0', '1795845160939922', '1795845161024926', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('10', 'approval-1', 'approval', '1', '', '', '', E'\\x6b86b273ff34fce19d6b804eff5a3f57', '', '', '', '', '1795845161082810', '1', 'waiting', 'approval', 'Ship it?', 'false', 'ex-997c5217edaaece3a3', '1795845161082810', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '3', '1795845161082810', '1795845161085137', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('11', 'late-1', 'late', '1', '', '', '', E'\\xd4735e3a265e16eee03f59718b9b5d03', '', '', '', '', '1795845161089347', '1', 'waiting', '', '', 'false', 'ex-997c5217edaaece3a3', '1795845161089347', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '3', '1795845161089347', '1795845161102118', '0', '1795845163089845', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('12', 'together-1', 'together', '1', '', '', '', E'\\x6b86b273ff34fce19d6b804eff5a3f57', '', '', '', '', '1795845161104436', '1', 'waiting', '', '', 'false', 'ex-997c5217edaaece3a3', '1795845161104436', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '8', '1795845161104436', '1795845161110175', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('13', 'bank-1', 'bank', '1', '', '', '', E'\\xef2d127de37b942baad06145e54b0c61', '', '', '', '', '1795845161111012', '1', 'waiting', '', '', 'false', 'ex-997c5217edaaece3a3', '1795845161111012', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '4', '1795845161111012', '1795845161126163', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('14', 'told-1', 'told', '1', '', '', '', E'\\x4b227777d4dd1fc61c6f884f48641d02', '', '', '', '', '1795845161125508', '1', 'waiting', '', '', 'false', '', '1795845161125509', '0', '0', '0', '0', '0', '1', '0', 'false', 'true', '6', '1795845161125508', '1795845162138932', '0', '3372645161125508', '3372645161125508', '2');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('15', 'steps-1', 'steps', '1', '', '', '', E'\\x6b86b273ff34fce19d6b804eff5a3f57', '', '', '', '', '1795845161138280', '1', 'waiting', '', '', 'false', 'ex-997c5217edaaece3a3', '1795845161138286', '1', '0', '1', '0', '0', '1', '1', 'false', 'false', '13', '1795845161138280', '1795845162146190', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('16', 'steps-2', 'steps', '1', '', '', '', E'\\x6b86b273ff34fce19d6b804eff5a3f57', '', '', '', '', '1795845161145178', '1', 'waiting', '', '', 'false', 'ex-997c5217edaaece3a3', '1795845161145178', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '6', '1795845161145178', '1795845161148002', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('17', 'approval-2', 'approval', '1', '', '', '', E'\\x6b86b273ff34fce19d6b804eff5a3f57', '', '', '', '', '1795845161151150', '1', 'cancelled', '', 'nobody wants it', 'false', '', '1795845161151151', '0', '0', '0', '0', '0', '1', '1', 'false', 'false', '4', '1795845161151150', '1795845161204190', '1795845161197377', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('18', 'broken-0', 'broken', '1', '', '', '', E'\\x5feceb66ffc86f38d952786c6d696c79', '', '', '', '', '1795845161157530', '1', 'completed', '', '', 'false', '', '1795845161157531', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '3', '1795845161157530', '1795845161166339', '1795845161160103', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('19', 'broken-1', 'broken', '1', '', '', '', E'\\x6b86b273ff34fce19d6b804eff5a3f57', '', '', '', '', '1795845161166433', '1', 'failed', 'error', 'step fail: attempt 2 of 2: the bank is closed', 'true', '', '1795845161166434', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '5', '1795845161166433', '1795845161178839', '1795845161176943', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('2', 'priced-1', 'priced', '1', '', '', '', E'\\x4a44dc15364204a80fe80e9039455cc1', '', '', '', '', '1795845160941773', '1', 'waiting', '', '', 'false', 'ex-e071a3e2e84bf5cdce', '1795845160941773', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '4', '1795845160941773', '1795845160959424', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('20', 'steps-3', 'steps', '1', '', '', 'steps-2', E'\\x6b86b273ff34fce19d6b804eff5a3f57', '', '', '', '', '1795845161219140', '1', 'waiting', '', '', 'false', 'ex-997c5217edaaece3a3', '1795845161219141', '0', '0', '1', '0', '0', '0', '0', 'false', 'false', '6', '1795845161219140', '1795845161228401', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('21', 'order-1', 'order', '1', '', '', '', E'\\x4e07408562bedb8b60ce05c1decfe3ad', '', '', '', '', '1795845161232715', '1', 'running', '', '', 'false', 'ex-997c5217edaaece3a3', '1795845161232715', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '0', '1795845161232715', '1795845161232529', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('22', 'pay-1', 'pay', '1', '', '', '', E'\\x6b86b273ff34fce19d6b804eff5a3f57', '', '', '', '', '1795845161244387', '1', 'running', '', '', 'false', 'ex-997c5217edaaece3a3', '1795845161244387', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '0', '1795845161244387', '1795845161245322', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('23', 'list-1', 'list', '1', '', '', '', E'\\x6b86b273ff34fce19d6b804eff5a3f57', '', '', '', '', '1795845161251476', '1', 'running', '', '', 'false', 'ex-997c5217edaaece3a3', '1795845161251476', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '0', '1795845161251476', '1795845161251331', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('24', 'stream-1', 'stream', '1', '', '', '', E'\\xef2d127de37b942baad06145e54b0c61', '', '', '', '', '1795845161257508', '1', 'running', '', '', 'false', 'ex-997c5217edaaece3a3', '1795845161257508', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '0', '1795845161257508', '1795845161257324', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('25', 'saga-1', 'saga', '1', '', '', '', E'\\x6b86b273ff34fce19d6b804eff5a3f57', '', '', '', '', '1795845161263222', '1', 'running', '', '', 'false', 'ex-997c5217edaaece3a3', '1795845161263222', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '0', '1795845161263222', '1795845161262955', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('26', 'mail-1', 'mail', '1', '', '', '', E'\\x6b86b273ff34fce19d6b804eff5a3f57', 'mail', 'tenant', '', '', '1795845161269567', '1', 'running', '', '', 'false', 'ex-997c5217edaaece3a3', '1795845161269568', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '0', '1795845161270105', '1795845161275124', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('27', 'mail-2', 'mail', '1', '', '', '', E'\\xd4735e3a265e16eee03f59718b9b5d03', 'mail', 'tenant', 'once', '', '1795845161280833', '1', 'pending', '', '', 'false', '', '1795845161280833', '0', '0', '0', '0', '9', '0', '0', 'false', 'false', '0', '0', '1795845161280581', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('28', 'mail-3', 'mail', '1', '', '', '', E'\\x4e07408562bedb8b60ce05c1decfe3ad', 'mail', 'tenant', '', '', '1795845161281295', '1', 'pending', '', '', 'false', '', '1795845161281295', '0', '0', '0', '0', '1', '0', '0', 'false', 'false', '0', '0', '1795845161283823', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('29', 'mail-4', 'mail', '1', '', '', '', E'\\x4b227777d4dd1fc61c6f884f48641d02', 'mail', 'tenant', '', '', '1795845161284465', '1', 'pending', '', '', 'false', '', '1795845161284465', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '0', '0', '1795845161285666', '0', '1795845166284465', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('3', 'tick@2026-11-28T05:52:41Z', 'tick', '1', '', '', '', E'\\x7902699be42c8a8e46fbbb4501726517', '', '', '', '', '1795845161002665', '1', 'completed', '', '', 'false', '', '1795845161002667', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '4', '1795845161003229', '1795845161008731', '1795845161007812', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('30', 'tick@2026-11-28T05:52:42Z', 'tick', '1', '', '', '', E'\\x7902699be42c8a8e46fbbb4501726517', '', '', '', '', '1795845162002722', '1', 'completed', '', '', 'false', '', '1795845162002724', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '4', '1795845162004366', '1795845162014776', '1795845162011813', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('4', 'family-1', 'family', '1', '', '', '', E'\\x6b86b273ff34fce19d6b804eff5a3f57', '', '', '', '', '1795845161035834', '1', 'waiting', '', '', 'false', 'ex-997c5217edaaece3a3', '1795845161035834', '0', '0', '0', '0', '0', '1', '1', 'false', 'false', '5', '1795845161035834', '1795845162055721', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('5', 'family-1-one', 'child', '1', 'family-1', 'child', '', E'\\x5feceb66ffc86f38d952786c6d696c79', '', '', '', '', '1795845161039554', '1', 'completed', '', '', 'false', '', '1795845161039555', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '4', '1795845161039554', '1795845161057253', '1795845161046876', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('6', 'family-1-two', 'child', '1', 'family-1', 'child#2', '', E'\\x6b86b273ff34fce19d6b804eff5a3f57', '', '', '', '', '1795845161042130', '1', 'waiting', '', '', 'false', 'ex-997c5217edaaece3a3', '1795845161042130', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '3', '1795845161042130', '1795845161053497', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('7', 'renew-1', 'renew', '1', '', '', '', E'\\x6b86b273ff34fce19d6b804eff5a3f57', '', '', '', '', '1795845161050853', '1', 'waiting', '', '', 'false', 'ex-997c5217edaaece3a3', '1795845161050853', '2', '2', '0', '0', '0', '0', '0', 'false', 'false', '10', '1795845161050853', '1795845161067572', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('8', 'inbox-1', 'inbox', '1', '', '', '', E'\\x6b86b273ff34fce19d6b804eff5a3f57', '', '', '', '', '1795845161067229', '1', 'waiting', '', '', 'false', 'ex-997c5217edaaece3a3', '1795845161067229', '0', '0', '0', '0', '0', '2', '1', 'false', 'false', '3', '1795845161067229', '1795845162076667', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('9', 'ask-1', 'ask', '1', '', '', '', E'\\x6b86b273ff34fce19d6b804eff5a3f57', '', '', '', '', '1795845161076324', '1', 'waiting', '', '', 'false', 'ex-997c5217edaaece3a3', '1795845161076324', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '3', '1795845161076324', '1795845161078676', '0', '0', '0', '0');
SELECT setval(pg_get_serial_sequence('durable_runs', 'no'), (SELECT max(no) FROM durable_runs));

INSERT INTO durable_schedules (name, revision, due, data, updated_at) OVERRIDING SYSTEM VALUE VALUES ('tick', '4481179700644688', '1795845163000000', E'\\x7b22666f726d6174223a312c226279223a2265782d393937633532313765646161656365336133222c22646566696e6974696f6e223a7b22776f726b666c6f77223a227469636b222c226576657279223a313030303030302c22696e707574223a22614759784947707a6232346761573530514445674c534174494752684f546b7a4d475530436a633d222c22696e7075745f68617368223a223739303236393962653432633861386534366662626234353031373236353137222c226f7074696f6e73223a7b7d7d2c22736574746c6564223a313739353834353136323030303030302c226c697665223a5b227469636b40323032362d31312d32385430353a35323a34325a225d2c226c617374223a5b7b226174223a313739353834353136313030303030302c2272756e5f6964223a227469636b40323032362d31312d32385430353a35323a34315a222c226f7574636f6d65223a2273746172746564227d2c7b226174223a313739353834353136323030303030302c2272756e5f6964223a227469636b40323032362d31312d32385430353a35323a34325a222c226f7574636f6d65223a2273746172746564227d5d2c2273746172746564223a327d', '1795845162009128');

INSERT INTO durable_schema (version, name, applied_at) OVERRIDING SYSTEM VALUE VALUES ('1', 'init', '1795845160862629');
INSERT INTO durable_schema (version, name, applied_at) OVERRIDING SYSTEM VALUE VALUES ('2', 'kinds', '1795845160863577');
INSERT INTO durable_schema (version, name, applied_at) OVERRIDING SYSTEM VALUE VALUES ('3', 'lanes', '1795845160865545');
INSERT INTO durable_schema (version, name, applied_at) OVERRIDING SYSTEM VALUE VALUES ('4', 'queues_schedules_requests', '1795845160873140');
INSERT INTO durable_schema (version, name, applied_at) OVERRIDING SYSTEM VALUE VALUES ('5', 'scale', '1795845160874151');
INSERT INTO durable_schema (version, name, applied_at) OVERRIDING SYSTEM VALUE VALUES ('6', 'attributes', '1795845160874507');

