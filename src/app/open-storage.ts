/** Opens the storage that the configuration names. */
import type { Config } from "../config/schema.ts";
import type { Logger } from "../core/logger.ts";
import type { SharedStorage, Storage } from "../storage/storage.ts";

type StorageConfig = Pick<Config, "dataDir" | "storage" | "storageSchema" | "storageConnections">;

/** Files of the data directory, unless a Postgres is configured. */
export async function openStorage(config: StorageConfig, logger: Logger): Promise<Storage> {
  const { storage: url } = config;
  if (url !== undefined) return openSharedStorage({ ...config, storage: url }, logger);
  const { openSqlite } = await import("../storage/sqlite/storage.ts");
  return openSqlite(config.dataDir, logger);
}

export async function openSharedStorage(
  {
    storage: url,
    storageSchema: schema,
    storageConnections: connections,
  }: StorageConfig & { storage: string },
  logger: Logger,
): Promise<SharedStorage> {
  const { openPostgres } = await import("../storage/postgres/storage.ts");
  return openPostgres({ url, schema, connections, logger });
}
