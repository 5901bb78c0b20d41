// @module-tag long
import { afterAll, beforeAll, describe } from "vitest";
import { type Connections, openPool } from "../../src/storage/postgres/pool.ts";
import { PostgresStore, type PostgresStoreOptions } from "../../src/storage/postgres/store.ts";
import { type PostgresServer, startPostgres } from "../support/postgres-server.ts";
import { memoryStoreContract } from "./memory-store.contract.ts";
import { storeContract } from "./store.contract.ts";

describe("PostgresStore", { tags: "postgres" }, () => {
  let server: PostgresServer;
  let schemas = 0;
  const opened: Connections[] = [];
  beforeAll(async () => {
    server = await startPostgres();
  }, 60_000);
  afterAll(async () => {
    await Promise.all(opened.map((one) => one.pool.end()));
    await server.stop();
  });

  const open = async (options?: PostgresStoreOptions): Promise<PostgresStore> => {
    const schema = `store_${(schemas += 1)}`;
    const one = await openPool({ url: server.url, schema, connections: 3 });
    opened.push(one);
    return new PostgresStore(one.pool, options);
  };

  storeContract("as LangGraph's stores", open);
  memoryStoreContract("Postgres", open);
});
