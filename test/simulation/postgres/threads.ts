/** Conversations of agents that make moves, in a table that the servers of a world share. */
import { deserialize, serialize } from "node:v8";
import pg from "pg";
import { StorageError, errorMessage } from "../../../src/core/errors.ts";
import { FencedOffError } from "../../../src/runs/thread-ports.ts";
import type { MovesThreads, Parts } from "../moves-threads.ts";

export const THREADS_TABLE = `CREATE TABLE simulated_threads (
  id TEXT PRIMARY KEY, run BIGINT NOT NULL, claim BIGINT NOT NULL, parts BYTEA)`;

type Row = { parts: Buffer | null };

export const partsOf = ({ parts }: Row): Parts =>
  parts === null ? new Map() : (deserialize(parts) as Parts); // written by `write`

export function threadsInPostgres(url: string): MovesThreads & { close(): Promise<void> } {
  const pool = new pg.Pool({ connectionString: url, max: 3, query_timeout: 15_000 });
  pool.on("error", () => undefined);
  pool.on("connect", (client) => client.on("error", () => undefined));
  const query = async (sql: string, values: unknown[]): Promise<pg.QueryResult<Row>> => {
    try {
      return await pool.query<Row>(sql, values);
    } catch (thrown) {
      throw new StorageError("storage_io", errorMessage(thrown));
    }
  };
  /** The tokens that this server took threads with. */
  const taken = new Map<string, readonly [number, number]>();
  return {
    startOver: async (_place, id, { run, claim }) => {
      const sql = `INSERT INTO simulated_threads AS thread (id, run, claim) VALUES ($1, $2, $3)
        ON CONFLICT (id) DO UPDATE SET run = $2, claim = $3
        WHERE (thread.run, thread.claim) <= ($2, $3)`;
      if ((await query(sql, [id, run, claim])).rowCount === 0) throw new FencedOffError(id);
      taken.set(id, [run, claim]);
    },
    open: async (_place, id) => {
      const token = taken.get(id) ?? [0, 0];
      const sql = "SELECT parts FROM simulated_threads WHERE id = $1 AND run = $2 AND claim = $3";
      const [row] = (await query(sql, [id, ...token])).rows;
      if (row === undefined) throw new FencedOffError(id);
      const parts = partsOf(row);
      return {
        parts,
        write: async (change) => {
          change();
          const update = "UPDATE simulated_threads SET parts = $4 WHERE id = $1 AND run = $2 AND claim = $3";
          if ((await query(update, [id, ...token, serialize(parts)])).rowCount === 0)
            throw new FencedOffError(id);
        },
      };
    },
    delete: async (id) => {
      await query("DELETE FROM simulated_threads WHERE id = $1", [id]);
    },
    ids: async () => [],
    close: () => pool.end(),
  };
}
