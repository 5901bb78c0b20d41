import { inSharedStorage, largeValuesOf } from "../app/settings.ts";
import { loadConfig } from "../config/load.ts";
import { DeepAgentError } from "../core/errors.ts";
import { silentLogger } from "../core/logger.ts";
import type { CommandArguments, ExitCode } from "./command.ts";
import { complain, say } from "./output.ts";

/** Copies the contents of the data directory into the Postgres that `--storage` names. */
export async function runStorage({ flags, host, positionals }: CommandArguments): Promise<ExitCode> {
  if (positionals[0] !== "copy") return complain("storage has one action: copy.", 2);
  const loaded = loadConfig({ flags, ...host });
  if (!loaded.ok) return complain(loaded.problems.join("; "), 2);
  const { dataDir, storage: url, storageSchema: schema } = loaded.config;
  if (url === undefined) return complain("Name the Postgres with DEEPAGENT_STORAGE or --storage.", 2);
  const interrupt = new AbortController();
  process.once("SIGINT", () => interrupt.abort());
  process.once("SIGTERM", () => interrupt.abort());
  const [{ openPool }, { LargeObjects, assertPlace }, { copyToPostgres }] = await Promise.all([
    import("../storage/postgres/pool.ts"),
    import("../storage/postgres/checkpoints/objects.ts"),
    import("../storage/copy.ts"),
  ]);
  try {
    const { access } = await openPool({ url, schema });
    const place = largeValuesOf(loaded.config, host.env);
    const objects = place && new LargeObjects(access, place);
    try {
      await assertPlace(access, objects, silentLogger);
      const { signal } = interrupt;
      const to = { access, objects, environment: inSharedStorage };
      for await (const table of copyToPostgres({ dataDir, signal, ...to })) {
        const { name, found, copied } = table;
        const note = found === copied ? "" : `, ${found - copied} already existed`;
        say(`${name.padEnd(16)}${copied} copied${note}`);
      }
    } finally {
      await objects?.close();
      await access.pool.end();
    }
  } catch (error) {
    if (interrupt.signal.aborted) return complain("Interrupted. Run the same command again to continue.");
    if (error instanceof DeepAgentError) return complain(error.message);
    throw error;
  }
  return say("Copied and verified everything. The original files are not changed.");
}
