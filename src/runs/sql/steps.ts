/** Changes of runs, and looks at them, as SQL statements that whichever engine stores the runs carries out. */
import type { Principal } from "../run.ts";

export type Value = string | number | Uint8Array | null;

/** Postgres has no text with a NUL, and `node:sqlite` of Node 22 cuts one there: every engine stores U+FFFD. */
export const storedText = <T>(value: T): T | string =>
  typeof value === "string" ? value.replaceAll("\0", "\ufffd") : value;

export interface Statement {
  /**
   * SQL that SQLite and Postgres both take, with parameters as `@name`. `dialects.ts` has the differences:
   * locks of rows, `INDEXED BY`, `is_connected(lease_owner)`, and `json_each(@list)` of texts and `json_rows(@list)` of records.
   */
  readonly sql: string;
  readonly values: Readonly<Record<string, Value>>;
  /** It only keeps other transactions waiting. SQLite leaves it out: its transactions come one after the other. */
  readonly isLock?: true;
  /** Nobody needs its answer, nor that of a lock. Postgres is sent it together with the next statement. */
  readonly isBlind?: true;
  /** It is blind, too; the error to throw if it changes no row. Statements after it must then change nothing. */
  readonly orElse?: () => Error;
}

export interface StatementResult {
  readonly rows: object[];
  /** Number of rows that were inserted, updated or deleted. */
  readonly changes: number;
}

/** Yields one statement after the other, receives the answer of each, and returns a result. */
export type Steps<T> = Generator<Statement, T, StatementResult>;

/**
 * The database engine of runs. Throws StorageError if the data cannot be read or written now. It also replaces a
 * SyntaxError, which steps throw when a row holds something that no version wrote.
 */
export interface Engine {
  /** Returns the engine for one principal, confined to its rows if there is row-level security. */
  of(principal: Principal): Engine;
  /** Carries out steps that only read, all at one moment. */
  read<T>(steps: () => Steps<T>): Promise<T>;
  /** Carries them out in one transaction, which is durable when this resolves. `steps` may be called again. */
  write<T>(steps: () => Steps<T>): Promise<T>;
  /** Writes, but a power cut may undo the transaction until a later one is durable. */
  note<T>(steps: () => Steps<T>): Promise<T>;
}

export function* all<Row extends object>(sql: string, values: Statement["values"] = {}): Steps<Row[]> {
  const { rows } = yield { sql, values };
  return rows as Row[]; // by the columns that the statement names
}

export function* first<Row extends object>(
  sql: string,
  values: Statement["values"] = {},
): Steps<Row | undefined> {
  const { rows } = yield { sql, values };
  return rows[0] as Row | undefined; // as above
}

/** Changes rows, however many. */
export function* send(sql: string, values: Statement["values"] = {}): Steps<void> {
  yield { sql, values, isBlind: true };
}

/** Returns the number of changed rows. */
export function* change(sql: string, values: Statement["values"] = {}): Steps<number> {
  return (yield { sql, values }).changes;
}

/** Inserts a row; false if `onConflict` kept it from that. */
export function* insert(table: string, values: Statement["values"], onConflict = ""): Steps<boolean> {
  return (yield insertStatement(table, values, onConflict)).changes === 1;
}

export function insertStatement(table: string, values: Statement["values"], onConflict = ""): Statement {
  const names = Object.keys(values);
  const places = names.map((name) => `@${name}`).join(", ");
  return { sql: `INSERT INTO ${table} (${names.join(", ")}) VALUES (${places}) ${onConflict}`, values };
}

export function* exists(sql: string, values: Statement["values"] = {}): Steps<boolean> {
  return (yield* first(sql, values)) !== undefined;
}

/** The number in the column `count`. */
export function* count(sql: string, values: Statement["values"] = {}): Steps<number> {
  return (yield* first<{ count: number }>(sql, values))?.count ?? 0;
}

/** Keeps other transactions from starting runs of the principal until this one ends. Comes before a run is locked. */
export function* lockPrincipal(principal: Principal): Steps<void> {
  const sql = "SELECT pg_advisory_xact_lock(hashtextextended(@principal, 0))";
  yield { sql, values: { principal }, isLock: true };
}

type StepsByName = Readonly<Record<string, (...args: never[]) => Steps<unknown>>>;
type OwnedSteps = Readonly<Record<string, (principal: Principal, ...args: never[]) => Steps<unknown>>>;
type Way = "read" | "write" | "note";

/** Functions that make steps as methods that carry them out, with the same arguments. */
type Methods<Made extends StepsByName> = {
  [Name in keyof Made]: Made[Name] extends (...args: infer Args) => Steps<infer T>
    ? (...args: Args) => Promise<T>
    : never;
};

function toMethods<Made extends StepsByName>(
  steps: Made,
  carryOut: (args: never[], work: () => Steps<unknown>) => Promise<unknown>,
): Methods<Made> {
  const methods = Object.entries(steps).map(([name, make]) => [
    name,
    (...args: never[]) => carryOut(args, () => make(...args)),
  ]);
  return Object.fromEntries(methods) as Methods<Made>; // by the names and arguments of `steps`
}

/** Methods in the name of the principal that is their first argument. */
export const ofPrincipal = <Made extends OwnedSteps>(engine: Engine, way: Way, steps: Made): Methods<Made> =>
  toMethods(steps, ([principal = ""], work) => engine.of(principal)[way](work));

/** Methods in the name of the server itself. */
export const ofServer = <Made extends StepsByName>(engine: Engine, way: Way, steps: Made): Methods<Made> =>
  toMethods(steps, (_args, work) => engine[way](work));
