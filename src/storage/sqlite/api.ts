/** SQLite as this program uses it: the one interface of both drivers, which better-sqlite3 has by itself. */

export interface OpenOptions {
  readonly?: boolean;
  /** Time that a statement waits for locks of other connections, in milliseconds. */
  timeout?: number;
}

export interface RunResult {
  changes: number;
  lastInsertRowid: number | bigint;
}

/** Statements take a list of values, or one object with a value for each name. */
export type Statement<Values = unknown[], Row = unknown> = Values extends unknown[]
  ? PreparedStatement<Values, Row>
  : PreparedStatement<[Values], Row>;

interface PreparedStatement<Values extends unknown[], Row> {
  readonly database: Database;
  readonly readonly: boolean;
  /** True if it returns rows. */
  readonly reader: boolean;
  run(...values: Values): RunResult;
  get(...values: Values): Row | undefined;
  all(...values: Values): Row[];
  /** Makes it return the first column of a row. */
  pluck(): this;
}

// oxlint-disable-next-line typescript/no-explicit-any -- any function fits; its own types are kept
export type AnyFunction = (...args: any[]) => unknown;
type Does<F extends AnyFunction> = (...args: Parameters<F>) => ReturnType<F>;

/** Does its work within a transaction, or within a savepoint of the one that is open. */
export interface Transaction<F extends AnyFunction = AnyFunction> extends Does<F> {
  /** Takes the write lock first. */
  immediate: Does<F>;
}

export interface Database {
  /** Path of the file, or `:memory:`. */
  readonly name: string;
  readonly memory: boolean;
  readonly open: boolean;
  readonly inTransaction: boolean;
  prepare<Values = unknown[], Row = unknown>(sql: string): Statement<Values, Row>;
  transaction<F extends AnyFunction>(work: F): Transaction<F>;
  exec(sql: string): this;
  pragma(source: string, options?: { simple?: boolean }): unknown;
  close(): this;
}
