import type { Migration } from "../migrations.ts";

/**
 * Tables of runs.
 *
 * - `runs.runnable` without a `lease_owner` is the work queue: a row in it waits for a server that has the
 *   same `environment`. It is 0 while a run waits for people, and when it is over. `runs.runnable_since` tells
 *   since when; the order in line does not follow it, as clocks are set.
 * - `runs.in_flight` is 1 from claiming a run until it pauses or ends: found at a claim, the run was
 *   broken off there by a crash or a shutdown.
 * - `runs.lease_epoch` counts claims: with `lease_owner` it fences off whoever lost the run.
 * - `run_events.identity` names what an event tells about, so that a repeat is found through the index.
 * - `approvals.delivered` is 1 once the agent has taken the answer in.
 */
const TABLES = `
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
  CHECK ((ended_at IS NULL) = (status IN ('working', 'input_required')))
) STRICT;
CREATE UNIQUE INDEX runs_idempotency ON runs (principal, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE UNIQUE INDEX runs_open_in_thread ON runs (thread_id) WHERE status IN ('working', 'input_required');
CREATE INDEX runs_of_thread ON runs (thread_id);
CREATE INDEX runs_of_principal ON runs (principal, number);
CREATE INDEX runs_queue ON runs (environment, principal, runnable_since) WHERE runnable = 1;
CREATE INDEX runs_leased ON runs (lease_owner) WHERE lease_owner IS NOT NULL;

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
  UNIQUE (run_id, id)
) STRICT;
CREATE INDEX approvals_undelivered ON approvals (run_id, interrupt_id) WHERE delivered = 0;

CREATE TRIGGER runs_end_is_final BEFORE UPDATE OF status ON runs
WHEN OLD.status IN ('completed', 'failed', 'cancelled') AND NEW.status <> OLD.status
BEGIN SELECT RAISE(ABORT, 'a run that has ended does not change its status'); END;

CREATE TRIGGER run_events_never_change BEFORE UPDATE ON run_events
BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;

CREATE TRIGGER approvals_decided_once BEFORE UPDATE OF status ON approvals
WHEN OLD.status <> 'pending' AND NEW.status <> OLD.status
BEGIN SELECT RAISE(ABORT, 'an approval is decided once'); END;
`;

/**
 * Tool calls with outside effects, of runs that are not over. Without `ended_at`, a call was begun and
 * how it went is unknown. `outcome` is in the encoding of checkpoints that `type` names.
 */
const EFFECTS = `
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
`;

/**
 * `runs.in_flight` is 2 after a shutdown in order, so that only crashes are counted. `runs.crashes` counts
 * those that followed one another without a long stretch of work, which `runs.claimed_at` tells.
 */
const CRASHES = `
ALTER TABLE runs ADD COLUMN crashes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN claimed_at INTEGER;
`;

/** What people told runs while they worked. The agent's thread tells which of it the agent has read. */
const MESSAGES = `
CREATE TABLE run_messages (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id TEXT NOT NULL REFERENCES runs (id),
  id TEXT NOT NULL,
  text TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  UNIQUE (run_id, id)
) STRICT;
CREATE INDEX run_messages_of_run ON run_messages (run_id, number);
`;

/** The key a message was sent with; those that were stored before it had a column have it in their id. */
const MESSAGE_KEYS = `
ALTER TABLE run_messages ADD COLUMN idempotency_key TEXT;
UPDATE run_messages SET idempotency_key = substr(id, length(run_id) + 6)
  WHERE substr(id, 1, length(run_id) + 5) = 'msg_' || run_id || '_';
CREATE INDEX run_messages_key ON run_messages (idempotency_key) WHERE idempotency_key IS NOT NULL;
`;

/** Threads whose runs are forgotten, and whose checkpoints may still be there. */
const PRUNING = `
CREATE TABLE pruned_threads (id TEXT PRIMARY KEY) WITHOUT ROWID, STRICT;
CREATE INDEX runs_ended ON runs (ended_at) WHERE ended_at IS NOT NULL;
`;

/** When a pending approval is denied; told by the server that asked, enforced by any. */
const DEADLINES = `
ALTER TABLE approvals ADD COLUMN expires_at INTEGER;
CREATE INDEX approvals_expiring ON approvals (expires_at) WHERE status = 'pending' AND expires_at IS NOT NULL;
`;

/**
 * `runs.forked_from` is the point of another thread that the run's thread began from. `thread_copies` holds
 * threads that are being copied, until a run has them.
 */
const FORKS = `
ALTER TABLE runs ADD COLUMN forked_from TEXT;
CREATE TABLE thread_copies (
  id TEXT PRIMARY KEY,
  begun_at INTEGER NOT NULL
) WITHOUT ROWID, STRICT;
`;

/** Calls a person approved for the rest of a run. */
const GRANTS = `
ALTER TABLE approvals ADD COLUMN same TEXT;
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
`;

/** Signed answers of clients that were used up. */
const ANSWERS = `
CREATE TABLE used_answers (
  id TEXT PRIMARY KEY,
  run_id TEXT NOT NULL REFERENCES runs (id),
  used_at INTEGER NOT NULL
) WITHOUT ROWID, STRICT;
CREATE INDEX used_answers_of_run ON used_answers (run_id);
`;

/**
 * Model calls that a client answers, by a digest of what is asked: asked again after a crash, a call finds its
 * reply. `epoch`: of the lease that last asked; `waiting`: nobody answered while the run worked.
 */
const MODEL_REQUESTS = `
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
`;

/** Their numbers are in every index. */
const APPROVALS_OF_RUN = "CREATE INDEX approvals_of_run ON approvals (run_id)";

/** The first span of a run, where one was made: `traceparent` of the W3C. */
const TRACES = "ALTER TABLE runs ADD COLUMN traceparent TEXT";

/** How many runs of a principal are not over is counted at every start. */
const OPEN_RUNS = "CREATE INDEX runs_open ON runs (principal) WHERE ended_at IS NULL";

/** The newest call that waits for the run, as a digest of its request, until it is answered; and since when. */
const UNANSWERED_CALLS = `
ALTER TABLE runs ADD COLUMN unanswered_call TEXT;
ALTER TABLE runs ADD COLUMN asked_at INTEGER;
CREATE INDEX runs_unanswered ON runs (principal, unanswered_call) WHERE unanswered_call IS NOT NULL;
`;

const migration = (version: number, name: string, sql: string): Migration => ({ version, name, sql });

/** Set `runs` of the database's migrations. */
export const RUN_MIGRATIONS: readonly Migration[] = [
  migration(1, "threads, runs, journal, approvals", TABLES),
  migration(2, "effects", EFFECTS),
  migration(3, "crashes of a run", CRASHES),
  migration(4, "messages to runs", MESSAGES),
  migration(5, "pruning of runs", PRUNING),
  migration(6, "deadlines of approvals", DEADLINES),
  migration(7, "threads that begin within others", FORKS),
  migration(8, "grants of runs", GRANTS),
  migration(9, "used answers", ANSWERS),
  migration(10, "model calls that clients answer", MODEL_REQUESTS),
  migration(11, "keys of messages to runs", MESSAGE_KEYS),
  migration(12, "approvals of a run in their order", APPROVALS_OF_RUN),
  migration(13, "traces of runs", TRACES),
  migration(14, "open runs of a principal", OPEN_RUNS),
  migration(15, "calls that were not answered", UNANSWERED_CALLS),
];
