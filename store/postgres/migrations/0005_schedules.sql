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
