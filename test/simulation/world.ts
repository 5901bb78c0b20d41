/** A world: servers that share one database, the threads of their agents, and what happens outside. */
import type { Agent } from "../../src/agent/agent.ts";
import { StorageError } from "../../src/core/errors.ts";
import type { Logger } from "../../src/core/logger.ts";
import type { News, SendResult } from "../../src/runs/news.ts";
import type { RunRepository } from "../../src/runs/sql/repository.ts";
import type { Run } from "../../src/runs/run.ts";
import type { Checkpoints } from "../../src/runs/thread-ports.ts";
import { storedRuns } from "../../src/runs/sql/repository.ts";
import type { Engine } from "../../src/runs/sql/steps.ts";
import type { Database } from "../../src/storage/sqlite/database.ts";
import { sqliteEngine } from "../../src/storage/sqlite/engine.ts";
import { assertWritable, prune, storedBytes } from "../../src/storage/sqlite/runs/repository.ts";
import { textIndex } from "../../src/storage/sqlite/runs/text-index.ts";
import { emptyDatabase } from "./driver.ts";
import type { Disturbed } from "./faults.ts";
import { type OpenServer, openServer } from "./server.ts";
import { Workspace } from "./workspace.ts";
import { TOKEN_LIMITS } from "./moves.ts";
import { type Place, inPlace, later, worldTime } from "./virtual-machine.ts";

/** The agents of a world, and their threads. */
export interface Agents {
  /** Of a server, which calls this once for each stretch of work. */
  agentAt(place: Place, run: Run): Promise<Agent>;
  checkpointsAt(place: Place): Checkpoints;
  /** They keep to the token limit of the world. */
  readonly isLimited: boolean;
  /** Tokens that the threads of these runs count, by the ID of the run at their top. */
  tokensOf(runIds: readonly string[]): number;
  /** All messages from outside that agents have in their threads: the reports of these children, and texts. */
  messages(): readonly { text: string; from?: string | undefined; runId: string }[];
  close(): void;
}

export interface Server extends OpenServer {
  place: Place;
}

export class World implements Disturbed<Server> {
  readonly draw: () => number;
  readonly workspace: Workspace;
  readonly database: Database;
  /** That of all servers, which prepares each statement once. */
  readonly #engine: Engine;
  /** How often each effect took place, by its key. */
  readonly acts = new Map<string, number>();
  /** Accepted news by ID, with the number of questions that each stands for. */
  readonly received = new Map<string, number>();
  readonly servers: Server[] = [];
  readonly problems: string[] = [];
  /** Milliseconds from a kill until another server worked on the run, where one was there. */
  readonly takeovers: number[] = [];
  /** When the server of a run was killed. */
  readonly #killedAt = new Map<string, number>();
  /** Servers know that others of their machine are gone. */
  readonly isOneMachine: boolean;
  /** Places of servers that were killed. */
  readonly gone = new Set<string>();
  /** Until then each write fails. */
  #diskFullUntil = 0;
  /** Until then no receiver of news answers. */
  #receiverDownUntil = 0;
  /** Times of the world until which the storage cannot be reached, or is slow, from a place. */
  readonly #unreachableUntil = new Map<string, number>();
  readonly #slowUntil = new Map<string, number>();
  #made = 0;
  /** Number of writes, by which servers see that others wrote. */
  #written = 0;

  readonly tokenLimit: number;
  readonly agents: Agents;

  constructor(name: string, draw: () => number, agentsOf: (world: World) => Agents) {
    this.draw = draw;
    this.workspace = new Workspace(name);
    this.isOneMachine = draw() < 0.5;
    this.database = emptyDatabase();
    this.#engine = sqliteEngine(this.database);
    const limit = TOKEN_LIMITS[draw() < 0.2 ? "low" : "usual"];
    this.agents = agentsOf(this);
    this.tokenLimit = this.agents.isLimited ? limit : Infinity;
  }

  problem(text: string): void {
    if (!this.problems.includes(text)) this.problems.push(text);
  }

  /** An effect outside. */
  act(key: string): void {
    const times = (this.acts.get(key) ?? 0) + 1;
    this.acts.set(key, times);
    if (times > 1) this.problem(`effect-once: ${key} took place ${times} times`);
  }

  /** Starts one more server. */
  open(): Server {
    const place: Place = { name: `s${(this.#made += 1)}`, isDead: false, stoppedUntil: 0, aheadMs: 0 };
    const server = inPlace(place, () => this.#start(place));
    this.servers.push(server);
    return server;
  }

  /** Its process ends between two turns of its event loop. */
  kill(server: Server): void {
    server.place.isDead = true;
    this.gone.add(server.place.name);
    this.servers.splice(this.servers.indexOf(server), 1);
    if (this.servers.length === 0) return;
    const sql = "SELECT id FROM runs WHERE ended_at IS NULL AND lease_owner LIKE ?";
    const held = this.database.prepare(sql).all(`%.sim.${server.place.name}`) as { id: string }[];
    for (const { id } of held) this.#killedAt.set(id, worldTime());
  }

  stop({ place }: Server, forMs: number): void {
    place.stoppedUntil = worldTime() + forMs;
  }

  loseConnection({ place }: Server, forMs: number): void {
    this.#unreachableUntil.set(place.name, worldTime() + forMs);
  }

  slowStorage({ place }: Server, forMs: number): void {
    this.#slowUntil.set(place.name, worldTime() + forMs);
  }

  setClock({ place }: Server, byMs: number): void {
    place.aheadMs += byMs;
  }

  fillDisk(forMs: number): void {
    this.#diskFullUntil = worldTime() + forMs;
  }

  silenceReceiver(forMs: number): void {
    this.#receiverDownUntil = worldTime() + forMs;
  }

  async holderOf(threadId: string): Promise<Server | undefined> {
    const sql = "SELECT lease_owner FROM runs WHERE thread_id = ? AND lease_owner IS NOT NULL";
    const { lease_owner: owner = "" } = (this.database.prepare(sql).get(threadId) ?? {}) as {
      lease_owner?: string;
    };
    return this.servers.find(({ place }) => owner.endsWith(`.sim.${place.name}`));
  }

  #start(place: Place): Server {
    const log = this.#log(place);
    const opened = openServer({
      runs: this.#repository(place),
      workspace: this.workspace,
      agentAt: (run) => this.agents.agentAt(place, run),
      checkpoints: this.agents.checkpointsAt(place),
      send: (news) => this.#deliver(news),
      clock: () => Date.now(),
      timing: { pollMs: 500, heartbeatMs: 1000, leaseMs: 4500 },
      log,
    });
    return { place, ...opened };
  }

  async #deliver(news: News): Promise<SendResult> {
    await later(this.draw() * 200);
    if (worldTime() < this.#receiverDownUntil)
      return { ok: false, problem: "no answer", isUnreachable: true };
    this.received.set(news.id, Math.max(this.received.get(news.id) ?? 0, news.questions ?? 1));
    await later(this.draw() * 200);
    return { ok: true };
  }

  /** The real port over the shared database, whose transactions come late, fail or never answer. */
  #repository(place: Place): RunRepository {
    const real = this.#engine;
    const carryOut = async <T>(kind: "read" | "write", work: () => Promise<T>): Promise<T> => {
      const isSlow = worldTime() < (this.#slowUntil.get(place.name) ?? 0);
      await later(isSlow && kind === "write" ? this.draw() * 3000 : 0);
      if (worldTime() < (this.#unreachableUntil.get(place.name) ?? 0))
        throw new StorageError("storage_io", "The connection to the storage is lost.");
      if (kind === "write" && worldTime() < this.#diskFullUntil)
        throw new StorageError("storage_full", "The disk is full.");
      const result = await work();
      if (kind === "write") this.#written += 1;
      await later();
      // The transaction was carried out, and its caller does not know.
      if (worldTime() < (this.#unreachableUntil.get(place.name) ?? 0))
        throw new StorageError("storage_io", "The connection to the storage is lost.");
      return result;
    };
    const engine: Engine = {
      of: () => engine,
      read: (steps) => carryOut("read", () => real.read(steps)),
      write: (steps) => carryOut("write", () => real.write(steps)),
      note: (steps) => carryOut("write", () => real.note(steps)),
    };
    return storedRuns(engine, {
      watchOthers: (listener, pollMs) => {
        let known = this.#written;
        const timer = setInterval(() => {
          if (this.#written === known) return;
          known = this.#written;
          listener.changedElsewhere();
        }, pollMs);
        return { close: () => clearInterval(timer) };
      },
      prune: (...args) => prune(this.database, engine, ...args),
      storedBytes: (checkpoints) => storedBytes(this.database, checkpoints),
      assertWritable: () => assertWritable(this.database),
      textIndex,
    });
  }

  #log(place: Place): Logger {
    const bad = (event: string, facts?: object): void => {
      const { error } = { error: undefined, ...facts } as { error: unknown };
      const message = error instanceof Error ? `${error.name}: ${error.message}` : "";
      if (!place.isDead) this.problem(`no-internal-errors: ${event} ${message}`.trim());
    };
    const none = (): void => {};
    const claimed = (event: string, facts?: object): void => {
      const { runId } = { runId: "", ...facts };
      const killedAt = event === "run.claimed" ? this.#killedAt.get(runId) : undefined;
      if (killedAt === undefined) return;
      this.#killedAt.delete(runId);
      this.takeovers.push(worldTime() - killedAt);
    };
    return { debug: claimed, info: none, warn: none, error: bad };
  }
}
