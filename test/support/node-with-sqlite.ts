import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { hasNodeSqlite } from "../../src/storage/sqlite/node-driver.ts";

/** The one that the conformance suite runs on. */
const KIT = fileURLToPath(new URL("../conformance/kit/node_modules/node/bin/node", import.meta.url));

/** A Node that has SQLite in it: this one, or that of the conformance suite. */
export function nodeWithSqlite(): string | undefined {
  if (hasNodeSqlite()) return process.execPath;
  return existsSync(KIT) ? KIT : undefined;
}
