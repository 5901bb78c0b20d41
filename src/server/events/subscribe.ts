/** Addresses to which clients have events sent. */
import { createHash } from "node:crypto";
import type { z } from "zod";
import { canonicalJson } from "../../core/json.ts";
import { isoTime } from "../../core/clock.ts";
import { defined } from "../../core/defined.ts";
import { type Callbacks, callbackProblem, challenge } from "../../news/subscriber.ts";
import { secretProblem } from "../../news/webhook.ts";
import type { Principal } from "../../runs/run.ts";
import type { MadeWith } from "../../runs/shares.ts";
import { madeWith } from "../auth/auth.ts";
import { isForWebhooks } from "./catalogue.ts";
import { callbackFailed, exhausted, invalid, notFound, unsupported } from "./errors.ts";
import { encodePosition, positionAt, readsFrom } from "./position.ts";
import { type Asking, type SubscribeParams, type Wanted, startOf, wantedBy } from "./requests.ts";

const HOUR = 3_600_000;
/** Lifetime of a subscription, in ms; the client subscribes again before its end. */
const [SHORTEST, USUAL, LONGEST] = [60_000, 24 * HOUR, 7 * 24 * HOUR];
/** Subscriptions of one principal. */
const MOST = 50;

type Params = z.output<typeof SubscribeParams>;

/** Made of who, where and what: the same request finds the same subscription, and nobody else's. */
function subscriptionId(principal: Principal, url: string, { type, args }: Wanted): string {
  const key = canonicalJson([principal, url, type, args]);
  return `sub_${createHash("sha256").update(key).digest("hex").slice(0, 32)}`;
}

/** `callbacks` absent: clients of this connection subscribe no addresses. */
export async function subscribe(
  params: Params,
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
  const added = await news.subscribe(subscription, { most: MOST, now, since });
  if (added === undefined) throw exhausted("subscriptions", MOST);
  return {
    id,
    refreshBefore: isoTime(expiresAt),
    cursor: encodePosition(positionAt(now)),
    truncated: start.isTruncated || added.isTruncated,
  };
}

/** Ends a subscription, also one that this server would not accept any more. */
export async function unsubscribe(params: Params, { news, principal }: Asking): Promise<object> {
  const id = subscriptionId(principal, params.delivery.url, wantedBy(params));
  if (await news.unsubscribe(id)) return {};
  throw notFound("subscription", "there is none with this name, these arguments and this address.");
}
