/** Open requests on which a client is sent events as they happen. */
import { setTimeout as pause } from "node:timers/promises";
import type { Clock } from "../../core/clock.ts";
import { newsOccurrence } from "../../news/subscriber.ts";
import type { Principal } from "../../runs/run.ts";
import { exhausted } from "./errors.ts";
import { type Position, encodePosition, eventsAfter } from "./position.ts";
import type { Asking, Start, Wanted } from "./requests.ts";

/** Streams of a process, and those of one principal among them. */
const [MOST_STREAMS, MOST_OF_PRINCIPAL] = [200, 50];
const LOOK_MS = 1000;
const HEARTBEAT_MS = 15_000;

interface Streamed extends Wanted, Start, Omit<Asking, "now"> {
  pageOf: (runId: string) => string | undefined;
}

/** The open streams of a process. */
export function eventStreams(clock: Clock): (streamed: Streamed) => Promise<object> {
  const open: Principal[] = [];
  return async (streamed) => {
    const { principal } = streamed;
    const own = open.filter((one) => one === principal).length;
    if (own >= MOST_OF_PRINCIPAL) throw exhausted("streams", MOST_OF_PRINCIPAL);
    if (open.length >= MOST_STREAMS) throw exhausted("streams", MOST_STREAMS);
    open.push(principal);
    try {
      await send(streamed, clock);
    } finally {
      open.splice(open.indexOf(principal), 1);
    }
    return {};
  };
}

/** Sends events until the client cancels the request, or its connection ends. */
async function send(streamed: Streamed, clock: Clock): Promise<void> {
  const { news, type, args, pageOf } = streamed;
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
    for (const one of page.news) await tell("event", { ...newsOccurrence(one, pageOf(one.runId)), cursor });
    quietMs = page.news.length > 0 ? 0 : quietMs + LOOK_MS;
    if (quietMs >= HEARTBEAT_MS) {
      await tell("heartbeat", { cursor });
      quietMs = 0;
    }
    if (!page.hasMore) await pause(LOOK_MS, undefined, { signal, ref: false }).catch(() => undefined);
  }
}
