/** The clients that may ask people to log in: by the address of their metadata document, or of their callback. */
import { parsedUrl } from "../../../core/unknown.ts";
import clients from "./clients.json" with { type: "json" };

/** True if an address is written as one of `patterns`, in which `*` stands for one name of the path. */
function matchesAddress(address: string, patterns: readonly string[]): boolean {
  const url = parsedUrl(address);
  if (url?.href !== address || url.search !== "" || url.hash !== "" || address.length > 500) return false;
  const names = address.split("/");
  const fill = (pattern: string): string =>
    pattern
      .split("/")
      .map((name, at) => (name === "*" && names[at]) || name)
      .join("/");
  return patterns.some((pattern) => fill(pattern) === address);
}

export const isKnownDocument = (id: string): boolean => matchesAddress(id, clients.documents);

/** True for a callback of a program on the person's own computer. It may have any port. */
export function isOwnComputer(redirect: string): boolean {
  const { protocol, hostname, username, password, hash } = parsedUrl(redirect) ?? {};
  const isLocal = ["localhost", "127.0.0.1", "[::1]"].includes(hostname ?? "");
  return isLocal && protocol === "http:" && !username && !password && !hash && redirect.length <= 500;
}

/** `more`: those that the operator allows. */
export const isKnownRedirect = (redirect: unknown, more: readonly string[]): boolean =>
  typeof redirect === "string" &&
  (isOwnComputer(redirect) || matchesAddress(redirect, [...clients.redirects, ...more]));
