-- Queries of checkpoints in Postgres.

-- Query: checkpoint
SELECT thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, seq, type, checkpoint, metadata FROM checkpoints
WHERE thread_id = @thread AND checkpoint_ns = @namespace AND checkpoint_id = @id

-- Query: newest checkpoint
SELECT thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, seq, type, checkpoint, metadata FROM checkpoints
WHERE thread_id = @thread AND checkpoint_ns = @namespace ORDER BY seq DESC LIMIT 1

-- Query: writes
SELECT task_id, channel, type, value FROM checkpoint_writes
WHERE thread_id = @thread AND checkpoint_ns = @namespace AND checkpoint_id = @id ORDER BY task_id, idx

-- Query: passed
-- Writes that count only until the next checkpoint.
DELETE FROM checkpoint_writes
WHERE thread_id = @thread AND checkpoint_ns = @namespace AND checkpoint_id = @id AND channel = @passing

-- Query: held
-- One row, unless the thread was taken with a token that this process does not hold. Another process that takes it
-- waits for this commit. The commit does not wait for the disk: `sync` does.
quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)),
held AS MATERIALIZED (
  SELECT 1 FROM quick WHERE @run::bigint IS NULL
  UNION ALL
  SELECT 1 FROM quick WHERE EXISTS (
    SELECT 1 FROM thread_fences WHERE thread_id = @thread AND run = @run AND claim = @claim FOR SHARE
  )
)

-- Query: put writes
INSERT INTO checkpoint_writes (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, value)
  SELECT @thread, @namespace, @id, @task, one.* FROM held,
    unnest(@indexes::bigint[], @names::text[], @types::text[], @values::bytea[]) AS one
  ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)

-- Query: put checkpoint
INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, step, source, made_at,
    channels, type, checkpoint, metadata)
  SELECT @thread, @namespace, @id, @parent, @step, @source, @madeAt, @channels::text[], @type,
    @checkpoint::bytea, @metadata::bytea FROM held
  ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id) DO UPDATE SET
    parent_checkpoint_id = excluded.parent_checkpoint_id, step = excluded.step, source = excluded.source,
    made_at = excluded.made_at, channels = excluded.channels, type = excluded.type,
    checkpoint = excluded.checkpoint, metadata = excluded.metadata

-- Query: delete nested checkpoints
-- Of ended subagents all but their messages are deleted. The fence is held meanwhile.
DELETE FROM checkpoints WHERE thread_id = @thread AND checkpoint_ns > '' AND seq <
  (SELECT max(seq) FROM checkpoints WHERE thread_id = @thread AND checkpoint_ns = '')

-- Query: delete nested writes
DELETE FROM checkpoint_writes AS w
  WHERE thread_id = @thread AND checkpoint_ns > '' AND channel <> 'messages' AND NOT EXISTS (
  SELECT 1 FROM checkpoints AS c WHERE c.thread_id = w.thread_id AND c.checkpoint_ns = w.checkpoint_ns
    AND c.checkpoint_id = w.checkpoint_id)

-- Query: delete nested blobs
DELETE FROM checkpoint_blobs AS b WHERE thread_id = @thread AND checkpoint_ns > '' AND NOT EXISTS (
  SELECT 1 FROM checkpoints AS c WHERE c.thread_id = b.thread_id AND c.checkpoint_ns = b.checkpoint_ns)
  AND NOT EXISTS (
  SELECT 1 FROM checkpoint_writes AS w WHERE w.thread_id = b.thread_id AND w.checkpoint_ns = b.checkpoint_ns
    AND w.value = b.hash)

-- Query: list of checkpoints
SELECT thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, seq, type, checkpoint, metadata FROM checkpoints
WHERE (@thread::text IS NULL OR thread_id = @thread) AND (@namespace::text IS NULL OR checkpoint_ns = @namespace)
  AND (@id::text IS NULL OR checkpoint_id = @id) AND seq < @below
ORDER BY seq DESC LIMIT @limit

-- Query: hold
-- A token while it is held; nobody else takes the thread before this transaction ends.
SELECT 1 FROM thread_fences WHERE thread_id = @thread AND run = @run AND claim = @claim FOR SHARE

-- Query: take
INSERT INTO thread_fences (thread_id, run, claim) VALUES (@thread, @run, @claim)
ON CONFLICT (thread_id) DO UPDATE SET run = excluded.run, claim = excluded.claim
WHERE (thread_fences.run, thread_fences.claim) <= (excluded.run, excluded.claim)
RETURNING thread_id

-- Query: chain
-- The way from a checkpoint of a thread's own graph back to its beginning.
WITH RECURSIVE chain AS (
  (SELECT 0 AS depth, checkpoint_id AS id, parent_checkpoint_id AS parent, step, source, made_at
  FROM checkpoints WHERE thread_id = @thread AND checkpoint_ns = ''
    AND (@id::text IS NULL OR checkpoint_id = @id)
  ORDER BY seq DESC LIMIT 1)
  UNION ALL
  SELECT chain.depth + 1, c.checkpoint_id, c.parent_checkpoint_id, c.step, c.source, c.made_at
  FROM chain JOIN checkpoints AS c
    ON c.thread_id = @thread AND c.checkpoint_ns = '' AND c.checkpoint_id = chain.parent
)

-- Query: threads
-- One look-up for each thread, however many checkpoints it has.
WITH RECURSIVE found (id) AS (
  SELECT min(thread_id) FROM checkpoints
  UNION ALL
  SELECT (SELECT min(thread_id) FROM checkpoints WHERE thread_id > found.id) FROM found WHERE found.id IS NOT NULL
)
SELECT id FROM found WHERE id IS NOT NULL

-- Query: messages
SELECT checkpoint_id AS id, type, value FROM checkpoint_writes
WHERE thread_id = @thread AND checkpoint_ns = '' AND channel = 'messages' ORDER BY checkpoint_id, task_id, idx

-- Query: written with
-- Messages of subagents outlive their checkpoints. Those in blobs all match; the caller filters them.
SELECT w.checkpoint_ns AS namespace, w.checkpoint_id AS id, w.type, w.value
FROM checkpoint_writes AS w LEFT JOIN checkpoints AS c
  ON c.thread_id = w.thread_id AND c.checkpoint_ns = w.checkpoint_ns AND c.checkpoint_id = w.checkpoint_id
WHERE w.thread_id = @thread AND w.channel = 'messages'
  AND (w.type LIKE 'blob:%' OR position(convert_to(@text, 'UTF8') IN w.value) > 0)
ORDER BY c.seq, w.checkpoint_id, w.task_id, w.idx

-- Query: newest id
SELECT checkpoint_id AS id FROM checkpoints
WHERE thread_id = @thread AND checkpoint_ns = '' ORDER BY seq DESC LIMIT 1

-- Query: copy blobs
INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, hash, content, object)
SELECT @target, '', hash, content, object FROM checkpoint_blobs WHERE thread_id = @thread AND checkpoint_ns = ''
ON CONFLICT DO NOTHING

-- Query: copy checkpoints
-- After the chain.
INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, step, source, made_at,
  channels, type, checkpoint, metadata)
SELECT @target, '', c.checkpoint_id, c.parent_checkpoint_id, c.step, c.source, c.made_at, c.channels, c.type,
  c.checkpoint, c.metadata
FROM chain JOIN checkpoints AS c
  ON c.thread_id = @thread AND c.checkpoint_ns = '' AND c.checkpoint_id = chain.id
ORDER BY chain.depth DESC
ON CONFLICT DO NOTHING

-- Query: copy writes
-- After the chain. Writes after an earlier checkpoint made the next one, so they have no place behind a copy of it.
-- For the newest checkpoint, results of finished calls are copied, but not open questions.
INSERT INTO checkpoint_writes (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, value)
SELECT @target, '', w.checkpoint_id, w.task_id, w.idx, w.channel, w.type, w.value
FROM chain JOIN checkpoint_writes AS w
  ON w.thread_id = @thread AND w.checkpoint_ns = '' AND w.checkpoint_id = chain.id
WHERE chain.depth > 0
  OR (@isNewest = 1 AND w.channel NOT IN (SELECT value FROM json_each(@unfinished)))
ON CONFLICT DO NOTHING

-- Query: history
-- The ancestors of a checkpoint up to the nearest with a value of the channel, oldest first, with their writes.
WITH RECURSIVE chain (channel, depth, id, parent, found) AS (
  (SELECT wanted, 0, checkpoint_id, parent_checkpoint_id, false
  FROM unnest(@channels::text[]) AS wanted, (
    SELECT checkpoint_id, parent_checkpoint_id FROM checkpoints
    WHERE thread_id = @thread AND checkpoint_ns = @namespace AND (@id::text IS NULL OR checkpoint_id = @id)
    ORDER BY seq DESC LIMIT 1) AS newest)
  UNION ALL
  SELECT chain.channel, depth + 1, c.checkpoint_id, c.parent_checkpoint_id, chain.channel = ANY (c.channels)
  FROM chain JOIN checkpoints AS c
    ON c.thread_id = @thread AND c.checkpoint_ns = @namespace AND c.checkpoint_id = chain.parent
  WHERE NOT found
)
SELECT chain.channel, chain.id, found, w.task_id, w.type, w.value
FROM chain LEFT JOIN checkpoint_writes AS w
  ON w.thread_id = @thread AND w.checkpoint_ns = @namespace AND w.checkpoint_id = chain.id
    AND w.channel = chain.channel
WHERE depth > 0 AND (found OR w.task_id IS NOT NULL) ORDER BY depth DESC, w.task_id, w.idx

-- Query: seeds
SELECT checkpoint_id AS id, type, checkpoint FROM checkpoints
WHERE thread_id = @thread AND checkpoint_ns = @namespace AND checkpoint_id = ANY (@ids::text[])

-- Query: mark unused objects
-- Marks objects that nothing refers to any more, and takes marks away that are wrong.
UPDATE checkpoint_objects AS o SET unused_since = CASE WHEN unused_since IS NULL THEN now() END
WHERE (unused_since IS NULL) <> EXISTS (SELECT 1 FROM checkpoint_blobs WHERE object = o.id)

-- Query: give objects up
-- After a day, so that a copy of the bucket that follows a copy of the database has all that it needs.
WITH gone AS (
  DELETE FROM checkpoint_objects AS o WHERE unused_since < now() - interval '1 day'
    AND NOT EXISTS (SELECT 1 FROM checkpoint_blobs WHERE object = o.id) RETURNING id)
INSERT INTO deleted_objects (id) SELECT id FROM gone

-- Query: put blob
WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, hash, content, object)
SELECT @thread, @namespace, @hash::bytea, @content::bytea, @object::uuid FROM quick ON CONFLICT DO NOTHING

-- Query: begin object
-- Refers to a value that the thread has already. Otherwise notes an object that will be made: before it is, and on the
-- disk, so that none is lost. Threads share no objects, so that one that was lost harms no later thread.
WITH known AS (
  INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, hash, content, object)
  SELECT @thread, @namespace, hash, content, object FROM checkpoint_blobs
  WHERE hash = @hash::bytea AND thread_id = @thread LIMIT 1 ON CONFLICT DO NOTHING
)
INSERT INTO checkpoint_objects (id, bytes)
SELECT @object::uuid, @bytes::bigint
WHERE NOT EXISTS (SELECT 1 FROM checkpoint_blobs WHERE hash = @hash::bytea AND thread_id = @thread)
RETURNING id

-- Query: blob
SELECT content, object, bytes FROM checkpoint_blobs LEFT JOIN checkpoint_objects ON id = object
WHERE hash = @hash ORDER BY made_at DESC NULLS FIRST LIMIT 1
