-- Schedules. What is to be done when one is due is in its data, which is the
-- engine's. Those that are not due cost nothing: the index is in the order in which
-- they become due, without those that never do.
CREATE TABLE durable_schedules (
  name       TEXT    NOT NULL PRIMARY KEY CHECK (name <> ''),
  revision   INTEGER NOT NULL CHECK (revision > 0),
  due        INTEGER NOT NULL CHECK (due >= 0),
  data       BLOB    NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX durable_schedules_due ON durable_schedules (due, name) WHERE due <> 0;
