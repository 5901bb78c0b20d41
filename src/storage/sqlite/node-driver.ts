/** The driver over Node's own SQLite. It answers and fails as better-sqlite3 does. */
import { createRequire, isBuiltin } from "node:module";
import { orElse } from "../../core/errors.ts";
import codes from "./result-codes.json" with { type: "json" };
import type { Database, OpenOptions, RunResult, Statement, Transaction, AnyFunction } from "./api.ts";

/** The part of `node:sqlite` that is used here; only later versions of Node have its types. */
interface NodeStatement {
  all(...values: unknown[]): NodeRow[];
  get(...values: unknown[]): NodeRow | undefined;
  run(...values: unknown[]): RunResult;
}
interface NodeDatabase {
  exec(sql: string): void;
  prepare(sql: string): NodeStatement;
  close(): void;
}
interface NodeSqlite {
  DatabaseSync: new (file: string, options?: { readOnly?: boolean }) => NodeDatabase;
}
type NodeRow = Record<string, unknown>;

export const NODE_SQLITE = "node:sqlite";

/** True if this Node has SQLite and needs no flag for it. */
export function hasNodeSqlite(): boolean {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  return (major > 22 || (major === 22 && minor >= 13)) && isBuiltin(NODE_SQLITE);
}

let loaded: NodeSqlite | undefined;

/** Loads the module without its warning that it is experimental: standard error has the program's own log. */
function nodeSqlite(): NodeSqlite {
  if (loaded !== undefined) return loaded;
  const warn = process.emitWarning.bind(process);
  process.emitWarning = () => undefined;
  try {
    loaded = createRequire(import.meta.url)(NODE_SQLITE) as NodeSqlite; // its own types, as far as they are used here
  } finally {
    process.emitWarning = warn;
  }
  return loaded;
}

/** Opens `file`, or a database in memory. Throws errors with the names and codes of better-sqlite3. */
export function openNodeDatabase(file: string, { readonly = false, timeout = 5000 }: OpenOptions = {}) {
  const { DatabaseSync } = nodeSqlite();
  const database = withCodes(() => new DatabaseSync(file, { readOnly: readonly }));
  database.exec(`PRAGMA busy_timeout = ${timeout}; PRAGMA foreign_keys = OFF`);
  return new Connection(database, file);
}

class Connection implements Database {
  readonly name: string;
  readonly memory: boolean;
  open = true;
  inTransaction = false;
  readonly #database: NodeDatabase;

  constructor(database: NodeDatabase, file: string) {
    this.#database = database;
    this.name = file;
    this.memory = file === ":memory:";
  }

  exec(sql: string): this {
    withCodes(() => this.#database.exec(sql));
    if (/^\s*BEGIN\b/i.test(sql)) this.inTransaction = true;
    else if (/^\s*(COMMIT|END|ROLLBACK)\b(?!\s+TO\b)/i.test(sql)) this.inTransaction = false;
    return this;
  }

  prepare<Values, Row>(sql: string): Statement<Values, Row> {
    const statement = withCodes(() => this.#database.prepare(sql));
    // The caller knows its rows and values.
    return toStatement(this, sql, statement) as unknown as Statement<Values, Row>;
  }

  pragma(source: string, { simple = false }: { simple?: boolean } = {}): unknown {
    const rows = withCodes(() => this.#database.prepare(`PRAGMA ${source}`).all()).map(toRow);
    return simple ? Object.values(rows[0] ?? {})[0] : rows;
  }

  transaction<F extends AnyFunction>(work: F): Transaction<F> {
    const as =
      (kind: string) =>
      (...args: Parameters<F>): ReturnType<F> => {
        const [begin, end, undo] = this.inTransaction
          ? (["SAVEPOINT nested", "RELEASE nested", "ROLLBACK TO nested; RELEASE nested"] as const)
          : ([`BEGIN ${kind}`, "COMMIT", "ROLLBACK"] as const);
        this.exec(begin);
        try {
          const result = work(...args) as ReturnType<F>; // by its definition
          this.exec(end);
          return result;
        } catch (error) {
          if (undo !== "ROLLBACK") this.exec(undo);
          else {
            this.inTransaction = false;
            // SQLite may have rolled back by itself, as it does on a full disk.
            orElse(() => this.#database.exec(undo), undefined);
          }
          throw error;
        }
      };
    return Object.assign(as("DEFERRED"), { immediate: as("IMMEDIATE") });
  }

  close(): this {
    if (this.open) withCodes(() => this.#database.close());
    this.open = false;
    return this;
  }
}

function toStatement(database: Database, sql: string, statement: NodeStatement): Statement {
  const names = new Set([...sql.matchAll(/@(\w+)/g)].map(([, name]) => name ?? ""));
  /** Values as better-sqlite3 takes them: `undefined`, and objects with more names than the statement has. */
  const bound = (values: unknown[]): unknown[] =>
    values.map((value): unknown => {
      if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return value ?? null;
      const used = Object.entries(value).filter(([name]) => names.has(name));
      return Object.fromEntries(used.map(([name, one]) => [name, one ?? null]));
    });
  let shown: (row: NodeRow) => unknown = toRow;
  const isQuery = /^\s*(SELECT|WITH|PRAGMA|EXPLAIN|VALUES)\b/i.test(sql);
  const own: Statement = {
    database,
    readonly: isQuery && !/\b(INSERT|UPDATE|DELETE|REPLACE)\b/i.test(sql),
    reader: isQuery || /\bRETURNING\b/i.test(sql),
    pluck() {
      shown = (row) => bytes(Object.values(row)[0]);
      return this;
    },
    all: (...values: unknown[]) => withCodes(() => statement.all(...bound(values))).map(shown),
    get: (...values: unknown[]) => {
      const row = withCodes(() => statement.get(...bound(values)));
      return row === undefined ? undefined : shown(row);
    },
    run: (...values: unknown[]) => withCodes(() => statement.run(...bound(values))),
  };
  return own;
}

const bytes = (value: unknown): unknown =>
  value instanceof Uint8Array ? Buffer.from(value.buffer, value.byteOffset, value.byteLength) : value;

/** A plain object: the rows of Node have no prototype. */
const toRow = (row: NodeRow): NodeRow =>
  Object.fromEntries(Object.entries(row).map(([name, value]) => [name, bytes(value)]));

/** Extended codes that this program distinguishes from their primary ones. */
const EXTENDED: Readonly<Record<string, string>> = codes.extended;

/** The name of an extended result code, as better-sqlite3 reports it, or of its primary one. */
export const codeName = (number: number): string =>
  `SQLITE_${EXTENDED[number] ?? codes.primary.split(" ")[number & 0xff] ?? number}`;

function withCodes<Result>(work: () => Result): Result {
  try {
    return work();
  } catch (thrown) {
    if (!(thrown instanceof Error) || !("errcode" in thrown)) throw thrown;
    const code = codeName(Number(thrown.errcode));
    throw Object.assign(new Error(thrown.message, { cause: thrown }), { name: "SqliteError", code });
  }
}
