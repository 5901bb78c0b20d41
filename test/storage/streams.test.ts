import { join } from "node:path";
import { openStreams } from "../../src/storage/sqlite/streams.ts";
import { streamStoreContract } from "./stream-store.contract.ts";
import { temporaryFolder } from "./support.ts";

streamStoreContract("SQLite", async () => {
  const file = join(temporaryFolder(), "streams.db");
  return { connect: () => openStreams(file), close: async () => undefined };
});
