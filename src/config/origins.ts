/** Hosts, and origins of web pages, as people write them in the configuration. */
import { parsedUrl } from "../core/unknown.ts";

const DEFAULT_PORTS: Readonly<Record<string, string>> = { "http:": "80", "https:": "443" };

/**
 * Reads an entry: an origin such as `https://app.example`, a host with or without a port, or `vscode-webview://*` for
 * all pages of a scheme that only programs have. An absent part of the result, such as `https:`, stands for any.
 * Returns the problem with any other text.
 */
export function readOrigin(entry: string): { scheme?: string; host?: string; port?: string } | string {
  const text = entry.trim().toLowerCase().replace(/\/$/, "");
  const [, scheme, authority = ""] = /^(?:([a-z][a-z0-9+.-]*:)\/\/)?(.*)$/s.exec(text) ?? [];
  if (authority === "*" && scheme !== undefined && !(scheme in DEFAULT_PORTS)) return { scheme };
  if (authority.includes("*"))
    return `"${entry}" has a wildcard; name each host, because a page that may use the server acts for its user`;
  if (/[/?#@]/.test(authority))
    return `"${entry}" has more than an origin; write only scheme, host and port, such as https://app.example`;
  const isAddress = authority.split(":").length > 2 && !authority.startsWith("[");
  const url = parsedUrl(`${scheme ?? "http:"}//${isAddress ? `[${authority}]` : authority}`);
  if (url === undefined || authority === "null" || text === "")
    return `"${entry}" is not an origin; write one such as https://app.example, or a host`;
  const port = isAddress ? undefined : /:(\d+)$/.exec(authority)?.[1];
  if (scheme === undefined) return { host: url.hostname, ...(port && { port }) };
  return { scheme, host: url.hostname, port: effectivePort(url) };
}

/** Checks whether a `Host` header names the host of an entry, at whatever port. */
export function hostMatcher(entries: readonly string[]): (header: string) => boolean {
  const allowed = new Set(
    entries.map(readOrigin).flatMap((one) => (typeof one === "object" ? [withoutDot(one.host)] : [])),
  );
  return (header) =>
    !/[/?#@\\]/.test(header) && allowed.has(withoutDot(parsedUrl(`http://${header}`)?.hostname || "?"));
}

/** A name that ends with a dot is the same name in the network. */
const withoutDot = (name: string | undefined): string | undefined => name?.replace(/\.$/, "");

/** Checks whether an `Origin` header matches the entries. Entries that cannot be read match none. */
export function originMatcher(entries: readonly string[]): (origin: string) => boolean {
  const allowed = entries.map(readOrigin).filter((one) => typeof one === "object");
  return (origin) => {
    const url = parsedUrl(origin);
    if (url === undefined || url.hostname === "") return false;
    return allowed.some(
      ({ scheme = url.protocol, host = url.hostname, port = effectivePort(url) }) =>
        url.protocol === scheme && url.hostname === host && effectivePort(url) === port,
    );
  };
}

const effectivePort = ({ port, protocol }: URL): string => port || (DEFAULT_PORTS[protocol] ?? "");
