import { join } from "node:path";
import { createCheckpointer } from "../../src/storage/sqlite/checkpoints/checkpointer.ts";
import { checkpointsContract } from "./checkpoints.contract.ts";
import { opened, temporaryFolder } from "./support.ts";

checkpointsContract("SQLite", async () => {
  const file = join(temporaryFolder(), "checkpoints.db");
  return {
    connect: async () => createCheckpointer(opened(file, { synchronous: "NORMAL" })),
    close: async () => undefined,
  };
});
