import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import type { Database, Options } from "better-sqlite3";

const load = createRequire(import.meta.url);

const NODE = process.versions.node.split(".").map(Number);
const isAtLeast = (major: number, minor: number): boolean =>
  NODE[0] !== undefined && (NODE[0] > major || (NODE[0] === major && (NODE[1] ?? 0) >= minor));

/** Whether this Node is too old for release 13 of better-sqlite3, which crashes it. */
const NEEDS_OLD_RELEASE = !isAtLeast(22, 0);
/** Without Python npm leaves release 13 out, although it comes compiled; release 12 works on most versions of Node. */
const PACKAGE =
  !NEEDS_OLD_RELEASE && isInstalled("better-sqlite3-13") ? "better-sqlite3-13" : "better-sqlite3";

/**
 * Whether the installed release can end the process: release 12 does on Node 24.19 and later, when a statement is
 * collected as garbage while no script runs.
 */
export const CAN_ABORT = PACKAGE === "better-sqlite3" && isAtLeast(24, 19);

function isInstalled(name: string): boolean {
  try {
    load.resolve(name);
    return true;
  } catch {
    return false;
  }
}

/** The command that repairs the installation, where this program is installed. */
export const REPAIR = NEEDS_OLD_RELEASE
  ? "npm rebuild better-sqlite3 --ignore-scripts=false"
  : "npm install --include=optional";

/** The same for any folder. */
export function repairAnywhere(): string {
  // Release 12 is always there: LangGraph's package for SQLite needs it.
  const folder = dirname(load.resolve("better-sqlite3/package.json"));
  return NEEDS_OLD_RELEASE
    ? `npm --prefix "${folder}" run install`
    : `npm --prefix "${join(folder, "../..")}" install --include=optional`;
}

/** What SQLite itself reports; `code` is its extended result code. */
type SqliteError = Error & { code: string };

interface Driver {
  new (file: string, options?: Options): Database;
  SqliteError: new (message: string, code: string) => SqliteError;
}

const driver = (): Driver => load(PACKAGE) as Driver;

/** The file that a thread or another process loads the driver from. */
export const driverFile = (): string => load.resolve(PACKAGE);

/** Opens `file`, or a database in memory. Throws `SqliteError`, or what `missingModule` knows. */
export const openConnection = (file: string, options?: Options): Database => new (driver())(file, options);

/** The error that SQLite reports as `code`. */
export const sqliteError = (message: string, code: string): SqliteError =>
  new (driver().SqliteError)(message, code);

export const isSqliteError = (thrown: unknown): thrown is SqliteError =>
  thrown instanceof Error && thrown.name === "SqliteError" && "code" in thrown;

/** Why the driver cannot be loaded, when that is what was thrown. It is loaded with the first connection. */
export function missingModule(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error)) return undefined;
  const code = "code" in thrown ? thrown.code : undefined;
  if (code === "ERR_DLOPEN_FAILED")
    return "is damaged, or was built for another version of Node or another system";
  const isMissing = code === "MODULE_NOT_FOUND" && thrown.message.includes("better-sqlite3");
  // Release 12 looks for its module in several places.
  return "tries" in thrown || isMissing
    ? "was not built when this program was installed, as with --ignore-scripts"
    : undefined;
}
