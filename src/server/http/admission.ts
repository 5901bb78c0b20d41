/** Refuses requests before they are read: by host and origin, by token, and by how many an address sent. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { BlockList, isIP, isIPv4 } from "node:net";
import { localhostAllowedHostnames } from "@modelcontextprotocol/server";
import type { Clock } from "../../core/clock.ts";
import { ConfigurationError } from "../../core/errors.ts";
import { NewestOf } from "../../core/newest-of.ts";
import { hostMatcher, originMatcher } from "../../config/origins.ts";
import type { SharedState } from "../../runs/server-ports.ts";
import type { Logger } from "../../core/logger.ts";
import type { Authenticator, Tokens } from "../auth/auth.ts";
import type { Counter } from "./operations.ts";
import { sendError } from "./request.ts";

/** Passes a request on, or has answered it with 403 and returns false. */
export type RequestGuard = (request: IncomingMessage, response: ServerResponse) => boolean;

export interface GuardOptions {
  /** The address the server is bound to; always accepted as `Host`. */
  host: string;
  /** Further accepted hosts; see `readOrigin`. A port that is named does not count. */
  allowedHosts: readonly string[];
  /** Web pages that may send requests, besides those of this machine; see `readOrigin`. */
  allowedOrigins: readonly string[];
}

/** True if `host` names this machine only. */
export function isLoopback(host: string): boolean {
  const bare = unbracket(host).toLowerCase();
  return bare === "localhost" || bare === "::1" || (isIPv4(bare) && bare.startsWith("127."));
}

/** Throws unless `host` is a loopback address: without authentication whoever reaches it may use the agent. */
export function requireLoopback(host: string): void {
  if (isLoopback(host)) return;
  throw new ConfigurationError(
    "http_host_not_loopback",
    `Other machines can reach --host ${host}, and requests are not authenticated. ` +
      "Use 127.0.0.1, ::1 or localhost, or set http.tokens, http.oauth or http.owner.",
  );
}

/**
 * Refuses foreign `Host` and `Origin` headers (DNS rebinding, cross-site requests). A request without `Origin`
 * passes: only browsers send one.
 */
export function createRequestGuard(options: GuardOptions): RequestGuard {
  const hostAllowed = createHostGuard(options);
  const originAllowed = originMatcher([...ownHosts(options), ...options.allowedOrigins]);
  return (request, response) => {
    if (!hostAllowed(request, response)) return false;
    const { origin } = request.headers;
    if (!origin || originAllowed(origin)) return true;
    const shown = origin.slice(0, 200);
    sendError(response, 403, -32_000, `Invalid Origin: pages of ${shown} are not in http.allowedOrigins`);
    return false;
  };
}

/** Refuses foreign `Host` headers only. */
export function createHostGuard(options: Omit<GuardOptions, "allowedOrigins">): RequestGuard {
  const isAllowed = hostMatcher([...ownHosts(options), ...options.allowedHosts]);
  return ({ headers: { host = "" } }, response) => {
    if (isAllowed(host)) return true;
    const shown =
      host === "" ? "the request names none" : `${host.slice(0, 200)} is not in http.allowedHosts`;
    sendError(response, 403, -32_000, `Invalid Host: ${shown}`);
    return false;
  };
}

const ownHosts = ({ host }: Pick<GuardOptions, "host">): string[] => [
  ...localhostAllowedHostnames(),
  inUrl(host),
];

/** `host` as it stands in a URL: IPv6 addresses in brackets. */
export function inUrl(host: string): string {
  const bare = unbracket(host);
  return bare.includes(":") ? `[${bare}]` : bare;
}

/** `host` as the network functions want it: IPv6 addresses without brackets. */
export const unbracket = (host: string): string =>
  host.startsWith("[") && host.endsWith("]") ? host.slice(1, -1) : host;

export type AddressOf = (request: IncomingMessage) => string;

/**
 * Returns the address at the other end of the connection. If that is one of `proxies`, it is the last address in
 * `X-Forwarded-For` that is not; anybody could have written the earlier ones.
 */
export function clientAddress(proxies: readonly string[]): AddressOf {
  const trusted = new BlockList();
  for (const proxy of proxies) {
    const [address = "", prefix] = proxy.split("/");
    const family = isIP(address) === 6 ? "ipv6" : "ipv4";
    if (prefix === undefined) trusted.addAddress(address, family);
    else trusted.addSubnet(address, Number(prefix), family);
  }
  const isTrusted = (address: string): boolean =>
    isIP(address) !== 0 && trusted.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");

  return ({ socket, headers }) => {
    let address = plain(socket.remoteAddress ?? "");
    const forwarded = String(headers["x-forwarded-for"] ?? "").split(",");
    while (isTrusted(address)) {
      const before = plain(forwarded.pop()?.trim() ?? "");
      if (isIP(before) === 0) break;
      address = before;
    }
    return address;
  };
}

/** Returns the network of one client: an IPv4 address, or the IPv6 network that a host has for itself. */
export function clientNetwork(address: string): string {
  if (isIP(address) !== 6) return address;
  const [head = "", tail] = address.replace(/%.*/, "").split("::");
  const before = head === "" ? [] : head.split(":");
  const after = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - before.length - after.length);
  const groups = [...before, ...Array<string>(zeros).fill("0"), ...after];
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":")}::/64`;
}

/** Unwraps an IPv4 address that is written as IPv6, so that both count as one client. */
const plain = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, "");

export interface RateLimitOptions {
  /** Requests that a key may make in a minute, and at once after a quiet minute. */
  perMinute: number;
  clock: Clock;
  /** Most keys remembered; the one seen longest ago is dropped first. Default 10,000. */
  keys?: number;
  /** Counts requests to other servers too. Absent: there are none. `name` distinguishes limits. */
  shared?: { name: string; open: () => Promise<Pick<SharedState, "rates">> } | undefined;
}

interface Bucket {
  tokens: number;
  filledAt: number;
}

const MINUTE_MS = 60_000;

export class RateLimit {
  readonly #options: RateLimitOptions;
  readonly #buckets: NewestOf<Bucket>;
  /** Requests not yet reported to other servers. */
  #untold = new Map<string, number>();

  constructor(options: RateLimitOptions) {
    this.#options = options;
    this.#buckets = new NewestOf(options.keys ?? 10_000);
  }

  get size(): number {
    return this.#buckets.size;
  }

  /** Takes one request; 0 when there was room, else the whole seconds until there is. */
  take(key: string): number {
    const bucket = this.#filled(key);
    this.#buckets.keep(key, bucket);
    if (bucket.tokens < 1) return this.#secondsUntilRoom(bucket);
    bucket.tokens -= 1;
    if (this.#options.shared !== undefined) this.#untold.set(key, (this.#untold.get(key) ?? 0) + 1);
    return 0;
  }

  /** Reports the requests taken here to other servers, and learns theirs for these keys. */
  async tell(): Promise<void> {
    const { shared, perMinute, clock } = this.#options;
    if (shared === undefined || this.#untold.size === 0) return;
    const told = [...this.#untold].map(([key, count]) => [`${shared.name} ${key}`, count] as const);
    this.#untold = new Map();
    const { rates } = await shared.open();
    for (const [name, tokens] of await rates.spend(new Map(told), perMinute)) {
      const key = name.slice(shared.name.length + 1);
      this.#buckets.keep(key, { tokens: tokens - (this.#untold.get(key) ?? 0), filledAt: clock() });
    }
  }

  /** Returns what `take` would return, without taking anything. */
  wait(key: string): number {
    const bucket = this.#filled(key);
    return bucket.tokens < 1 ? this.#secondsUntilRoom(bucket) : 0;
  }

  #secondsUntilRoom({ tokens }: Bucket): number {
    return Math.max(1, Math.ceil(((1 - tokens) * MINUTE_MS) / this.#options.perMinute / 1000));
  }

  #filled(key: string): Bucket {
    const { perMinute, clock } = this.#options;
    const now = clock();
    const known = this.#buckets.get(key);
    if (known === undefined) return { tokens: perMinute, filledAt: now };
    const gained = (Math.max(0, now - known.filledAt) * perMinute) / MINUTE_MS;
    return { tokens: Math.min(perMinute, known.tokens + gained), filledAt: now };
  }
}

/**
 * Checks the tokens of requests. After too many refused tokens an address is served only with tokens that are known to
 * be good; unknown ones are not checked any more. `refusalLimit`: by network.
 */
export function tokenCheck(
  authenticator: Authenticator,
  options: {
    refusalLimit: RateLimit;
    visits: RateLimit;
    refusals: Counter;
    addressOf: AddressOf;
    logger: Logger;
  },
): Tokens {
  const { refusalLimit, visits, refusals, addressOf, logger } = options;
  const networkOf = (request: IncomingMessage): string => clientNetwork(addressOf(request));
  const wait: Tokens["wait"] = (request) => refusalLimit.wait(networkOf(request));
  const refuse: Tokens["refuse"] = (request) => refusalLimit.take(networkOf(request));
  const recheck: Tokens["recheck"] = async (request, authorization) => {
    const outcome = await authenticator.authenticate(authorization, { mayAsk: wait(request) === 0 });
    if (outcome.ok) return outcome;
    refusals.count(outcome.reason);
    return { ...outcome, wait: 0 };
  };
  const check: Tokens["check"] = async (request, authorization) => {
    const outcome = await recheck(request, authorization);
    // A missing token is not a guess, and a token that could not be checked may be valid.
    if (outcome.ok || outcome.reason === "no_token" || outcome.reason === "issuer_unavailable")
      return outcome;
    const seconds = refuse(request);
    // The limit also bounds the log.
    if (seconds === 0) logger.info("auth.refused", { reason: outcome.reason, address: addressOf(request) });
    return { ...outcome, wait: seconds };
  };
  const visit: Tokens["visit"] = (request) => visits.take(networkOf(request));
  return { wait, check, recheck, refuse, visit, holds: (made) => authenticator.holds(made) };
}
