/** Limits of requests that all servers on one Postgres count together. */
import type { RateStore } from "../../runs/server-ports.ts";
import { type Access, NOW, query, sendable } from "./engine.ts";

export const rateStore = (access: Access): RateStore => ({
  spend: async (spent, perMinute) => {
    const values = { keys: [...spent.keys()].map(sendable), counts: [...spent.values()], perMinute };
    // Rows are locked in the order of their keys. What several servers allowed at once is owed, for a minute at most.
    const sql = `
INSERT INTO rate_buckets AS bucket (key, tokens, filled)
SELECT key, @perMinute::float8 - sum(count), ${NOW}
FROM unnest(@keys::text[], @counts::float8[]) AS spent(key, count) GROUP BY key ORDER BY key
ON CONFLICT (key) DO UPDATE SET filled = excluded.filled, tokens = greatest(-@perMinute::float8, excluded.tokens
  + least(0, bucket.tokens - @perMinute::float8
    + greatest(0, excluded.filled - bucket.filled) * @perMinute::float8 / 60000))
RETURNING key, tokens`;
    const left = await query<{ key: string; tokens: number }>(access, sql, values);
    // After two minutes every bucket is full, which is as good as none.
    await query(access, `DELETE FROM rate_buckets WHERE filled < ${NOW} - 120000`);
    return new Map(left.map(({ key, tokens }) => [key, tokens]));
  },
});
