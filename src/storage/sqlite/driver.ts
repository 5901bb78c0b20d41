/** Chooses the SQLite of this process: Node's own, or better-sqlite3 for a Node without it. */
import { createRequire } from "node:module";
import { basename, dirname } from "node:path";
import type { Database, OpenOptions } from "./api.ts";
import { NODE_SQLITE, hasNodeSqlite, openNodeDatabase } from "./node-driver.ts";
import { codeOf, orElse } from "../../core/errors.ts";

const load = createRequire(import.meta.url);

const PACKAGE = "better-sqlite3";

/** The driver that this Node uses, by the name of its module. */
export const DRIVER = hasNodeSqlite() ? NODE_SQLITE : PACKAGE;

/** A name of the driver that `require` finds from any folder, for threads and other processes. */
export const driverModule = (): string => (DRIVER === PACKAGE ? load.resolve(PACKAGE) : DRIVER);

/** Opens `file`, or a database in memory. Throws `SqliteError`, or an error that `missingModule` explains. */
export function openConnection(file: string, options?: OpenOptions): Database {
  if (DRIVER === NODE_SQLITE) return openNodeDatabase(file, options);
  // The package has every member of the interface.
  const BetterSqlite = load(PACKAGE) as new (file: string, options?: OpenOptions) => Database;
  return new BetterSqlite(file, options);
}

/** An error of SQLite itself; `code` is its extended result code. */
type SqliteError = Error & { code: string };

export const sqliteError = (message: string, code: string): SqliteError =>
  Object.assign(new Error(message), { name: "SqliteError", code });

export const isSqliteError = (thrown: unknown): thrown is SqliteError =>
  thrown instanceof Error && thrown.name === "SqliteError" && "code" in thrown;

/** Returns why better-sqlite3 could not be loaded; `undefined` when `thrown` is another error. */
export function missingModule(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error)) return undefined;
  const code = codeOf(thrown);
  if (code === "ERR_DLOPEN_FAILED")
    return "is damaged, or was built for another version of Node or another system";
  if (code === "ERR_DLOPEN_DISABLED") return "cannot be loaded, because Node was started with --no-addons";
  const isMissing = code === "MODULE_NOT_FOUND" && thrown.message.includes(PACKAGE);
  if (isMissing && !isInstalled()) return "is not installed";
  // The package looks for its native module in several places.
  return "tries" in thrown || isMissing
    ? "was not built when this program was installed, as with --ignore-scripts"
    : undefined;
}

const isInstalled = (): boolean => orElse(() => load.resolve(PACKAGE), undefined) !== undefined;

/** Arguments of npm that repair the installation. npm removes an optional package whose build failed. */
const remedy = (): string =>
  isInstalled() ? `rebuild ${PACKAGE} --ignore-scripts=false` : `install ${PACKAGE}@12`;

/** The command that repairs the installation, in the folder where this program is installed. */
export const repairCommand = (): string => `npm ${remedy()}`;

/** The command that repairs the installation, in any folder. */
export function repairAnywhere(): string {
  const own = dirname(load.resolve("deepagent-mcp/package.json"));
  const modules = dirname(own);
  const folder = basename(modules) === "node_modules" ? dirname(modules) : own;
  return `npm --prefix "${folder}" ${remedy()}`;
}
