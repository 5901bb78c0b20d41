import { setTimeout as delay } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import type { Approval, RunView } from "../../src/runs/run.ts";
import type { DecideOutcome, StartOutcome } from "../../src/runs/service.ts";
import { checkDatabases, decisionOn, effectsIn, newFolder, type Promised } from "./checks.ts";
import { bundleServer, ServerProcess } from "./process.ts";

/** How long servers are killed, in seconds: `DEEPAGENT_CRASH_SECONDS=3600 npx vitest run test/crash`. */
const SECONDS = Number(process.env["DEEPAGENT_CRASH_SECONDS"] ?? 10);
const RUNS_AT_ONCE = 6;
const SERVERS = 3;
/** Longest life of a server from before it opens its databases; most are short. */
const LIFETIME_MS = 3000;

/** Servers on one data directory, each of them killed at random moments and replaced. */
class Fleet {
  readonly #servers = new Set<ServerProcess>();
  readonly #live: ServerProcess[] = [];
  readonly #script: string;
  #isClosed = false;
  kills = 0;

  constructor(script: string) {
    this.#script = script;
  }

  /** Starts one more, ready to answer. */
  async open(folder: string): Promise<ServerProcess> {
    this.throwIfClosed();
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

  /** Also stops what goes on after a test that took too long. */
  throwIfClosed(): void {
    if (this.#isClosed) throw new Error("The servers were closed.");
  }

  /** All of them are gone afterwards. */
  async close(): Promise<void> {
    this.#isClosed = true;
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
    fleet.throwIfClosed();
    if (await attend(fleet, keys, promised)) return true;
    await delay(10);
  }
  return false;
}

test(
  "nothing acknowledged is lost and nothing is done twice, however often the server is killed",
  async () => {
    const { script, remove } = await bundleServer();
    onTestFinished(remove);
    const folder = newFolder();
    const fleet = new Fleet(script);
    onTestFinished(() => fleet.close());
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
  // Afterwards all runs are brought to their end, and done once more undisturbed, however slow the machine is.
  SECONDS * 10_000 + 600_000,
);
