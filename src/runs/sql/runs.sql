-- Version 1: threads, runs, journal, approvals
-- Tables of runs.
--
-- - `runs.runnable` without a `lease_owner` is the work queue: a row in it waits for a server with the same
--   `environment`. It is 0 while a run waits for people, and after its end. `runs.runnable_since` is the start of that
--   wait; the order in line does not follow it, because clocks can be set.
-- - `runs.in_flight` is 1 from claiming a run until it pauses or ends: if a claim finds 1, the run was broken off by a
--   crash or a shutdown.
-- - `runs.lease_epoch` counts claims: with `lease_owner` it fences off a server that lost the run.
-- - `runs.in_flight` is 2 after an orderly shutdown, so that only crashes are counted. `runs.crashes` counts
--   consecutive crashes without a long stretch of work in between, measured by `runs.claimed_at`.
-- - `runs.forked_from` is the point of another thread from which the run's thread began; `thread_copies` holds threads
--   that are being copied, until a run has them.
-- - `runs.traceparent` is the first span of a run, if it has one.
-- - `runs.cost_nanos` are billionths of a US dollar, without the `unpriced_calls`.
-- - `runs.unanswered_call` is the newest call that waits for the run, as a digest of its request, until it is answered;
--   `runs.asked_at` is its time.
-- - `run_events.identity` names the subject of an event, so that the index finds a repeat.
-- - `questions` are approvals and, by `kind`, other questions, whose `body` is the question and whose `decision` is the
--   answer. `delivered` is 1 once the agent has received it. At `expires_at` any server denies a pending approval, and
--   ends another question without an answer; `same` is the key of a grant for the rest of the run.
-- - `effects` are calls with outside effects of unfinished runs: without `ended_at`, a call was begun and its result is
--   unknown. `outcome` is in the encoding of checkpoints that `type` names.
-- - `run_messages` are messages that people sent to running runs; the agent's thread records which of them it has read.
-- - `pruned_threads` are threads whose runs are deleted, and whose checkpoints may still exist.
-- - `run_grants` are calls that a person approved for the rest of a run.
-- - `used_answers` are signed answers of clients that were used up.
-- - `model_requests` are model calls that a client answers, by a digest of the request: a call that is repeated after a
--   crash finds its reply. `epoch` is of the lease that last asked; `waiting`: nobody answered while the run worked.
CREATE TABLE threads (
  id TEXT PRIMARY KEY,
  principal TEXT NOT NULL,
  created_at INTEGER NOT NULL
) WITHOUT ROWID, STRICT;

CREATE TABLE runs (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  thread_id TEXT NOT NULL REFERENCES threads (id),
  principal TEXT NOT NULL,
  environment TEXT NOT NULL,
  idempotency_key TEXT,
  task TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('working', 'input_required', 'completed', 'failed', 'cancelled')),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  ended_at INTEGER,
  todos TEXT NOT NULL DEFAULT '[]',
  input_tokens INTEGER NOT NULL DEFAULT 0,
  output_tokens INTEGER NOT NULL DEFAULT 0,
  cached_input_tokens INTEGER NOT NULL DEFAULT 0,
  answer TEXT,
  structured TEXT,
  stop_reason TEXT,
  failure_reason TEXT,
  failure_message TEXT,
  cancel_reason TEXT,
  last_seq INTEGER NOT NULL DEFAULT 0,
  input_handed_over INTEGER NOT NULL DEFAULT 0,
  runnable INTEGER NOT NULL DEFAULT 1,
  runnable_since INTEGER NOT NULL,
  in_flight INTEGER NOT NULL DEFAULT 0,
  lease_owner TEXT,
  lease_epoch INTEGER NOT NULL DEFAULT 0,
  lease_expires_at INTEGER,
  heartbeat_at INTEGER,
  crashes INTEGER NOT NULL DEFAULT 0,
  claimed_at INTEGER,
  forked_from TEXT,
  traceparent TEXT,
  unanswered_call TEXT,
  asked_at INTEGER,
  CHECK ((ended_at IS NULL) = (status IN ('working', 'input_required')))
) STRICT;
CREATE UNIQUE INDEX runs_idempotency ON runs (principal, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE UNIQUE INDEX runs_open_in_thread ON runs (thread_id) WHERE status IN ('working', 'input_required');
CREATE INDEX runs_of_thread ON runs (thread_id);
CREATE INDEX runs_of_principal ON runs (principal, number);
CREATE INDEX runs_queue ON runs (environment, principal, runnable_since) WHERE runnable = 1;
CREATE INDEX runs_leased ON runs (lease_owner) WHERE lease_owner IS NOT NULL;
CREATE INDEX runs_ended ON runs (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX runs_open ON runs (principal) WHERE ended_at IS NULL;
CREATE INDEX runs_unanswered ON runs (principal, unanswered_call) WHERE unanswered_call IS NOT NULL;

CREATE TABLE run_events (
  run_id TEXT NOT NULL REFERENCES runs (id),
  seq INTEGER NOT NULL,
  time INTEGER NOT NULL,
  agent TEXT NOT NULL,
  kind TEXT NOT NULL,
  data TEXT NOT NULL,
  identity TEXT,
  PRIMARY KEY (run_id, seq)
) WITHOUT ROWID, STRICT;
CREATE INDEX run_events_identity ON run_events (run_id, identity, seq) WHERE identity IS NOT NULL;

CREATE TABLE approvals (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id TEXT NOT NULL REFERENCES runs (id),
  id TEXT NOT NULL,
  interrupt_id TEXT NOT NULL,
  position INTEGER NOT NULL,
  agent TEXT NOT NULL,
  tool TEXT NOT NULL,
  args TEXT NOT NULL,
  preview TEXT NOT NULL,
  allowed_decisions TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('pending', 'approved', 'edited', 'rejected', 'withdrawn')),
  requested_at INTEGER NOT NULL,
  decided_at INTEGER,
  decided_by TEXT,
  decision TEXT,
  delivered INTEGER NOT NULL DEFAULT 0,
  expires_at INTEGER,
  same TEXT,
  UNIQUE (run_id, id)
) STRICT;
CREATE INDEX approvals_undelivered ON approvals (run_id, interrupt_id) WHERE delivered = 0;
CREATE INDEX approvals_of_run ON approvals (run_id);
CREATE INDEX approvals_expiring ON approvals (expires_at) WHERE status = 'pending' AND expires_at IS NOT NULL;

CREATE TABLE effects (
  run_id TEXT NOT NULL REFERENCES runs (id),
  call TEXT NOT NULL,
  tool TEXT NOT NULL,
  begun_at INTEGER NOT NULL,
  ended_at INTEGER,
  type TEXT,
  outcome BLOB,
  UNIQUE (run_id, call)
) STRICT;

CREATE TABLE run_messages (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id TEXT NOT NULL REFERENCES runs (id),
  id TEXT NOT NULL,
  text TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  idempotency_key TEXT,
  UNIQUE (run_id, id)
) STRICT;
CREATE INDEX run_messages_of_run ON run_messages (run_id, number);
CREATE INDEX run_messages_key ON run_messages (idempotency_key) WHERE idempotency_key IS NOT NULL;

CREATE TABLE pruned_threads (id TEXT PRIMARY KEY) WITHOUT ROWID, STRICT;

CREATE TABLE thread_copies (
  id TEXT PRIMARY KEY,
  begun_at INTEGER NOT NULL
) WITHOUT ROWID, STRICT;

CREATE TABLE run_grants (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id TEXT NOT NULL REFERENCES runs (id),
  key TEXT NOT NULL,
  tool TEXT NOT NULL,
  text TEXT NOT NULL,
  approval_id TEXT NOT NULL,
  granted_by TEXT NOT NULL,
  granted_at INTEGER NOT NULL,
  UNIQUE (run_id, key)
) STRICT;

CREATE TABLE used_answers (
  id TEXT PRIMARY KEY,
  run_id TEXT NOT NULL REFERENCES runs (id),
  used_at INTEGER NOT NULL
) WITHOUT ROWID, STRICT;
CREATE INDEX used_answers_of_run ON used_answers (run_id);

CREATE TABLE model_requests (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id TEXT NOT NULL REFERENCES runs (id),
  id TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  waiting INTEGER NOT NULL DEFAULT 0,
  request TEXT,
  reply TEXT,
  requested_at INTEGER NOT NULL,
  UNIQUE (run_id, id)
) STRICT;

CREATE TRIGGER runs_end_is_final BEFORE UPDATE OF status ON runs
WHEN OLD.status IN ('completed', 'failed', 'cancelled') AND NEW.status <> OLD.status
BEGIN SELECT RAISE(ABORT, 'a run that has ended does not change its status'); END;

CREATE TRIGGER run_events_never_change BEFORE UPDATE ON run_events
BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;

CREATE TRIGGER approvals_decided_once BEFORE UPDATE OF status ON approvals
WHEN OLD.status <> 'pending' AND NEW.status <> OLD.status
BEGIN SELECT RAISE(ABORT, 'an approval is decided once'); END;

-- Version 2: the queue in the order of turns
DROP INDEX runs_queue;
CREATE INDEX runs_queue ON runs (environment, principal, (lease_epoch = 0), number)
WHERE runnable = 1 AND lease_owner IS NULL;
DROP INDEX runs_leased;
CREATE INDEX runs_leased ON runs (thread_id) WHERE lease_owner IS NOT NULL;

-- Version 3: whose thread is being copied
-- Null in rows of an older version.
ALTER TABLE thread_copies ADD COLUMN principal TEXT;

-- Version 4: cost and subagents of a run
-- Lets a list of runs do without their journals; 0 in runs that ended before.
ALTER TABLE runs ADD COLUMN cost_nanos INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN unpriced_calls INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN subagents_started INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN subagents_completed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN subagents_failed INTEGER NOT NULL DEFAULT 0;
CREATE INDEX runs_of_status ON runs (principal, status, number);

-- Version 5: names of runs
-- Name of the run by a person; null: its task is used instead.
ALTER TABLE runs ADD COLUMN name TEXT;

-- Version 6: questions of all kinds
-- Answered questions other than approvals have the status `approved`, declined and expired ones `rejected`.
ALTER TABLE approvals RENAME TO questions;
ALTER TABLE questions ADD COLUMN kind TEXT NOT NULL DEFAULT 'approval';
ALTER TABLE questions ADD COLUMN body TEXT;

-- Version 7: choices and shared links of a run
-- `runs.model` and `runs.limits` (JSON) are those chosen for one run; null: those of the server count. `run_shares` are
-- links with which others look at a run until `expires_at`; a row that is deleted ends its link.
ALTER TABLE runs ADD COLUMN model TEXT;
ALTER TABLE runs ADD COLUMN limits TEXT;

CREATE TABLE run_shares (
  id TEXT PRIMARY KEY,
  run_id TEXT NOT NULL REFERENCES runs (id),
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  opened INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID, STRICT;
CREATE INDEX run_shares_of_run ON run_shares (run_id);

-- Version 8: schedules
-- `schedules.due_at` is the next occurrence; it moves in the transaction that starts or skips it. `runs.occurrence` is
-- the one that a run was started for, null if a person started it; `runs.schedule_name` outlives the schedule.
-- `schedule_skips` are occurrences that started no run, from `due_at` to `last_due_at`.
CREATE TABLE schedules (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  principal TEXT NOT NULL,
  environment TEXT NOT NULL,
  name TEXT NOT NULL,
  task TEXT NOT NULL,
  expression TEXT NOT NULL,
  time_zone TEXT NOT NULL,
  catch_up TEXT NOT NULL CHECK (catch_up IN ('skip', 'one', 'all')),
  catch_up_limit INTEGER NOT NULL,
  overlap INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  paused_at INTEGER,
  due_at INTEGER NOT NULL,
  UNIQUE (principal, name)
) STRICT;
CREATE INDEX schedules_of_principal ON schedules (principal, number);
CREATE INDEX schedules_due ON schedules (environment, due_at) WHERE paused_at IS NULL;

CREATE TABLE schedule_skips (
  schedule_id TEXT NOT NULL REFERENCES schedules (id),
  due_at INTEGER NOT NULL,
  last_due_at INTEGER NOT NULL,
  reason TEXT NOT NULL,
  PRIMARY KEY (schedule_id, due_at)
) WITHOUT ROWID, STRICT;

ALTER TABLE runs ADD COLUMN schedule_id TEXT;
ALTER TABLE runs ADD COLUMN schedule_name TEXT;
ALTER TABLE runs ADD COLUMN occurrence INTEGER;
CREATE UNIQUE INDEX runs_of_occurrence ON runs (schedule_id, occurrence) WHERE schedule_id IS NOT NULL;
CREATE INDEX runs_of_schedule ON runs (schedule_id, number) WHERE schedule_id IS NOT NULL;

-- Version 9 (SQLite only): search of runs
-- `run_texts` has the groups of three letters that texts of runs consist of, by `runs.number`. Letters are folded as
-- `LIKE` folds them: only those of ASCII. The blanks after each text make every letter the first of a group, so that
-- `run_text_terms` also finds texts of one or two letters.
CREATE VIRTUAL TABLE run_texts USING fts5 (
  task, name, answer, content = '', contentless_delete = 1, detail = column, tokenize = 'trigram case_sensitive 1'
);
CREATE VIRTUAL TABLE run_text_terms USING fts5vocab (run_texts, instance);
CREATE INDEX runs_left_out_of_texts ON runs (principal, number) WHERE (ended_at IS NULL OR length(task) + length(coalesce(name, '')) + length(coalesce(answer, '')) > 20000);
INSERT INTO run_texts (rowid, task, name, answer) SELECT number, lower(task) || '  ', lower(name) || '  ', lower(answer) || '  ' FROM runs WHERE NOT (ended_at IS NULL OR length(task) + length(coalesce(name, '')) + length(coalesce(answer, '')) > 20000);

CREATE TRIGGER runs_texts_ended AFTER UPDATE OF ended_at ON runs WHEN OLD.ended_at IS NULL AND NOT (NEW.ended_at IS NULL OR length(NEW.task) + length(coalesce(NEW.name, '')) + length(coalesce(NEW.answer, '')) > 20000)
BEGIN
  INSERT INTO run_texts (rowid, task, name, answer) SELECT number, lower(task) || '  ', lower(name) || '  ', lower(answer) || '  ' FROM runs WHERE number = NEW.number;
END;
CREATE TRIGGER runs_texts_renamed AFTER UPDATE OF name ON runs WHEN NEW.ended_at IS NOT NULL
BEGIN
  DELETE FROM run_texts WHERE rowid = NEW.number AND NOT (OLD.ended_at IS NULL OR length(OLD.task) + length(coalesce(OLD.name, '')) + length(coalesce(OLD.answer, '')) > 20000);
  INSERT INTO run_texts (rowid, task, name, answer) SELECT number, lower(task) || '  ', lower(name) || '  ', lower(answer) || '  ' FROM runs WHERE number = NEW.number AND NOT (NEW.ended_at IS NULL OR length(NEW.task) + length(coalesce(NEW.name, '')) + length(coalesce(NEW.answer, '')) > 20000);
END;
CREATE TRIGGER runs_texts_deleted AFTER DELETE ON runs WHEN NOT (OLD.ended_at IS NULL OR length(OLD.task) + length(coalesce(OLD.name, '')) + length(coalesce(OLD.answer, '')) > 20000)
BEGIN
  DELETE FROM run_texts WHERE rowid = OLD.number;
END;

-- Version 10: news of runs
-- `news_deliveries` are messages about events of runs on their way to a channel, written with the event. A row is
-- deleted when its message was accepted. `due_at` is the next attempt; an attempt under way moves it first, so that
-- another server tries again if this one ends. From `dead_at` on no attempt follows until a person wants one.
CREATE TABLE news_deliveries (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id TEXT NOT NULL REFERENCES runs (id),
  seq INTEGER NOT NULL,
  type TEXT NOT NULL,
  target TEXT NOT NULL,
  environment TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  problem TEXT,
  dead_at INTEGER,
  UNIQUE (run_id, seq, type, target)
) STRICT;
CREATE INDEX news_deliveries_due ON news_deliveries (target, due_at) WHERE dead_at IS NULL;

-- Version 11: subscriptions to news
-- `news_subscriptions` are clients that are sent the events of a principal's runs, signed with `secret`.
CREATE TABLE news_subscriptions (
  id TEXT PRIMARY KEY,
  principal TEXT NOT NULL,
  type TEXT NOT NULL,
  run_id TEXT,
  url TEXT NOT NULL,
  secret TEXT NOT NULL,
  expires_at INTEGER NOT NULL
) WITHOUT ROWID, STRICT;
CREATE INDEX news_subscriptions_of_principal ON news_subscriptions (principal, type);
CREATE INDEX news_subscriptions_ends ON news_subscriptions (expires_at);
CREATE INDEX run_events_news ON run_events (time, run_id, seq) WHERE kind IN ('run_completed', 'run_failed', 'question_asked', 'approval_requested', 'todos', 'subagent_started', 'subagent_finished');

-- Version 12: goals of runs
-- `runs.goal` is a JSON list of the criteria that the run's answers are judged by; null: none.
ALTER TABLE runs ADD COLUMN goal TEXT;

-- Version 13: runs that agents start in the background
-- `runs.parent_id` is the run whose agent started this one in the background, by the call `parent_call`; null: it was
-- started from outside. `runs.agent` is its place in the tree of agents. Its journal and its questions are those of the
-- parent, and `questions.asked_by` is the run that waits for the answer; null: the one that the question belongs to. Its
-- report is a message to the parent, with its own id.
ALTER TABLE runs ADD COLUMN parent_id TEXT;
ALTER TABLE runs ADD COLUMN parent_call TEXT;
ALTER TABLE runs ADD COLUMN agent TEXT;
ALTER TABLE runs ADD COLUMN subagents_cancelled INTEGER NOT NULL DEFAULT 0;
ALTER TABLE questions ADD COLUMN asked_by TEXT;
CREATE UNIQUE INDEX runs_of_parent ON runs (parent_id, parent_call) WHERE parent_id IS NOT NULL;
CREATE INDEX runs_children ON runs (principal, status) WHERE parent_id IS NOT NULL;

-- Version 14: choices of schedules
-- `schedules.limits` and `schedules.goal` are JSON, as those of runs; null: those of the server, and no goal.
ALTER TABLE schedules ADD COLUMN model TEXT;
ALTER TABLE schedules ADD COLUMN limits TEXT;
ALTER TABLE schedules ADD COLUMN goal TEXT;

-- Version 15: runs that propose their changes
-- `runs.changes` is `propose` for a run that works on a copy of the workspace; null: it works in the workspace.
-- `runs.unapplied` is the number of files in the copy that nobody applied; null: not known.
ALTER TABLE runs ADD COLUMN changes TEXT;
ALTER TABLE runs ADD COLUMN unapplied INTEGER;
CREATE INDEX runs_proposing ON runs (environment, number) WHERE changes = 'propose' AND unapplied IS NULL;

-- Version 16: changes of the runs of schedules
-- `schedules.changes` is the way in which its runs change the workspace; null: that of the server.
ALTER TABLE schedules ADD COLUMN changes TEXT;

-- Version 17: applied changes of a run
-- `runs.applied` is JSON: the files that reviews of the run changed in the folder, `whole` or in `part`; null: none.
ALTER TABLE runs ADD COLUMN applied TEXT;

-- Version 18: tokens of links and subscriptions
-- `credential` stands for the token that a link or a subscription was made with; null: it was made without one.
ALTER TABLE run_shares ADD COLUMN credential TEXT;
ALTER TABLE news_subscriptions ADD COLUMN credential TEXT;
ALTER TABLE news_subscriptions ADD COLUMN created_at INTEGER;

-- Version 19: budgets reserved by runs at work
-- `runs.reserved_tokens` is the expected use of model calls at work; it counts while the run has a lease.
ALTER TABLE runs ADD COLUMN reserved_tokens INTEGER NOT NULL DEFAULT 0;

-- Version 20: approval rules
-- `approval_rules` are calls that people approved for good, by the rules of a folder; `is_unsandboxed` is 1 for rules
-- about commands outside a sandbox. `thread_sources` names texts that agents of a conversation have read and that
-- neither the person nor an agent wrote. `questions.ruled` is JSON: the call for rules, and those that can be saved.
CREATE TABLE approval_rules (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  principal TEXT NOT NULL,
  folder TEXT NOT NULL,
  rule TEXT NOT NULL,
  is_unsandboxed INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  run_id TEXT NOT NULL,
  approval_id TEXT NOT NULL,
  uses INTEGER NOT NULL,
  last_used_at INTEGER,
  UNIQUE (principal, folder, is_unsandboxed, rule)
) STRICT;

CREATE TABLE thread_sources (
  thread_id TEXT NOT NULL,
  source TEXT NOT NULL,
  PRIMARY KEY (thread_id, source)
) WITHOUT ROWID, STRICT;
ALTER TABLE questions ADD COLUMN ruled TEXT;

-- Version 21: log-ins
-- `login_owners` are the people who log in at this server. `password` is a salted hash; the secret of one-time codes
-- follows from the salt and the server's key. `last_code` is the newest code that was accepted. `login_rows` are the
-- clients, codes, tokens, grants and sessions of its authorization server, by the digest of their id; those of clients
-- and grants have it in clear. `body` is JSON without the id. `used_at` is when a code or a token was used up, or a grant was last used.
-- `name`, `host` and `scopes` describe a grant for people: the client, where it got its code, and what it may do.
CREATE TABLE login_owners (
  name TEXT PRIMARY KEY,
  password TEXT NOT NULL,
  last_code INTEGER NOT NULL,
  tries INTEGER NOT NULL,
  tried_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) WITHOUT ROWID, STRICT;
CREATE TABLE login_rows (
  model TEXT NOT NULL,
  id TEXT NOT NULL,
  principal TEXT,
  grant_id TEXT,
  uid TEXT,
  body TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  used_at INTEGER,
  name TEXT,
  host TEXT,
  scopes TEXT,
  PRIMARY KEY (model, id)
) WITHOUT ROWID, STRICT;
CREATE INDEX login_rows_of_grant ON login_rows (grant_id) WHERE grant_id IS NOT NULL;
CREATE INDEX login_rows_of_uid ON login_rows (uid) WHERE uid IS NOT NULL;
CREATE INDEX login_rows_of_principal ON login_rows (principal, model) WHERE principal IS NOT NULL;
CREATE INDEX login_rows_ends ON login_rows (expires_at);
CREATE INDEX run_shares_ends ON run_shares (expires_at);
