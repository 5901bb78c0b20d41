import * as vitest from "vitest";
import type { CheckpointSaverTestInitializer } from "@langchain/langgraph-checkpoint-validation";
import { PostgresCheckpointer } from "../../src/storage/postgres/checkpoints.ts";
import { type Connections, openPool } from "../../src/storage/postgres/pool.ts";
import { type PostgresServer, startPostgres } from "../support/postgres-server.ts";
import { checkpointsContract } from "./checkpoints.contract.ts";

const { afterAll, beforeAll, describe } = vitest;

describe("PostgresCheckpointer", { tags: "postgres" }, async () => {
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

  const open = async (schema: string): Promise<PostgresCheckpointer> => {
    const one = await openPool({ url: server.url, schema, connections: 3 });
    opened.push(one);
    return new PostgresCheckpointer(one.pool);
  };
  const newSchema = (): string => `checkpoints_${(schemas += 1)}`;

  checkpointsContract("Postgres", async () => {
    const schema = newSchema();
    return { connect: () => open(schema), close: async () => undefined };
  });

  // The conformance suite of LangGraph, which calls `describe`, `it` and `expect` as globals.
  const initializer: CheckpointSaverTestInitializer<PostgresCheckpointer> = {
    // So it leaves out the one test that asks for a table of values per channel.
    checkpointerName: "@langchain/langgraph-checkpoint-sqlite",
    createCheckpointer: () => open(newSchema()),
  };
  Object.assign(globalThis, vitest);
  const { validate, deltaChannelHistoryTests } = await import("@langchain/langgraph-checkpoint-validation");
  validate(initializer);
  deltaChannelHistoryTests(initializer);
});
