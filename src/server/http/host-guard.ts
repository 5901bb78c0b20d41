import type { IncomingMessage, ServerResponse } from "node:http";
import { isIPv4 } from "node:net";
import { hostHeaderValidation, originValidation } from "@modelcontextprotocol/node";
import { localhostAllowedHostnames } from "@modelcontextprotocol/server";
import { ConfigurationError } from "../../core/errors.ts";

/** Passes a request on, or has answered it with 403 and returns false. */
export type RequestGuard = (request: IncomingMessage, response: ServerResponse) => boolean;

export interface GuardOptions {
  /** The address the server is bound to; always accepted as `Host`. */
  host: string;
  /** Further accepted host names, without port. */
  allowedHosts: readonly string[];
  /** Further accepted host names of `Origin`, or `scheme://*`. */
  allowedOrigins: readonly string[];
}

/** Whether `host` names this machine only. */
export function isLoopback(host: string): boolean {
  const bare = unbracket(host).toLowerCase();
  return bare === "localhost" || bare === "::1" || (isIPv4(bare) && bare.startsWith("127."));
}

/** Throws unless `host` is a loopback address: without authentication whoever reaches it may use the agent. */
export function requireLoopback(host: string): void {
  if (isLoopback(host)) return;
  throw new ConfigurationError(
    "http_host_not_loopback",
    `http.host is "${host}", which other machines can reach, and requests are not authenticated. ` +
      "Use 127.0.0.1, ::1 or localhost, or configure http.tokens or http.oauth.",
  );
}

/**
 * Refuses foreign `Host` and `Origin` headers (DNS rebinding, cross-site requests). Ports are not
 * compared. A request without `Origin` passes: only browsers send one.
 */
export function createRequestGuard({ host, allowedHosts, allowedOrigins }: GuardOptions): RequestGuard {
  const own = [...localhostAllowedHostnames(), inUrl(host)];
  const hostAllowed = hostHeaderValidation([...own, ...allowedHosts]);
  const originAllowed = originValidation([...own, ...allowedOrigins]);
  return (request, response) => hostAllowed(request, response) && originAllowed(request, response);
}

/** `host` as it stands in a URL: IPv6 addresses in brackets. */
export function inUrl(host: string): string {
  const bare = unbracket(host);
  return bare.includes(":") ? `[${bare}]` : bare;
}

/** `host` as the network functions want it: IPv6 addresses without brackets. */
export function unbracket(host: string): string {
  return host.startsWith("[") && host.endsWith("]") ? host.slice(1, -1) : host;
}
