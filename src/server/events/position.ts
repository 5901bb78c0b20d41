/** Positions in the events of a principal, and the events after one. */
import { createHash } from "node:crypto";
import { z } from "zod";
import { parsedJson } from "../../core/unknown.ts";
import type { News, OccurrenceQuery } from "../../runs/news.ts";
import type { PrincipalRuns } from "../../runs/service.ts";

/**
 * Times do not order events completely: one may be stored after another with a later time. A position therefore knows
 * the events of the time before it, and reads that time again.
 */
export interface Position {
  /** No event before this time counts. */
  floor: number;
  /** Time of the newest event sent, or a later time before which nothing more is stored. */
  time: number;
  /** Marks of events in `OVERLAP_MS` before `time`. */
  known: readonly string[];
}

/** Longest delay from the time of an event until it is stored. */
const OVERLAP_MS = 60_000;
/**
 * Age from which nobody stores an event any more. A position that is older moves up to there, because each look reads
 * the events of all principals since then.
 */
const SETTLED_MS = 10 * OVERLAP_MS;
/** Most marks of a position. If more events have that time, the oldest may be sent again. */
const MOST_KNOWN = 300;

const time = z.int().min(0);
const Encoded = z.tuple([time, time, z.array(z.string().length(8)).max(MOST_KNOWN)]);

export const positionAt = (now: number): Position => ({ floor: now, time: now, known: [] });

export const encodePosition = ({ floor, time, known }: Position): string =>
  Buffer.from(JSON.stringify([floor, time, known])).toString("base64url");

/** Returns undefined if this server did not make the position. */
export function decodePosition(cursor: string): Position | undefined {
  const { data } = Encoded.safeParse(parsedJson(Buffer.from(cursor, "base64url").toString("utf8")));
  return data && { floor: data[0], time: data[1], known: data[2] };
}

/** Time from which events are read again for a position. */
export const readsFrom = ({ floor, time }: Position): number => Math.max(floor, time - OVERLAP_MS);

const eventMark = (id: string): string => createHash("sha256").update(id).digest("base64url").slice(0, 8);

/** The events after a position, oldest first, at most `limit`. `hasMore`: more events follow at once. */
export async function eventsAfter(
  news: PrincipalRuns["news"],
  position: Position,
  { type, runId, limit, now }: Omit<OccurrenceQuery, "since"> & { now: number },
): Promise<{ news: News[]; position: Position; hasMore: boolean }> {
  const { floor, time, known } = position;
  const most = limit + known.length + 1;
  const since = readsFrom(position);
  const found = await news.occurrences({ type, runId, since, limit: most });
  const marks = new Set(known);
  const fresh = found.filter(({ id }) => !marks.has(eventMark(id)));
  const given = fresh.slice(0, limit);
  const settled = found.length < most && fresh.length === given.length ? now - SETTLED_MS : 0;
  const newest = Math.max(time, settled, ...given.map((one) => one.time));
  const later = new Set(fresh.slice(limit));
  const remembered = found
    .filter((one) => !later.has(one) && one.time >= newest - OVERLAP_MS)
    .map(({ id }) => eventMark(id));
  return {
    news: given,
    position: { floor, time: newest, known: remembered.slice(-MOST_KNOWN) },
    hasMore: fresh.length > given.length,
  };
}
