import { PostgresBackend } from "../../../src/backends/stores/postgres.ts";
import { type PostgresServer, startPostgres } from "../../support/postgres-server.ts";
import type { Subject } from "../contract/contract.ts";

let server: PostgresServer | undefined;
let cases = 0;

/** One server and one table for all cases, a prefix for each. */
export const postgres: Subject = {
  name: "PostgresBackend",
  keepsFilesInState: false,
  tag: "postgres",
  start: async () => {
    const started = (server = await startPostgres());
    return () => started.stop();
  },
  make: () => {
    const backend = new PostgresBackend({ connectionString: server?.url ?? "", prefix: `/case-${++cases}` });
    return { backend, dispose: () => backend.close() };
  },
};
