/** Open requests on which a client is sent events as they happen. */
import type { ServerContext } from "@modelcontextprotocol/server";
import { setTimeout as pause } from "node:timers/promises";
import { occurrenceOf } from "../../news/subscriber.ts";
import type { RunNews } from "../../runs/news.ts";
import type { Principal } from "../../runs/run.ts";
import { exhausted } from "./errors.ts";
import { type Position, encodePosition, eventsAfter } from "./position.ts";
import type { Start, Wanted } from "./requests.ts";

/** The key by which the specification ties a notification to its request. */
const SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId";
/** Streams of a process. */
const MOST_STREAMS = 200;
const LOOK_MS = 1000;
const HEARTBEAT_MS = 15_000;
const PAGE = 50;

export interface Streamed extends Wanted, Start {
  news: RunNews;
  principal: Principal;
  context: ServerContext;
  pageOf: (runId: string) => string | undefined;
}

export class EventStreams {
  #open = 0;

  /** Sends events until the client cancels the request, or its connection ends. @throws ProtocolError if too many are open */
  async serve(streamed: Streamed): Promise<object> {
    if (this.#open >= MOST_STREAMS) throw exhausted("streams", MOST_STREAMS);
    this.#open += 1;
    try {
      await this.#send(streamed);
    } finally {
      this.#open -= 1;
    }
    return {};
  }

  async #send({
    news,
    principal,
    type,
    args,
    context,
    position,
    isTruncated,
    pageOf,
  }: Streamed): Promise<void> {
    const { signal, id, notify } = context.mcpReq;
    const tell = (what: string, params: object): Promise<void> =>
      notify({
        method: `notifications/events/${what}`,
        params: { ...params, _meta: { [SUBSCRIPTION_ID]: id } },
      });
    let at: Position = position;
    await tell("active", { cursor: encodePosition(at), truncated: isTruncated });
    let quietMs = 0;
    while (!signal.aborted) {
      const page = await eventsAfter(news, principal, at, { type, runId: args.run_id, limit: PAGE });
      at = page.position;
      const cursor = encodePosition(at);
      for (const one of page.news) await tell("event", { ...occurrenceOf(one, pageOf(one.runId)), cursor });
      quietMs = page.news.length > 0 ? 0 : quietMs + LOOK_MS;
      if (quietMs >= HEARTBEAT_MS) {
        await tell("heartbeat", { cursor });
        quietMs = 0;
      }
      if (!page.hasMore) await pause(LOOK_MS, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }
}
