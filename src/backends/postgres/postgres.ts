import { ConfigurationError } from "../../core/errors.ts";
import { type OptionTable, readOptions } from "../../core/options.ts";
import { FileStoreBackend } from "../file-store.ts";
import type { LoadPackage } from "../optional-package.ts";
import { validatePath } from "../paths.ts";
import { type PostgresPool, PostgresFiles } from "./files.ts";

export interface PostgresBackendOptions {
  /** `postgres://user:password@host:port/database`. Default: the `PG…` variables of the environment. */
  connectionString?: string;
  /** A pool of the package `pg` in the place of a connection string. Whoever made it ends it. */
  pool?: PostgresPool;
  /** `name` or `schema.name`; made when it is missing. Default `deepagent_files`. */
  table?: string;
  /** Path in the table below which these files are, such as `/team-a`. Default: all of the table. */
  prefix?: string;
  /** Largest file, in MiB. Default 32. */
  maxFileSizeMb?: number;
  /** Loads the package `pg`. Default: `import`. */
  load?: LoadPackage;
}

const OPTIONS: OptionTable<PostgresBackendOptions> = {
  connectionString: "a text",
  pool: "anything",
  table: "a text",
  prefix: "a text",
  maxFileSizeMb: "a number",
  load: "a function",
};

/**
 * Files as rows of a Postgres table: `path`, `content`, `created_at`, `modified_at`, and columns for size, encoding
 * and version. Kept across threads and shared by all that use the table.
 *
 * Writes are compare-and-set. An operation reads only rows below its path: `ls` gets one row for each entry,
 * `glob` paths and sizes, `grep` the contents of the files whose names its filter accepts. Needs the package `pg`.
 */
export class PostgresBackend extends FileStoreBackend {
  readonly #files: PostgresFiles;

  constructor(options: PostgresBackendOptions = {}) {
    const given = readOptions("PostgresBackend", options, OPTIONS);
    const { connectionString, pool, table = "deepagent_files", maxFileSizeMb = 32, load } = given;
    if (connectionString !== undefined && pool !== undefined) {
      throw unusable("give a connectionString or a pool");
    }
    if (!TABLE.test(table)) {
      throw unusable("table must be a name such as deepagent_files or schema.deepagent_files");
    }
    if (!(maxFileSizeMb > 0)) throw unusable("maxFileSizeMb must be more than 0");
    const files = new PostgresFiles({
      table,
      prefix: folderOf(given.prefix),
      maxBytes: maxFileSizeMb * 1024 * 1024,
      pool,
      connectionString,
      load,
    });
    super(files);
    this.#files = files;
  }

  /** Ends the connections that this backend opened. */
  close(): Promise<void> {
    return this.#files.close();
  }
}

const TABLE = /^(?:[A-Za-z_][A-Za-z0-9_]{0,62}\.)?[A-Za-z_][A-Za-z0-9_]{0,62}$/;

/** A prefix as what stands before each path; empty for the root. */
function folderOf(prefix: string = "/"): string {
  const valid = validatePath(prefix);
  if (!valid.ok) throw unusable(`prefix: ${valid.error}`);
  return valid.path === "/" ? "" : valid.path;
}

const unusable = (problem: string): ConfigurationError =>
  new ConfigurationError("POSTGRES_OPTIONS", `The options of PostgresBackend are not usable: ${problem}`);
