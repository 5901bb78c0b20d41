import type { IncomingMessage } from "node:http";
import { BlockList, isIP } from "node:net";

/** Finds out which address a request comes from. */
export type AddressOf = (request: IncomingMessage) => string;

/**
 * The address at the other end of the connection. Where that is one of `proxies`, the last address in
 * `X-Forwarded-For` that is none of them; what stands before it could have been written by anybody.
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

/** What counts as one client: an IPv4 address, or the network that an IPv6 host has for itself. */
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

/** IPv4 in IPv6 is the same client as the IPv4 address. */
const plain = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, "");
