import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { packageRoot } from "../src/config/paths.ts";
import {
  type ClientKind,
  type Form,
  type FormAnswer,
  type TestClient,
  connectClient,
} from "../test/support/clients.ts";
import { type PostgresServer, startPostgres } from "../test/support/postgres-server.ts";
import { type WireServer, startWireServer } from "../test/support/wire-server.ts";
import { COMMAND, type MainJobModel } from "./main-job-model.ts";

export type StorageKind = "sqlite" | "postgres";

/** Longest time of the job, in milliseconds. */
const PATIENCE_MS = 240_000;
const FINAL = ["completed", "failed", "cancelled"];

/** A server process and what belongs to it. */
interface Slot {
  model: WireServer;
  dataDir: string;
  /** Process id while it runs. */
  pid?: number | undefined;
  url?: string;
}

export interface FollowOptions {
  /** Called when the person answers for the first time that the proposed change is applied. */
  applied(): void;
}

interface LabOptions {
  packed: boolean;
  model: MainJobModel;
}

/** A workspace, a storage, and the servers that share them: one over stdio on SQLite, two over HTTP on Postgres. */
export async function openLab(kind: StorageKind, options: LabOptions): Promise<Lab> {
  const folder = mkdtempSync(join(tmpdir(), "deepagent-main-job-"));
  chmodSync(folder, 0o755);
  const workspace = join(folder, "workspace");
  cpSync(join(packageRoot(), "demo/workspace"), workspace, { recursive: true });
  const postgres = kind === "postgres" ? await startPostgres() : undefined;
  const lab = new Lab({ folder, workspace, postgres, program: programIn(folder, kind, options.packed) });
  for (let n = 0; n < (postgres ? 2 : 1); n += 1) await lab.addServer(options.model);
  return lab;
}

/** The command that starts the program: as it was built, or installed from its package as docs/scale.md says. */
function programIn(folder: string, kind: StorageKind, isPacked: boolean): readonly string[] {
  if (!isPacked) return [process.execPath, join(packageRoot(), "dist/bin/deepagent-mcp.js")];
  const npm = (cwd: string, ...args: string[]): string =>
    execFileSync("npm", args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  const script = join(packageRoot(), "scripts/package.mjs");
  const file = execFileSync(process.execPath, [script, folder], { encoding: "utf8" }).trim();
  const home = join(folder, "installed");
  mkdirSync(home);
  npm(home, "init", "--yes");
  const packages = [file, ...(kind === "postgres" ? ["pg"] : [])];
  npm(home, "install", "--silent", "--no-audit", "--no-fund", ...packages);
  return ["npx", "--no-install", "deepagent-mcp"];
}

export class Lab {
  readonly workspace: string;
  /** Contents of the workspace's files before the job, by relative path. */
  readonly original: ReadonlyMap<string, string>;
  readonly #folder: string;
  readonly #program: readonly string[];
  readonly #postgres: PostgresServer | undefined;
  readonly #slots: Slot[] = [];
  kills = 0;

  constructor(parts: {
    folder: string;
    workspace: string;
    postgres: PostgresServer | undefined;
    program: readonly string[];
  }) {
    this.#folder = parts.folder;
    this.workspace = parts.workspace;
    this.#postgres = parts.postgres;
    this.#program = parts.program;
    this.original = filesIn(parts.workspace);
  }

  async addServer(model: MainJobModel): Promise<void> {
    const number = this.#slots.length;
    const wire = await startWireServer((request) => model.reply(request, number));
    this.#slots.push({ model: wire, dataDir: join(this.#folder, `data-${number}`) });
  }

  get refusals(): string[] {
    return this.#slots.flatMap(({ model }) => model.refusals);
  }

  /** Files that are left in the copies of the workspace. */
  get copies(): string[] {
    const folder = join(this.#folder, "proposals");
    return existsSync(folder) ? readdirSync(folder) : [];
  }

  filesNow(): Map<string, string> {
    return filesIn(this.workspace);
  }

  /** Kills a server, as a crash would. */
  kill(number: number): void {
    const slot = this.#slots[number];
    if (slot?.pid === undefined) return;
    for (const pid of [slot.pid, ...descendantsOf(slot.pid)]) killHard(pid);
    slot.pid = undefined;
    this.kills += 1;
  }

  /** Kills all servers after some milliseconds. */
  killSoon(milliseconds: number): void {
    setTimeout(() => this.#slots.forEach((_, number) => this.kill(number)), milliseconds);
  }

  /** Starts the run through a client that shows no forms. */
  async start(task: string): Promise<string> {
    const client = await this.#connect();
    try {
      const { structured, text } = await client.call("run_deep_agent", {
        task,
        changes: "propose",
        wait_seconds: 0,
      });
      if (typeof structured["run_id"] !== "string") throw new Error(text);
      return structured["run_id"];
    } finally {
      if (this.#postgres) await client.close();
    }
  }

  /** Watches the run to its end as a person would, with a new client after each crash. */
  async follow(runId: string, { applied }: FollowOptions) {
    const answered: string[] = [];
    const person = (form: Form): FormAnswer => {
      const isReview = !form.message.includes(COMMAND);
      if (isReview && !answered.includes("review")) applied();
      answered.push(isReview ? "review" : "approval");
      return { action: "accept", content: { decision: isReview ? "all" : "approve" } };
    };
    for (const until = performance.now() + PATIENCE_MS; performance.now() < until; await delay(100)) {
      try {
        const client = await this.#connect(person);
        for (;;) {
          const { structured } = await client.call("check_deep_agent", { run_id: runId, wait_seconds: 5 });
          if (!FINAL.includes(String(structured["status"]))) continue;
          const events = await eventsOf(client, runId);
          return { report: structured, events, answered };
        }
      } catch {
        // The server was killed: the next one continues.
      }
    }
    throw new Error(`The run did not end within ${PATIENCE_MS / 1000} s.`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#slots.forEach((_, number) => this.kill(number));
    await Promise.all(this.#slots.map(({ model }) => model.close()));
    await this.#postgres?.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #connect(person?: (form: Form) => FormAnswer): Promise<TestClient> {
    const options = {
      kind: (this.#postgres ? "v2-modern" : "v1") as ClientKind,
      ...(person ? { person } : {}),
    };
    if (this.#postgres === undefined) {
      const [slot] = this.#slots;
      if (slot === undefined) throw new Error("no server");
      this.kill(0);
      const [command = "", ...args] = this.#program;
      const cwd = this.#folderOfProgram();
      const transport = new StdioClientTransport({
        command,
        args,
        cwd,
        env: this.#environment(slot),
        stderr: "ignore",
      });
      const connected = await connectClient({ first: () => transport, modern: () => unavailable() }, options);
      slot.pid = transport.pid ?? undefined;
      return connected;
    }
    for (const slot of this.#slots) await this.#serve(slot);
    const { url } = this.#slots[this.kills % this.#slots.length] ?? {};
    const transport = new StreamableHTTPClientTransport(new URL(url ?? ""));
    return connectClient({ first: () => unavailable(), modern: () => transport }, options);
  }

  #folderOfProgram(): string {
    return this.#program[0] === "npx" ? join(this.#folder, "installed") : this.#folder;
  }

  #environment({ model, dataDir }: Slot): Record<string, string> {
    const { PATH = "" } = process.env;
    return {
      PATH,
      HOME: this.#folder,
      ANTHROPIC_API_KEY: "",
      ...(model.env("anthropic") as Record<string, string>),
      DEEPAGENT_MODEL: "anthropic:claude-sonnet-4-5-20250929",
      DEEPAGENT_WORKSPACE: this.workspace,
      DEEPAGENT_DATA_DIR: dataDir,
      DEEPAGENT_PROPOSALS_FOLDER: join(this.#folder, "proposals"),
      ...(this.#postgres ? { DEEPAGENT_STORAGE: this.#postgres.url } : {}),
    };
  }

  /** Starts the server of a slot, unless it runs. */
  async #serve(slot: Slot): Promise<void> {
    if (slot.pid !== undefined) return;
    const [command = "", ...args] = this.#program;
    const env = this.#environment(slot);
    const child = spawn(command, [...args, "serve", "--http", "--port", "0"], {
      cwd: this.#folderOfProgram(),
      env,
      stdio: ["ignore", "ignore", "pipe"],
    });
    slot.pid = child.pid;
    slot.url = await addressOf(child);
  }
}

async function addressOf(child: ChildProcess): Promise<string> {
  let said = "";
  const found = new Promise<string>((resolve) => {
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      said = (said + text).slice(-20_000);
      const url = /Serving MCP at (\S+)/.exec(said)?.[1];
      if (url !== undefined) resolve(url);
    });
  });
  const gone = once(child, "exit").then(() => Promise.reject(new Error(`The server has ended: ${said}`)));
  return Promise.race([found, gone]);
}

async function eventsOf(client: TestClient, runId: string): Promise<unknown[]> {
  const events: unknown[] = [];
  for (;;) {
    const after = events.length;
    const { contents } = await client.readResource(`deepagent://runs/${runId}/events?after=${after}`);
    const text = contents[0]?.["text"];
    const lines = typeof text === "string" ? text.split("\n").filter(Boolean) : [];
    if (lines.length === 0) return events;
    for (const line of lines) events.push(JSON.parse(line));
  }
}

/** Contents by relative path, without the mark that servers on one Postgres know a folder by. */
function filesIn(folder: string): Map<string, string> {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).sort();
  const files = names.filter(
    (name) => statSync(join(folder, name)).isFile() && !name.startsWith(".deepagent"),
  );
  return new Map(files.map((name) => [name, readFileSync(join(folder, name), "utf8")]));
}

/** Processes that a process started, and theirs. */
function descendantsOf(pid: number): number[] {
  const table = execFileSync("ps", ["-A", "-o", "pid=,ppid="], { encoding: "utf8" });
  const pairs = table
    .trim()
    .split("\n")
    .map((line) => line.trim().split(/\s+/).map(Number));
  const children = (parent: number): number[] =>
    pairs.flatMap(([child = 0, owner]) => (owner === parent ? [child, ...children(child)] : []));
  return children(pid);
}

function killHard(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}

function unavailable(): never {
  throw new Error("This client speaks the other revision.");
}
