import { createHash } from "node:crypto";
import type { Statement } from "better-sqlite3";
import { canonicalJson } from "../../core/canonical-json.ts";
import type { Database } from "../../storage/database.ts";
import type { Principal, Run } from "../run.ts";
import type { StartRequest } from "../service.ts";
import { type RunRow, toRun } from "./rows.ts";

/** How long after its end a run is still what a repeated call asks for, in milliseconds. */
const RECENT_MS = 3_600_000;

interface Sought {
  principal: Principal;
  call: string;
  environment: string;
  since: number;
}

/**
 * The newest call that each run was asked for by, until that call is answered. What no client was told is
 * found by the same request, so that a client which gave up and calls again does not start a second run.
 */
export class CallStore {
  readonly #find: Statement<Sought, RunRow>;
  readonly #ask: Statement<{ id: string; call: string; at: number }>;
  readonly #isUnanswered: Statement<[string, Principal, number], { id: string }>;
  readonly #answer: Statement<[string]>;

  constructor(database: Database) {
    this.#find = database.prepare(
      `SELECT * FROM runs WHERE principal = @principal AND unanswered_call = @call AND environment = @environment
         AND (ended_at IS NULL OR (status = 'completed' AND ended_at > @since))
       ORDER BY number DESC LIMIT 1`,
    );
    this.#ask = database.prepare("UPDATE runs SET unanswered_call = @call, asked_at = @at WHERE id = @id");
    this.#isUnanswered = database.prepare(
      "SELECT id FROM runs WHERE id = ? AND principal = ? AND unanswered_call IS NOT NULL AND asked_at <= ?",
    );
    this.#answer = database.prepare("UPDATE runs SET unanswered_call = NULL, asked_at = NULL WHERE id = ?");
  }

  /** The run that the same request asked for in vain: it is open, or completed not long ago. */
  unanswered(principal: Principal, request: StartRequest, environment: string): Run | undefined {
    const { askedAt, idempotencyKey } = request;
    if (askedAt === undefined || idempotencyKey !== undefined) return undefined;
    const since = askedAt - RECENT_MS;
    const row = this.#find.get({ principal, call: digestOf(request), environment, since });
    return row && toRun(row);
  }

  /** The call that makes this request waits for the run. One with an idempotency key finds it by that. */
  ask(runId: string, request: StartRequest): void {
    const { askedAt, idempotencyKey } = request;
    if (askedAt === undefined || idempotencyKey !== undefined) return;
    this.#ask.run({ id: runId, call: digestOf(request), at: askedAt });
  }

  /** Whether the newest call that asked for the run began by `begunAt`, and was not answered. */
  isUnanswered(principal: Principal, runId: string, begunAt: number): boolean {
    return this.#isUnanswered.get(runId, principal, begunAt) !== undefined;
  }

  answer(runId: string): void {
    this.#answer.run(runId);
  }
}

const digestOf = ({ task, threadId }: StartRequest): string =>
  createHash("sha256")
    .update(canonicalJson(threadId === undefined ? [task] : [task, threadId]))
    .digest("base64url");
