import { isApproval } from "../../src/runs/run.ts";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import type { RunEvent } from "../../src/runs/events.ts";
import type { Approval, RunView } from "../../src/runs/run.ts";
import type { StartOutcome } from "../../src/runs/service.ts";
import { openDatabase } from "../../src/storage/sqlite/database.ts";
import { checkDatabases, decisionOn, effectsIn, newFolder, type Promised } from "./checks.ts";
import { serverProgram, ServerProcess } from "./process.ts";

const SERVERS = 3;
const RUNS_PER_SERVER = 4;
const WITHOUT_KILLS = ["run_resumed", "run_parked", "run_failed", "warning"];

/** Which of the servers holds the lease of a run now, by their process ids. */
function leaseHolders(folder: string): (runId: string) => number | undefined {
  const database = openDatabase(join(folder, "deepagent.db"));
  onTestFinished(() => void database.close());
  const owner = database
    .prepare<[string], string | null>("SELECT lease_owner FROM runs WHERE id = ?")
    .pluck();
  return (runId) => {
    const pid = owner.get(runId)?.split(".")[2];
    return pid === undefined ? undefined : Number(pid);
  };
}

async function openServers(folder: string): Promise<ServerProcess[]> {
  const script = await serverProgram();
  const servers = Array.from({ length: SERVERS }, () => new ServerProcess(script));
  onTestFinished(async () => void (await Promise.all(servers.map((server) => server.kill()))));
  // All at once: they also make the tables of the new databases in turns.
  await Promise.all(servers.map((server) => server.ready.then(() => server.ask({ method: "open", folder }))));
  return servers;
}

/**
 * Of each run: four lines of its own, three of each part, two of each leaf, one of each subagent of others and one
 * where another server would be; two commands and one of each part.
 */
function expectEachOnce(folder: string, runs: number): void {
  const { lines, files, late } = effectsIn(folder);
  expect(late).toBe(0);
  const commands = files.filter(([name]) => name.endsWith("commands.txt")).flatMap(([, text]) => text);
  for (const [all, perRun] of [
    [lines, 24],
    [commands, 5],
  ] as const) {
    expect(all).toHaveLength(perRun * runs);
  }
}

test(
  `${SERVERS} servers on one data directory under load do everything once and never show a lock`,
  { tags: "long", timeout: 600_000 },
  async () => {
    const folder = newFolder();
    const servers = await openServers(folder);
    const holderOf = leaseHolders(folder);
    const at = (index: number): ServerProcess => {
      const server = servers[index % SERVERS];
      if (server === undefined) throw new Error("There is no server.");
      return server;
    };
    const promised: Promised = { runs: new Map(), decisions: new Map(), journals: new Map() };
    let decidedElsewhere = 0;

    /** By a server that does not work on the run, which most often goes on meanwhile. */
    async function decide(approval: Approval): Promise<void> {
      const { runId, id: approvalId } = approval;
      const holder = holderOf(runId);
      const server = servers.find(({ pid }) => pid !== holder) ?? at(0);
      const decision = decisionOn(approval);
      const outcome = await server.ask({ method: "decide", runId, approvalId, decision });
      expect(outcome).toMatchObject({ ok: true, how: "stored" });
      promised.decisions.set(`${runId} ${approvalId}`, decision.type);
      if (holder !== undefined && holder !== server.pid) decidedElsewhere += 1;
    }

    async function live(index: number): Promise<RunEvent[]> {
      const key = `run-${index}`;
      const request = { task: `main ${key}`, idempotencyKey: key };
      const started = (await at(index).ask({ method: "start", request })) as StartOutcome;
      if (!started.ok) throw new Error(started.message);
      const runId = started.run.id;
      promised.runs.set(key, { runId, task: `main ${key}`, status: "completed" });
      const journal = at(index + 1).ask({ method: "follow", runId });
      for (;;) {
        const view = (await at(index + 2).ask({ method: "view", runId })) as RunView;
        for (const approval of view.requests.filter(isApproval))
          if (approval.status === "pending") await decide(approval);
        if (view.run.status === "completed") return (await journal) as RunEvent[];
        if (view.run.status === "failed") throw new Error(JSON.stringify(view.run.failure));
        await delay(20);
      }
    }

    const journals = await Promise.all(
      Array.from({ length: SERVERS * RUNS_PER_SERVER }, (_, index) => live(index)),
    );
    await Promise.all(servers.map((server) => server.kill()));
    expect(servers.map(({ log }) => log)).toEqual(servers.map(() => ""));
    for (const events of journals) {
      expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
      expect(events.filter(({ kind }) => WITHOUT_KILLS.includes(kind))).toEqual([]);
    }
    expect(checkDatabases(folder, promised)).toBe(0);
    expectEachOnce(folder, journals.length);
    expect(decidedElsewhere).toBeGreaterThan(0);
  },
);
