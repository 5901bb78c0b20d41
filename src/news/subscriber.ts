/** Clients that subscribed to events: they prove that an address is theirs, and are sent one event a request. */
import { randomBytes, timingSafeEqual } from "node:crypto";
import { type Clock, isoTime } from "../core/clock.ts";
import { memberOf, parsedJson, parsedUrl } from "../core/unknown.ts";
import type { News, Send, Subscription } from "../runs/news.ts";
import type { Holds } from "../runs/shares.ts";
import { readBody } from "../web/body.ts";
import type { Network } from "../web/request.ts";
import { urlProblem } from "../web/url.ts";
import type { ChannelContext } from "./channel.ts";
import { newsData } from "./message.ts";
import { post, postJson } from "./post.ts";
import { signedHeaders } from "./webhook.ts";

/** Settings of requests to webhook URLs that clients registered. */
export interface Callbacks {
  network: Network;
  /** True if an address may be used without TLS. */
  isTrusted: (url: URL) => boolean;
}

/** Only addresses of the public internet, over TLS. */
export const PUBLIC_CALLBACKS: Callbacks = {
  network: { isNamed: () => false },
  isTrusted: () => false,
};

/** Explains why events are not sent to an address; `undefined`: it is looked up. */
export function callbackProblem(text: string, { network, isTrusted }: Callbacks): string | undefined {
  const url = parsedUrl(text);
  if (url === undefined || text.length > 2000) return "must be an https address of at most 2000 characters";
  if (url.hash !== "") return "must be an address without fragment";
  if (url.protocol !== "https:" && !isTrusted(url)) return "must be an https address";
  const problem = urlProblem(url, network.isNamed);
  return problem === undefined ? undefined : `cannot be used: ${problem}`;
}

/** An event as clients get it, whichever way. */
export const newsOccurrence = (news: News, url: string | undefined) => ({
  eventId: news.id,
  name: news.type,
  timestamp: isoTime(news.time),
  data: newsData(news, url),
});

type Receiver = Pick<Subscription, "id" | "url" | "secret">;

const headersFor = async ({ id, secret }: Receiver, messageId: string, body: string) => ({
  ...(await signedHeaders({ id: messageId, body, secret }, new Date())),
  "x-mcp-subscription-id": id,
});

/** Reasons why an address is not used, as the specification of events names them. */
export type CallbackFailure = "challenge_failed" | "connection_failed" | "timeout" | "http_4xx" | "http_5xx";

/** Asks whoever is at the address to repeat a challenge; `undefined`: they did. */
export async function challenge(
  receiver: Receiver,
  { network }: Callbacks,
): Promise<CallbackFailure | undefined> {
  const url = new URL(receiver.url);
  const nonce = randomBytes(32).toString("base64url");
  const body = JSON.stringify({ type: "verification", challenge: nonce });
  const signal = AbortSignal.timeout(10_000);
  const headers = await headersFor(receiver, `msg_verification_${randomBytes(12).toString("hex")}`, body);
  try {
    const answer = await postJson({ url, network, headers, body, signal });
    const { statusCode: status = 0 } = answer;
    const { bytes } = await readBody(answer, url, 4096);
    if (status >= 500) return "http_5xx";
    if (status < 200 || status >= 300) return "http_4xx";
    const repeated = Buffer.from(String(memberOf(parsedJson(bytes.toString("utf8")), "challenge")));
    const wanted = Buffer.from(nonce);
    const isRepeated = repeated.length === wanted.length && timingSafeEqual(repeated, wanted);
    return isRepeated ? undefined : "challenge_failed";
  } catch {
    return signal.aborted ? "timeout" : "connection_failed";
  }
}

/** Sends events to a subscription. One that has expired, or ended with its token or otherwise, wants none any more. */
export const subscriberSend =
  (
    find: () => Promise<Subscription | undefined>,
    context: Pick<ChannelContext, "pageOf"> & { callbacks: Callbacks; clock: Clock; holds: Holds },
  ): Send =>
  async (news, signal) => {
    const { callbacks, clock, pageOf, holds } = context;
    const subscription = await find();
    const isOpen = subscription !== undefined && subscription.expiresAt > clock();
    if (!isOpen || !(await holds(subscription))) return { ok: true };
    const body = JSON.stringify(newsOccurrence(news, pageOf(news.runId)));
    return post({
      url: new URL(subscription.url),
      network: callbacks.network,
      headers: await headersFor(subscription, news.id, body),
      body,
      signal,
      // Statuses after which a client does not want the event again: it is gone, or the event is too large.
      final: new Set([410, 413]),
    });
  };
