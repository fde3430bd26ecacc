-- Statements of queues.

-- name: queue (own)
-- A queue, NULL where it was not put, and the partition that had the last turn.
SELECT q.revision, q.max, q.max_per_partition, q.rate, q.per, q.paused, t.partition
FROM (SELECT ?1 AS name) AS asked LEFT JOIN durable_queues AS q ON q.name = asked.name LEFT JOIN durable_queue_turns AS t ON t.queue = asked.name

-- name: queue_put (own)
INSERT INTO durable_queues (name, revision, max, max_per_partition, rate, per, paused, reason, updated_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
ON CONFLICT (name) DO UPDATE SET revision = excluded.revision, max = excluded.max, max_per_partition = excluded.max_per_partition,
  rate = excluded.rate, per = excluded.per, paused = excluded.paused, reason = excluded.reason, updated_at = excluded.updated_at

-- name: queue_turn (own)
INSERT INTO durable_queue_turns (queue, partition) VALUES (?1, ?2) ON CONFLICT (queue) DO UPDATE SET partition = excluded.partition

-- name: queue_placed (own)
-- How many runs hold a place in a queue, counted up to ?2.
SELECT count(*) FROM (SELECT 1 FROM durable_runs WHERE queue = ?1 AND queue <> '' AND status IN ('running', 'resuming', 'waiting') LIMIT ?2)

-- name: queue_placed_in (own)
-- The same of a partition.
SELECT count(*) FROM (SELECT 1 FROM durable_runs
  WHERE queue = ?1 AND queue <> '' AND partition = ?2 AND status IN ('running', 'resuming', 'waiting') LIMIT ?3)

-- name: queue_begun (own)
-- How many runs began after ?2, and when the first of the last ?3 of them did.
SELECT l.upto - f.upto + f.n,
  (SELECT b.at FROM durable_queue_begun AS b WHERE b.queue = ?1 AND b.at > ?2 AND b.upto > l.upto - ?3 ORDER BY b.at LIMIT 1), l.at
FROM (SELECT upto, n FROM durable_queue_begun WHERE queue = ?1 AND at > ?2 ORDER BY at LIMIT 1) AS f,
  (SELECT upto, at FROM durable_queue_begun WHERE queue = ?1 ORDER BY at DESC LIMIT 1) AS l

-- name: queue_begin (own)
-- ?3 runs begin at ?2, which is not before the last that began.
INSERT INTO durable_queue_begun (queue, at, n, upto)
VALUES (?1, ?2, ?3, ?3 + coalesce((SELECT upto FROM durable_queue_begun WHERE queue = ?1 ORDER BY at DESC LIMIT 1), 0))
ON CONFLICT (queue, at) DO UPDATE SET n = n + ?3, upto = upto + ?3

-- name: queue_begun_later (own)
-- What began later than ?2 counts as begun at ?2.
INSERT INTO durable_queue_begun (queue, at, n, upto)
SELECT queue, ?2, sum(n), max(upto) FROM durable_queue_begun WHERE queue = ?1 AND at >= ?2 GROUP BY queue
ON CONFLICT (queue, at) DO UPDATE SET n = excluded.n, upto = excluded.upto

-- name: queue_unbegin (own)
DELETE FROM durable_queue_begun WHERE queue = ?1 AND at > ?2

-- name: queue_forget (own)
DELETE FROM durable_queue_begun WHERE queue = ?1 AND at <= ?2

-- name: lines (own)
-- The lanes of all queues that hold a run in line, and whether one of its runs is due at ?1: a
-- walk from lane to lane, as in lanes.
WITH RECURSIVE lane (no) AS (
  SELECT (SELECT no FROM durable_runs WHERE line IS NOT NULL
    ORDER BY owner, queue, workflow, version, line, level, partition, rank, no LIMIT 1)
  UNION ALL
  SELECT coalesce(
    (SELECT n.no FROM durable_runs AS n WHERE n.line IS NOT NULL AND n.owner = r.owner AND n.queue = r.queue AND n.workflow = r.workflow AND n.version = r.version AND n.line > r.line
      ORDER BY n.line, n.level, n.partition, n.rank, n.no LIMIT 1),
    (SELECT n.no FROM durable_runs AS n WHERE n.line IS NOT NULL AND n.owner = r.owner AND n.queue = r.queue AND n.workflow = r.workflow AND n.version > r.version
      ORDER BY n.version, n.line, n.level, n.partition, n.rank, n.no LIMIT 1),
    (SELECT n.no FROM durable_runs AS n WHERE n.line IS NOT NULL AND n.owner = r.owner AND n.queue = r.queue AND n.workflow > r.workflow
      ORDER BY n.workflow, n.version, n.line, n.level, n.partition, n.rank, n.no LIMIT 1),
    (SELECT n.no FROM durable_runs AS n WHERE n.line IS NOT NULL AND n.owner = r.owner AND n.queue > r.queue
      ORDER BY n.queue, n.workflow, n.version, n.line, n.level, n.partition, n.rank, n.no LIMIT 1),
    (SELECT n.no FROM durable_runs AS n WHERE n.line IS NOT NULL AND n.owner > r.owner
      ORDER BY n.owner, n.queue, n.workflow, n.version, n.line, n.level, n.partition, n.rank, n.no LIMIT 1))
  FROM lane JOIN durable_runs AS r ON r.no = lane.no
)
SELECT r.owner, r.queue, r.workflow, r.version, r.line,
  CASE r.line WHEN 0 THEN 0 WHEN 3 THEN EXISTS (SELECT 1 FROM durable_runs AS d
    WHERE d.line = 3 AND d.owner = r.owner AND d.queue = r.queue AND d.workflow = r.workflow AND d.version = r.version AND d.wake_at <= ?1) ELSE 1 END AS due
FROM lane JOIN durable_runs AS r ON r.no = lane.no

-- name: line_due (own)
-- The first ?6 delayed runs of a lane whose time has come.
SELECT no, partition, rank FROM durable_runs
WHERE line = 3 AND owner = ?1 AND queue = ?2 AND workflow = ?3 AND version = ?4 AND wake_at <= ?5 ORDER BY wake_at LIMIT ?6

-- name: line_levels (own)
-- The priorities of the delayed runs of a lane.
WITH RECURSIVE step (level) AS (
  SELECT (SELECT min(level) FROM durable_runs WHERE line IS NOT NULL AND owner = ?1 AND queue = ?2 AND workflow = ?3 AND version = ?4 AND line = 3)
  UNION ALL
  SELECT (SELECT min(n.level) FROM durable_runs AS n
    WHERE n.line IS NOT NULL AND n.owner = ?1 AND n.queue = ?2 AND n.workflow = ?3 AND n.version = ?4 AND n.line = 3 AND n.level > step.level)
  FROM step WHERE step.level IS NOT NULL
)
SELECT level FROM step WHERE level IS NOT NULL

-- name: line_parts (own)
-- The first run of each of the next ?8 partitions after ?7, whether it is due at ?9, and how many
-- runs of the partition hold a place, counted up to ?10.
WITH RECURSIVE part (no) AS (
  SELECT (SELECT no FROM durable_runs WHERE line IS NOT NULL AND owner = ?1 AND queue = ?2 AND workflow = ?3 AND version = ?4 AND line = ?5 AND level = ?6
    AND partition > ?7 ORDER BY partition, rank, no LIMIT 1)
  UNION ALL
  SELECT (SELECT n.no FROM durable_runs AS n WHERE n.line IS NOT NULL AND n.owner = ?1 AND n.queue = ?2 AND n.workflow = ?3 AND n.version = ?4 AND n.line = ?5 AND n.level = ?6
    AND n.partition > r.partition ORDER BY n.partition, n.rank, n.no LIMIT 1)
  FROM part JOIN durable_runs AS r ON r.no = part.no
  LIMIT ?8
)
SELECT r.no, r.partition, r.rank, ?5 <> 3 OR r.wake_at <= ?9,
  (SELECT count(*) FROM (SELECT 1 FROM durable_runs AS p
    WHERE p.queue = ?2 AND p.queue <> '' AND p.partition = r.partition AND p.status IN ('running', 'resuming', 'waiting') LIMIT ?10))
FROM part JOIN durable_runs AS r ON r.no = part.no

-- name: line_heads (own)
-- The next ?11 runs of a partition after the one of rank ?8 and number ?9, up to rank ?10.
SELECT no, rank FROM durable_runs
WHERE line IS NOT NULL AND owner = ?1 AND queue = ?2 AND workflow = ?3 AND version = ?4 AND line = ?5 AND level = ?6 AND partition = ?7
  AND (rank, no) > (?8, ?9) AND rank <= ?10
ORDER BY rank, no LIMIT ?11

-- name: queue_as_put (own)
-- A queue as it was put.
SELECT name, revision, max, max_per_partition, rate, per, paused, reason, updated_at FROM durable_queues WHERE name = ?1

-- name: queues_put (own)
SELECT name, revision, max, max_per_partition, rate, per, paused, reason, updated_at FROM durable_queues ORDER BY name

-- name: queue_names (own)
-- The queues with runs that hold a place: a walk from name to name.
WITH RECURSIVE step (name) AS (
  SELECT (SELECT min(queue) FROM durable_runs INDEXED BY durable_runs_placed WHERE queue <> '' AND status IN ('running', 'resuming', 'waiting'))
  UNION ALL
  SELECT (SELECT min(n.queue) FROM durable_runs AS n INDEXED BY durable_runs_placed WHERE n.queue <> '' AND n.status IN ('running', 'resuming', 'waiting') AND n.queue > step.name)
  FROM step WHERE step.name IS NOT NULL
)
SELECT name FROM step WHERE name IS NOT NULL

-- name: queue_parts_placed (own)
SELECT partition AS name, count(*) AS n, 0 AS oldest FROM durable_runs
WHERE queue = ?1 AND queue <> '' AND status IN ('running', 'resuming', 'waiting') GROUP BY partition

-- name: queue_parts_in_line (own)
SELECT partition AS name, count(*) AS n, min(rank + priority * 3600000000) AS oldest FROM durable_runs
WHERE line IS NOT NULL AND owner = ?1 AND queue = ?2 AND workflow = ?3 AND version = ?4 AND line = ?5 AND level = 0 GROUP BY partition

-- name: queue_parts_due (own)
-- By time rather than by partition, so that those that are not due are not read.
SELECT partition AS name, count(*) AS n, min(wake_at) AS oldest FROM durable_runs
WHERE line = 3 AND owner = ?1 AND queue = ?2 AND workflow = ?3 AND version = ?4 AND wake_at <= ?5 GROUP BY partition

-- name: queue_delayed (own)
SELECT count(*) FROM durable_runs WHERE line = 3 AND owner = ?1 AND queue = ?2 AND workflow = ?3 AND version = ?4 AND wake_at > ?5

-- name: queue_begun_since (own)
SELECT at, n FROM durable_queue_begun WHERE queue = ?1 AND at > ?2 ORDER BY at

-- name: queue_ahead (own)
SELECT count(*) FROM durable_runs
WHERE line IS NOT NULL AND owner = ?1 AND queue = ?2 AND workflow = ?3 AND version = ?4 AND line = ?5 AND level = 0 AND partition = ?6
  AND (rank, no) < (?7, ?8)

-- name: queue_ahead_delayed (own)
SELECT count(*) FROM durable_runs
WHERE line = 3 AND owner = ?1 AND queue = ?2 AND workflow = ?3 AND version = ?4 AND wake_at <= ?8 AND partition = ?5 AND (rank, no) < (?6, ?7)
