import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import type { Decision } from "../../src/agent/agent-core.ts";
import type { Approval, RunView } from "../../src/runs/run.ts";
import type { DecideOutcome, StartOutcome } from "../../src/runs/service.ts";
import { integrityProblems, openDatabase } from "../../src/storage/database.ts";
import { bundleServer, ServerProcess } from "./process.ts";
import { changed } from "./script.ts";

/** How long servers are killed, in seconds: `DEEPAGENT_CRASH_SECONDS=3600 npx vitest run test/crash`. */
const SECONDS = Number(process.env["DEEPAGENT_CRASH_SECONDS"] ?? 15);
const RUNS_AT_ONCE = 6;
const SERVERS = 3;
/** Longest life of a server from before it opens its databases; most are short. */
const LIFETIME_MS = 3000;

/** What servers have acknowledged, and must keep. */
interface Promised {
  /** Run id by key. */
  runs: Map<string, string>;
  /** Decision by run id and approval id. */
  decisions: Map<string, Decision["type"]>;
}

const EFFECTS = ["append", "execute", "write_file", "edit_file"];

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "deepagent-crash-"));
  mkdirSync(join(folder, "workspace"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }));
  return folder;
}

/** A person's decision follows from the line they are asked about. */
function decisionOn({ args }: Approval): Decision {
  const line = String(args["line"] ?? args["command"]);
  if (line.includes("deny")) return { type: "reject" };
  if (!line.includes("change")) return { type: "approve" };
  return { type: "edit", editedAction: { name: "append", args: { line: changed(line) } } };
}

/** Servers on one data directory, each of them killed at random moments and replaced. */
class Fleet {
  readonly #servers = new Set<ServerProcess>();
  readonly #live: ServerProcess[] = [];
  readonly #script: string;
  kills = 0;

  constructor(script: string) {
    this.#script = script;
  }

  /** Starts one more, ready to answer. */
  async open(folder: string): Promise<ServerProcess> {
    const server = new ServerProcess(this.#script);
    this.#servers.add(server);
    await server.ready;
    void server.ask({ method: "open", folder });
    this.#live.push(server);
    return server;
  }

  /** Starts servers one after the other and kills each at a random moment, until the deadline. */
  async disturb(folder: string, deadline: number): Promise<void> {
    while (Date.now() < deadline) {
      const server = await this.open(folder);
      await delay(Math.random() ** 2 * LIFETIME_MS);
      expect(server.ended).toBe(false);
      this.#live.splice(this.#live.indexOf(server), 1);
      await server.kill();
      this.#servers.delete(server);
      this.kills += 1;
    }
  }

  /** Any server; `undefined` also when it was killed before it answered. */
  async ask(request: Parameters<ServerProcess["ask"]>[0]): Promise<unknown> {
    return this.#live[Math.floor(Math.random() * this.#live.length)]?.ask(request);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#servers].map((server) => server.kill()));
  }
}

/** Starts the runs that nobody acknowledged, decides what waits, and tells whether all runs have ended. */
async function attend(fleet: Fleet, keys: readonly string[], promised: Promised): Promise<boolean> {
  const ended = await Promise.all(
    keys.map(async (key) => {
      if (!promised.runs.has(key)) {
        const started = (await fleet.ask({ method: "start", key })) as StartOutcome | undefined;
        if (started === undefined) return false;
        if (!started.ok) throw new Error(started.message);
        promised.runs.set(key, started.run.id);
      }
      const runId = promised.runs.get(key) ?? "";
      const view = (await fleet.ask({ method: "view", runId })) as RunView | undefined;
      for (const approval of view?.approvals ?? []) {
        if (approval.status === "pending") await decide(fleet, approval, promised);
      }
      if (view?.run.status === "failed") throw new Error(JSON.stringify(view.run.failure));
      return view?.run.status === "completed";
    }),
  );
  return ended.every(Boolean);
}

async function decide(fleet: Fleet, approval: Approval, { decisions }: Promised): Promise<void> {
  const { runId, id: approvalId } = approval;
  const decision = decisionOn(approval);
  const outcome = (await fleet.ask({ method: "decide", runId, approvalId, decision })) as
    | DecideOutcome
    | undefined;
  if (outcome?.ok === false) throw new Error(outcome.message);
  if (outcome?.ok === true) decisions.set(`${runId} ${approvalId}`, decision.type);
}

/** Attends to the runs until they have all ended, or it is time to stop. */
async function work(
  fleet: Fleet,
  keys: readonly string[],
  promised: Promised,
  until = Number.POSITIVE_INFINITY,
): Promise<boolean> {
  while (Date.now() < until) {
    if (await attend(fleet, keys, promised)) return true;
    await delay(10);
  }
  return false;
}

/** Every file with its content, and the lines in any order: parallel parts append as they come. */
function effectsIn(folder: string) {
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
function checkDatabases(folder: string, { runs, decisions }: Promised): number {
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

test(
  "nothing acknowledged is lost and nothing is done twice, however often the server is killed",
  async () => {
    const { script, remove } = await bundleServer();
    onTestFinished(remove);
    const fleet = new Fleet(script);
    onTestFinished(() => fleet.close());
    const folder = newFolder();
    const promised: Promised = { runs: new Map(), decisions: new Map() };
    const keys: string[] = [];
    const deadline = Date.now() + SECONDS * 1000;
    const disturbed = Promise.all(Array.from({ length: SERVERS }, () => fleet.disturb(folder, deadline)));
    do {
      for (let more = 0; more < RUNS_AT_ONCE; more += 1) keys.push(`run-${keys.length}`);
    } while (await work(fleet, keys.slice(-RUNS_AT_ONCE), promised, deadline));
    await disturbed;
    await Promise.all([fleet.open(folder), fleet.open(folder)]);
    await work(fleet, keys, promised);
    await fleet.close();

    const calm = newFolder();
    const undisturbed = new Fleet(script);
    onTestFinished(() => undisturbed.close());
    await undisturbed.open(calm);
    await work(undisturbed, keys, { runs: new Map(), decisions: new Map() });

    expect(effectsIn(folder)).toEqual(effectsIn(calm));
    const unknown = checkDatabases(folder, promised);
    console.log(
      `${fleet.kills} kills of ${SERVERS} servers; ${promised.runs.size} runs and ${promised.decisions.size} decisions acknowledged, none lost; ${unknown} calls of unknown outcome, none made twice`,
    );
  },
  // Afterwards all runs are brought to their end, and done once more undisturbed.
  SECONDS * 3000 + 120_000,
);
