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

INSERT INTO durable_attributes (run_no, name, value) OVERRIDING SYSTEM VALUE VALUES ('13', 'customer', 'Zoë');
INSERT INTO durable_attributes (run_no, name, value) OVERRIDING SYSTEM VALUE VALUES ('13', 'region', 'north');

INSERT INTO durable_branches (run_no, n, parent, generation, cutoff, cut_scope, reason, created_at) OVERRIDING SYSTEM VALUE VALUES ('14', '1', '0', '0', '3', '', 'two was wrong', '1795881535053930');
INSERT INTO durable_branches (run_no, n, parent, generation, cutoff, cut_scope, reason, created_at) OVERRIDING SYSTEM VALUE VALUES ('6', '1', '1', '1', '4', '', 'continued', '1795881534590247');
INSERT INTO durable_branches (run_no, n, parent, generation, cutoff, cut_scope, reason, created_at) OVERRIDING SYSTEM VALUE VALUES ('6', '2', '2', '2', '7', '', 'continued', '1795881534602367');

INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('1', '1', '1795881534457132', '0', 'workflow_created', '', '0', '0', '1795881534457386', '0', '35', '0', '{"seed":"837a61dbbc118380","run":{"workflow":"changed","version":"1","created_at":1795881534457132}}', E'\\x686631206a736f6e20696e744031202d202d2066633338643730630a31', '1604422939');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('1', '2', '1795881534457132', '0', 'workflow_started', '', '0', '0', '1795881534457386', '0', '35', '0', '{"executor":"ex-5d51935b8558e752b5","build":"market of a release","name":"market","host":"vm","pid":20386}', NULL, '1030902301');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('1', '3', '1795881534457132', '0', 'step_completed', 'old', '1', '1', '1795881534459427', '6', '110', '1', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2034383865313439320a226f6c6422', '634109274');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('1', '4', '1795881534457133', '0', 'workflow_interrupted', '', '0', '0', '1795881534486676', '0', '27358', '1', '{"executor":"ex-5d51935b8558e752b5"}', NULL, '868103856');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('1', '5', '1795881534457134', '0', 'run_resumed', '', '0', '0', '1795881534556678', '0', '27358', '1', '{"executor":"ex-3519351cda4c839354","name":"market","host":"vm","pid":20386}', NULL, '2686570888');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('1', '6', '1795881534457135', '0', 'workflow_interrupted', '', '0', '0', '1795881534561278', '0', '28244', '1', E'{"error":{"message":"Definition changed: changed-1 (changed) stopped at call 1, still resumable.\\n    recorded   code now\\n\\u003e 1 old        new   github.com/holdfast-dev/holdfast/test/vintage/market_test.go:297\\nnew stands where old was recorded: it was inserted, or old was renamed or removed. Make it legal. If it was inserted:\\n  if durable.Patched(ctx, \\"new\\") { … new }, and old after it\\nIf not:\\n  if durable.Patched(ctx, \\"new\\") { … as it is now } else { … as it was recorded: old }\\nOr run this with the code it was started with, version 1, build market of a release.","type":"durable.DefinitionChangedError","value":{"RunID":"changed-1","Workflow":"changed","Scope":"","Recorded":["old"],"Ordinal":1,"Call":"new","Source":"github.com/holdfast-dev/holdfast/test/vintage/market_test.go:297","Detail":"","Change":"inserted or renamed","RecordedBy":{"Version":"1","Build":"market of a release","Executor":"market","At":1795881534457386,"First":true,"Same":false},"Version":"1"}},"executor":"ex-3519351cda4c839354","code":"definition_changed","reason":"Definition changed: changed-1 (changed) stopped at call 1, still resumable.\\n    recorded   code now\\n\\u003e 1 old        new   github.com/holdfast-dev/holdfast/test/vintage/market_test.go:297\\nnew stands where old was recorded: it was inserted, or old was renamed or removed. Make it legal. If it was inserted:\\n  if durable.Patched(ctx, \\"new\\") { … new }, and old after it\\nIf not:\\n  if durable.Patched(ctx, \\"new\\") { … as it is now } else { … as it was recorded: old }\\nOr run this with the code it was started with, version 1, build market of a release."}', NULL, '3134331631');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('10', '1', '1795881534644275', '0', 'workflow_created', '', '0', '0', '1795881534644367', '0', '9', '0', '{"seed":"c63960cdee5f3ac8","run":{"workflow":"late","version":"1","created_at":1795881534644275}}', E'\\x686631206a736f6e20696e744031202d202d2065663638323466380a32', '2327948910');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('10', '2', '1795881534644275', '0', 'workflow_started', '', '0', '0', '1795881534644367', '0', '9', '0', '{"executor":"ex-3519351cda4c839354","name":"market","host":"vm","pid":20386}', NULL, '2997236823');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('10', '3', '1795881534644275', '0', 'timer_set', 'sleep', '0', '1', '1795881534644906', '0', '155', '0', '{"until":1795881536644821}', NULL, '3384010887');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('11', '1', '1795881534648515', '0', 'workflow_created', '', '0', '0', '1795881534648546', '0', '4', '0', '{"seed":"73b53266fc3f6bc9","run":{"workflow":"together","version":"1","created_at":1795881534648515}}', E'\\x686631206a736f6e20696e744031202d202d2066633338643730630a31', '4221068891');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('11', '2', '1795881534648515', '0', 'workflow_started', '', '0', '0', '1795881534648546', '0', '4', '0', '{"executor":"ex-3519351cda4c839354","name":"market","host":"vm","pid":20386}', NULL, '2528829105');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('11', '3', '1795881534648515', '0', 'step_started', 'quick', '0', '1', '1795881534649058', '0', '96', '0', '{"kind":"branch"}', NULL, '2741781569');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('11', '4', '1795881534648515', '0', 'step_started', 'slow', '0', '2', '1795881534649069', '0', '106', '0', '{"kind":"branch"}', NULL, '1062462369');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('11', '5', '1795881534648515', '0', 'wait_requested', 'slow/go', '0', '1', '1795881534649122', '0', '160', '0', '{"name":"go","beside":true,"sample":""}', NULL, '2075390915');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('11', '6', '1795881534648515', '0', 'step_completed', 'quick/run', '1', '1', '1795881534649193', '4', '230', '1', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2061343266623463350a22717569636b22', '553953048');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('11', '7', '1795881534648515', '0', 'step_completed', 'quick', '0', '1', '1795881534650583', '0', '1620', '1', '{"kind":"branch"}', E'\\x686631206a736f6e20737472696e674031202d202d2061343266623463350a22717569636b22', '2274081077');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('11', '8', '1795881534648515', '0', 'first_won', 'race', '0', '3', '1795881534650770', '0', '1807', '1', NULL, NULL, '1603224123');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('12', '1', '1795881534655464', '0', 'workflow_created', '', '0', '0', '1795881534655496', '0', '8', '0', '{"seed":"3378026ecd29fee9","run":{"workflow":"bank","version":"1","created_at":1795881534655464}}', E'\\x686631206a736f6e20696e744031202d202d2033626132343031330a35', '1349615');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('12', '2', '1795881534655464', '0', 'workflow_started', '', '0', '0', '1795881534655496', '0', '8', '0', '{"executor":"ex-3519351cda4c839354","name":"market","host":"vm","pid":20386}', NULL, '1635003705');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('12', '3', '1795881534655464', '0', 'step_completed', 'book', '1', '1', '1795881534660391', '4548', '4570', '1', NULL, E'\\x686631206a736f6e20696e744031202d202d2033626132343031330a35', '3771278166');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('12', '4', '1795881534655464', '0', 'wait_requested', 'go', '0', '2', '1795881534663177', '0', '7356', '1', '{"name":"go","sample":""}', NULL, '3713223736');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('13', '1', '1795881534668521', '0', 'workflow_created', '', '0', '0', '1795881534668613', '0', '6', '0', '{"seed":"c06b1005789f9641","headers":{"tenant":"seven"},"deadline":3372681534668521,"exclusive":["desk"],"attributes":{"region":"north"},"run":{"workflow":"told","version":"1","created_at":1795881534668521}}', E'\\x686631206a736f6e20696e744031202d202d2063396339633331300a34', '3339839608');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('13', '2', '1795881534668521', '0', 'workflow_started', '', '0', '0', '1795881534668613', '0', '6', '0', '{"executor":"ex-3519351cda4c839354","name":"market","host":"vm","pid":20386}', NULL, '1993398662');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('13', '3', '1795881534668521', '0', 'published', 'state', '0', '1', '1795881534671437', '0', '154', '0', '{"name":"state"}', E'\\x686631206a736f6e20636172744031202d202d2064646632363763360a7b224974656d73223a347d', '3159929647');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('13', '4', '1795881534668521', '0', 'attributes_set', 'attributes', '0', '2', '1795881534671629', '0', '347', '0', '{"attributes":{"customer":"Zoë","region":"north"}}', NULL, '708060137');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('13', '5', '1795881534668521', '0', 'wait_requested', 'go', '0', '3', '1795881534672679', '0', '1396', '0', '{"name":"go","sample":""}', NULL, '3492267521');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('13', '6', '1795881534668522', '0', 'workflow_paused', '', '0', '0', '1795881535035659', '0', '364377', '0', '{"executor":"ex-3519351cda4c839354","reason":"a person looks at it","message":1}', NULL, '975302636');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '1', '1795881534674267', '0', 'workflow_created', '', '0', '0', '1795881534674297', '0', '3', '0', '{"seed":"9075ad69d3ce151f","declared":["one","two","three"],"run":{"workflow":"steps","version":"1","created_at":1795881534674267}}', E'\\x686631206a736f6e20696e744031202d202d2066633338643730630a31', '772388467');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '10', '1795881534674273', '1', 'run_resumed', '', '0', '0', '1795881535055452', '0', '375247', '1', '{"executor":"ex-3519351cda4c839354","resumed":true,"name":"market","host":"vm","pid":20386}', NULL, '619091052');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '11', '1795881534674273', '1', 'step_completed', 'two', '1', '2', '1795881535059310', '4', '376234', '2', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2033656132613736640a2274776f22', '601501285');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '12', '1795881534674273', '1', 'step_completed', 'three', '1', '3', '1795881535059485', '1', '376409', '3', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2033333933366338610a22746872656522', '2456389500');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '13', '1795881534674273', '1', 'wait_requested', 'go', '0', '4', '1795881535059639', '0', '376562', '3', '{"name":"go","sample":""}', NULL, '2150385659');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '2', '1795881534674267', '0', 'workflow_started', '', '0', '0', '1795881534674297', '0', '3', '0', '{"executor":"ex-3519351cda4c839354","name":"market","host":"vm","pid":20386}', NULL, '3779647630');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '3', '1795881534674267', '0', 'step_completed', 'one', '1', '1', '1795881534674620', '2', '16', '1', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2031343433646565380a226f6e6522', '82138881');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '4', '1795881534674267', '0', 'step_completed', 'two', '1', '2', '1795881534674792', '1', '188', '2', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2033656132613736640a2274776f22', '3985076702');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '5', '1795881534674267', '0', 'step_completed', 'three', '1', '3', '1795881534674946', '2', '342', '3', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2033333933366338610a22746872656522', '1444130817');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '6', '1795881534674267', '0', 'wait_requested', 'go', '0', '4', '1795881534675153', '0', '550', '3', '{"name":"go","sample":""}', NULL, '3141242863');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '7', '1795881534674268', '0', 'workflow_paused', '', '0', '0', '1795881535049851', '0', '375247', '3', '{"executor":"ex-3519351cda4c839354","reason":"to jump back to event 3","message":1}', NULL, '925458407');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '8', '1795881534674270', '0', 'jump_requested', '', '0', '0', '1795881535052762', '0', '375247', '3', '{"executor":"ex-3519351cda4c839354","reason":"two was wrong","to_branch":1,"cutoff":3}', NULL, '3528085079');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('14', '9', '1795881534674272', '1', 'jump_activated', '', '0', '0', '1795881535053930', '0', '375247', '1', '{"cut":{"parent":0,"cutoff":3,"sum":3528085079},"cutoff":3,"executor":"ex-3519351cda4c839354","message":1,"reason":"two was wrong","to_branch":1}', NULL, '361195025');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('15', '1', '1795881534675695', '0', 'workflow_created', '', '0', '0', '1795881534675716', '0', '2', '0', '{"seed":"285c6bddd2e3d060","declared":["one","two","three"],"run":{"workflow":"steps","version":"1","created_at":1795881534675695}}', E'\\x686631206a736f6e20696e744031202d202d2066633338643730630a31', '659455693');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('15', '2', '1795881534675695', '0', 'workflow_started', '', '0', '0', '1795881534675716', '0', '2', '0', '{"executor":"ex-3519351cda4c839354","name":"market","host":"vm","pid":20386}', NULL, '402987');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('15', '3', '1795881534675695', '0', 'step_completed', 'one', '1', '1', '1795881534676055', '1', '12', '1', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2031343433646565380a226f6e6522', '913958005');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('15', '4', '1795881534675695', '0', 'step_completed', 'two', '1', '2', '1795881534676164', '1', '121', '2', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2033656132613736640a2274776f22', '1554277383');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('15', '5', '1795881534675695', '0', 'step_completed', 'three', '1', '3', '1795881534676345', '1', '302', '3', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2033333933366338610a22746872656522', '3552334672');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('15', '6', '1795881534675695', '0', 'wait_requested', 'go', '0', '4', '1795881534676514', '0', '470', '3', '{"name":"go","sample":""}', NULL, '823808027');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('16', '1', '1795881534677014', '0', 'workflow_created', '', '0', '0', '1795881534677034', '0', '3', '0', '{"seed":"535f8490eafe52d1","run":{"workflow":"approval","version":"1","created_at":1795881534677014}}', E'\\x686631206a736f6e20696e744031202d202d2066633338643730630a31', '1398817004');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('16', '2', '1795881534677014', '0', 'workflow_started', '', '0', '0', '1795881534677034', '0', '3', '0', '{"executor":"ex-3519351cda4c839354","name":"market","host":"vm","pid":20386}', NULL, '1629686134');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('16', '3', '1795881534677014', '0', 'wait_requested', 'ship', '0', '1', '1795881534677428', '0', '79', '0', '{"name":"ship","prompt":"Ship it?","sample":""}', NULL, '2406708304');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('16', '4', '1795881534677015', '0', 'workflow_cancelled', '', '0', '0', '1795881535038226', '0', '360878', '0', '{"reason":"nobody wants it"}', NULL, '2113229380');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('17', '1', '1795881534678068', '0', 'workflow_created', '', '0', '0', '1795881534678107', '0', '3', '0', '{"seed":"bee6f0fdf5ae12b8","run":{"workflow":"broken","version":"1","created_at":1795881534678068}}', E'\\x686631206a736f6e20696e744031202d202d2030653533353430660a30', '711212112');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('17', '2', '1795881534678068', '0', 'workflow_started', '', '0', '0', '1795881534678107', '0', '3', '0', '{"executor":"ex-3519351cda4c839354","name":"market","host":"vm","pid":20386}', NULL, '1771551535');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('17', '3', '1795881534678069', '0', 'workflow_completed', '', '0', '0', '1795881534684190', '0', '5679', '0', NULL, E'\\x686631206a736f6e20737472696e674031207a737464202d2065346235383163310a28b52ffda082380100dc000014012261206c6172676520726573756c743b200154100433d9ff135d000008220154000f317e78fe1f', '3480683520');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('18', '1', '1795881534690201', '0', 'workflow_created', '', '0', '0', '1795881534690233', '0', '6', '0', '{"seed":"fcf1c271de5cff56","run":{"workflow":"broken","version":"1","created_at":1795881534690201}}', E'\\x686631206a736f6e20696e744031202d202d2066633338643730630a31', '2045931198');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('18', '2', '1795881534690201', '0', 'workflow_started', '', '0', '0', '1795881534690233', '0', '6', '0', '{"executor":"ex-3519351cda4c839354","name":"market","host":"vm","pid":20386}', NULL, '1605261377');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('18', '3', '1795881534690201', '0', 'attempt_failed', 'fail', '1', '1', '1795881534695117', '4', '25', '0', '{"error":{"message":"the bank is closed","sentinel":"market.bank"},"next_at":1795881534696187,"max":2}', NULL, '3686590667');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('18', '4', '1795881534690201', '0', 'step_failed', 'fail', '2', '1', '1795881534696245', '1', '1153', '1', '{"error":{"message":"the bank is closed","sentinel":"market.bank"},"max":2}', NULL, '1980159432');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('18', '5', '1795881534690202', '0', 'workflow_failed', '', '0', '0', '1795881534696653', '0', '1562', '1', '{"error":{"message":"step fail: attempt 2 of 2: the bank is closed","type":"durable.StepError","value":{"run_id":"broken-1","key":"fail","attempt":2,"max":2},"causes":[{"message":"the bank is closed","sentinel":"market.bank"}]},"code":"error","reason":"step fail: attempt 2 of 2: the bank is closed","recoverable":true}', NULL, '1887538061');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('19', '1', '1795881535001106', '0', 'workflow_created', '', '0', '0', '1795881535001106', '0', '0', '0', '{"seed":"6753a3d4b209df1b","run":{"workflow":"tick","version":"1","created_at":1795881535001106},"scheduled":{"schedule":"tick","at":1795881535000000}}', E'\\x686631206a736f6e20696e744031202d202d2064613939333065340a37', '3315655350');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('19', '2', '1795881535001107', '0', 'workflow_started', '', '0', '0', '1795881535002064', '0', '0', '0', '{"executor":"ex-3519351cda4c839354","name":"market","host":"vm","pid":20386}', NULL, '4062778373');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('19', '3', '1795881535001107', '0', 'step_completed', 'tick', '1', '1', '1795881535013127', '6', '154', '1', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2066636562633466310a227469636b20372066616c736522', '2932145099');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('19', '4', '1795881535001108', '0', 'workflow_completed', '', '0', '0', '1795881535013357', '0', '383', '1', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2066636562633466310a227469636b20372066616c736522', '1190612749');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('2', '1', '1795881534459173', '0', 'workflow_created', '', '0', '0', '1795881534459252', '0', '13', '0', '{"seed":"686657e97fc7810b","run":{"workflow":"priced","version":"1","created_at":1795881534459173}}', E'\\x686631206a736f6e20696e744031202d202d2032663231656465370a3130', '992709417');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('2', '2', '1795881534459173', '0', 'workflow_started', '', '0', '0', '1795881534459252', '0', '13', '0', '{"executor":"ex-5d51935b8558e752b5","build":"market of a release","name":"market","host":"vm","pid":20386}', NULL, '3263902671');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('2', '3', '1795881534459173', '0', 'patched', '~patched:tax', '0', '1', '1795881534459843', '0', '57', '0', '{"name":"tax"}', NULL, '253897315');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('2', '4', '1795881534459173', '0', 'wait_requested', 'go', '0', '1', '1795881534460018', '0', '232', '0', '{"name":"go","sample":""}', NULL, '4166116125');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('20', '1', '1795881535063711', '0', 'workflow_created', '', '0', '0', '1795881534675716', '0', '0', '0', '{"seed":"1e35e2185a8989ff","declared":["one","two","three"],"fork":{"from":"steps-2","seeds":[{"seed":"285c6bddd2e3d060","until":4}]},"run":{"workflow":"steps","version":"1","forked_from":"steps-2","created_at":1795881535063711}}', E'\\x686631206a736f6e20696e744031202d202d2066633338643730630a31', '4280740787');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('20', '2', '1795881535063711', '0', 'step_completed', 'one', '1', '1', '1795881534676055', '1', '12', '1', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2031343433646565380a226f6e6522', '3672426648');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('20', '3', '1795881535063711', '0', 'step_completed', 'two', '1', '2', '1795881534676164', '1', '121', '2', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2033656132613736640a2274776f22', '2133750777');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('20', '4', '1795881535063711', '0', 'step_completed', 'three', '1', '3', '1795881534676345', '1', '302', '3', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2033333933366338610a22746872656522', '3305689095');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('20', '5', '1795881535063712', '0', 'run_resumed', '', '0', '0', '1795881535064818', '0', '302', '3', '{"executor":"ex-3519351cda4c839354","resumed":true,"name":"market","host":"vm","pid":20386}', NULL, '1836133520');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('20', '6', '1795881535063712', '0', 'wait_requested', 'go', '0', '4', '1795881535066170', '0', '809', '3', '{"name":"go","sample":""}', NULL, '3023522039');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('21', '1', '1795881535066618', '0', 'workflow_created', '', '0', '0', '1795881535066652', '0', '3', '0', '{"seed":"b994bebfcb7134cd","run":{"workflow":"order","version":"1","created_at":1795881535066618}}', E'\\x686631206a736f6e20696e744031202d202d2031643033613766620a33', '3765780780');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('21', '2', '1795881535066618', '0', 'workflow_started', '', '0', '0', '1795881535066652', '0', '3', '0', '{"executor":"ex-3519351cda4c839354","name":"market","host":"vm","pid":20386}', NULL, '4050058435');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('21', '3', '1795881535066618', '0', 'step_completed', 'reserve', '1', '1', '1795881535067719', '4', '15', '1', '{"input":"4e07408562bedb8b60ce05c1decfe3ad"}', E'\\x686631206a736f6e20636172744031202d202d2061373966616538330a7b224974656d73223a337d', '2246261533');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('21', '4', '1795881535066618', '0', 'step_completed', 'look', '1', '2', '1795881535068349', '4', '644', '2', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2036396566663533630a226c6f6f6b22', '2495955904');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('21', '5', '1795881535066618', '0', 'attempt_failed', 'charge', '1', '3', '1795881535068471', '120', '767', '2', '{"error":{"message":"attempt 1: the bank is closed","go":"*fmt.wrapError","causes":[{"message":"the bank is closed","sentinel":"market.bank"}]},"next_at":1795881535069418,"max":5,"notes":{"bank":"answer 1"}}', NULL, '1440356941');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('21', '6', '1795881535066618', '0', 'attempt_failed', 'charge', '2', '3', '1795881535070153', '14', '2449', '2', '{"error":{"message":"attempt 2: the bank is closed","go":"*fmt.wrapError","causes":[{"message":"the bank is closed","sentinel":"market.bank"}]},"next_at":1795881535071851,"max":5,"notes":{"bank":"answer 2"}}', NULL, '99523969');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('21', '7', '1795881535066618', '0', 'progress_saved', 'charge', '3', '3', '1795881535072596', '0', '4892', '2', NULL, E'\\x686631206a736f6e2076696e746167655f746573742e73657373696f6e4031202d202d2061356135626539350a7b224944223a22732d33227d', '1344573786');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('22', '1', '1795881535072805', '0', 'workflow_created', '', '0', '0', '1795881535072860', '0', '6', '0', '{"seed":"17fbd2b9e700f72f","run":{"workflow":"pay","version":"1","created_at":1795881535072805}}', E'\\x686631206a736f6e20696e744031202d202d2066633338643730630a31', '1553287451');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('22', '2', '1795881535072805', '0', 'workflow_started', '', '0', '0', '1795881535072860', '0', '6', '0', '{"executor":"ex-3519351cda4c839354","name":"market","host":"vm","pid":20386}', NULL, '417221578');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('22', '3', '1795881535072805', '0', 'step_started', 'pay', '1', '1', '1795881535073361', '0', '47', '0', '{"once":true}', NULL, '3680851157');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('23', '1', '1795881535078925', '0', 'workflow_created', '', '0', '0', '1795881535078967', '0', '21', '0', '{"seed":"094bfe94721cdc29","run":{"workflow":"list","version":"1","created_at":1795881535078925}}', E'\\x686631206a736f6e20696e744031202d202d2066633338643730630a31', '2542876332');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('23', '2', '1795881535078925', '0', 'workflow_started', '', '0', '0', '1795881535078967', '0', '21', '0', '{"executor":"ex-3519351cda4c839354","name":"market","host":"vm","pid":20386}', NULL, '234846977');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('23', '3', '1795881535078925', '0', 'step_started', 'fruit', '0', '1', '1795881535079356', '0', '29', '0', '{"kind":"map"}', NULL, '428145920');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('23', '4', '1795881535078925', '0', 'step_completed', 'fruit[0]/wash', '1', '1', '1795881535079409', '2', '81', '1', '{"item":"5feceb66ffc86f38"}', E'\\x686631206a736f6e20737472696e674031202d202d2064316535353036640a226672756974203022', '2676069664');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('23', '5', '1795881535078925', '0', 'item_completed', 'fruit[0]', '0', '1', '1795881535079679', '0', '352', '1', '{"input":"5feceb66ffc86f38","items":5}', E'\\x686631206a736f6e20737472696e674031202d202d2064316535353036640a226672756974203022', '3536133929');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('23', '6', '1795881535078925', '0', 'step_completed', 'fruit[1]/wash', '1', '1', '1795881535079825', '2', '497', '2', '{"item":"6b86b273ff34fce1"}', E'\\x686631206a736f6e20737472696e674031202d202d2063323437633831610a226672756974203122', '1028932709');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('23', '7', '1795881535078925', '0', 'item_completed', 'fruit[1]', '0', '2', '1795881535079952', '0', '624', '2', '{"input":"6b86b273ff34fce1","items":5}', E'\\x686631206a736f6e20737472696e674031202d202d2063323437633831610a226672756974203122', '3095888417');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('23', '8', '1795881535078925', '0', 'step_failed', 'fruit[2]/wash', '1', '1', '1795881535080138', '1', '811', '3', '{"item":"d4735e3a265e16ee","error":{"message":"rotten","go":"*errors.errorString","permanent":true},"max":1}', NULL, '1391733366');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('23', '9', '1795881535078925', '0', 'item_failed', 'fruit[2]', '0', '3', '1795881535080340', '0', '1013', '3', '{"error":{"message":"step fruit[2]/wash: rotten","type":"durable.StepError","value":{"run_id":"list-1","key":"fruit[2]/wash","attempt":1,"max":1,"permanent":true},"causes":[{"message":"rotten","go":"*errors.errorString"}]},"input":"d4735e3a265e16ee","items":5,"attempts":1}', NULL, '4014448822');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('24', '1', '1795881535084679', '0', 'workflow_created', '', '0', '0', '1795881535084701', '0', '3', '0', '{"seed":"ea48e6c24bf7b106","run":{"workflow":"stream","version":"1","created_at":1795881535084679}}', E'\\x686631206a736f6e20696e744031202d202d2033626132343031330a35', '3216714138');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('24', '2', '1795881535084679', '0', 'workflow_started', '', '0', '0', '1795881535084701', '0', '3', '0', '{"executor":"ex-3519351cda4c839354","name":"market","host":"vm","pid":20386}', NULL, '3522916797');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('24', '3', '1795881535084679', '0', 'step_started', 'numbers', '0', '1', '1795881535085086', '0', '39', '0', '{"kind":"map"}', NULL, '3270761524');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('24', '4', '1795881535084679', '0', 'step_completed', 'numbers[0]/square', '1', '1', '1795881535085133', '1', '86', '1', '{"item":"5feceb66ffc86f38"}', E'\\x686631206a736f6e20696e744031202d202d2030653533353430660a30', '830665214');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('24', '5', '1795881535084679', '0', 'item_completed', 'numbers[0]', '0', '1', '1795881535085372', '0', '325', '1', '{"input":"5feceb66ffc86f38"}', E'\\x686631206a736f6e20696e744031202d202d2030653533353430660a30', '1732998003');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('24', '6', '1795881535084679', '0', 'step_completed', 'numbers[1]/square', '1', '1', '1795881535085506', '1', '459', '2', '{"item":"6b86b273ff34fce1"}', E'\\x686631206a736f6e20696e744031202d202d2066633338643730630a31', '3555654856');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('24', '7', '1795881535084679', '0', 'item_completed', 'numbers[1]', '0', '2', '1795881535085672', '0', '625', '2', '{"input":"6b86b273ff34fce1"}', E'\\x686631206a736f6e20696e744031202d202d2066633338643730630a31', '3161937007');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('24', '8', '1795881535084679', '0', 'step_completed', 'numbers[2]/square', '1', '1', '1795881535085776', '0', '730', '3', '{"item":"d4735e3a265e16ee"}', E'\\x686631206a736f6e20696e744031202d202d2063396339633331300a34', '577411530');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('24', '9', '1795881535084679', '0', 'item_completed', 'numbers[2]', '0', '3', '1795881535085913', '0', '867', '3', '{"input":"d4735e3a265e16ee"}', E'\\x686631206a736f6e20696e744031202d202d2063396339633331300a34', '2539511825');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('25', '1', '1795881535090152', '0', 'workflow_created', '', '0', '0', '1795881535090174', '0', '4', '0', '{"seed":"43cd2b45f26cecb0","run":{"workflow":"saga","version":"1","created_at":1795881535090152}}', E'\\x686631206a736f6e20696e744031202d202d2066633338643730630a31', '3885741385');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('25', '2', '1795881535090152', '0', 'workflow_started', '', '0', '0', '1795881535090174', '0', '4', '0', '{"executor":"ex-3519351cda4c839354","name":"market","host":"vm","pid":20386}', NULL, '1630021031');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('25', '3', '1795881535090152', '0', 'step_completed', 'flight', '1', '1', '1795881535090514', '2', '22', '1', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2039336236326533340a22666c6967687422', '3670989960');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('25', '4', '1795881535090152', '0', 'step_completed', 'hotel', '1', '2', '1795881535090644', '1', '152', '2', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2063336539333432350a22686f74656c22', '2238859097');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('25', '5', '1795881535090152', '0', 'step_failed', 'car', '1', '3', '1795881535090781', '1', '289', '3', '{"error":{"message":"the bank is closed","sentinel":"market.bank","permanent":true},"max":1}', NULL, '2938890473');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('25', '6', '1795881535090152', '0', 'step_completed', '~undo/undo hotel', '1', '1', '1795881535090980', '2', '489', '4', '{"undoes":["hotel","flight"]}', NULL, '2814426853');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('26', '1', '1795881535096266', '0', 'workflow_created', '', '0', '0', '1795881535096285', '0', '4', '0', '{"seed":"909e528e71f6296f","run":{"workflow":"mail","version":"1","queue":"mail","partition":"tenant","created_at":1795881535096266}}', E'\\x686631206a736f6e20696e744031202d202d2066633338643730630a31', '260639938');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('26', '2', '1795881535096267', '0', 'workflow_started', '', '0', '0', '1795881535096703', '0', '4', '0', '{"executor":"ex-3519351cda4c839354","name":"market","host":"vm","pid":20386}', NULL, '3861034787');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('27', '1', '1795881535107601', '0', 'workflow_created', '', '0', '0', '1795881535107617', '0', '3', '0', '{"seed":"777bc6c6a581acca","run":{"workflow":"mail","version":"1","queue":"mail","partition":"tenant","dedup":"once","priority":9,"created_at":1795881535107601}}', E'\\x686631206a736f6e20696e744031202d202d2065663638323466380a32', '62869962');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('28', '1', '1795881535108033', '0', 'workflow_created', '', '0', '0', '1795881535108047', '0', '2', '0', '{"seed":"8dc0949d6964e35c","run":{"workflow":"mail","version":"1","queue":"mail","partition":"tenant","priority":1,"created_at":1795881535108033}}', E'\\x686631206a736f6e20696e744031202d202d2031643033613766620a33', '1580769238');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('29', '1', '1795881535108342', '0', 'workflow_created', '', '0', '0', '1795881535108353', '0', '2', '0', '{"seed":"b8684cda18c38cb9","run":{"workflow":"mail","version":"1","queue":"mail","partition":"tenant","start_at":1795881540108342,"created_at":1795881535108342}}', E'\\x686631206a736f6e20696e744031202d202d2063396339633331300a34', '4074325203');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('3', '1', '1795881534576576', '0', 'workflow_created', '', '0', '0', '1795881534576612', '0', '4', '0', '{"seed":"6c574c0133757a62","run":{"workflow":"family","version":"1","created_at":1795881534576576}}', E'\\x686631206a736f6e20696e744031202d202d2066633338643730630a31', '4240707961');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('3', '2', '1795881534576576', '0', 'workflow_started', '', '0', '0', '1795881534576612', '0', '4', '0', '{"executor":"ex-3519351cda4c839354","name":"market","host":"vm","pid":20386}', NULL, '2440792431');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('3', '3', '1795881534576576', '0', 'child_started', 'child', '0', '1', '1795881534578203', '0', '282', '0', '{"child":"family-1-one","chosen":true}', NULL, '863323746');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('3', '4', '1795881534576576', '0', 'child_started', 'child#2', '0', '2', '1795881534580945', '0', '3024', '0', '{"child":"family-1-two","chosen":true}', NULL, '519432184');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('3', '5', '1795881534576576', '0', 'child_finished', 'child', '0', '1', '1795881534587208', '0', '9287', '0', '{"status":"completed","name":"child","message":1,"recoverable":false}', E'\\x686631206a736f6e20737472696e674031202d202d2037383765616166380a22776f726b206f662061206368696c6422', '2716387754');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('4', '1', '1795881534577999', '0', 'workflow_created', '', '0', '0', '1795881534578133', '0', '3', '0', '{"seed":"7cc8940c40ce8420","run":{"workflow":"child","version":"1","parent":"family-1","parent_key":"child","created_at":1795881534577999}}', E'\\x686631206a736f6e20696e744031202d202d2030653533353430660a30', '1846892072');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('4', '2', '1795881534577999', '0', 'workflow_started', '', '0', '0', '1795881534578133', '0', '3', '0', '{"executor":"ex-3519351cda4c839354","name":"market","host":"vm","pid":20386}', NULL, '2666173009');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('4', '3', '1795881534577999', '0', 'step_completed', 'work', '1', '1', '1795881534581013', '6', '19', '1', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2037383765616166380a22776f726b206f662061206368696c6422', '1586302556');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('4', '4', '1795881534578000', '0', 'workflow_completed', '', '0', '0', '1795881534582253', '0', '1259', '1', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2037383765616166380a22776f726b206f662061206368696c6422', '2054103877');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('5', '1', '1795881534580924', '0', 'workflow_created', '', '0', '0', '1795881534580942', '0', '2', '0', '{"seed":"a6a40e8e6adc5edd","run":{"workflow":"child","version":"1","parent":"family-1","parent_key":"child#2","created_at":1795881534580924}}', E'\\x686631206a736f6e20696e744031202d202d2066633338643730630a31', '2866128586');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('5', '2', '1795881534580924', '0', 'workflow_started', '', '0', '0', '1795881534580942', '0', '2', '0', '{"executor":"ex-3519351cda4c839354","name":"market","host":"vm","pid":20386}', NULL, '2223998650');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('5', '3', '1795881534580924', '0', 'wait_requested', 'go', '0', '1', '1795881534583235', '0', '63', '0', '{"name":"go","sample":""}', NULL, '3504962117');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('6', '1', '1795881534589454', '0', 'workflow_created', '', '0', '0', '1795881534589472', '0', '3', '0', '{"seed":"fec0401e988744fb","run":{"workflow":"renew","version":"1","created_at":1795881534589454}}', E'\\x686631206a736f6e20696e744031202d202d2066633338643730630a31', '4106466181');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('6', '10', '1795881534589454', '2', 'wait_requested', 'go', '0', '2', '1795881534608217', '0', '2215', '1', '{"name":"go","sample":""}', NULL, '4220721293');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('6', '2', '1795881534589454', '0', 'workflow_started', '', '0', '0', '1795881534589472', '0', '3', '0', '{"executor":"ex-3519351cda4c839354","name":"market","host":"vm","pid":20386}', NULL, '2674124389');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('6', '3', '1795881534589454', '0', 'step_completed', 'work', '1', '1', '1795881534589901', '2', '14', '1', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2033303235326533630a22776f726b206f6620612067656e65726174696f6e22', '2301690182');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('6', '4', '1795881534589454', '0', 'workflow_continued', '', '0', '0', '1795881534590288', '0', '401', '1', '{"generation":1}', E'\\x686631206a736f6e20696e744031202d202d2065663638323466380a32', '4291668064');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('6', '5', '1795881534589454', '1', 'workflow_started', '', '0', '0', '1795881534590288', '0', '401', '0', '{"seed":"cc88deea855282f1","executor":"ex-3519351cda4c839354","name":"market","generation":1,"sum":4291668064,"run":{"workflow":"renew","version":"1","created_at":1795881534589454},"host":"vm","pid":20386}', E'\\x686631206a736f6e20696e744031202d202d2065663638323466380a32', '1229148119');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('6', '6', '1795881534589454', '1', 'step_completed', 'work', '1', '1', '1795881534602147', '5', '915', '1', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2033303235326533630a22776f726b206f6620612067656e65726174696f6e22', '3426907625');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('6', '7', '1795881534589454', '1', 'workflow_continued', '', '0', '0', '1795881534602380', '0', '1148', '1', '{"generation":2}', E'\\x686631206a736f6e20696e744031202d202d2031643033613766620a33', '1913328392');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('6', '8', '1795881534589454', '2', 'workflow_started', '', '0', '0', '1795881534602380', '0', '1148', '0', '{"seed":"25ad0baf5a53d3b2","executor":"ex-3519351cda4c839354","name":"market","generation":2,"sum":1913328392,"run":{"workflow":"renew","version":"1","created_at":1795881534589454},"host":"vm","pid":20386}', E'\\x686631206a736f6e20696e744031202d202d2031643033613766620a33', '479500438');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('6', '9', '1795881534589454', '2', 'step_completed', 'work', '1', '1', '1795881534607718', '2', '1717', '1', NULL, E'\\x686631206a736f6e20737472696e674031202d202d2033303235326533630a22776f726b206f6620612067656e65726174696f6e22', '3114506107');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('7', '1', '1795881534611352', '0', 'workflow_created', '', '0', '0', '1795881534611422', '0', '16', '0', '{"seed":"696f808e0719fd8f","run":{"workflow":"inbox","version":"1","created_at":1795881534611352}}', E'\\x686631206a736f6e20696e744031202d202d2066633338643730630a31', '1473867723');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('7', '2', '1795881534611352', '0', 'workflow_started', '', '0', '0', '1795881534611422', '0', '16', '0', '{"executor":"ex-3519351cda4c839354","name":"market","host":"vm","pid":20386}', NULL, '974490287');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('7', '3', '1795881534611352', '0', 'wait_requested', 'go', '0', '1', '1795881534619485', '0', '115', '0', '{"name":"go","sample":""}', NULL, '1953669771');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('8', '1', '1795881534627021', '0', 'workflow_created', '', '0', '0', '1795881534627048', '0', '5', '0', '{"seed":"ded4f0c722242e98","run":{"workflow":"ask","version":"1","created_at":1795881534627021}}', E'\\x686631206a736f6e20696e744031202d202d2066633338643730630a31', '2720185936');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('8', '2', '1795881534627021', '0', 'workflow_started', '', '0', '0', '1795881534627048', '0', '5', '0', '{"executor":"ex-3519351cda4c839354","name":"market","host":"vm","pid":20386}', NULL, '1898571707');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('8', '3', '1795881534627021', '0', 'wait_requested', 'double', '0', '1', '1795881534629319', '0', '38', '0', '{"kind":"wait for a request","name":"double"}', NULL, '2803358329');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('9', '1', '1795881534635748', '0', 'workflow_created', '', '0', '0', '1795881534635876', '0', '4', '0', '{"seed":"292e626ec1d9bc67","run":{"workflow":"approval","version":"1","created_at":1795881534635748}}', E'\\x686631206a736f6e20696e744031202d202d2066633338643730630a31', '216827228');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('9', '2', '1795881534635748', '0', 'workflow_started', '', '0', '0', '1795881534635876', '0', '4', '0', '{"executor":"ex-3519351cda4c839354","name":"market","host":"vm","pid":20386}', NULL, '2965036459');
INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum) OVERRIDING SYSTEM VALUE VALUES ('9', '3', '1795881534635748', '0', 'wait_requested', 'ship', '0', '1', '1795881534636398', '0', '62', '0', '{"name":"ship","prompt":"Ship it?","sample":""}', NULL, '284875316');

INSERT INTO durable_executors (no, id, name, host, boot, pid, lease, serves, started_at, beat_at, presence) OVERRIDING SYSTEM VALUE VALUES ('4', 'ex-3519351cda4c839354', 'market', 'vm', '1938f354-378f-4edb-80eb-366859051e48', '20386', '1000000', '[{"Workflow":"approval","Versions":["","1"]},{"Workflow":"bank","Versions":["","1"]},{"Workflow":"tick","Versions":["","1"]},{"Workflow":"order","Versions":["","1"]},{"Workflow":"list","Versions":["","1"]},{"Workflow":"late","Versions":["","1"]},{"Workflow":"changed","Versions":["","1"]},{"Workflow":"priced","Versions":["","1","2"]},{"Workflow":"mail","Versions":["","1"]},{"Workflow":"told","Versions":["","1"]},{"Workflow":"pay","Versions":["","1"]},{"Workflow":"family","Versions":["","1"]},{"Workflow":"renew","Versions":["","1"]},{"Workflow":"inbox","Versions":["","1"]},{"Workflow":"together","Versions":["","1"]},{"Workflow":"steps","Versions":["","1"]},{"Workflow":"broken","Versions":["","1"]},{"Workflow":"child","Versions":["","1"]},{"Workflow":"stream","Versions":["","1"]},{"Workflow":"saga","Versions":["","1"]},{"Workflow":"ask","Versions":["","1"]}]', '1795881534510564', '1795881535591122', '');
SELECT setval(pg_get_serial_sequence('durable_executors', 'no'), (SELECT max(no) FROM durable_executors));

INSERT INTO durable_holds (name, run_no) OVERRIDING SYSTEM VALUE VALUES ('desk', '13');

INSERT INTO durable_inbox (run_no, seq, kind, name, id, at, data, payload) OVERRIDING SYSTEM VALUE VALUES ('13', '1', 'pause', '', 'ex-02dccc9832743dc98f', '1795881535024866', '{"reason":"a person looks at it","sum":"c0f6bed3"}', NULL);
INSERT INTO durable_inbox (run_no, seq, kind, name, id, at, data, payload) OVERRIDING SYSTEM VALUE VALUES ('14', '1', 'pause', '', 'ex-52b6e1bc8a45e19704', '1795881535046228', '{"reason":"to jump back to event 3","jump":true,"sum":"203cd6c6"}', NULL);
INSERT INTO durable_inbox (run_no, seq, kind, name, id, at, data, payload) OVERRIDING SYSTEM VALUE VALUES ('16', '1', 'cancel', '', 'cancel', '1795881535037515', '{"reason":"nobody wants it","sum":"32120cb4"}', NULL);
INSERT INTO durable_inbox (run_no, seq, kind, name, id, at, data, payload) OVERRIDING SYSTEM VALUE VALUES ('3', '1', 'child', 'child', 'family-1-one@1795881534577999', '1795881534582248', '{"status":"completed","workflow":"child","life":1795881534577999,"sum":"59138d01"}', E'\\x686631206a736f6e20737472696e674031202d202d2037383765616166380a22776f726b206f662061206368696c6422');
INSERT INTO durable_inbox (run_no, seq, kind, name, id, at, data, payload) OVERRIDING SYSTEM VALUE VALUES ('7', '1', 'signal', 'later', 'ex-5a48e0cd31d25a35c1', '1795881534611347', '{"sum":"3e1d1d6c"}', E'\\x686631206a736f6e20737472696e674031202d202d2031343433646565380a226f6e6522');
INSERT INTO durable_inbox (run_no, seq, kind, name, id, at, data, payload) OVERRIDING SYSTEM VALUE VALUES ('7', '2', 'signal', 'later', 'second', '1795881535017327', '{"sum":"9f34eadf"}', E'\\x686631206a736f6e20737472696e674031202d202d2033656132613736640a2274776f22');


INSERT INTO durable_queues (name, revision, max_placed, max_partition, rate, per, paused, reason, updated_at, turn, begun) OVERRIDING SYSTEM VALUE VALUES ('mail', '1', '1', '0', '0', '0', 'false', '', '1795881534405168', 'tenant', '0');

SELECT setval(pg_get_serial_sequence('durable_requests', 'no'), (SELECT max(no) FROM durable_requests));

INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('1', 'changed-1', 'changed', '1', '', '', '', E'\\x6b86b273ff34fce19d6b804eff5a3f57', '', '', '', '', '1795881534457132', '1', 'interrupted', 'definition_changed', 'Definition changed: changed-1 (changed) stopped at call 1, still resumable.
    recorded   code now
> 1 old        new   github.com/holdfast-dev/holdfast/test/vintage/market_test.go:297
new stands where old was recorded: it was inserted, or old was renamed or removed. Make it legal. If it was inserted:
  if durable.Patched(ctx, "new") { … new }, and old after it
If not:
  if durable.Patched(ctx, "new") { … as it is now } else { … as it was recorded: old }
Or run this with the code it was started with, version 1, build market of a release.', 'false', '', '1795881534457135', '0', '0', '1', '0', '0', '0', '0', 'false', 'false', '0', '1795881534457132', '1795881534563631', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('10', 'late-1', 'late', '1', '', '', '', E'\\xd4735e3a265e16eee03f59718b9b5d03', '', '', '', '', '1795881534644275', '1', 'waiting', '', '', 'false', 'ex-3519351cda4c839354', '1795881534644275', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '3', '1795881534644275', '1795881534648414', '0', '1795881536644821', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('11', 'together-1', 'together', '1', '', '', '', E'\\x6b86b273ff34fce19d6b804eff5a3f57', '', '', '', '', '1795881534648515', '1', 'waiting', '', '', 'false', 'ex-3519351cda4c839354', '1795881534648515', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '8', '1795881534648515', '1795881534655521', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('12', 'bank-1', 'bank', '1', '', '', '', E'\\xef2d127de37b942baad06145e54b0c61', '', '', '', '', '1795881534655464', '1', 'waiting', '', '', 'false', 'ex-3519351cda4c839354', '1795881534655464', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '4', '1795881534655464', '1795881534666254', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('13', 'told-1', 'told', '1', '', '', '', E'\\x4b227777d4dd1fc61c6f884f48641d02', '', '', '', '', '1795881534668521', '1', 'waiting', '', '', 'false', '', '1795881534668522', '0', '0', '0', '0', '0', '1', '0', 'false', 'true', '6', '1795881534668521', '1795881535702233', '0', '3372681534668521', '3372681534668521', '2');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('14', 'steps-1', 'steps', '1', '', '', '', E'\\x6b86b273ff34fce19d6b804eff5a3f57', '', '', '', '', '1795881534674267', '1', 'waiting', '', '', 'false', 'ex-3519351cda4c839354', '1795881534674273', '1', '0', '1', '0', '0', '1', '1', 'false', 'false', '13', '1795881534674267', '1795881535735025', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('15', 'steps-2', 'steps', '1', '', '', '', E'\\x6b86b273ff34fce19d6b804eff5a3f57', '', '', '', '', '1795881534675695', '1', 'waiting', '', '', 'false', 'ex-3519351cda4c839354', '1795881534675695', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '6', '1795881534675695', '1795881534700072', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('16', 'approval-2', 'approval', '1', '', '', '', E'\\x6b86b273ff34fce19d6b804eff5a3f57', '', '', '', '', '1795881534677014', '1', 'cancelled', '', 'nobody wants it', 'false', '', '1795881534677015', '0', '0', '0', '0', '0', '1', '1', 'false', 'false', '4', '1795881534677014', '1795881535054268', '1795881535038226', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('17', 'broken-0', 'broken', '1', '', '', '', E'\\x5feceb66ffc86f38d952786c6d696c79', '', '', '', '', '1795881534678068', '1', 'completed', '', '', 'false', '', '1795881534678069', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '3', '1795881534678068', '1795881534724182', '1795881534684190', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('18', 'broken-1', 'broken', '1', '', '', '', E'\\x6b86b273ff34fce19d6b804eff5a3f57', '', '', '', '', '1795881534690201', '1', 'failed', 'error', 'step fail: attempt 2 of 2: the bank is closed', 'true', '', '1795881534690202', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '5', '1795881534690201', '1795881534727127', '1795881534696653', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('19', 'tick@2026-11-28T15:58:55Z', 'tick', '1', '', '', '', E'\\x7902699be42c8a8e46fbbb4501726517', '', '', '', '', '1795881535001106', '1', 'completed', '', '', 'false', '', '1795881535001108', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '4', '1795881535002064', '1795881535025721', '1795881535013357', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('2', 'priced-1', 'priced', '1', '', '', '', E'\\x4a44dc15364204a80fe80e9039455cc1', '', '', '', '', '1795881534459173', '1', 'waiting', '', '', 'false', 'ex-5d51935b8558e752b5', '1795881534459173', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '4', '1795881534459173', '1795881534488824', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('20', 'steps-3', 'steps', '1', '', '', 'steps-2', E'\\x6b86b273ff34fce19d6b804eff5a3f57', '', '', '', '', '1795881535063711', '1', 'waiting', '', '', 'false', 'ex-3519351cda4c839354', '1795881535063712', '0', '0', '1', '0', '0', '0', '0', 'false', 'false', '6', '1795881535063711', '1795881535069137', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('21', 'order-1', 'order', '1', '', '', '', E'\\x4e07408562bedb8b60ce05c1decfe3ad', '', '', '', '', '1795881535066618', '1', 'running', '', '', 'false', 'ex-3519351cda4c839354', '1795881535066618', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '0', '1795881535066618', '1795881535067962', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('22', 'pay-1', 'pay', '1', '', '', '', E'\\x6b86b273ff34fce19d6b804eff5a3f57', '', '', '', '', '1795881535072805', '1', 'running', '', '', 'false', 'ex-3519351cda4c839354', '1795881535072805', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '0', '1795881535072805', '1795881535073615', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('23', 'list-1', 'list', '1', '', '', '', E'\\x6b86b273ff34fce19d6b804eff5a3f57', '', '', '', '', '1795881535078925', '1', 'running', '', '', 'false', 'ex-3519351cda4c839354', '1795881535078925', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '0', '1795881535078925', '1795881535079769', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('24', 'stream-1', 'stream', '1', '', '', '', E'\\xef2d127de37b942baad06145e54b0c61', '', '', '', '', '1795881535084679', '1', 'running', '', '', 'false', 'ex-3519351cda4c839354', '1795881535084679', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '0', '1795881535084679', '1795881535085468', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('25', 'saga-1', 'saga', '1', '', '', '', E'\\x6b86b273ff34fce19d6b804eff5a3f57', '', '', '', '', '1795881535090152', '1', 'running', '', '', 'false', 'ex-3519351cda4c839354', '1795881535090152', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '0', '1795881535090152', '1795881535090949', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('26', 'mail-1', 'mail', '1', '', '', '', E'\\x6b86b273ff34fce19d6b804eff5a3f57', 'mail', 'tenant', '', '', '1795881535096266', '1', 'running', '', '', 'false', 'ex-3519351cda4c839354', '1795881535096267', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '0', '1795881535096703', '1795881535102905', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('27', 'mail-2', 'mail', '1', '', '', '', E'\\xd4735e3a265e16eee03f59718b9b5d03', 'mail', 'tenant', 'once', '', '1795881535107601', '1', 'pending', '', '', 'false', '', '1795881535107601', '0', '0', '0', '0', '9', '0', '0', 'false', 'false', '0', '0', '1795881535108393', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('28', 'mail-3', 'mail', '1', '', '', '', E'\\x4e07408562bedb8b60ce05c1decfe3ad', 'mail', 'tenant', '', '', '1795881535108033', '1', 'pending', '', '', 'false', '', '1795881535108033', '0', '0', '0', '0', '1', '0', '0', 'false', 'false', '0', '0', '1795881535108791', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('29', 'mail-4', 'mail', '1', '', '', '', E'\\x4b227777d4dd1fc61c6f884f48641d02', 'mail', 'tenant', '', '', '1795881535108342', '1', 'pending', '', '', 'false', '', '1795881535108342', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '0', '0', '1795881535109139', '0', '1795881540108342', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('3', 'family-1', 'family', '1', '', '', '', E'\\x6b86b273ff34fce19d6b804eff5a3f57', '', '', '', '', '1795881534576576', '1', 'waiting', '', '', 'false', 'ex-3519351cda4c839354', '1795881534576576', '0', '0', '0', '0', '0', '1', '1', 'false', 'false', '5', '1795881534576576', '1795881534603304', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('4', 'family-1-one', 'child', '1', 'family-1', 'child', '', E'\\x5feceb66ffc86f38d952786c6d696c79', '', '', '', '', '1795881534577999', '1', 'completed', '', '', 'false', '', '1795881534578000', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '4', '1795881534577999', '1795881534591708', '1795881534582253', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('5', 'family-1-two', 'child', '1', 'family-1', 'child#2', '', E'\\x6b86b273ff34fce19d6b804eff5a3f57', '', '', '', '', '1795881534580924', '1', 'waiting', '', '', 'false', 'ex-3519351cda4c839354', '1795881534580924', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '3', '1795881534580924', '1795881534599871', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('6', 'renew-1', 'renew', '1', '', '', '', E'\\x6b86b273ff34fce19d6b804eff5a3f57', '', '', '', '', '1795881534589454', '1', 'waiting', '', '', 'false', 'ex-3519351cda4c839354', '1795881534589454', '2', '2', '0', '0', '0', '0', '0', 'false', 'false', '10', '1795881534589454', '1795881534622675', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('7', 'inbox-1', 'inbox', '1', '', '', '', E'\\x6b86b273ff34fce19d6b804eff5a3f57', '', '', '', '', '1795881534611352', '1', 'waiting', '', '', 'false', 'ex-3519351cda4c839354', '1795881534611352', '0', '0', '0', '0', '0', '2', '1', 'false', 'false', '3', '1795881534611352', '1795881535637947', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('8', 'ask-1', 'ask', '1', '', '', '', E'\\x6b86b273ff34fce19d6b804eff5a3f57', '', '', '', '', '1795881534627021', '1', 'waiting', '', '', 'false', 'ex-3519351cda4c839354', '1795881534627021', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '3', '1795881534627021', '1795881534633148', '0', '0', '0', '0');
INSERT INTO durable_runs (no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes) OVERRIDING SYSTEM VALUE VALUES ('9', 'approval-1', 'approval', '1', '', '', '', E'\\x6b86b273ff34fce19d6b804eff5a3f57', '', '', '', '', '1795881534635748', '1', 'waiting', 'approval', 'Ship it?', 'false', 'ex-3519351cda4c839354', '1795881534635748', '0', '0', '0', '0', '0', '0', '0', 'false', 'false', '3', '1795881534635748', '1795881534639508', '0', '0', '0', '0');
SELECT setval(pg_get_serial_sequence('durable_runs', 'no'), (SELECT max(no) FROM durable_runs));

INSERT INTO durable_schedules (name, revision, due, data, updated_at) OVERRIDING SYSTEM VALUE VALUES ('tick', '1741020278800123', '1795881536000000', E'\\x7b22666f726d6174223a312c226279223a2265782d333531393335316364613463383339333534222c22646566696e6974696f6e223a7b22776f726b666c6f77223a227469636b222c226576657279223a313030303030302c22696e707574223a22614759784947707a6232346761573530514445674c534174494752684f546b7a4d475530436a633d222c22696e7075745f68617368223a223739303236393962653432633861386534366662626234353031373236353137222c226f7074696f6e73223a7b7d7d2c22736574746c6564223a313739353838313533353030303030302c226c697665223a5b227469636b40323032362d31312d32385431353a35383a35355a225d2c226c617374223a5b7b226174223a313739353838313533353030303030302c2272756e5f6964223a227469636b40323032362d31312d32385431353a35383a35355a222c226f7574636f6d65223a2273746172746564227d5d2c2273746172746564223a317d', '1795881535006777');

INSERT INTO durable_schema (version, name, applied_at) OVERRIDING SYSTEM VALUE VALUES ('1', 'init', '1795881534321892');
INSERT INTO durable_schema (version, name, applied_at) OVERRIDING SYSTEM VALUE VALUES ('2', 'kinds', '1795881534324815');
INSERT INTO durable_schema (version, name, applied_at) OVERRIDING SYSTEM VALUE VALUES ('3', 'lanes', '1795881534330555');
INSERT INTO durable_schema (version, name, applied_at) OVERRIDING SYSTEM VALUE VALUES ('4', 'queues_schedules_requests', '1795881534352335');
INSERT INTO durable_schema (version, name, applied_at) OVERRIDING SYSTEM VALUE VALUES ('5', 'scale', '1795881534353508');
INSERT INTO durable_schema (version, name, applied_at) OVERRIDING SYSTEM VALUE VALUES ('6', 'attributes', '1795881534356287');

