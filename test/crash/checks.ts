import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import type { Decision } from "../../src/tools/request.ts";
import type { RunEvent } from "../../src/runs/events.ts";
import type { Approval, RunStatus } from "../../src/runs/run.ts";
import { integrityProblems, openDatabase } from "../../src/storage/sqlite/database.ts";
import { bare, changed, ELSEWHERE } from "./script.ts";

/** What servers have acknowledged, and must keep. */
export interface Promised {
  /** By idempotency key: the run, and how it has to end. */
  runs: Map<string, { runId: string; task: string; status: RunStatus; answer?: string }>;
  /** Decision by run id and approval id. */
  decisions: Map<string, Decision["type"]>;
  /** What was read of the journal of a run, by its id. */
  journals: Map<string, RunEvent[]>;
}

const EFFECTS = ["append", "lines__append", "execute", "write_file", "edit_file", "delete"];

/** A data directory with a workspace. To be asked for before the servers on it, which then end before it goes. */
export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "deepagent-crash-"));
  for (const name of ["workspace", "skills"]) mkdirSync(join(folder, name));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }));
  return folder;
}

/** A person's decision follows from the line they are asked about. */
export function decisionOn({ args }: Approval): Decision {
  const line = String(args["line"] ?? args["command"]);
  if (line.includes("deny")) return { type: "reject" };
  if (!line.includes("change")) return { type: "approve" };
  return { type: "edit", editedAction: { name: "append", args: { line: changed(line) } } };
}

/**
 * Every file with its content, and the lines in any order: parallel parts append as they come. Each call has left
 * one line at most; `late` are lines of two calls, the first of which came through after it was looked for, and
 * `lateElsewhere` those of another server.
 */
export function effectsIn(folder: string) {
  const workspace = join(folder, "workspace");
  const log = join(folder, "lines.txt");
  let [late, lateElsewhere] = [0, 0];
  const linesOf = (text: string): string[] => {
    const lines = text.split("\n").filter((line) => line !== "");
    expect(lines).toHaveLength(new Set(lines).size);
    const wanted = new Set(lines.map(bare));
    const elsewhere = lines.map(bare).filter((line) => line.endsWith(ELSEWHERE));
    const twiceElsewhere = elsewhere.length - new Set(elsewhere).size;
    lateElsewhere += twiceElsewhere;
    late += lines.length - wanted.size - twiceElsewhere;
    return [...wanted].toSorted();
  };
  const files = readdirSync(workspace, { recursive: true, encoding: "utf8" })
    .filter((name) => /\.(md|txt)$/.test(name))
    .toSorted()
    .map((name): [string, string | string[]] => {
      const text = readFileSync(join(workspace, name), "utf8");
      return [name, name.endsWith(".txt") ? linesOf(text) : text];
    });
  const lines = linesOf(existsSync(log) ? readFileSync(log, "utf8") : "");
  return { files, lines, late, lateElsewhere };
}

/** Checks what is stored; gives the number of calls whose outcome was unknown. */
export function checkDatabases(folder: string, { runs, decisions, journals }: Promised): number {
  const database = openDatabase(join(folder, "deepagent.db"));
  const checkpoints = openDatabase(join(folder, "checkpoints.db"));
  onTestFinished(() => [database, checkpoints].forEach((open) => open.close()));
  expect([integrityProblems(database), integrityProblems(checkpoints)]).toEqual([[], []]);
  const kept = database.prepare("SELECT idempotency_key, task, status, answer FROM runs WHERE id = ?");
  for (const [key, { runId, task, status, answer: told = `${task} is done` }] of runs) {
    const answer = status === "completed" ? told : null;
    expect(kept.get(runId)).toEqual({ idempotency_key: key, task, status, answer });
  }
  const journal = database.prepare<[string, number]>(
    "SELECT seq, time, kind, data FROM run_events WHERE run_id = ? AND seq <= ? ORDER BY seq",
  );
  for (const [runId, events] of journals) {
    const read = events.map(({ seq, time, kind, data }) => ({ seq, time, kind, data: JSON.stringify(data) }));
    expect(journal.all(runId, events.length)).toEqual(read);
  }
  // One run for each key, acknowledged or not, and each journal counts without a gap.
  expect(database.prepare("SELECT count(*) FROM runs").pluck().get()).toBe(runs.size);
  const gaps = `SELECT id FROM runs WHERE last_seq <> (SELECT count(*) FROM run_events WHERE run_id = id)
    OR last_seq <> (SELECT max(seq) FROM run_events WHERE run_id = id)`;
  expect(database.prepare(gaps).all()).toEqual([]);
  // What changes the thread alone may be done again: the change was lost with the crash.
  const twice = `SELECT run_id, kind, identity, count(*) AS times FROM run_events
    WHERE kind IN ('tool_started', 'tool_finished') AND data ->> 'tool' IN (SELECT value FROM json_each(?))
      AND identity NOT LIKE '%draft-%'
    GROUP BY 1, 2, 3 HAVING times <> 1`;
  expect(database.prepare(twice).all(JSON.stringify(EFFECTS))).toEqual([]);
  const once = `SELECT run_id, kind, data ->> 'approvalId' AS approval, count(*) AS times FROM run_events
    WHERE kind IN ('approval_requested', 'approval_decided', 'run_started', 'run_completed')
    GROUP BY 1, 2, 3 HAVING times <> 1`;
  expect(database.prepare(once).all()).toEqual([]);
  const decided = database
    .prepare("SELECT decision ->> 'type' FROM questions WHERE run_id = ? AND id = ?")
    .pluck();
  for (const [approval, decision] of decisions) expect(decided.get(...approval.split(" "))).toBe(decision);
  const unknown = `SELECT count(*) FROM run_events
    WHERE kind = 'tool_finished' AND data ->> 'summary' LIKE '%The server stopped while%'`;
  return Number(database.prepare(unknown).pluck().get());
}
