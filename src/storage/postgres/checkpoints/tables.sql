-- Version 1: none
-- Numbers 1 and 2 were used before the first release. Data that has them is refused, because its tables exist.

-- Version 2: none

-- Version 3: checkpoints, their writes and large values
-- Checkpoints in the order of `seq`, because the ids that LangGraph makes are in the order of time only as long as
-- no clock is set back and all servers have the same. `channels` are those whose values a checkpoint holds. A large
-- text belongs to one graph of one thread, so that whoever deletes the graph deletes it, without counting uses; it
-- is found by its hash alone. It has either its content or an object in S3. `unused_since` is the time at which nothing
-- referred to the object any more, and at first that at which it was begun. Those in `deleted_objects` are to be deleted
-- in S3.
CREATE TABLE checkpoints (
  thread_id TEXT COLLATE "C" NOT NULL,
  checkpoint_ns TEXT COLLATE "C" NOT NULL,
  checkpoint_id TEXT COLLATE "C" NOT NULL,
  parent_checkpoint_id TEXT COLLATE "C",
  seq BIGINT GENERATED ALWAYS AS IDENTITY,
  step BIGINT NOT NULL,
  source TEXT NOT NULL,
  made_at TEXT NOT NULL,
  channels TEXT[] NOT NULL,
  type TEXT NOT NULL,
  checkpoint BYTEA NOT NULL,
  metadata BYTEA NOT NULL,
  PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id)
);
CREATE UNIQUE INDEX checkpoints_by_seq ON checkpoints (thread_id, checkpoint_ns, seq);
CREATE TABLE checkpoint_writes (
  thread_id TEXT COLLATE "C" NOT NULL,
  checkpoint_ns TEXT COLLATE "C" NOT NULL,
  checkpoint_id TEXT COLLATE "C" NOT NULL,
  task_id TEXT COLLATE "C" NOT NULL,
  idx BIGINT NOT NULL,
  channel TEXT NOT NULL,
  type TEXT NOT NULL,
  value BYTEA NOT NULL,
  PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
);
CREATE TABLE checkpoint_objects (
  id UUID PRIMARY KEY,
  bytes BIGINT NOT NULL,
  made_at TIMESTAMPTZ NOT NULL DEFAULT now(),
  unused_since TIMESTAMPTZ DEFAULT now()
);
CREATE TABLE deleted_objects (id UUID PRIMARY KEY);
CREATE TABLE checkpoint_blobs (
  thread_id TEXT COLLATE "C" NOT NULL,
  checkpoint_ns TEXT COLLATE "C" NOT NULL,
  hash BYTEA NOT NULL,
  content BYTEA,
  object UUID REFERENCES checkpoint_objects,
  PRIMARY KEY (thread_id, checkpoint_ns, hash),
  CHECK ((content IS NULL) <> (object IS NULL))
);
CREATE INDEX checkpoint_blobs_by_hash ON checkpoint_blobs (hash);
CREATE INDEX checkpoint_blobs_by_object ON checkpoint_blobs (object) WHERE object IS NOT NULL;
CREATE TABLE thread_fences (
  thread_id TEXT COLLATE "C" PRIMARY KEY,
  run BIGINT NOT NULL,
  claim BIGINT NOT NULL
);
