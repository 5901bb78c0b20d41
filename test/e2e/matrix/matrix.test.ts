import { isQuestion, isApproval } from "../../../src/runs/run.ts";
import { describe, expect, test } from "vitest";
import { defined } from "../../../src/core/unknown.ts";
import type { RunService } from "../../../src/runs/service.ts";
import {
  FAST,
  mine,
  calling,
  databaseFile,
  note,
  noteTool,
  openServer,
  type Server,
} from "../../runs/support.ts";
import { depsFor } from "../../server/support.ts";
import { deferred, type Deferred } from "../../support/harness-deferred.ts";
import {
  openClient,
  ROWS,
  TRANSPORTS,
  type MatrixClient,
  type Row,
  type Seen,
  type Transport,
} from "./clients.ts";
import { personWho, type MatrixPerson, type Wish } from "./person.ts";

/** Long enough for a run of this test to get to its approval, mostly; the clients look again anyway. */
const DELIVERY = { window: 1.5 };
const TASK = { task: "note a", idempotency_key: "once" };

const ASK = { name: "ask_user", args: { question: "Which colour?" } };

interface Options {
  wish?: Wish;
  gated?: boolean;
  /** The agent asks a question instead of calling its tool. */
  asks?: boolean;
  deadlineMs?: number;
  /** The agent does nothing before it is let. */
  thinks?: boolean;
}

/** A server with its run in one row of the matrix, and the client of that row. */
interface World {
  client: MatrixClient;
  person: MatrixPerson;
  row: Row;
  notes: string[];
  service: () => RunService;
  /** Lets the agent begin. */
  thinking: Deferred;
  /** Ends the server as a kill does, opens the next one and connects to it. */
  restart(): Promise<void>;
}

async function openWorld(transport: Transport, row: Row, options: Options): Promise<World> {
  const { wish = "approve", gated = true, asks = false, deadlineMs, thinks = false } = options;
  const thinking = deferred();
  if (!thinks) thinking.resolve();
  const file = databaseFile();
  const notes: string[] = [];
  const model = calling(asks ? ASK : note("a"));
  const agent = async () => {
    await thinking.promise;
    return { model, tools: [noteTool(notes)], interruptOn: { note: gated }, askUser: asks };
  };
  let server: Server;
  // All rows work at the same time: a busy machine must not lose the lease of a call at work.
  const timing = { ...FAST, heartbeatMs: 100, leaseMs: 2000 };
  const start = () => openServer(file, agent, { timing, ...defined({ approvalDeadlineMs: deadlineMs }) });
  const person = personWho(wish, () => server.service);
  const reach = () =>
    openClient(
      transport,
      depsFor(server.service, { page: true, config: { delivery: DELIVERY } }),
      row,
      person,
    );
  server = start();
  const world: World = {
    client: await reach(),
    person,
    row,
    notes,
    thinking,
    service: () => server.service,
    restart: async () => {
      server.kill();
      server = start();
      world.client = await reach();
    },
  };
  return world;
}

/** Looks until the run is over; where the client cannot ask, the person answers elsewhere. */
async function toTheEnd(world: World, first: Seen): Promise<void> {
  const canAsk = world.row.forms || world.row.urls;
  for (let seen = first; !isOver(seen); seen = await world.client.look(first.runId)) {
    if (seen.status === "input_required" && !canAsk) await world.person.elsewhere(first.runId);
  }
}

const isOver = ({ status }: Seen): boolean => ["completed", "failed", "cancelled"].includes(status);

/** How everything ended: the same whoever was the client. */
interface State {
  runs: number;
  status: string | undefined;
  answer: string | undefined;
  /** Status of each, or `deadline`. */
  approvals: string[] | undefined;
  questions: string[] | undefined;
  /** What the calls did. */
  notes: string[];
}

async function stateOf({ service, notes }: World): Promise<State> {
  const runs = await mine(service()).read.list({ limit: 10 });
  const view = await mine(service()).read.view(runs[0]?.id ?? "");
  return {
    runs: runs.length,
    status: view?.run.status,
    answer: view?.run.answer?.replace(/^Not run: the deadline.*$/, "too late"),
    approvals: view?.requests
      .filter(isApproval)
      .map(({ status, decidedBy }) => (decidedBy === "deadline" ? decidedBy : status)),
    questions: view?.requests.filter(isQuestion).map(({ status }) => status),
    notes,
  };
}

interface Scenario {
  options?: Options;
  act(world: World): Promise<void>;
  /** State at the end, for every row and transport. */
  expected: State;
}

const run = async (world: World): Promise<void> => toTheEnd(world, await world.client.run(TASK));
const completed = (answer: string, approvals: string[], ...notes: string[]): State => ({
  runs: 1,
  status: "completed",
  answer,
  approvals,
  questions: [],
  notes,
});

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  "plain success": { options: { gated: false }, act: run, expected: completed("noted a", [], "a") },
  "approval accepted": { act: run, expected: completed("noted a", ["approved"], "a") },
  "approval edited": {
    options: { wish: "edit" },
    act: run,
    expected: completed("noted edited", ["edited"], "edited"),
  },
  "approval rejected": {
    options: { wish: "reject" },
    act: run,
    expected: completed("rather not", ["rejected"]),
  },
  "question answered": {
    options: { asks: true, wish: "answer" },
    act: run,
    expected: { ...completed("The person answered: blue", []), questions: ["answered"] },
  },
  "question answered after a restart": {
    options: { asks: true, wish: "answer" },
    act: async (world) => {
      await openWaiting(world);
      await world.restart();
      const [started] = await mine(world.service()).read.list({ limit: 1 });
      await toTheEnd(world, { runId: started?.id ?? "", status: "working" });
    },
    expected: { ...completed("The person answered: blue", []), questions: ["answered"] },
  },
  "approval ignored": {
    options: { wish: "ignore" },
    act: async ({ client }) => {
      const { runId, status } = await client.run(TASK);
      for (let seen = status; seen !== "input_required";) seen = (await client.look(runId)).status;
      expect(await client.look(runId)).toEqual({ runId, status: "input_required" });
    },
    expected: { ...completed("", ["pending"]), status: "input_required", answer: undefined },
  },
  "approval denied by a deadline": {
    options: { wish: "ignore", deadlineMs: 400 },
    act: run,
    expected: completed("too late", ["deadline"]),
  },
  cancel: {
    options: { wish: "ignore" },
    act: async (world) => {
      const { client } = world;
      const { runId, status } = await client.run(TASK);
      for (let seen = status; seen !== "input_required";) seen = (await client.look(runId)).status;
      await client.cancel(runId);
      await toTheEnd(world, { runId, status: "working" });
    },
    expected: { ...completed("", ["withdrawn"]), status: "cancelled", answer: undefined },
  },
  "timeout and retry": {
    options: { thinks: true },
    act: async (world) => {
      // Clients with tasks have an answer at once, and no time-out.
      const first = await world.client.run(TASK, 100).catch(() => undefined);
      expect(first !== undefined).toBe(world.row.tasks);
      const retried = world.client.run(TASK);
      world.thinking.resolve();
      await toTheEnd(world, await retried);
    },
    expected: completed("noted a", ["approved"], "a"),
  },
  "restart in the middle": {
    act: async (world) => {
      await openWaiting(world);
      await world.restart();
      const [started] = await mine(world.service()).read.list({ limit: 1 });
      await toTheEnd(world, { runId: started?.id ?? "", status: "working" });
    },
    expected: completed("noted a", ["approved"], "a"),
  },
};

/** Starts the run, and comes back when it waits for the person, whom nobody has asked yet. */
async function openWaiting({ service }: World): Promise<void> {
  const started = await mine(service()).control.start({
    task: TASK.task,
    idempotencyKey: TASK.idempotency_key,
  });
  if (!started.ok) throw new Error(started.message);
  const { signal } = new AbortController();
  for await (const { kind } of mine(service()).watch.events(started.run.id, { signal })) {
    if (kind === "approval_requested" || kind === "question_asked") return;
  }
}

/** Scenarios over HTTP that are in every run of the tests. */
const ALWAYS = new Set(["question answered", "restart in the middle"]);

describe.each(TRANSPORTS)("over %s", (transport) => {
  for (const [name, scenario] of Object.entries(SCENARIOS)) {
    const tags = transport === "http" && ALWAYS.has(name) ? [] : ["long"];
    test(`${name}: the run ends the same with every client`, { tags }, async () => {
      const rows = await Promise.all(
        Object.entries(ROWS).map(async ([label, row]) => {
          const world = await openWorld(transport, row, scenario.options ?? {});
          await scenario.act(world);
          return [label, await stateOf(world)] as const;
        }),
      );
      expect(Object.fromEntries(rows)).toEqual(
        Object.fromEntries(rows.map(([label]) => [label, scenario.expected])),
      );
    });
  }
});
