// @module-tag long
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { silentLogger as logger } from "../../src/core/logger.ts";
import { openPostgres } from "../../src/storage/postgres/storage.ts";
import type { SharedStorage } from "../../src/storage/storage.ts";
import { type PostgresServer, startPostgres } from "../support/postgres-server.ts";
import { streamStoreContract } from "./stream-store.contract.ts";

describe("what servers share", { tags: "postgres" }, () => {
  let server: PostgresServer;
  let schemas = 0;
  const opened: SharedStorage[] = [];
  beforeAll(async () => {
    server = await startPostgres();
  }, 60_000);
  afterAll(async () => {
    await Promise.all(opened.map((one) => one.close()));
    await server.stop();
  });

  const open = async (schema: string): Promise<SharedStorage> => {
    const one = await openPostgres({ url: server.url, schema, connections: 3, logger });
    opened.push(one);
    return one;
  };
  const newSchema = (): string => `shared_${(schemas += 1)}`;

  streamStoreContract("Postgres", async () => {
    const schema = newSchema();
    return {
      connect: async () => (await open(schema)).openStreams(),
      close: async () => undefined,
    };
  });

  test("a secret is the same for all servers, and another for another name", async () => {
    const schema = newSchema();
    const [one, other] = await Promise.all([open(schema), open(schema)]);
    const secrets = await Promise.all([one.secret("state"), other.secret("state"), one.secret("links")]);
    expect(secrets.map((secret) => secret.byteLength)).toEqual([32, 32, 32]);
    expect(secrets[0]).toEqual(secrets[1]);
    expect(secrets[0]).not.toEqual(secrets[2]);
  });
});
