import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { inUrl, isLoopback, requireLoopback, unbracket } from "../../../src/server/http/admission.ts";

describe("loopback check", () => {
  test.each(["127.0.0.1", "127.8.9.1", "::1", "[::1]", "localhost", "LOCALHOST"])(
    "%s is this machine",
    (host) => {
      expect(isLoopback(host)).toBe(true);
      expect(() => requireLoopback(host)).not.toThrow();
    },
  );

  test.each(["0.0.0.0", "::", "192.168.0.7", "127.0.0.1.example.org", "localhost.example.org", "127.1", ""])(
    "%s is refused with the way out",
    (host) => {
      expect(isLoopback(host)).toBe(false);
      expect(() => requireLoopback(host)).toThrow(/Use 127\.0\.0\.1, ::1 or localhost/);
    },
  );

  test("of all IPv4 addresses only 127.0.0.0/8 passes", () => {
    fc.assert(fc.property(fc.ipV4(), (host) => isLoopback(host) === host.startsWith("127.")));
  });
});

test("IPv6 addresses have brackets in URLs and none elsewhere", () => {
  expect(inUrl("::1")).toBe("[::1]");
  expect(inUrl("[::1]")).toBe("[::1]");
  expect(unbracket("[::1]")).toBe("::1");
  expect(inUrl("127.0.0.1")).toBe("127.0.0.1");
});
