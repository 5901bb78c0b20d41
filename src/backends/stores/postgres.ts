import { randomUUID } from "node:crypto";
import { ConfigurationError } from "../../core/errors.ts";
import { readOptions } from "../../core/options.ts";
import tables from "../options.json" with { type: "json" };
import type { FileData } from "../backend.ts";
import { fill } from "../../core/text.ts";
import failures from "../errors.json" with { type: "json" };
import texts from "../texts.json" with { type: "json" };
import { toBytes, toFileData } from "../file-data.ts";
import type { Expected, FileStore, ListOptions, ListedFile, StoredFile } from "../file-store.ts";
import { FileStoreBackend, FileTooLarge } from "../file-store.ts";
import { type LoadPackage, loadOptional } from "../../core/optional-package.ts";
import { defined, memberOf } from "../../core/unknown.ts";
import { validatePath } from "../paths.ts";
import columns from "./postgres-columns.json" with { type: "json" };

/** The part of a `pg` pool that is used. */
export interface PostgresPool {
  query(
    text: string,
    values?: unknown[],
  ): Promise<{ rows: Record<string, unknown>[]; rowCount: number | null }>;
}

interface OwnPool extends PostgresPool {
  on(event: "error", listener: (error: Error) => void): unknown;
  end(): Promise<void>;
}

export interface PostgresPlace extends PostgresBackendOptions {
  table: string;
  /** The beginning of each path in the table, without a final slash. */
  prefix: string;
  maxBytes: number;
}

const PAGE_ROWS = 1000;

const COLUMNS: Readonly<Record<string, string>> = columns;

/** The files below a prefix of one table. Text is kept as text, other bytes as base64. */
export class PostgresFiles implements FileStore {
  readonly id: string;
  readonly lifetime = "persistent";
  readonly writes = "compare-and-set";
  readonly #place: PostgresPlace;
  readonly #table: string;
  #opening: Promise<PostgresPool> | undefined;
  #own: OwnPool | undefined;

  constructor(place: PostgresPlace) {
    this.#place = place;
    const names = place.table.split(".").map((name) => `"${name}"`);
    this.#table = names.join(".");
    this.id = JSON.stringify(["postgres", place.connectionString ?? "", place.table, place.prefix]);
  }

  async get(path: string): Promise<StoredFile | undefined> {
    const { maxBytes } = this.#place;
    const [row] = await this.#rows(
      `select size, version, created_at, modified_at, encoding,
         case when size <= $2 then content end as content from ${this.#table} where path = $1`,
      [this.#keyOf(path), maxBytes],
    );
    if (row === undefined) return undefined;
    const size = Number(row["size"]);
    if (size > maxBytes) throw new FileTooLarge(size, maxBytes);
    const bytes = Buffer.from(String(row["content"]), row["encoding"] === "base64" ? "base64" : "utf8");
    const times = { createdAt: toIsoText(row["created_at"]), now: toIsoText(row["modified_at"]) };
    return { data: toFileData(path, bytes, times), version: String(row["version"]) };
  }

  async put(path: string, data: FileData, expected: Expected): Promise<boolean> {
    const bytes = toBytes(data);
    if (bytes.byteLength > this.#place.maxBytes)
      throw new FileTooLarge(bytes.byteLength, this.#place.maxBytes);
    const isText = typeof data.content === "string";
    const [content, encoding] = isText
      ? [data.content, "utf8"]
      : [Buffer.from(bytes).toString("base64"), "base64"];
    const values = [this.#keyOf(path), content, encoding, bytes.byteLength, randomUUID(), data.modified_at];
    const changed = `content = $2, encoding = $3, size = $4, version = $5, modified_at = $6`;
    const insert = `insert into ${this.#table} (path, content, encoding, size, version, modified_at, created_at)
      values ($1, $2, $3, $4, $5, $6, $7) on conflict (path) do`;
    const [sql, last] =
      typeof expected === "object"
        ? [`update ${this.#table} set ${changed} where path = $1 and version = $7`, expected.version]
        : [`${insert} ${expected === "any" ? `update set ${changed}` : "nothing"}`, data.created_at];
    return (await this.#query(sql, [...values, last])).rowCount === 1;
  }

  async remove(path: string): Promise<void> {
    await this.#query(`delete from ${this.#table} where path = $1`, [this.#keyOf(path)]);
  }

  async hasBelow(path: string): Promise<boolean> {
    const [from, to] = this.#rangeBelow(path);
    const rows = await this.#rows(
      `select 1 from ${this.#table} where path >= $1 collate "C" and path < $2 collate "C" limit 1`,
      [from, to],
    );
    return rows.length > 0;
  }

  async *list(under: string, { shallow }: ListOptions = {}): AsyncGenerator<ListedFile> {
    const own = under === "/" ? [] : await this.#infos("where path = $1", [this.#keyOf(under)]);
    yield* own.map((row) => this.#infoOf(row));
    const [start, to] = this.#rangeBelow(under);
    if (shallow === true) {
      // The server names each folder once, however many files it contains.
      const rows = await this.#rows(
        `select distinct split_part(substr(path, length($1) + 1), '/', 1) as name from ${this.#table}
         where path >= $1 collate "C" and path < $2 collate "C" and strpos(substr(path, length($1) + 1), '/') > 0`,
        [start, to],
      );
      const folder = start.slice(this.#place.prefix.length);
      yield* rows.map((row) => ({ path: `${folder}${String(row["name"])}/`, is_dir: true }));
    }
    const depth = shallow === true ? "and strpos(substr(path, length($3) + 1), '/') = 0" : "and $3 <> ''";
    for (let from = start; ;) {
      const rows = await this.#infos(
        `where path >= $1 collate "C" and path < $2 collate "C" ${depth}
         order by path collate "C" limit ${PAGE_ROWS}`,
        [from, to, start],
      );
      yield* rows.map((row) => this.#infoOf(row));
      const last = rows.at(-1);
      if (last === undefined || rows.length < PAGE_ROWS) return;
      // The next possible key, because text in Postgres has no NUL.
      from = `${String(last["path"])}\u0001`;
    }
  }

  explain(thrown: unknown): string {
    if (thrown instanceof ConfigurationError) return thrown.message;
    const code = memberOf(thrown, "code");
    if (typeof code === "string" && Object.hasOwn(POSTGRES_ERRORS, code)) return POSTGRES_ERRORS[code] ?? "";
    if (typeof code !== "string") return `the Postgres server cannot be reached in time; ${CHECK}`;
    return /^(?:E[A-Z_]+|08.{3}|57P0.)$/.test(code)
      ? `the Postgres server cannot be reached (${code}); ${CHECK}`
      : `Postgres reports the error ${code}`;
  }

  async close(): Promise<void> {
    await this.#own?.end();
    this.#own = undefined;
    this.#opening = undefined;
  }

  #keyOf(path: string): string {
    return this.#place.prefix + path;
  }

  /** The range of keys below a folder in byte order: the first one, and the first one behind them. */
  #rangeBelow(folder: string): [from: string, to: string] {
    const start = this.#keyOf(folder === "/" ? "" : folder);
    return [`${start}/`, `${start}0`];
  }

  #infos(rest: string, values: unknown[]): Promise<Record<string, unknown>[]> {
    return this.#rows(`select path, size, modified_at from ${this.#table} ${rest}`, values);
  }

  #infoOf(row: Record<string, unknown>): ListedFile {
    const path = String(row["path"]).slice(this.#place.prefix.length);
    return { path, is_dir: false, size: Number(row["size"]), modified_at: toIsoText(row["modified_at"]) };
  }

  async #rows(text: string, values: unknown[]): Promise<Record<string, unknown>[]> {
    return (await this.#query(text, values)).rows;
  }

  async #query(text: string, values: unknown[]): ReturnType<PostgresPool["query"]> {
    const pool = await (this.#opening ??= this.#connect());
    return pool.query(text, values);
  }

  async #connect(): Promise<PostgresPool> {
    try {
      const pool = this.#place.pool ?? (await this.#openPool());
      await this.#checkTable(pool);
      return pool;
    } catch (error) {
      // The next operation tries again.
      this.#opening = undefined;
      throw error;
    }
  }

  async #openPool(): Promise<PostgresPool> {
    if (this.#own !== undefined) return this.#own;
    const { connectionString, load } = this.#place;
    const loaded = await loadOptional({ user: "PostgresBackend", name: "pg", version: "8.23.1" }, load);
    // The type is the one that the package declares. Its named exports are properties of the default one.
    type PostgresPackage = { Pool: new (settings: Record<string, unknown>) => OwnPool };
    const { Pool } = (loaded as { default: PostgresPackage }).default;
    const settings = { connectionTimeoutMillis: 10_000, allowExitOnIdle: true };
    const pool = new Pool({ ...settings, ...defined({ connectionString }) });
    // An idle connection that breaks is replaced with the next query.
    pool.on("error", () => {});
    return (this.#own = pool);
  }

  /** Makes the table if it is missing. Refuses one with other columns. */
  async #checkTable(pool: PostgresPool): Promise<void> {
    const columns = await this.#columnsOf(pool);
    if (columns.size === 0) {
      const made = Object.entries(COLUMNS).map(([name, type]) =>
        name === "path" ? `path text collate "C" primary key` : `${name} ${type} not null`,
      );
      try {
        await pool.query(`create table if not exists ${this.#table} (${made.join(", ")})`);
      } catch (error) {
        // Another process may have made it at the same moment.
        if ((await this.#columnsOf(pool)).size === 0) throw error;
      }
      return;
    }
    const wrong = Object.entries(COLUMNS).filter(([name, type]) => columns.get(name) !== type);
    if (wrong.length === 0) return;
    const names = wrong.map(([name, type]) => `${name} ${type}`).join(", ");
    throw new ConfigurationError("POSTGRES_TABLE", fill(texts.otherColumns, this.#place.table, names));
  }

  async #columnsOf(pool: PostgresPool): Promise<Map<string, string>> {
    const { rows } = await pool.query(
      `select attname, format_type(atttypid, null) as type from pg_attribute
       where attrelid = to_regclass($1) and attnum > 0 and not attisdropped`,
      [this.#table],
    );
    return new Map(rows.map((row) => [String(row["attname"]), String(row["type"])]));
  }
}

const toIsoText = (time: unknown): string => (time instanceof Date ? time.toISOString() : String(time));

const CHECK = "check that it runs and that the connection settings are right";

/** Explanations of Postgres error codes, with a remedy. */
const POSTGRES_ERRORS: Readonly<Record<string, string>> = failures.ofPostgres;

export interface PostgresBackendOptions {
  /** `postgres://user:password@host:port/database`. Default: the `PG…` variables of the environment. */
  connectionString?: string;
  /** A pool of the package `pg` in place of a connection string. Its owner ends it. */
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
    const given = readOptions("PostgresBackend", options, tables.PostgresBackend);
    const { table = "deepagent_files", maxFileSizeMb = 32 } = given;
    const unusable = (problem: string): ConfigurationError =>
      new ConfigurationError("POSTGRES_OPTIONS", `The options of PostgresBackend are not usable: ${problem}`);
    if (given.connectionString !== undefined && given.pool !== undefined)
      throw unusable("set a connectionString or a pool");
    if (!/^(?:[A-Za-z_][A-Za-z0-9_]{0,62}\.)?[A-Za-z_][A-Za-z0-9_]{0,62}$/.test(table))
      throw unusable("table must be a name such as deepagent_files or schema.deepagent_files");
    if (!(maxFileSizeMb > 0)) throw unusable("maxFileSizeMb must be more than 0");
    const folder = validatePath(given.prefix ?? "/");
    if (!folder.ok) throw unusable(`prefix: ${folder.error}`);
    const prefix = folder.path === "/" ? "" : folder.path;
    const files = new PostgresFiles({ ...given, table, prefix, maxBytes: maxFileSizeMb * 1024 * 1024 });
    super(files);
    this.#files = files;
  }

  /** Ends the connections that this backend opened. */
  close(): Promise<void> {
    return this.#files.close();
  }
}
