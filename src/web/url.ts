/** Reads the addresses of pages, and judges them before anything is requested. */
import { isIP } from "node:net";
import { oneLine } from "../core/text.ts";
import { isPublicAddress, isWebPort } from "./addresses.ts";
import { parsedUrl } from "../core/unknown.ts";

/** A host that an operator names: it may have a private address, and any port. */
interface NamedHost {
  /** A name, an address, or the end of names, such as `.corp.example` of `*.corp.example`. */
  name: string;
  isEnd: boolean;
  /** Absent: any. */
  port?: number;
}

/** Judges whether a URL leads to a host that the operator named. */
export type IsNamed = (url: URL) => boolean;

/** Longest address. Longer ones are mostly data on their way out. */
export const MAX_URL = 2000;

export type ReadUrl = { ok: true; url: URL } | { ok: false; problem: string };

/**
 * Reads the address of a page as a model writes it. Refuses credentials, other protocols than HTTP, and hosts that
 * cannot be on the public internet, unless the operator named them.
 */
export function readUrl(text: string, isNamed: IsNamed): ReadUrl {
  if (text.length > MAX_URL) return no(`Longer than ${MAX_URL} characters`);
  const trimmed = text.trim();
  // An address without a scheme is meant as https.
  const isBare = parsedUrl(trimmed) === undefined && /^[\p{L}\p{N}][^\s/:]*\.[^\s/:]/u.test(trimmed);
  const whole = isBare ? `https://${trimmed}` : trimmed;
  const parsed = parsedUrl(whole);
  if (parsed === undefined)
    return no(`Not an address of the web; write one such as https://example.com/page`);
  const problem = urlProblem(parsed, isNamed);
  if (problem !== undefined) return no(problem);
  parsed.hash = "";
  return { ok: true, url: parsed };
}

const no = (problem: string): ReadUrl => ({ ok: false, problem });

/** Explains why a URL is not requested. Returns undefined if its host is looked up. */
export function urlProblem(url: URL, isNamed: IsNamed): string | undefined {
  const { protocol, username, password, hostname } = url;
  if (protocol !== "http:" && protocol !== "https:") return `Only http and https addresses are read`;
  if (username !== "" || password !== "")
    return `Addresses with a user name or password are not read; leave it out`;
  if (isNamed(url)) return undefined;
  const name = plainHost(hostname);
  // Ends of names that are never on the public internet (RFC 6761, 6762, 8375, ICANN's `internal`).
  const ends = [".localhost", ".local", ".internal", ".home.arpa", ".onion"];
  const isLocal = !name.includes(".") || ends.some((end) => name.endsWith(end));
  if (isIP(name) === 0 ? isLocal : !isPublicAddress(name))
    return `${displayHost(url)} is not on the public internet`;
  if (!isWebPort(effectivePort(url))) return `Port ${effectivePort(url)} is not one of web servers`;
  return undefined;
}

/** A host without the brackets of IPv6 and the dot that ends a full name. */
const plainHost = (hostname: string): string => hostname.replace(/^\[(.*)\]$/s, "$1").replace(/\.$/, "");

const effectivePort = ({ port, protocol }: URL): number =>
  port === "" ? (protocol === "https:" ? 443 : 80) : Number(port);

/** The host of a URL for people, with a port that is not the usual one. */
export const displayHost = (url: URL): string => oneLine(url.host, 300);

/** The host that an approval counts for: with its port, and the same with `www.` and without. */
export const approvedSite = ({ hostname, port }: URL): string => {
  const name = hostname.replace(/\.$/, "").replace(/^www\.(?=[^.]+\.)/, "");
  return port === "" ? name : `${name}:${port}`;
};

/** Recognizes the URLs that lead to the named hosts. Entries that cannot be read name none. */
export function namedHosts(entries: readonly string[]): IsNamed {
  const hosts = entries.map((entry) => readHost(entry)).filter((host) => typeof host === "object");
  return (url) => {
    const name = plainHost(url.hostname);
    return hosts.some(
      (host) =>
        (host.isEnd ? name.endsWith(host.name) : name === host.name) &&
        (host.port === undefined || host.port === effectivePort(url)),
    );
  };
}

/** Reads an entry such as `wiki.corp.example`, `*.corp.example`, `127.0.0.1:8080` or `[::1]:8080`; else its problem. */
export function readHost(entry: string): NamedHost | string {
  const text = entry.trim();
  const [, host = "", port] = /^(.*?)(?::(\d{1,5}))?$/s.exec(text) ?? [];
  const bare = isIP(text) === 6 ? `[${text}]` : host;
  const isEnd = bare.startsWith("*.");
  const name = isEnd ? bare.slice(2) : bare;
  const parsed = parsedUrl(`http://${name}`);
  if (name === "" || /[/?#@*\\\s]/.test(name) || parsed === undefined)
    return `"${oneLine(entry, 100)}" is not a host; write one such as wiki.example.com, *.example.com or 127.0.0.1:8080`;
  const plain = plainHost(parsed.hostname);
  if (isEnd && isIP(plain) !== 0) return `"${oneLine(entry, 100)}" has a wildcard before an address`;
  return {
    name: isEnd ? `.${plain}` : plain,
    isEnd,
    ...(port === undefined || isIP(text) === 6 ? {} : { port: Number(port) }),
  };
}

/** True for an https address, or http on this machine, without credentials and fragment. */
export function isSecureUrl(text: string): boolean {
  const parsed = parsedUrl(text);
  if (parsed === undefined) return false;
  const { protocol, hostname, hash, username, password } = parsed;
  if (hash !== "" || username !== "" || password !== "") return false;
  const isLoopback = ["127.0.0.1", "[::1]", "localhost"].includes(hostname);
  return protocol === "https:" || (protocol === "http:" && isLoopback);
}
