import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { expect, test } from "vitest";
import { isTemporaryName } from "../../src/backends/filesystem/read-write.ts";
import { integrityProblems, openDatabase } from "../../src/storage/sqlite/database.ts";
import { taskClient } from "../e2e/matrix/clients.ts";
import { rpcTo } from "../server/tasks/raw.ts";
import type { ClientKind, Form, FormAnswer } from "../support/clients.ts";
import { connect, openHome, openStdio, type Home } from "../support/harness.ts";
import { wronglyAnswered, type Thought } from "../support/harness-brain.ts";
import { serveHttp, type HttpProcess } from "../support/harness-http-process.ts";
import type { WireReply } from "../support/wire-server.ts";
import { bare, nextReply } from "./script.ts";

/** How long servers are killed, in seconds. */
const SECONDS = Number(process.env["DEEPAGENT_CRASH_SECONDS"] ?? 5);
const SERVERS = 2;
/** Longest life of a server, in milliseconds from when it listens. */
const LIFETIME_MS = 6000;
/** How long a client waits for an answer: some never learn that their server is gone. */
const PATIENCE_MS = 15_000;
/** Each run has a client of one kind, on one transport. */
const CLIENTS = ["v1 http", "v2-legacy stdio", "v2-modern http", "tasks http"] as const;

/** The script as a model of the wire. */
function think({ request }: Thought): WireReply {
  const messages = request.messages.flatMap(({ role, text, toolCalls, toolResults }) => [
    ...toolResults.map(
      ({ id, text: content, error }) =>
        new ToolMessage({ tool_call_id: id, content, status: error ? "error" : "success" }),
    ),
    ...(role === "assistant"
      ? [new AIMessage({ content: text, tool_calls: toolCalls })]
      : role === "user" && text !== ""
        ? [new HumanMessage(text.split("\n\n", 1)[0] ?? "")] // without what the agent is told of its environment
        : []),
  ]);
  const { text = "", toolCalls = [] } = nextReply(messages);
  return { text, toolCalls };
}

const person = {
  form: ({ message }: Form): FormAnswer => ({
    action: "accept",
    content: { decision: message.includes("deny") ? "reject" : "approve" },
  }),
  browser: (): FormAnswer => ({ action: "cancel" }),
};

/** Servers over HTTP on one data directory, each killed at a random moment and replaced. */
class Servers {
  readonly #live: HttpProcess[] = [];
  readonly #home: Home;
  readonly #deadline: number;
  kills = 0;

  constructor(home: Home, deadline: number) {
    this.#home = home;
    this.#deadline = deadline;
  }

  async open(): Promise<HttpProcess> {
    const server = await serveHttp(this.#home);
    this.#live.push(server);
    return server;
  }

  /** A client's own server; in the end it is left alone. */
  async killLater(pid: number): Promise<void> {
    await delay(Math.random() * LIFETIME_MS);
    if (Date.now() > this.#deadline) return;
    try {
      process.kill(pid, "SIGKILL");
      this.kills += 1;
    } catch {
      // Its client was faster.
    }
  }

  async disturb(): Promise<void> {
    while (Date.now() < this.#deadline) {
      const server = await this.open();
      await delay(Math.random() * LIFETIME_MS);
      expect(server.child.process.exitCode).toBeNull();
      this.#live.splice(this.#live.indexOf(server), 1);
      server.child.process.kill("SIGKILL");
      await server.child.exited;
      this.kills += 1;
    }
  }

  any(): HttpProcess {
    const server = this.#live[Math.floor(Math.random() * this.#live.length)];
    if (server === undefined) throw new Error("no server listens now");
    return server;
  }
}

/** Starts the run, or finds it again, and attends to it until it has ended; throws when the server is gone. */
async function attend(
  task: string,
  how: (typeof CLIENTS)[number],
  home: Home,
  servers: Servers,
): Promise<{ status: string; message?: string }> {
  const args = { task, idempotency_key: task };
  if (how === "tasks http") {
    const client = taskClient(rpcTo(servers.any().url), { forms: true, urls: false }, person);
    let { runId, status } = await client.run(args);
    while (["working", "input_required"].includes(status)) ({ status } = await client.look(runId));
    return { status };
  }
  const [kind, transport] = how.split(" ") as [ClientKind, string]; // as in CLIENTS
  const stdio = transport === "stdio" ? await openStdio(home) : undefined;
  const client = await connect(stdio ?? servers.any().connector, kind, person.form);
  if (stdio !== undefined) void servers.killLater(stdio.pid());
  try {
    const options = { timeout: PATIENCE_MS };
    let { structured } = await client.call("run_deep_agent", args, options);
    while (["working", "input_required"].includes(String(structured["status"]))) {
      ({ structured } = await client.call("check_deep_agent", { run_id: structured["run_id"] }, options));
    }
    return { status: String(structured["status"]), message: String(structured["message"]) };
  } finally {
    await client.close();
  }
}

/** As often as it takes: each time with a fresh connection. */
async function persist(
  task: string,
  how: (typeof CLIENTS)[number],
  home: Home,
  servers: Servers,
): Promise<number> {
  for (let tries = 1; ; tries += 1) {
    try {
      const late = delay(PATIENCE_MS, undefined, { ref: false }).then(() =>
        Promise.reject(new Error("late")),
      );
      const { status, message } = await Promise.race([attend(task, how, home, servers), late]);
      expect(status, message).toBe("completed");
      return tries;
    } catch (error) {
      if (error instanceof Error && error.name === "AssertionError") throw error;
      await delay(100);
    }
  }
}

test(
  "clients of every kind have their runs done by servers that are killed",
  { tags: "long", timeout: SECONDS * 10_000 + 600_000 },
  async () => {
    // Nobody's servers end as often as these.
    const env = { DEEPAGENT_LOG_LEVEL: "warn", DEEPAGENT_LIMITS_SERVER_CRASHES: "1000000" };
    const home = await openHome({ think, env });
    const deadline = Date.now() + SECONDS * 1000;
    const servers = new Servers(home, deadline);
    const disturbed = Promise.all(Array.from({ length: SERVERS }, () => servers.disturb()));
    const runs: { run: string; how: (typeof CLIENTS)[number] }[] = [];
    let connections = 0;
    const finished = CLIENTS.map(async (how) => {
      do {
        const run = `run-${runs.length}`;
        runs.push({ run, how });
        connections += await persist(`wire ${run}`, how, home, servers);
      } while (Date.now() < deadline);
    });
    await disturbed;
    await servers.open();
    await Promise.all(finished);

    for (const { run } of runs) {
      const folder = join(home.workspace, run);
      const read = (name: string) => readFileSync(join(folder, name), "utf8");
      // A kill leaves a write unfinished under a name that no agent is shown.
      const names = readdirSync(folder).filter((name) => !isTemporaryName(name));
      expect(names.toSorted()).toEqual(["commands.txt", "main.md", "one.md", "two.md"]);
      expect([read("main.md"), read("one.md")]).toEqual([`report of ${run}, revised\n`, `one of ${run}\n`]);
      const lines = read("commands.txt").trimEnd().split("\n").map(bare);
      expect(lines.toSorted()).toEqual(
        ["ends", "one ends", "two ends", "works"].map((text) => `${run} ${text}`),
      );
    }
    expect([wronglyAnswered(home.brain), home.brain.refusals]).toEqual([[], []]);
    for (const file of ["deepagent.db", "checkpoints.db"]) {
      const database = openDatabase(join(home.dataDir, file));
      expect(integrityProblems(database)).toEqual([]);
      database.close();
    }
    console.log(`${servers.kills} kills; ${runs.length} runs over ${connections} connections`);
  },
);
