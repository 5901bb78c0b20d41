/** One request, on a socket whose address was judged. */
import type { LookupAddress } from "node:dns";
import { lookup as lookupName } from "node:dns/promises";
import type { IncomingMessage } from "node:http";
import { isIP, type LookupFunction } from "node:net";
import { callbackify } from "node:util";
import { codeOf, errorMessage, isAbortError } from "../core/errors.ts";
import { agentOptions, sendRequest } from "../core/http-request.ts";
import { oneLine } from "../core/text.ts";
import { isPublicAddress } from "./addresses.ts";
import { type IsNamed, displayHost } from "./url.ts";
import { parsedUrl } from "../core/unknown.ts";
import table from "./network-errors.json" with { type: "json" };

export type Resolve = (hostname: string) => Promise<readonly LookupAddress[]>;

const systemResolve: Resolve = (hostname) => lookupName(hostname, { all: true, verbatim: true });

export interface Network {
  /** Hosts that may have private addresses. */
  isNamed: IsNamed;
  /** Default: the system's resolver. */
  resolve?: Resolve;
}

/** The reason why a page is not read, for the model. */
export class WebProblem extends Error {
  readonly code: string;
  /** Text of the page that the server sent with a failure; others wrote it. */
  explanation = "";

  constructor(code: string, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
  }
}

export interface RequestOptions {
  network: Network;
  headers: Readonly<Record<string, string>>;
  signal: AbortSignal;
  /** Default GET. */
  method?: string;
  /** Default: none. */
  body?: string;
}

/**
 * Sends a request and returns the answer, whose body was not read.
 *
 * The addresses that the socket connects to are judged when its name is looked up, so that a name that is looked up
 * twice cannot have a second answer. Sends no cookies, and no credentials but those among `headers`.
 *
 * @throws WebProblem
 */
export async function request(
  url: URL,
  { network, headers, signal, method = "GET", body }: RequestOptions,
): Promise<IncomingMessage> {
  const isProxied = agentOptions(url).proxyEnv !== undefined;
  // A proxy connects for us, so that its own rules decide. Names that are private from here are refused all the same;
  // a name that only the proxy can look up is left to it.
  if (isProxied && !network.isNamed(url) && isIP(url.hostname.replace(/^\[|\]$/g, "")) === 0) {
    const { resolve = systemResolve } = network;
    judge(url, await resolve(url.hostname).catch(() => []));
  }
  const lookup = judgedLookup(url, network, isProxied);
  return sendRequest(url, { method, headers, signal, lookup }, body).catch((error: unknown) => {
    throw asProblem(error, url);
  });
}

/**
 * Follows redirects to an answer that is none. `send` gets the address that redirects there, too, and throws for
 * addresses that may not be asked. @throws WebProblem after `most` redirects.
 */
export async function followRedirects(
  url: URL,
  most: number,
  send: (to: URL, from?: URL) => Promise<IncomingMessage>,
): Promise<{ at: URL; incoming: IncomingMessage }> {
  let [at, from]: [URL, URL?] = [url];
  for (let redirects = 0; redirects <= most; redirects += 1) {
    const incoming = await send(at, from);
    const { statusCode = 0, headers } = incoming;
    const isRedirect = [301, 302, 303, 307, 308].includes(statusCode) && headers.location !== undefined;
    // Servers send other bytes than ASCII as they are, and Node reads them as Latin-1.
    const target = Buffer.from(headers.location ?? "", "latin1").toString("utf8");
    const to = isRedirect ? parsedUrl(target, at.href) : undefined;
    if (to === undefined) return { at, incoming };
    to.hash = "";
    incoming.destroy();
    [at, from] = [to, at];
  }
  throw new WebProblem("redirected", `${displayHost(url)} redirects more than ${most} times.`);
}

/** Looks the URL's host up and refuses addresses outside the public internet. */
function judgedLookup(url: URL, network: Network, isProxied: boolean): LookupFunction {
  const { resolve = systemResolve, isNamed } = network;
  const judged = async (hostname: string): Promise<readonly [LookupAddress, ...LookupAddress[]]> => {
    const [first, ...others] = await resolve(hostname);
    if (first === undefined) throw new WebProblem("not_found", `${displayHost(url)} has no address.`);
    const isOfProxy = isProxied && hostname !== url.hostname;
    if (!isOfProxy && !isNamed(url)) judge(url, [first, ...others]);
    return [first, ...others];
  };
  const lookUp = callbackify(judged);
  return (hostname, { all }, callback) => {
    lookUp(hostname, (error, addresses) => {
      if (error) return callback(error, "", 0);
      const [{ address, family }] = addresses;
      if (all) callback(null, [...addresses]);
      else callback(null, address, family);
    });
  };
}

/** One private address among public ones is enough: the socket may use any of them. */
function judge(url: URL, addresses: readonly LookupAddress[]): void {
  if (addresses.every(({ address }) => isPublicAddress(address))) return;
  const message = `${displayHost(url)} has a private address, and only the public internet is reached.`;
  throw new WebProblem("private", message);
}

const NETWORK_ERRORS: Readonly<Record<string, string>> = table;

/** The seconds that an answer asks to wait, in its header `retry-after`. */
export const secondsToWait = (header: string | null | undefined): string | undefined =>
  /^\d{1,6}$/.exec(header ?? "")?.[0];

/** Describes the error of a request or of its body for the model. Returns the error of an aborted request as it is. */
export function asProblem(error: unknown, url: URL): unknown {
  if (error instanceof WebProblem || isAbortError(error)) return error;
  const code = codeOf(error) ?? "";
  const host = displayHost(url);
  const isCertificate = /CERT|SIGNATURE|ISSUER|SELF_SIGNED/.test(code);
  const reason = isCertificate
    ? `has a certificate that is not trusted (${code})`
    : code.startsWith("HPE_")
      ? (NETWORK_ERRORS[code] ?? "sent an answer that is not HTTP")
      : (NETWORK_ERRORS[code] ?? `could not be read (${code || oneLine(errorMessage(error), 100)})`);
  return new WebProblem("unreachable", `${host} ${reason}.`, { cause: error });
}
