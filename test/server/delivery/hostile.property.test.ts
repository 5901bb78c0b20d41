import { createRequestStateCodec, type ServerContext } from "@modelcontextprotocol/server";
import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { isFinal, isApproval } from "../../../src/runs/run.ts";
import { databaseFile, ME, mine, note, noteTool, openServer, type Server } from "../../runs/support.ts";
import { scriptedModel } from "../../support/scripted-model.ts";
import { depsFor, STATE_KEY } from "../support.ts";
import type { Reply } from "../tasks/raw.ts";
import { hostileClient, type HostileClient } from "./hostile-client.ts";
import { attempts } from "../../support/effort.ts";

const ATTACKS = [
  "damaged",
  "other arguments",
  "other principal",
  "other tool",
  "expired",
  "other key",
] as const;
const WINDOW_SECONDS = 1.5;
/** The window is over long before, on any machine: whoever waits for longer waits for ever. */
const PATIENCE_MS = 60_000;
const STRANGER = "stranger";

const task = fc.constantFrom("t1", "t2");
const ask = fc.nat({ max: 5 });
const operation = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant("call" as const), task }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("answer" as const),
      ask,
      answers: fc.constantFrom("approve" as const, "reject" as const, "close" as const, "nonsense" as const),
      /** Of how many of the questions. */
      part: fc.constantFrom("all" as const, "first" as const),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("forge" as const),
      ask,
      how: fc.constantFrom(...ATTACKS),
    }),
  },
  fc.record({ do: fc.constantFrom("abandon" as const, "leave" as const), task }),
  fc.record({ do: fc.constantFrom("check" as const, "decide for itself" as const, "cancel" as const), task }),
  fc.record({ do: fc.constant("restart" as const) }),
);
type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;

/** What the server asked, with what has to come back. */
interface Asked {
  args: { task: string };
  state: string;
  /** Texts of the calls by the key of their question. */
  texts: Map<string, string>;
  isUsed: boolean;
}

/** One data directory with the server of the moment, its hostile client and the person behind that. */
class World {
  readonly notes: string[] = [];
  readonly asked: Asked[] = [];
  /** Texts that the person approved in an answer which the server had to take. */
  readonly approved = new Set<string>();
  readonly #file = databaseFile();
  #server: Server;
  #client: HostileClient | undefined;

  constructor() {
    this.#server = this.#open();
  }

  get service() {
    return this.#server.service;
  }

  async apply(operation: Operation): Promise<void> {
    switch (operation.do) {
      case "call":
        return this.#call("run_deep_agent", argsOf(operation.task));
      case "answer":
        return this.#answer(operation);
      case "forge":
        return this.#forge(operation);
      case "abandon":
        return (await this.#connected()).abandon("run_deep_agent", argsOf(operation.task));
      case "leave":
        await (await this.#connected()).leave("run_deep_agent", argsOf(operation.task));
        this.#client = undefined;
        return;
      case "check":
        return this.#call("check_deep_agent", { run_id: await this.#runOf(operation.task) });
      case "cancel":
        return this.#call("cancel_deep_agent", { run_id: await this.#runOf(operation.task) });
      case "decide for itself":
        return this.#decideForItself(await this.#runOf(operation.task));
      case "restart":
        await this.#client?.close();
        this.#client = undefined;
        this.#server.kill();
        this.#server = this.#open();
    }
  }

  async close(): Promise<void> {
    await this.#client?.close();
    await this.service.close();
    this.#server.kill();
  }

  #open(): Server {
    const model = scriptedModel(({ messages }) => {
      if (messages.some((message) => ToolMessage.isInstance(message))) return { text: "done" };
      const name = messages.find((message) => HumanMessage.isInstance(message))?.text ?? "";
      return { toolCalls: [note(`${name}-a`), note(`${name}-b`)] };
    });
    return openServer(this.#file, { model, tools: [noteTool(this.notes)], interruptOn: { note: true } });
  }

  #deps(principal = ME) {
    const { service } = this;
    const delivery = { window: WINDOW_SECONDS };
    return depsFor(service, { config: { delivery }, principalOf: () => principal });
  }

  async #connected(): Promise<HostileClient> {
    this.#client ??= await hostileClient(this.#deps(), PATIENCE_MS);
    return this.#client;
  }

  async #runOf(name: string): Promise<string> {
    const runs = await mine(this.service).read.list({ limit: 10 });
    return runs.find((run) => run.task === name)?.id ?? "run_of_nobody";
  }

  async #call(name: string, args: object, extra?: object): Promise<void> {
    this.#note(args, await (await this.#connected()).call(name, args, extra));
  }

  /** Every call is answered; what it asks is kept for later. */
  #note(args: object, reply: Reply | undefined): void {
    expect(reply, "a call hangs").toBeDefined();
    const result = (reply?.result ?? {}) as unknown as Partial<Question>;
    if (result.requestState === undefined || !("task" in args)) return;
    const texts = Object.entries(result.inputRequests ?? {}).map(([key, { params }]) => {
      const { text } = JSON.parse(params.requestedSchema.properties.edited_args.default) as { text: string };
      return [key, text] as const;
    });
    const { task: name } = args as { task: string };
    this.asked.push({ args: argsOf(name), state: result.requestState, texts: new Map(texts), isUsed: false });
  }

  async #answer({ ask: index, answers, part }: Operation & { do: "answer" }): Promise<void> {
    const asked = this.asked[index % Math.max(this.asked.length, 1)];
    if (asked === undefined) return;
    const keys = [...asked.texts.keys()].slice(0, part === "first" ? 1 : undefined);
    const inputResponses = Object.fromEntries(keys.map((key) => [key, ANSWERS[answers]]));
    if (!asked.isUsed && answers === "approve") {
      for (const key of keys) this.approved.add(asked.texts.get(key) ?? "");
    }
    asked.isUsed = true;
    await this.#call("run_deep_agent", asked.args, { inputResponses, requestState: asked.state });
  }

  /** Approves everything, with a state that the server must not accept. */
  async #forge({ ask: index, how }: Operation & { do: "forge" }): Promise<void> {
    const asked = this.asked[index % Math.max(this.asked.length, 1)];
    if (asked === undefined) return;
    const { args, state, texts } = asked;
    const all = Object.fromEntries([...texts.keys()].map((key) => [key, ANSWERS.approve]));
    const answers = { inputResponses: all, requestState: state };
    if (how === "other key") {
      // The state is good, and used up by this; what it says is nobody's answer.
      asked.isUsed = true;
      const inputResponses = { [`${[...texts.keys()][0]}x`]: ANSWERS.approve };
      return this.#call("run_deep_agent", args, { ...answers, inputResponses });
    }
    const client =
      how === "other principal" ? await hostileClient(this.#deps(STRANGER), PATIENCE_MS) : undefined;
    const forged = { ...answers, ...(await forgedState(how, state)) };
    const runId = await this.#runOf(args.task);
    const [name, given] =
      how === "other tool"
        ? (["check_deep_agent", { run_id: runId }] as const)
        : (["run_deep_agent", how === "other arguments" ? { ...args, wait_seconds: 1 } : args] as const);
    const reply = await (client ?? (await this.#connected())).call(name, given, forged);
    await client?.close();
    expect(reply, "a call hangs").toBeDefined();
    expect(reply?.error !== undefined || reply?.result?.["isError"] === true, how).toBe(true);
  }

  async #decideForItself(runId: string): Promise<void> {
    const view = await mine(this.service).read.view(runId);
    for (const { id } of view?.requests.filter(isApproval) ?? []) {
      const args = { run_id: runId, approval_id: id, decision: "approve" };
      const reply = await (await this.#connected()).call("answer_deep_agent", args);
      expect(reply?.error).toBeDefined();
    }
  }
}

interface Question {
  requestState: string;
  inputRequests: Record<
    string,
    { params: { requestedSchema: { properties: { edited_args: { default: string } } } } }
  >;
}

const argsOf = (name: string) => ({ task: name, idempotency_key: `key of ${name}` });

const ANSWERS = {
  approve: { action: "accept", content: { decision: "approve" } },
  reject: { action: "accept", content: { decision: "reject" } },
  close: { action: "cancel" },
  nonsense: { action: "accept", content: { decision: "approve everything", same: true } },
};

async function forgedState(how: string, state: string): Promise<{ requestState?: string }> {
  if (how === "damaged") return { requestState: `${state.slice(0, -3)}AAA` };
  return how === "expired" ? { requestState: await expired(state) } : {};
}

/** The same facts, signed with the server's own key, and out of date. */
async function expired(state: string): Promise<string> {
  const context = { mcpReq: { method: "tools/call" } } as ServerContext; // what the binding reads
  const bind = () => ["tools/call", ME, ""].join("\0");
  const codec = createRequestStateCodec({ key: STATE_KEY, ttlSeconds: -10, bind });
  const payload = JSON.parse(Buffer.from(state.split(".")[1] ?? "", "base64url").toString()) as {
    p: unknown;
  };
  return codec.mint(payload.p, context);
}

async function check(world: World): Promise<void> {
  const { notes, approved, service } = world;
  expect(notes, "a call ran twice").toEqual([...new Set(notes)]);
  expect(
    notes.filter((text) => !approved.has(text)),
    "a call ran that nobody approved",
  ).toEqual([]);
  const runs = await mine(service).read.list({ limit: 10 });
  expect(runs.length, "a retry started a second run").toBe(new Set(runs.map((run) => run.task)).size);
  expect(await service.as({ principal: STRANGER }).read.list({ limit: 10 })).toEqual([]);
}

/** Nothing is left that a person could not bring to its end. */
async function bringToTheEnd(world: World): Promise<void> {
  for (const { id } of await mine(world.service).read.list({ limit: 10 })) {
    await expect
      .poll(async () => {
        const view = await mine(world.service).read.view(id);
        for (const approval of view?.requests.filter(isApproval) ?? []) {
          if (approval.status !== "pending") continue;
          world.approved.add(String(approval.args["text"]));
          await mine(world.service).requests.answer(
            id,
            { requestId: approval.id, answer: { type: "approve" } },
            "person",
          );
        }
        return view !== undefined && isFinal(view.run.status);
      })
      .toBe(true);
  }
}

test("no behaviour of a client hangs a call, approves by itself, runs something twice or loses a run", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(operation, { minLength: 3, maxLength: 12 }), async (operations) => {
      const world = new World();
      try {
        for (const next of operations) {
          await world.apply(next);
          await check(world);
        }
        await bringToTheEnd(world);
        await check(world);
      } finally {
        await world.close();
      }
    }),
    attempts(15),
  );
}, 600_000);
