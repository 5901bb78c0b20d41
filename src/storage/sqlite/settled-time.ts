import { type Database, whenUnlocked } from "./database.ts";

const DAY_MS = 86_400_000;

/** One row: what was known when the time was last asked for. Made by whoever asks first, in any of our files. */
const TABLE = `
CREATE TABLE IF NOT EXISTS clock (
  number INTEGER PRIMARY KEY CHECK (number = 1),
  settled INTEGER NOT NULL,
  doubted INTEGER
) STRICT`;

/** What is known of the time, in milliseconds since the epoch. */
export interface KnownTime {
  /** The newest time that is believed. */
  settled: number;
  /** When the clock was first found to be more than a day ahead of that; `null` while it is not. */
  doubted: number | null;
}

/**
 * What is known after a look at the clock. One that is found more than a day ahead is doubted, until it is found
 * so again a day or more later, and never right in between.
 */
export function settle(known: KnownTime | undefined, now: number): KnownTime {
  if (known === undefined || now <= known.settled + DAY_MS) return { settled: now, doubted: null };
  const doubted = Math.min(known.doubted ?? now, now);
  return now - doubted >= DAY_MS ? { settled: now, doubted: null } : { settled: known.settled, doubted };
}

/**
 * The time to delete by what is too old, in milliseconds since the epoch: `now`, or earlier while the clock is
 * doubted. So nothing is forgotten because a clock was wrong for a while; after a long rest it is forgotten a
 * day later.
 */
export async function settledTime(database: Database, now: number): Promise<number> {
  const look = database.transaction(() => {
    database.exec(TABLE);
    const known = database.prepare<[], KnownTime>("SELECT settled, doubted FROM clock").get();
    const next = settle(known, now);
    database
      .prepare("INSERT OR REPLACE INTO clock (number, settled, doubted) VALUES (1, @settled, @doubted)")
      .run(next);
    return next.settled;
  });
  return whenUnlocked(database, () => look.immediate());
}
