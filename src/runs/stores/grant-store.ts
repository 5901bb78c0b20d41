import type { Statement } from "better-sqlite3";
import type { Database } from "../../storage/database.ts";
import type { Approval, Grant } from "../run.ts";

interface GrantRow {
  run_id: string;
  key: string;
  tool: string;
  text: string;
  approval_id: string;
  granted_by: string;
  granted_at: number;
}

/** What people approved for the rest of runs that are not over. */
export class GrantStore {
  readonly #insert: Statement<GrantRow>;
  readonly #find: Statement<[string, string], GrantRow>;
  readonly #ofRun: Statement<[string], GrantRow>;
  readonly #revoke: Statement<[string]>;

  constructor(database: Database) {
    this.#insert = database.prepare(
      `INSERT INTO run_grants (run_id, key, tool, text, approval_id, granted_by, granted_at)
       VALUES (@run_id, @key, @tool, @text, @approval_id, @granted_by, @granted_at)
       ON CONFLICT (run_id, key) DO NOTHING`,
    );
    this.#find = database.prepare("SELECT * FROM run_grants WHERE run_id = ? AND key = ?");
    this.#ofRun = database.prepare("SELECT * FROM run_grants WHERE run_id = ? ORDER BY number");
    this.#revoke = database.prepare("DELETE FROM run_grants WHERE run_id = ?");
  }

  /** Grants all calls that count as the same as the one of this approval. */
  add({ runId, id, tool, same }: Approval, by: string, now: number): void {
    if (same === undefined) throw new Error(`No other call counts as the same as that of approval ${id}.`);
    const { key, text } = same;
    this.#insert.run({ run_id: runId, key, tool, text, approval_id: id, granted_by: by, granted_at: now });
  }

  /** What lets this call go ahead unasked, where a person may approve it at all. */
  find({ runId, same, allowedDecisions }: Approval): Grant | undefined {
    if (same === undefined || !allowedDecisions.includes("approve")) return undefined;
    const row = this.#find.get(runId, same.key);
    return row && toGrant(row);
  }

  /** Oldest first. */
  ofRun(runId: string): Grant[] {
    return this.#ofRun.all(runId).map(toGrant);
  }

  revoke(runId: string): void {
    this.#revoke.run(runId);
  }
}

const toGrant = (row: GrantRow): Grant => ({
  tool: row.tool,
  text: row.text,
  approvalId: row.approval_id,
  grantedBy: row.granted_by,
  grantedAt: row.granted_at,
});
