-- Queries of checkpoints in SQLite.

-- Query: fences
-- The threads that this connection has taken. Statements that store something in one of them fail once another
-- process has taken it: a laptop may have slept for longer than the lease of its run.
PRAGMA temp_store = MEMORY;
CREATE TEMP TABLE IF NOT EXISTS held (thread_id TEXT PRIMARY KEY, run INTEGER, claim INTEGER);
CREATE TEMP VIEW IF NOT EXISTS lost AS SELECT thread_id FROM held WHERE NOT EXISTS (
  SELECT 1 FROM main.thread_fences AS f
  WHERE (f.thread_id, f.run, f.claim) = (held.thread_id, held.run, held.claim));
CREATE TEMP TRIGGER IF NOT EXISTS fence_checkpoints BEFORE INSERT ON main.checkpoints
WHEN EXISTS (SELECT 1 FROM lost WHERE thread_id = new.thread_id)
BEGIN
  SELECT RAISE(ABORT, 'fenced off');
END;
CREATE TEMP TRIGGER IF NOT EXISTS fence_writes BEFORE INSERT ON main.writes
WHEN EXISTS (SELECT 1 FROM lost WHERE thread_id = new.thread_id)
BEGIN
  SELECT RAISE(ABORT, 'fenced off');
END;

-- Query: take
INSERT INTO thread_fences (thread_id, run, claim) VALUES (@thread, @run, @claim)
ON CONFLICT (thread_id) DO UPDATE SET run = @run, claim = @claim WHERE (run, claim) <= (@run, @claim)

-- Query: hold
INSERT OR REPLACE INTO held (thread_id, run, claim) VALUES (@thread, @run, @claim)

-- Query: leave
DELETE FROM held WHERE (thread_id, run, claim) = (@thread, @run, @claim)

-- Query: holds
SELECT 1 FROM thread_fences WHERE (thread_id, run, claim) = (@thread, @run, @claim)

-- Query: passed
-- Writes that count only until the next checkpoint.
DELETE FROM writes
WHERE thread_id = @thread AND checkpoint_ns = @namespace AND checkpoint_id = @id AND channel = @passing

-- Query: newest
SELECT checkpoint_id FROM checkpoints
WHERE thread_id = @thread AND checkpoint_ns = @namespace ORDER BY seq DESC LIMIT 1

-- Query: history
-- The parts of channels at a checkpoint, oldest first: the nearest value that one of its ancestors stores (without
-- a task, as JSON text), and the writes since.
WITH RECURSIVE chain (channel, depth, id, parent, found) AS (
  SELECT wanted.value, 0, checkpoint_id, parent_checkpoint_id, 0
  FROM checkpoints JOIN json_each(@channels) AS wanted
  WHERE thread_id = @thread AND checkpoint_ns = @namespace AND checkpoint_id = @id
  UNION ALL
  SELECT channel, depth + 1, c.checkpoint_id, c.parent_checkpoint_id, EXISTS (
    SELECT 1 FROM json_each(CAST(c.checkpoint AS TEXT), '$.channel_values') WHERE key = chain.channel)
  FROM chain JOIN checkpoints AS c
    ON c.thread_id = @thread AND c.checkpoint_ns = @namespace AND c.checkpoint_id = chain.parent
  WHERE NOT found
)
SELECT depth, w.task_id, w.idx, w.channel, w.type, w.value FROM chain CROSS JOIN writes AS w
  ON w.thread_id = @thread AND w.checkpoint_ns = @namespace AND w.checkpoint_id = chain.id
    AND w.channel = chain.channel
WHERE depth > 0
UNION ALL
SELECT depth, NULL, NULL, channel, c.type, (SELECT CAST(c.checkpoint AS TEXT) -> fullkey
  FROM json_each(CAST(c.checkpoint AS TEXT), '$.channel_values') WHERE key = chain.channel)
FROM chain CROSS JOIN checkpoints AS c
  ON c.thread_id = @thread AND c.checkpoint_ns = @namespace AND c.checkpoint_id = chain.id
WHERE found
ORDER BY 1 DESC, 2, 3

-- Query: way
-- The checkpoints from the beginning of a thread to one of them.
WITH RECURSIVE chain (depth, id, parent) AS (
  SELECT 0, checkpoint_id, parent_checkpoint_id FROM checkpoints
  WHERE thread_id = @thread AND checkpoint_ns = '' AND checkpoint_id = @id
  UNION ALL
  SELECT depth + 1, c.checkpoint_id, c.parent_checkpoint_id FROM chain JOIN checkpoints AS c
    ON c.thread_id = @thread AND c.checkpoint_ns = '' AND c.checkpoint_id = chain.parent
)
SELECT id, parent FROM chain ORDER BY depth DESC

-- Query: step
SELECT CAST(metadata AS TEXT) ->> '$.step' AS number, CAST(metadata AS TEXT) ->> '$.source' AS source,
  CAST(checkpoint AS TEXT) ->> '$.ts' AS time
FROM checkpoints WHERE thread_id = @thread AND checkpoint_ns = '' AND checkpoint_id = @id

-- Query: messages at
SELECT task_id, channel, type, value FROM writes
WHERE thread_id = @thread AND checkpoint_ns = '' AND checkpoint_id = @id AND channel = 'messages'
ORDER BY task_id, idx

-- Query: written
-- The next rows after one, because a query that is still being read would block the connection.
SELECT checkpoint_ns AS namespace, checkpoint_id AS id, task_id AS task, idx, type,
  CASE WHEN instr(value, @text) > 0 THEN value END AS value
FROM writes
WHERE thread_id = @thread AND channel = 'messages'
  AND (checkpoint_ns, checkpoint_id, task_id, idx) > (@namespace, @id, @task, @idx)
ORDER BY checkpoint_ns, checkpoint_id, task_id, idx LIMIT @limit

-- Query: threads
-- One look-up for each thread, however many checkpoints it has.
WITH RECURSIVE found (id) AS (
  SELECT min(thread_id) FROM checkpoints
  UNION ALL
  SELECT (SELECT min(thread_id) FROM checkpoints WHERE thread_id > found.id) FROM found WHERE id IS NOT NULL
)
SELECT id FROM found WHERE id IS NOT NULL

-- Query: copy checkpoints
INSERT INTO checkpoints
  (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata)
SELECT @target, '', c.checkpoint_id, c.parent_checkpoint_id, c.type, c.checkpoint, c.metadata
FROM json_each(@ids) AS copied JOIN checkpoints AS c
  ON c.thread_id = @thread AND c.checkpoint_ns = '' AND c.checkpoint_id = copied.value
ORDER BY copied.key

-- Query: copy writes
-- Writes after the last checkpoint of a copy made the next step of its source, and are left out. If it is the
-- newest of its source, the results of finished calls are copied, without `unfinished` channels.
INSERT OR IGNORE INTO writes (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, value)
SELECT @target, '', w.checkpoint_id, w.task_id, w.idx, w.channel, w.type, w.value
FROM json_each(@ids) AS copied JOIN checkpoints AS c
  ON c.thread_id = @thread AND c.checkpoint_ns = '' AND c.checkpoint_id = copied.value
JOIN writes AS w ON w.thread_id = @thread AND w.checkpoint_ns = '' AND w.checkpoint_id = c.checkpoint_id
WHERE c.checkpoint_id <> @last
  OR (@last = (SELECT checkpoint_id FROM checkpoints
      WHERE thread_id = @thread AND checkpoint_ns = '' ORDER BY seq DESC LIMIT 1)
    AND w.channel NOT IN (SELECT value FROM json_each(@unfinished)))

-- Query: count copied
SELECT count(*)
FROM json_each(@ids) AS copied JOIN checkpoints AS c
  ON c.thread_id = @thread AND c.checkpoint_ns = '' AND c.checkpoint_id = copied.value

-- Query: rename stock tables
ALTER TABLE checkpoints RENAME TO stock_checkpoints;
ALTER TABLE writes RENAME TO stock_writes;

-- Query: copy stock rows
INSERT INTO checkpoints
  (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata)
SELECT thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata
FROM stock_checkpoints ORDER BY thread_id, checkpoint_id;
INSERT INTO writes SELECT * FROM stock_writes;
DROP TABLE stock_checkpoints;
DROP TABLE stock_writes;
