/** Connections to a Postgres schema of ours. */
import type { Client, PoolConfig } from "pg";
import { ConfigurationError, codeOf } from "../../core/errors.ts";
import { Access } from "./engine.ts";
import { postgresError } from "./errors.ts";
import { migratePostgres } from "./schema.ts";
import { buildWall } from "./wall.ts";

export interface PostgresOptions {
  /** `postgres://user:password@host/database`, with TLS as `pg` takes it. */
  url: string;
  /** Schema of this server's tables. Default `deepagent`. */
  schema?: string | undefined;
  /** Most connections of this process, besides the one that listens. Default 10. */
  connections?: number | undefined;
  /** Confines principals to their rows: requests are carried out as this role. Default: they are as the server. */
  role?: string | undefined;
}

export interface Connections {
  access: Access;
  schema: string;
  /** A connection of its own, which is not open yet. */
  newClient: () => Client;
}

/** Connects, and makes the tables when they are missing. Throws StorageError, or ConfigurationError for a bad name. */
export async function openPool(options: PostgresOptions): Promise<Connections> {
  const { url, schema = "deepagent", connections = 10, role } = options;
  // Short enough to be a part of other names in Postgres, and the same with and without quotes.
  if (!/^[a-z_][a-z0-9_]{0,39}$/.test(schema)) {
    const message = "The name of a Postgres schema has lowercase letters, digits and _ only, at most 40.";
    throw new ConfigurationError("INVALID_CONFIG", message);
  }
  const { default: pg } = await import("pg").catch((error: unknown) => {
    if (codeOf(error) !== "ERR_MODULE_NOT_FOUND") throw error;
    const message = "storage names a Postgres, which needs a package that is not installed: npm install pg.";
    throw new ConfigurationError("INVALID_CONFIG", message);
  });
  // Postgres releases the locks of a process that was cut off in a transaction within a lease.
  const session = ["lock_timeout=4s", "idle_in_transaction_session_timeout=5s"];
  const config: PoolConfig & { pipeline: boolean } = {
    connectionString: url,
    max: connections,
    connectionTimeoutMillis: 10_000,
    // A claim on a new connection takes several times as long.
    idleTimeoutMillis: 60_000,
    // A cut network breaks no connection: a query fails whose connection is silent.
    query_timeout: 15_000,
    // Older versions of `pg` send one query after the other.
    pipeline: true,
    application_name: "deepagent-mcp",
    // Numbers of ours are below 2 to the power of 53.
    types: {
      getTypeParser: (type, format) =>
        type === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(type, format),
    },
    options: [`search_path=${schema}`, ...session].map((setting) => `-c ${setting}`).join(" "),
  };
  const pool = new pg.Pool(config);
  // An idle connection that breaks is replaced by the next query.
  pool.on("error", () => undefined);
  // One that breaks in use fails its query; without a listener it would end the process, too.
  pool.on("connect", (client) => client.on("error", () => undefined));
  try {
    await migratePostgres(pool, schema);
    if (role !== undefined) await buildWall(pool, schema, role);
  } catch (thrown) {
    await pool.end();
    throw postgresError(thrown);
  }
  return { access: new Access(pool, role), schema, newClient: () => new pg.Client(config) };
}
