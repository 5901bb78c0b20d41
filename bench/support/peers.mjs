// The two that are compared, each with its own SQLite checkpointer and everything else at its defaults.
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import SqliteDatabase from "better-sqlite3";
import { createDeepAgent as createTheirs } from "deepagents";
import { createCheckpointer, createDeepAgent, openDatabase } from "../../dist/index.js";

export const OURS = {
  name: "deepagent-mcp",
  /** As the server opens it. */
  open: (file) => openDatabase(file, { synchronous: "NORMAL" }),
  checkpointer: createCheckpointer,
  create: ({ model, checkpointer, parallel = 8 }) =>
    createDeepAgent({
      model,
      limits: { parallelSubagents: parallel, parallelTools: parallel },
      ...(checkpointer ? { checkpointer } : {}),
    }),
};

export const DEEPAGENTS = {
  name: "deepagents 1.14.1",
  open: (file) => new SqliteDatabase(file),
  checkpointer: (database) => new SqliteSaver(database),
  create: ({ model, checkpointer }) => createTheirs({ model, ...(checkpointer ? { checkpointer } : {}) }),
};
