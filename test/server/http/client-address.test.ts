import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { ConfigSchema } from "../../../src/config/schema.ts";
import { clientAddress, clientNetwork } from "../../../src/server/http/admission.ts";

function from(remoteAddress: string, forwarded?: string): IncomingMessage {
  const socket = new Socket();
  Object.defineProperty(socket, "remoteAddress", { value: remoteAddress });
  const request = new IncomingMessage(socket);
  if (forwarded !== undefined) request.headers["x-forwarded-for"] = forwarded;
  return request;
}

const PROXIES = ["127.0.0.1", "10.0.0.0/8", "fd00::/8"];

test.each<[string, readonly string[], string, string | undefined, string]>([
  ["nobody is trusted", [], "127.0.0.1", "203.0.113.9", "127.0.0.1"],
  ["the sender is no proxy", PROXIES, "203.0.113.1", "198.51.100.7", "203.0.113.1"],
  ["the proxy names the client", PROXIES, "127.0.0.1", "198.51.100.7", "198.51.100.7"],
  ["the client invented more", PROXIES, "127.0.0.1", "1.2.3.4, 198.51.100.7", "198.51.100.7"],
  ["two proxies", PROXIES, "127.0.0.1", "198.51.100.7, 10.1.2.3", "198.51.100.7"],
  ["only proxies", PROXIES, "127.0.0.1", "10.1.2.3", "10.1.2.3"],
  ["the proxy names nobody", PROXIES, "127.0.0.1", undefined, "127.0.0.1"],
  ["the proxy names rubbish", PROXIES, "127.0.0.1", "x, y", "127.0.0.1"],
  ["a proxy over IPv6", PROXIES, "fd12::1", "2001:db8::5", "2001:db8::5"],
  ["IPv4 in IPv6", PROXIES, "::ffff:127.0.0.1", "::ffff:198.51.100.7", "198.51.100.7"],
])("%s", (_name, proxies, remote, forwarded, expected) => {
  expect(clientAddress(proxies)(from(remote, forwarded))).toBe(expected);
});

test("whoever is no proxy is nobody but itself, whatever it sends", () => {
  fc.assert(
    fc.property(fc.ipV4(), fc.string(), (address, forwarded) => {
      fc.pre(!address.startsWith("10.") && address !== "127.0.0.1");
      expect(clientAddress(PROXIES)(from(address, forwarded))).toBe(address);
    }),
  );
});

test.each([
  ["192.0.2.1", "192.0.2.1"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["2001:0db8:0001:0002::1", "2001:db8:1:2::/64"],
  ["2001:db8::1", "2001:db8:0:0::/64"],
  ["::1", "0:0:0:0::/64"],
  ["fe80::1%eth0", "fe80:0:0:0::/64"],
  ["", ""],
])("%s counts as %s", (address, network) => {
  expect(clientNetwork(address)).toBe(network);
});

test.each(["localhost", "10.0.0.0/33", "10.0.0.0/", "fd00::/129", "1.2.3.4/8/8", "/8", ""])(
  "the configuration refuses the proxy %j",
  (proxy) => {
    const http = { trustedProxies: [proxy] };
    expect(ConfigSchema.safeParse({ dataDir: "/data", http }).success).toBe(false);
  },
);
