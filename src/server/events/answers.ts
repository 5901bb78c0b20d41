/** Answers of the Events extension. Loaded with the first request for events. */
import type { ServerContext } from "@modelcontextprotocol/server";
import type { z } from "zod";
import type { Callbacks } from "../../news/subscriber.ts";
import { PUBLIC_CALLBACKS, newsOccurrence, callbackProblem, challenge } from "../../news/subscriber.ts";
import type { ServerDeps } from "../contracts/deps.ts";
import {
  type Asking,
  type Start,
  type Wanted,
  invalid,
  exhausted,
  callbackFailed,
  notFound,
  unsupported,
  type Position,
  encodePosition,
  eventsAfter,
  positionAt,
  readsFrom,
  describeEvents,
  isForWebhooks,
} from "./requests.ts";
import { EventParams, ListParams, PollParams, SubscribeParams, startOf, wantedBy } from "./requests.ts";
import { setTimeout as pause } from "node:timers/promises";
import type { Principal } from "../../runs/run.ts";
import { createHash } from "node:crypto";
import { canonicalJson } from "../../core/json.ts";
import { type Clock, isoTime } from "../../core/clock.ts";
import { defined } from "../../core/unknown.ts";
import { secretProblem } from "../../news/webhook.ts";
import type { MadeWith } from "../../runs/shares.ts";
import { madeWith } from "../auth/auth.ts";

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
  const pageOf = (runId: string): string | undefined => deps.pageOf?.(runId);
  const stream = eventStreams(deps.clock, pageOf);
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
      stream({ ...wantedBy(params), ...startOf(params, now), ...asking }),
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

/** The open streams of a process. Each sends events until its client cancels the request or its connection ends. */
function eventStreams(clock: Clock, pageOf: (runId: string) => string | undefined) {
  const open: Principal[] = [];
  return async (streamed: Wanted & Start & Omit<Asking, "now">): Promise<object> => {
    const { principal, news, type, args } = streamed;
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
        if (quietMs >= 15_000) {
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

const HOUR = 3_600_000;
/** Lifetime of a subscription, in ms; the client subscribes again before its end. */
const [SHORTEST, USUAL, LONGEST] = [60_000, 24 * HOUR, 7 * 24 * HOUR];
/** Subscriptions of one principal. */
const MOST_SUBSCRIPTIONS = 50;

type Subscribed = z.output<typeof SubscribeParams>;

/** Made of who, where and what: the same request finds the same subscription, and nobody else's. */
function subscriptionId(principal: Principal, url: string, { type, args }: Wanted): string {
  const key = canonicalJson([principal, url, type, args]);
  return `sub_${createHash("sha256").update(key).digest("hex").slice(0, 32)}`;
}

/** `callbacks` absent: clients of this connection subscribe no addresses. */
async function subscribe(
  params: Subscribed,
  { news, principal, context, now }: Asking,
  callbacks: Callbacks | undefined,
): Promise<object> {
  const wanted = wantedBy(params);
  const { type, args } = wanted;
  const { ttlMs } = params;
  const { url, mode } = params.delivery;
  if ((mode ?? "webhook") !== "webhook") throw unsupported("delivery", "other than webhook");
  if (!isForWebhooks(type) || callbacks === undefined) throw unsupported("delivery", `of ${type} by webhook`);
  const start = startOf(params, now);
  const secret = params.delivery.secret ?? "";
  const problem = callbackProblem(url, callbacks);
  if (problem !== undefined) throw invalid("delivery.url", problem);
  const weakness = secretProblem(secret);
  if (weakness !== undefined) throw invalid("delivery.secret", weakness);
  const id = subscriptionId(principal, url, wanted);
  const known = await news.subscription(id, now);
  // Whoever has repeated a challenge that was signed by this secret is known.
  if (known?.secret !== secret) {
    const failure = await challenge({ id, url, secret }, callbacks);
    if (failure !== undefined) throw callbackFailed(failure);
  }
  const { until = Infinity, ...by }: Partial<MadeWith> = (await madeWith(context.http?.authInfo)) ?? {};
  const lifetime = Math.round(Math.min(Math.max(ttlMs ?? USUAL, SHORTEST), LONGEST));
  const expiresAt = Math.min(now + lifetime, until);
  const facts = { id, type, url, secret, expiresAt, createdAt: now, ...by };
  const subscription = { ...facts, ...defined({ runId: args.run_id }) };
  const since = params.cursor ? readsFrom(start.position) : undefined;
  const added = await news.subscribe(subscription, { most: MOST_SUBSCRIPTIONS, now, since });
  if (added === undefined) throw exhausted("subscriptions", MOST_SUBSCRIPTIONS);
  return {
    id,
    refreshBefore: isoTime(expiresAt),
    cursor: encodePosition(positionAt(now)),
    truncated: start.isTruncated || added.isTruncated,
  };
}

/** Ends a subscription, also one that this server would not accept any more. */
async function unsubscribe(params: Subscribed, { news, principal }: Asking): Promise<object> {
  const id = subscriptionId(principal, params.delivery.url, wantedBy(params));
  if (await news.unsubscribe(id)) return {};
  throw notFound("subscription", "there is none with this name, these arguments and this address.");
}
