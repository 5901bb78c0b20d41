import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import type { Decision } from "../../src/agent/agent-core.ts";
import type { Approval } from "../../src/runs/run.ts";
import { integrityProblems, openDatabase } from "../../src/storage/database.ts";
import { changed } from "./script.ts";

/** What servers have acknowledged, and must keep. */
export interface Promised {
  /** Run id by key. */
  runs: Map<string, string>;
  /** Decision by run id and approval id. */
  decisions: Map<string, Decision["type"]>;
}

const EFFECTS = ["append", "execute", "write_file", "edit_file"];

/** A data directory with a workspace. To be asked for before the servers on it, which then end before it goes. */
export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "deepagent-crash-"));
  mkdirSync(join(folder, "workspace"));
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

/** Every file with its content, and the lines in any order: parallel parts append as they come. */
export function effectsIn(folder: string) {
  const workspace = join(folder, "workspace");
  const files = readdirSync(workspace, { recursive: true, encoding: "utf8" })
    .filter((name) => /\.(md|txt)$/.test(name))
    .toSorted()
    .map((name) => {
      const text = readFileSync(join(workspace, name), "utf8");
      return [name, name.endsWith(".txt") ? text.split("\n").toSorted() : text];
    });
  const log = join(folder, "lines.txt");
  const lines = existsSync(log) ? readFileSync(log, "utf8").split("\n").toSorted() : [];
  return { files, lines };
}

/** Checks what is stored; gives the number of calls whose outcome was unknown. */
export function checkDatabases(folder: string, { runs, decisions }: Promised): number {
  const database = openDatabase(join(folder, "deepagent.db"));
  const checkpoints = openDatabase(join(folder, "checkpoints.db"));
  onTestFinished(() => [database, checkpoints].forEach((open) => open.close()));
  expect([integrityProblems(database), integrityProblems(checkpoints)]).toEqual([[], []]);
  for (const [key, runId] of runs) {
    expect(
      database.prepare("SELECT idempotency_key, status, answer FROM runs WHERE id = ?").get(runId),
    ).toEqual({
      idempotency_key: key,
      status: "completed",
      answer: `main ${key} is done`,
    });
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
  const kept = database
    .prepare("SELECT decision ->> 'type' FROM approvals WHERE run_id = ? AND id = ?")
    .pluck();
  for (const [approval, decision] of decisions) expect(kept.get(...approval.split(" "))).toBe(decision);
  const unknown = `SELECT count(*) FROM run_events
    WHERE kind = 'tool_finished' AND data ->> 'summary' LIKE '%The server stopped while%'`;
  return Number(database.prepare(unknown).pluck().get());
}
