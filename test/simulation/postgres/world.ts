/** A world whose servers are processes on one Postgres, each behind a link that can be slow or cut. */
import { type ChildProcess, fork } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import type { PrincipalRuns } from "../../../src/runs/service.ts";
import type { PostgresServer } from "../../support/postgres-server.ts";
import { TcpLink } from "../../support/tcp-link.ts";
import { emptyDatabase } from "../driver.ts";
import type { Disturbed, Reached } from "../faults.ts";
import type { EndedWorld } from "../invariants.ts";
import { TOKEN_LIMITS } from "../moves.ts";
import { messagesIn, tokensIn } from "../moves-threads.ts";
import { Workspace } from "../workspace.ts";
import { markOf } from "./process-mark.ts";
import { SPEED, later, worldTime } from "./real-machine.ts";
import type { NoteFile, Request } from "./server.ts";
import { partsOf } from "./threads.ts";

type WithoutId<R> = R extends unknown ? Omit<R, "id"> : never;

/** A process that can be a server of one world after the other. */
export class ServerProcess {
  readonly child: ChildProcess;
  readonly #waiting = new Map<number, (reply: { result?: unknown; error?: string }) => void>();
  #made = 0;

  constructor(program: string) {
    this.child = fork(program, { serialization: "advanced", stdio: ["ignore", "ignore", "inherit", "ipc"] });
    this.child.on("message", (reply: { id: number; result?: unknown; error?: string }) => {
      this.#waiting.get(reply.id)?.(reply);
      this.#waiting.delete(reply.id);
    });
    // Whoever writes to a process that was killed hears of it here.
    this.child.on("error", () => undefined);
  }

  /** Never resolves if the process is killed. */
  ask(request: WithoutId<Request>): Promise<unknown> {
    const id = (this.#made += 1);
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, ({ result, error }) =>
        error === undefined ? resolve(result) : reject(new Error(error)),
      );
      this.child.send({ ...request, id }, () => undefined);
    });
  }

  get isAlive(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }
}

export interface RealServer extends Reached {
  process: ServerProcess;
  link: TcpLink;
}

/** Processes that wait for their next world. */
export class ServerProcesses {
  readonly #idle: ServerProcess[] = [];
  readonly #program: string;
  constructor(program: string) {
    this.#program = program;
  }

  take(): ServerProcess {
    return this.#idle.pop() ?? new ServerProcess(this.#program);
  }

  /** A process that does not close in time is ended. */
  async giveBack(server: ServerProcess): Promise<void> {
    server.child.kill("SIGCONT");
    const closed = server.ask({ kind: "close" }).then(
      () => true,
      () => false,
    );
    if (server.isAlive && (await Promise.race([closed, delay(5000, false)]))) this.#idle.push(server);
    else server.child.kill("SIGKILL");
  }

  close(): void {
    for (const { child } of this.#idle) child.kill("SIGKILL");
  }
}

export interface Takeover {
  runId: string;
  killedAt: number;
}

export class PostgresWorld implements Disturbed<RealServer> {
  readonly servers: RealServer[] = [];
  readonly workspace: Workspace;
  readonly problems: string[] = [];
  readonly isOneMachine: boolean;
  readonly tokenLimit: number;
  readonly #seed: number;
  readonly #draw: () => number;
  readonly #postgres: PostgresServer;
  readonly #processes: ServerProcesses;
  readonly #database: pg.Client;
  /** Runs whose server was killed while another one was there. */
  readonly #orphaned: Takeover[] = [];
  #isOver = false;

  constructor(
    seed: number,
    draw: () => number,
    { postgres, processes }: { postgres: PostgresServer; processes: ServerProcesses },
  ) {
    this.#seed = seed;
    this.#draw = draw;
    this.#postgres = postgres;
    this.#processes = processes;
    this.isOneMachine = draw() < 0.5;
    this.tokenLimit = TOKEN_LIMITS[draw() < 0.2 ? "low" : "usual"];
    this.workspace = new Workspace(`pg-${seed}`);
    const types = {
      getTypeParser: ((type: number, format: "text") =>
        type === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(type, format)) as never, // as `pg` calls it
    };
    this.#database = new pg.Client({ connectionString: this.#url, application_name: "world", types });
    this.#database.on("error", () => undefined);
  }

  get #url(): string {
    return this.#postgres.url.replace(/\/postgres$/, `/world_${this.#seed}`);
  }

  async begin(servers: number): Promise<void> {
    await this.#database.connect();
    await Promise.all(Array.from({ length: servers }, () => this.open()));
  }

  problem(text: string): void {
    if (!this.problems.includes(text)) this.problems.push(text);
  }

  async open(): Promise<void> {
    const link = await TcpLink.open(this.#postgres.port);
    const server = this.#processes.take();
    const settings = {
      url: link.to(this.#url),
      home: this.workspace.home,
      seed: this.#seed,
      isOneMachine: this.isOneMachine,
      tokenLimit: this.tokenLimit,
    };
    // Its connections may be ended meanwhile.
    for (let isOpen = false; !isOpen && !this.#isOver;)
      isOpen = await server.ask({ kind: "open", settings }).then(
        () => true,
        () => delay(500, false),
      );
    const place = { name: String(server.child.pid), isDead: false, stoppedUntil: 0, aheadMs: 0 };
    const runs = remoteRuns((path, args) => server.ask({ kind: "call", path, args }));
    this.servers.push({ place, process: server, link, service: { as: () => runs } });
  }

  async kill(server: RealServer): Promise<void> {
    server.process.child.kill("SIGKILL");
    const killedAt = worldTime();
    server.link.close();
    this.servers.splice(this.servers.indexOf(server), 1);
    if (this.servers.length === 0) return;
    const sql = "SELECT id FROM deepagent.runs WHERE ended_at IS NULL AND lease_owner LIKE $1";
    const mark = `%${markOf(server.process.child.pid ?? 0)}`;
    const { rows } = await this.#database.query<{ id: string }>(sql, [mark]);
    for (const { id: runId } of rows) this.#orphaned.push({ runId, killedAt });
  }

  stop({ process: { child } }: RealServer, forMs: number): void {
    child.kill("SIGSTOP");
    void later(forMs).then(() => child.kill("SIGCONT"));
  }

  /** Connections break, or are silent: what was sent comes later, or never. */
  loseConnection({ link }: RealServer, forMs: number): void {
    const share = this.#draw();
    if (share < 0.4) link.breakConnections();
    link.cut(share < 0.7 ? "held" : "lost");
    void later(forMs).then(() => link.mend());
  }

  slowStorage({ link }: RealServer, forMs: number): void {
    link.lateMs = this.#draw() * 200;
    void later(forMs).then(() => (link.lateMs = 0));
  }

  setClock({ process: server }: RealServer, byMs: number): void {
    void server.ask({ kind: "clock", byMs }).catch(() => undefined);
  }

  /** Postgres ends all connections of the servers, in the beginning and in the middle, as an administrator does. */
  fillDisk(forMs: number): void {
    const end = async (): Promise<void> => {
      await this.#database.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND application_name <> 'world'",
        [`world_${this.#seed}`],
      );
    };
    void end()
      .then(() => later(forMs / 2))
      .then(end)
      .catch(() => undefined);
  }

  silenceReceiver(forMs: number): void {
    writeFileSync(join(this.workspace.home, "silent until"), String(worldTime() + forMs / SPEED));
  }

  async holderOf(threadId: string): Promise<RealServer | undefined> {
    const sql = "SELECT lease_owner FROM deepagent.runs WHERE thread_id = $1 AND lease_owner IS NOT NULL";
    const { rows } = await this.#database.query<{ lease_owner: string }>(sql, [threadId]);
    const owner = rows[0]?.lease_owner ?? "";
    return this.servers.find(({ process: { child } }) => owner.endsWith(markOf(child.pid ?? 0)));
  }

  /** No run is open, no news is on its way, and no server has anything left to do for a run. */
  async isQuiet(): Promise<boolean> {
    const { rows } = await this.#database.query<{ count: number }>(
      `SELECT (SELECT count(*) FROM deepagent.runs WHERE ended_at IS NULL OR lease_owner IS NOT NULL)
        + (SELECT count(*) FROM deepagent.news_deliveries) AS count`,
    );
    return rows[0]?.count === 0;
  }

  /** As housekeeping does every hour. */
  async prune(): Promise<void> {
    const [server] = this.servers;
    const pruned = server?.process.ask({ kind: "call", path: ["prune"], args: [{}, "keep"] });
    await Promise.race([pruned, delay(20_000)]);
  }

  #noted<Fact>(file: NoteFile): Fact[] {
    const path = join(this.workspace.home, file);
    const lines = existsSync(path) ? readFileSync(path, "utf8").split("\n") : [];
    // A process that is killed may leave half a line.
    return lines.slice(0, -1).map((line) => JSON.parse(line) as Fact); // written by servers
  }

  /** What is stored, for the checks of simulated worlds. */
  async ended(): Promise<EndedWorld> {
    for (const problem of this.#noted<string>("problems")) this.problem(problem);
    const acts = this.#noted<string>("acts");
    for (const key of new Set(acts)) {
      const times = acts.filter((other) => other === key).length;
      if (times > 1) this.problem(`effect-once: ${key} took place ${times} times`);
    }
    const { rows } = await this.#database.query<{ parts: Buffer | null }>(
      "SELECT parts FROM simulated_threads",
    );
    const threads = rows.map(partsOf);
    const received = new Map<string, number>();
    for (const [id, questions] of this.#noted<[string, number]>("received"))
      received.set(id, Math.max(received.get(id) ?? 0, questions));
    return {
      database: await this.#copy(),
      workspace: this.workspace,
      received,
      tokenLimit: this.tokenLimit,
      problem: (text) => this.problem(text),
      agents: {
        tokensOf: (runIds) => tokensIn(threads, runIds),
        messages: () => messagesIn(threads),
      },
    };
  }

  /** The tables that are checked, in a SQLite of the same form. */
  async #copy(): Promise<EndedWorld["database"]> {
    const database = emptyDatabase();
    database.pragma("foreign_keys = OFF");
    for (const table of ["runs", "run_events", "questions", "effects", "schedule_skips"]) {
      const { rows } = await this.#database.query<Record<string, unknown>>(
        `SELECT * FROM deepagent.${table}`,
      );
      for (const row of rows) {
        const names = Object.keys(row);
        const values = names.map((name) => row[name]);
        database
          .prepare(`INSERT INTO ${table} (${names.join()}) VALUES (${names.map(() => "?").join()})`)
          .run(...values);
      }
    }
    return database;
  }

  /** The last lines that servers logged. */
  log(): string[] {
    return this.#noted<string>("log").slice(-30);
  }

  /** Durations of claims that found a run, and times until a run of a killed server was claimed again. */
  measured(): { claims: number[]; takeovers: number[] } {
    const claims = this.#noted<{ runId: string; at: number; tookMs: number }>("claims");
    const takeovers = this.#orphaned.flatMap(({ runId, killedAt }) => {
      const next = claims.filter((claim) => claim.runId === runId && claim.at > killedAt);
      return next.length === 0 ? [] : [Math.min(...next.map(({ at }) => at)) - killedAt];
    });
    return { claims: claims.map(({ tookMs }) => tookMs), takeovers };
  }

  async close(): Promise<void> {
    this.#isOver = true;
    for (const { link } of this.servers) link.mend();
    await Promise.all(this.servers.map(({ process: server }) => this.#processes.giveBack(server)));
    for (const { link } of this.servers) link.close();
    await this.#database.end().catch(() => undefined);
    this.workspace.close();
  }
}

/** Methods of the groups of `PrincipalRuns`, which `call` carries out in another process. */
function remoteRuns(
  call: (path: readonly string[], args: readonly unknown[]) => Promise<unknown>,
): PrincipalRuns {
  const methods = (group: string): object =>
    new Proxy(
      {},
      {
        get:
          (_, name) =>
          (...args: unknown[]) =>
            call([group, String(name)], args),
      },
    );
  // Every group has methods only, and those that people call return promises.
  return new Proxy({}, { get: (_, group) => methods(String(group)) }) as PrincipalRuns;
}
