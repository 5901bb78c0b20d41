/** Parameters of the Events extension, as found in requests. */
import { type ServerContext, ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server";
import { z } from "zod";
import type { EventType, News, OccurrenceQuery, NewsType } from "../../runs/news.ts";
import { EVENT_TYPES } from "../../runs/news.ts";
import type { Principal } from "../../runs/run.ts";
import type { PrincipalRuns } from "../../runs/service.ts";
import type { CallbackFailure } from "../../news/subscriber.ts";
import { createHash } from "node:crypto";
import { parsedJson } from "../../core/unknown.ts";
import catalogue from "./events.json" with { type: "json" };

export const ListParams = z.looseObject({ cursor: z.string().nullish() });

/** Names events, and a position in them. */
export const EventParams = z.looseObject({
  name: z.string(),
  arguments: z.record(z.string(), z.unknown()).nullish(),
  cursor: z.string().max(10_000).nullish(),
  maxAgeMs: z.number().min(0).max(Number.MAX_SAFE_INTEGER).nullish(),
});

export const PollParams = EventParams.extend({ maxEvents: z.int().min(1).nullish() });

export const SubscribeParams = EventParams.extend({
  delivery: z.looseObject({ mode: z.string().nullish(), url: z.string(), secret: z.string().nullish() }),
  ttlMs: z.number().nullish(),
});

export interface Asking {
  news: PrincipalRuns["news"];
  principal: Principal;
  context: ServerContext;
  now: number;
}

export interface Wanted {
  type: EventType;
  args: z.output<typeof Arguments>;
}

/** @throws ProtocolError for a type that does not exist, or arguments that it does not take */
export function wantedBy({ name, arguments: given }: z.output<typeof EventParams>): Wanted {
  const type = EVENT_TYPES.find((one) => one === name);
  if (type === undefined) throw notFound("event", "events/list has the names of events.");
  const args = Arguments.safeParse(given ?? {});
  if (!args.success) throw invalid("arguments", "must match the inputSchema of the event");
  return { type, args: args.data };
}

export interface Start {
  position: Position;
  /** True if events after the client's cursor are skipped because of their age. */
  isTruncated: boolean;
}

/** The position that a request begins at: its cursor, or now. @throws ProtocolError for a foreign cursor */
export function startOf({ cursor, maxAgeMs }: z.output<typeof EventParams>, now: number): Start {
  if (cursor === undefined || cursor === null) return { position: positionAt(now), isTruncated: false };
  const { data } = Encoded.safeParse(parsedJson(Buffer.from(cursor, "base64url").toString("utf8")));
  if (data === undefined) throw invalid("cursor", "must be one that this server gave");
  const position = { floor: data[0], time: data[1], known: data[2] };
  const oldest = maxAgeMs === undefined || maxAgeMs === null ? 0 : now - maxAgeMs;
  const isTruncated = oldest > Math.max(position.time, position.floor);
  return { position: { ...position, floor: Math.max(position.floor, Math.floor(oldest)) }, isTruncated };
}

export const notFound = (kind: "event" | "subscription", hint: string): ProtocolError =>
  new ProtocolError(-32_011, `NotFound: ${hint}`, { kind });

export const exhausted = (limit: string, max: number): ProtocolError =>
  new ProtocolError(-32_013, `ResourceExhausted: at most ${max} ${limit}`, { limit, max });

export const unsupported = (feature: string, value: string): ProtocolError =>
  new ProtocolError(-32_014, `Unsupported: ${feature} ${value}`, { feature, value });

export const callbackFailed = (reason: CallbackFailure): ProtocolError =>
  new ProtocolError(-32_015, "CallbackEndpointError: the address did not repeat the challenge", { reason });

export const invalid = (field: string, problem: string): ProtocolError =>
  new ProtocolError(ProtocolErrorCode.InvalidParams, `InvalidParams: ${field} ${problem}`, { field });

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

const Arguments = z.strictObject({
  run_id: z.string().min(1).max(200).optional().describe("Only events of this run. Default: all your runs."),
});
/** Texts by their names, with their descriptions; a name with `?` may be left out. */
const textShape = (texts: Readonly<Record<string, string>>): z.ZodRawShape =>
  Object.fromEntries(
    Object.entries(texts).map(([name, description]) => {
      const text = z.string().describe(description);
      return [name.replace("?", ""), name.endsWith("?") ? text.optional() : text] as const;
    }),
  );

/** Steps come too often for a request each. */
export const isForWebhooks = (type: EventType): type is NewsType => type !== "run.progress";

/** The catalogue. `hasWebhooks`: the client may subscribe an address. */
export function describeEvents(hasWebhooks: boolean): object[] {
  return EVENT_TYPES.map((name) => {
    const { description, more } = catalogue.types[name];
    return {
      name,
      description,
      delivery: ["poll", "push", ...(hasWebhooks && isForWebhooks(name) ? ["webhook"] : [])],
      inputSchema: toJsonSchema(Arguments),
      payloadSchema: toJsonSchema(z.object(textShape({ ...catalogue.facts, ...more }))),
    };
  });
}

function toJsonSchema(schema: z.ZodType): object {
  const { $schema: _version, ...rest } = z.toJSONSchema(schema, { io: "input" });
  return rest;
}
