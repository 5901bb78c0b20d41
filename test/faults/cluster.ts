import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { freePort } from "../support/free-port.ts";
import { type PostgresServer, startPostgres } from "../support/postgres-server.ts";
import { TcpLink } from "../support/tcp-link.ts";
import { type WireServer, startWireServer } from "../support/wire-server.ts";
import { Member } from "./member.ts";
import { reply } from "./script.ts";

export interface ClusterOptions {
  /** The program to run. */
  program: string;
  /** Another MCP server, whose tool appends a line to the file in its first argument. */
  linesServer: string;
  random: () => number;
  flushes?: boolean;
}

const SCHEMA = "deepagent";
/** Servers for clients, one of which works too, and workers, by their arguments. */
const ROLES: readonly [name: string, args: readonly string[]][] = [
  ["server", ["serve", "--http"]],
  ["front", ["serve", "--http", "--no-work"]],
  ["worker-1", ["work"]],
  ["worker-2", ["work"]],
];

/** Servers and workers on one Postgres, each with a network to it, and a model and a tool outside. */
export class Cluster {
  readonly members: readonly Member[];
  /** What the tool left behind, a line for each call. */
  readonly effects: string;
  readonly folder: string;
  readonly #model: WireServer;
  #postgres: PostgresServer;
  #former: PostgresServer[] = [];

  private constructor(
    folder: string,
    { members, model, postgres }: { members: readonly Member[]; model: WireServer; postgres: PostgresServer },
  ) {
    this.folder = folder;
    this.effects = join(folder, "effects.txt");
    this.members = members;
    this.#model = model;
    this.#postgres = postgres;
  }

  static async open({ program, linesServer, random, flushes = false }: ClusterOptions): Promise<Cluster> {
    const folder = mkdtempSync(join(tmpdir(), "deepagent-faults-"));
    mkdirSync(join(folder, "workspace"));
    writeFileSync(join(folder, "effects.txt"), "");
    const settings = { wal_keep_size: "512MB" };
    const postgres = await startPostgres({ flushes, settings });
    const model = await startWireServer(async (request) => {
      await delay(20 + random() * 200);
      return reply(request);
    });
    const lines = { command: process.execPath, args: [linesServer, join(folder, "effects.txt")] };
    const config = join(folder, "config.json");
    const mcpServers = { lines: { ...lines, approve: "none" }, asking: { ...lines, approve: "all" } };
    const http = { requestsPerMinute: 1_000_000, sessions: 10_000, sessionsPerPrincipal: 10_000 };
    const limits = { serverCrashes: 1000, openRuns: 10_000 };
    const approvals = { allowModelAnswers: true };
    writeFileSync(config, JSON.stringify({ mcpServers, http, limits, approvals, execute: { mode: "off" } }));
    const members: Member[] = [];
    for (const [name, args] of ROLES) {
      const link = await TcpLink.open(postgres.port);
      const port = args[0] === "serve" ? await freePort() : undefined;
      const env = {
        PATH: process.env["PATH"],
        HOME: folder,
        DEEPAGENT_MODEL: "anthropic:claude-test",
        DEEPAGENT_STORAGE: link.to(postgres.url),
        DEEPAGENT_STORAGE_SCHEMA: SCHEMA,
        DEEPAGENT_STORAGE_CONNECTIONS: "5",
        DEEPAGENT_DATA_DIR: join(folder, name),
        DEEPAGENT_WORKSPACE: join(folder, "workspace"),
        ...model.env("anthropic"),
      };
      const command = [program, ...args, ...(port === undefined ? [] : ["--port", String(port)])];
      const served = port === undefined ? undefined : `http://127.0.0.1:${port}/mcp`;
      members.push(new Member({ name, command: [...command, "--config", config], env, link, url: served }));
    }
    for (const member of members) member.start();
    return new Cluster(folder, { members, model, postgres });
  }

  get postgres(): PostgresServer {
    return this.#postgres;
  }

  get urls(): string[] {
    return this.members.flatMap(({ url }) => url ?? []);
  }

  /** Rows of the tables of runs. */
  query<Row extends object>(sql: string, values: unknown[] = []): Promise<Row[]> {
    return this.#postgres.connected(async (client) => {
      await client.query(`SET search_path = ${SCHEMA}`);
      return (await client.query<Row>(sql, values)).rows;
    });
  }

  /** Replaces the server by a replica that had all that was acknowledged; everybody is led there. */
  async failOver(replica: PostgresServer): Promise<void> {
    const former = this.#postgres;
    await former.end("crash");
    await replica.promote();
    this.#former.push(former);
    this.#postgres = replica;
    for (const { link } of this.members) {
      link.target = replica.port;
      link.breakConnections();
    }
  }

  async close(): Promise<void> {
    for (const member of this.members) await member.kill();
    for (const { link } of this.members) link.close();
    await this.#model.close();
    for (const postgres of [...this.#former, this.#postgres]) await postgres.stop();
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 20 });
  }
}
