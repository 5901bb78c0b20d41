/** Carries out the steps of `runs/sql` on Postgres, each transaction on one connection of a pool. */
import type { Pool, PoolClient } from "pg";
import { byValue } from "../../core/by-identity.ts";
import { inPostgres } from "../../runs/sql/dialects.ts";
import {
  type StatementResult,
  type Engine,
  type Statement,
  type Steps,
  storedText,
} from "../../runs/sql/steps.ts";
import { isBrokenOff, isReadOnly, isRepeatable, postgresError } from "./errors.ts";

export const postgresEngine = (access: Access): Engine => ({
  of: (principal) => postgresEngine(access.of(principal)),
  read: (steps) =>
    translated(async () => {
      // One statement needs no transaction to show one moment; when a second comes, all are carried out again in one.
      const alone = steps();
      const begun = alone.next();
      if (begun.done === true) return begun.value;
      const then = alone.next(await answerTo(access, begun.value));
      return then.done === true
        ? then.value
        : transact(access, "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY", steps);
    }),
  write: (steps) => translated(() => transact(access, "BEGIN; SET LOCAL synchronous_commit = on", steps)),
  // A commit that does not wait for the disk; it outlives the end of this process all the same.
  note: (steps) => translated(() => transact(access, "BEGIN; SET LOCAL synchronous_commit = off", steps)),
});

/** Does work on Postgres; its failures are errors of ours. */
export async function translated<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    throw postgresError(thrown);
  }
}

/** Carries out a transaction. A statement whose answer nobody needs costs no round trip of its own. */
async function transact<T>(access: Access, kind: string, steps: () => Steps<T>): Promise<T> {
  const { confinement } = access;
  const begin = confinement === undefined ? kind : `${kind}; ${confinement}`;
  for (let attempt = 1; ; attempt += 1) {
    const client = await access.pool.connect();
    let broken: Error | undefined;
    const sent: [Promise<StatementResult>, Statement["orElse"]?][] = [];
    const send = (answer: Promise<StatementResult>, orElse?: Statement["orElse"]) => {
      answer.catch(() => undefined); // `settled` throws it
      sent.push([answer, orElse]);
      return answer;
    };
    /** Waits for all sent statements; throws the first error. */
    const settled = async (): Promise<void> => {
      for (const [answer, orElse] of sent.splice(0))
        if ((await answer).changes === 0 && orElse) throw orElse();
    };
    const plain = (text: string): Promise<StatementResult> => client.query(text).then(() => NO_ANSWER);
    try {
      void send(plain(begin));
      const carriedOut = steps();
      let step = carriedOut.next();
      while (step.done !== true) {
        const { isLock, isBlind, orElse } = step.value;
        const answer = send(sendStatement(client, step.value), orElse);
        if (isLock || isBlind || orElse) step = carriedOut.next(NO_ANSWER);
        else {
          await settled();
          step = carriedOut.next(await answer);
        }
      }
      void send(plain("COMMIT"));
      await settled();
      return step.value;
    } catch (thrown) {
      // A connection that cannot roll back is of no use any more. A silent one is not waited for again, and one that
      // takes no changes may lead to a server that is no longer the primary.
      if (isBrokenOff(thrown) || isReadOnly(thrown)) broken = thrown;
      else await client.query("ROLLBACK").catch((error: Error) => (broken = error));
      if (attempt === 8 || !isRepeatable(thrown)) throw thrown;
    } finally {
      client.release(broken);
    }
  }
}

const NO_ANSWER: StatementResult = { rows: [], changes: 0 };

/** The time of Postgres in milliseconds. */
export const NOW = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/** A statement that may take as long as its tables are large, unlike all others. */
export const unhurried = (text: string): { text: string; query_timeout: number } => ({
  text,
  query_timeout: 24 * 3_600_000,
});

/** Runs one statement by itself, and returns its rows. */
export const query = <Row extends object>(
  access: Access,
  sql: string,
  values: Readonly<Record<string, unknown>> = {},
): Promise<Row[]> =>
  // Lists too are sent as they are, and the rows have the columns that it names.
  translated(
    async () => (await answerTo(access, { sql, values: values as Statement["values"] })).rows as Row[],
  );

/** One statement is a transaction by itself, but where that has to be confined first. */
function answerTo(access: Access, statement: Statement): Promise<StatementResult> {
  if (access.confinement === undefined) return sendStatement(access.pool, statement);
  return transact(access, "BEGIN", function* (): Steps<StatementResult> {
    return yield statement;
  });
}

async function sendStatement(connection: Pool | PoolClient, { sql, values }: Statement) {
  const { names, ...statement } = prepared(sql);
  const sent = names.map((one) => sendable(values[one] ?? null));
  const { rows, rowCount } = await connection.query<object>({ ...statement, values: sent });
  return { rows, changes: rowCount ?? 0 };
}

export function sendable(value: unknown): unknown {
  if (!(value instanceof Uint8Array)) return storedText(value);
  return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
}

let named = 0;

/** A statement with the name by which each connection knows it after the first time. */
const prepared = byValue((sql: string) => ({ name: `deepagent_${named++}`, ...inPostgres(sql) }));

/** Connections, and how transactions on them are confined. Without a role nobody is. */
export class Access {
  readonly pool: Pool;
  /** The statement that confines a transaction, once it has begun. Absent: this access is the server's own. */
  readonly confinement: string | undefined;
  readonly #role: string | undefined;

  constructor(pool: Pool, role?: string, confinement?: string) {
    this.pool = pool;
    this.#role = role;
    this.confinement = confinement;
  }

  /** Sees and changes runs and threads of the principal alone. */
  of(principal: string): Access {
    return this.#where("principal", principal);
  }

  /** Sees and changes memories at and below the encoded namespace alone. */
  within(namespace: string): Access {
    return this.#where("namespace", namespace);
  }

  #where(setting: string, value: string): Access {
    if (this.#role === undefined) return this;
    // A hexadecimal value, because it has to be a part of the text: parameters need a statement of their own.
    const hex = Buffer.from(storedText(value)).toString("hex");
    const text = `convert_from(decode('${hex}', 'hex'), 'UTF8')`;
    const confinement = `SELECT set_config('role', '${this.#role}', true), set_config('deepagent.${setting}', ${text}, true)`;
    return new Access(this.pool, this.#role, confinement);
  }
}
