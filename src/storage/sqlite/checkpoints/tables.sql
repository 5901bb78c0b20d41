-- LangGraph's `SqliteSaver` works on these tables, and makes none if they exist. `seq` is the order in which
-- checkpoints were stored: their ids have the order of a clock, which may be set back. A checkpoint that is stored
-- again keeps its place, although the saver replaces the row.
CREATE TABLE checkpoints (
  seq INTEGER PRIMARY KEY,
  thread_id TEXT NOT NULL,
  checkpoint_ns TEXT NOT NULL DEFAULT '',
  checkpoint_id TEXT NOT NULL,
  parent_checkpoint_id TEXT,
  type TEXT,
  checkpoint BLOB,
  metadata BLOB,
  UNIQUE (thread_id, checkpoint_ns, checkpoint_id)
);
CREATE INDEX checkpoints_by_seq ON checkpoints (thread_id, checkpoint_ns, seq);
CREATE TRIGGER checkpoints_stored_again BEFORE INSERT ON checkpoints
WHEN EXISTS (SELECT 1 FROM checkpoints
  WHERE (thread_id, checkpoint_ns, checkpoint_id) = (new.thread_id, new.checkpoint_ns, new.checkpoint_id))
BEGIN
  UPDATE checkpoints SET parent_checkpoint_id = new.parent_checkpoint_id, type = new.type,
    checkpoint = new.checkpoint, metadata = new.metadata
  WHERE (thread_id, checkpoint_ns, checkpoint_id) = (new.thread_id, new.checkpoint_ns, new.checkpoint_id);
  SELECT RAISE(IGNORE);
END;
CREATE TABLE writes (
  thread_id TEXT NOT NULL,
  checkpoint_ns TEXT NOT NULL DEFAULT '',
  checkpoint_id TEXT NOT NULL,
  task_id TEXT NOT NULL,
  idx INTEGER NOT NULL,
  channel TEXT NOT NULL,
  type TEXT,
  value BLOB,
  PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
) WITHOUT ROWID;
CREATE TABLE thread_fences (
  thread_id TEXT PRIMARY KEY,
  run INTEGER NOT NULL,
  claim INTEGER NOT NULL
) STRICT;
