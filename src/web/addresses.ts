/** Distinguishes addresses of the public internet from all others. */
import { BlockList, isIP } from "node:net";

/** Networks as `10.0.0.0/8`, with blanks between them. */
function networks(...lists: readonly string[]): BlockList {
  const list = new BlockList();
  for (const [address = "", prefix] of lists
    .join(" ")
    .split(" ")
    .map((network) => network.split("/")))
    list.addSubnet(address, Number(prefix), isIP(address) === 6 ? "ipv6" : "ipv4");
  return list;
}

const others = networks(
  // IPv4: IANA's special-purpose registry.
  "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24",
  "192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4",
  // Azure's metadata and other services of its hosts, at an address that looks public.
  "168.63.129.16/32",
  // Parts of the public IPv6 addresses that lead elsewhere: Teredo, ORCHID, documentation, 6to4.
  "2001::/23 2001:db8::/32 2002::/16 3fff::/20",
);

/** True if the address, in the form that a resolver returns, is one of the public internet. */
export function isPublicAddress(given: string): boolean {
  const address = given.replace(/%.*$/s, "");
  switch (isIP(address)) {
    case 4:
      return !others.check(address, "ipv4");
    case 6: {
      // Networks without IPv4 reach it by these addresses: the last 32 bits are the IPv4 address.
      if (!networks("64:ff9b::/96").check(address, "ipv6"))
        return networks("2000::/3").check(address, "ipv6") && !others.check(address, "ipv6");
      // The parser of addresses writes them with colons only.
      const groups = new URL(`http://[${address}]`).hostname.slice(1, -1).split(":").slice(-2);
      const last = groups.map((group) => Number.parseInt(group || "0", 16));
      return isPublicAddress(last.flatMap((group) => [group >> 8, group & 0xff]).join("."));
    }
    default:
      return false;
  }
}

/** Ports above 1023 that the Fetch standard refuses, because servers of other protocols answer there. */
const BAD_PORTS: ReadonlySet<number> = new Set([
  1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697,
  10_080,
]);

/** True if web servers are reached at this port. */
export const isWebPort = (port: number): boolean =>
  port === 80 || port === 443 || (port >= 1024 && !BAD_PORTS.has(port));
