/** Opens the storage that the configuration names. */
import { mkdir } from "node:fs/promises";
import type { Config } from "../config/schema.ts";
import type { Storage } from "../storage/storage.ts";
import { type RunSettings, largeValuesOf } from "./settings.ts";

export interface StorageSettings extends Pick<RunSettings, "env" | "logger"> {
  config: Pick<
    Config,
    "dataDir" | "storage" | "storageSchema" | "storageConnections" | "storageS3" | "storageRole"
  >;
}

/** Files of the data directory, unless a Postgres is configured. */
export async function openStorage(settings: StorageSettings): Promise<Storage> {
  const { dataDir, storage: url } = settings.config;
  if (url !== undefined) return openSharedStorage(url, settings);
  const { openSqlite } = await import("../storage/sqlite/storage.ts");
  return openSqlite(dataDir, settings.logger);
}

export async function openSharedStorage(url: string, { config, env, logger }: StorageSettings) {
  const { storageSchema: schema, storageConnections: connections, storageRole: role } = config;
  // For keys, log-ins and the address of the page. A failure is reported by whoever writes there.
  await mkdir(config.dataDir, { recursive: true, mode: 0o700 }).catch(() => {});
  const { openPostgres } = await import("../storage/postgres/storage.ts");
  return openPostgres({ url, schema, connections, role, logger, largeValues: largeValuesOf(config, env) });
}
