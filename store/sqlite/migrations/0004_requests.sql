-- Requests of programs that speak SQL. A program inserts a row, within a transaction of
-- its own; an engine carries it out and writes into the row what became of it.
-- docs/guides/from-sql.md says how to use it. NULL is the same as empty or 0.
CREATE TABLE durable_requests (
  no         INTEGER PRIMARY KEY AUTOINCREMENT,
  kind       TEXT    NOT NULL CHECK (kind IN ('start', 'signal', 'cancel')),
  run_id     TEXT,    -- of a start: NULL if one is to be made
  workflow   TEXT,    -- from here on: of a start
  version    TEXT,
  queue      TEXT,
  partition  TEXT,
  dedup      TEXT,
  priority   INTEGER CHECK (priority BETWEEN -2147483648 AND 2147483647),
  wake_at    INTEGER CHECK (wake_at >= 0), -- microseconds since 1970, UTC; NULL: at once
  attributes TEXT,    -- JSON object of strings
  headers    TEXT,    -- JSON object of strings
  input      TEXT,    -- JSON: the input of a start, the value of a signal
  name       TEXT,    -- of a signal
  signal_id  TEXT,    -- of a signal: a run takes one of each id
  reason     TEXT,    -- of a cancel
  created_at INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)),
  -- The answer.
  done_at    INTEGER, -- NULL: there is none yet
  code       TEXT,    -- why it was not carried out; NULL: it was
  error      TEXT,    -- the same for people
  CONSTRAINT a_start_needs_a_workflow CHECK (kind <> 'start' OR workflow IS NOT NULL),
  CONSTRAINT a_signal_needs_a_run_and_a_name CHECK (kind <> 'signal' OR (run_id IS NOT NULL AND name IS NOT NULL)),
  CONSTRAINT a_cancel_needs_a_run CHECK (kind <> 'cancel' OR run_id IS NOT NULL)
) STRICT;
CREATE INDEX durable_requests_open ON durable_requests (no) WHERE done_at IS NULL;
CREATE INDEX durable_requests_run ON durable_requests (run_id, no) WHERE done_at IS NULL;
CREATE INDEX durable_requests_done ON durable_requests (done_at, no) WHERE done_at IS NOT NULL;
