import type { RunnableConfig } from "@langchain/core/runnables";
import type { BaseCheckpointSaver, Checkpoint, CheckpointMetadata } from "@langchain/langgraph-checkpoint";
import type { Checkpoints, FencingToken } from "../../../runs/thread-ports.ts";
import type { Database } from "../database.ts";
import { migrate } from "../migrations.ts";
import { DurableSaver } from "./saver.ts";
import { sql, CHECKPOINT_MIGRATIONS } from "./schema.ts";

/** LangGraph's checkpoints in SQLite. The declarations of its own saver would need better-sqlite3. */
export interface SqliteCheckpointer extends BaseCheckpointSaver, Checkpoints {
  /** The messages of graphs inside the thread, with the checkpoint and the task of each. */
  nestedMessages(thread: string): AsyncGenerator<[RunnableConfig, task: string, unknown]>;
  put(config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata): Promise<RunnableConfig>;
  /** Same as for runs; `token` defaults to the one that this process holds. */
  tidyThread(thread: string, token?: FencingToken): Promise<void>;
  /** Same as for runs; copies the newest checkpoint, unless another is named. */
  copyThread(source: string, target: string, checkpointId?: string): Promise<boolean>;
}

/** Makes a checkpointer over `database`, and its tables if they are missing. The caller closes the database. */
export function createCheckpointer(database: Database): SqliteCheckpointer {
  migrate(database, "checkpoints", CHECKPOINT_MIGRATIONS);
  database.exec(sql("fences"));
  return new DurableSaver(database);
}
