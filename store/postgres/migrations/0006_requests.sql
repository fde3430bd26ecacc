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
