/** Answers of the Events extension. Loaded with the first request for events. */
import type { ServerContext } from "@modelcontextprotocol/server";
import type { z } from "zod";
import { type Callbacks, PUBLIC_CALLBACKS, newsOccurrence } from "../../news/subscriber.ts";
import type { ServerDeps } from "../contracts/deps.ts";
import { describeEvents } from "./catalogue.ts";
import { invalid, exhausted } from "./errors.ts";
import { type Position, encodePosition, eventsAfter } from "./position.ts";
import type { Asking, Start, Wanted } from "./requests.ts";
import { EventParams, ListParams, PollParams, SubscribeParams, startOf, wantedBy } from "./requests.ts";
import { subscribe, unsubscribe } from "./subscribe.ts";
import { setTimeout as pause } from "node:timers/promises";
import type { Clock } from "../../core/clock.ts";
import type { Principal } from "../../runs/run.ts";

const MOST_EVENTS = 100;

export type Answer = (given: object, asking: Asking) => object | Promise<object>;

/** Parses parameters first. @throws ProtocolError if they do not fit */
const taking =
  <Params extends z.ZodType>(
    params: Params,
    answer: (given: z.output<Params>, asking: Asking) => object | Promise<object>,
  ): Answer =>
  (given, asking) => {
    const parsed = params.safeParse(given);
    if (parsed.success) return answer(parsed.data, asking);
    const [issue] = parsed.error.issues;
    throw invalid(issue?.path.join(".") || "params", `is not valid: ${issue?.message ?? "unknown"}`);
  };

/** The answers of all server instances of a process, by the name of the method. */
export function answersTo(
  deps: Pick<ServerDeps, "callbacks" | "clock" | "pageOf">,
): Readonly<Record<string, Answer>> {
  const stream = eventStreams(deps.clock);
  const pageOf = (runId: string): string | undefined => deps.pageOf?.(runId);
  const known = deps.callbacks === "public" ? PUBLIC_CALLBACKS : deps.callbacks;
  /** A client of this machine can listen itself; one elsewhere may have no connection. */
  const callbacksOf = ({ http }: ServerContext): Callbacks | undefined =>
    http === undefined ? undefined : known;
  return {
    list: taking(ListParams, ({ cursor }, { context }) => {
      if (cursor) throw invalid("cursor", "must be left out: all events are on one page");
      return { events: describeEvents(callbacksOf(context) !== undefined) };
    }),
    poll: taking(PollParams, async (params, { news, now }) => {
      const { type, args } = wantedBy(params);
      const { position, isTruncated } = startOf(params, now);
      const limit = Math.min(params.maxEvents ?? MOST_EVENTS, MOST_EVENTS);
      const page = await eventsAfter(news, position, { type, runId: args.run_id, limit, now });
      return {
        events: page.news.map((one) => newsOccurrence(one, pageOf(one.runId))),
        cursor: encodePosition(page.position),
        truncated: isTruncated,
        hasMore: page.hasMore,
        nextPollMs: page.hasMore ? 0 : 5000,
      };
    }),
    stream: taking(EventParams, (params, { now, ...asking }) =>
      stream({ ...wantedBy(params), ...startOf(params, now), ...asking, pageOf }),
    ),
    subscribe: taking(SubscribeParams, (params, asking) =>
      subscribe(params, asking, callbacksOf(asking.context)),
    ),
    unsubscribe: taking(SubscribeParams, unsubscribe),
  };
}

/** Streams of a process, and those of one principal among them. */
const [MOST_STREAMS, MOST_OF_PRINCIPAL] = [200, 50];
const LOOK_MS = 1000;
const HEARTBEAT_MS = 15_000;

interface Streamed extends Wanted, Start, Omit<Asking, "now"> {
  pageOf: (runId: string) => string | undefined;
}

/** The open streams of a process. Each sends events until its client cancels the request or its connection ends. */
export function eventStreams(clock: Clock): (streamed: Streamed) => Promise<object> {
  const open: Principal[] = [];
  return async (streamed) => {
    const { principal, news, type, args, pageOf } = streamed;
    const own = open.filter((one) => one === principal).length;
    if (own >= MOST_OF_PRINCIPAL) throw exhausted("streams", MOST_OF_PRINCIPAL);
    if (open.length >= MOST_STREAMS) throw exhausted("streams", MOST_STREAMS);
    open.push(principal);
    try {
      const { signal, id, notify } = streamed.context.mcpReq;
      // The specification ties a notification to its request by this key.
      const _meta = { "io.modelcontextprotocol/subscriptionId": id };
      const tell = (what: string, params: object): Promise<void> =>
        notify({ method: `notifications/events/${what}`, params: { ...params, _meta } });
      let at: Position = streamed.position;
      await tell("active", { cursor: encodePosition(at), truncated: streamed.isTruncated });
      let quietMs = 0;
      while (!signal.aborted) {
        const wanted = { type, runId: args.run_id, limit: 50, now: clock() };
        const page = await eventsAfter(news, at, wanted);
        at = page.position;
        const cursor = encodePosition(at);
        for (const one of page.news)
          await tell("event", { ...newsOccurrence(one, pageOf(one.runId)), cursor });
        quietMs = page.news.length > 0 ? 0 : quietMs + LOOK_MS;
        if (quietMs >= HEARTBEAT_MS) {
          await tell("heartbeat", { cursor });
          quietMs = 0;
        }
        if (!page.hasMore) await pause(LOOK_MS, undefined, { signal, ref: false }).catch(() => undefined);
      }
    } finally {
      open.splice(open.indexOf(principal), 1);
    }
    return {};
  };
}
