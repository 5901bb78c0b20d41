/** Answers of the Events extension. Loaded with the first request for events. */
import type { ServerContext } from "@modelcontextprotocol/server";
import type { z } from "zod";
import { type Callbacks, PUBLIC_CALLBACKS, newsOccurrence } from "../../news/subscriber.ts";
import type { ServerDeps } from "../contracts/deps.ts";
import { describeEvents } from "./catalogue.ts";
import { invalid } from "./errors.ts";
import { encodePosition, eventsAfter } from "./position.ts";
import type { Asking } from "./requests.ts";
import { EventParams, ListParams, PollParams, SubscribeParams, startOf, wantedBy } from "./requests.ts";
import { eventStreams } from "./stream.ts";
import { subscribe, unsubscribe } from "./subscribe.ts";

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
