/** Parameters of the Events extension, as found in requests. */
import type { ServerContext } from "@modelcontextprotocol/server";
import { z } from "zod";
import type { EventType } from "../../runs/news.ts";
import type { Principal } from "../../runs/run.ts";
import type { PrincipalRuns } from "../../runs/service.ts";
import { Arguments, isEventType } from "./catalogue.ts";
import { invalid, notFound } from "./errors.ts";
import { type Position, decodePosition, positionAt } from "./position.ts";

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
  if (!isEventType(name)) throw notFound("event", "events/list has the names of events.");
  const args = Arguments.safeParse(given ?? {});
  if (!args.success) throw invalid("arguments", "must match the inputSchema of the event");
  return { type: name, args: args.data };
}

export interface Start {
  position: Position;
  /** True if events after the client's cursor are skipped because of their age. */
  isTruncated: boolean;
}

/** The position that a request begins at: its cursor, or now. @throws ProtocolError for a foreign cursor */
export function startOf({ cursor, maxAgeMs }: z.output<typeof EventParams>, now: number): Start {
  if (cursor === undefined || cursor === null) return { position: positionAt(now), isTruncated: false };
  const position = decodePosition(cursor);
  if (position === undefined) throw invalid("cursor", "must be one that this server gave");
  const oldest = maxAgeMs === undefined || maxAgeMs === null ? 0 : now - maxAgeMs;
  const isTruncated = oldest > Math.max(position.time, position.floor);
  return { position: { ...position, floor: Math.max(position.floor, Math.floor(oldest)) }, isTruncated };
}
