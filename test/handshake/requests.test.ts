import { isInitializeRequest, isJSONRPCRequest } from "@modelcontextprotocol/server";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { REVISIONS } from "../../src/server/contracts/revisions.ts";
import { isBare, isLatest, readMessage, sessionRevision } from "../../src/handshake/handshake.ts";

const SESSIONS = REVISIONS.filter(({ sessions }) => sessions).map(({ id }) => id);
const clientInfo = { name: "t", version: "1" };
const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo };
const opening = { jsonrpc: "2.0", id: 1, method: "initialize", params };
const P = "io.modelcontextprotocol/";
const meta = {
  [`${P}protocolVersion`]: "2026-07-28",
  [`${P}clientInfo`]: clientInfo,
  [`${P}clientCapabilities`]: {},
};

const revisionOf = (line: unknown): string | undefined => {
  const message = readMessage(typeof line === "string" ? line : JSON.stringify(line));
  return message && sessionRevision(message, SESSIONS);
};

describe("initialize is recognized", () => {
  test.each([
    ["of each revision with a handshake", { params: { ...params, protocolVersion: "2024-11-05" } }],
    ["with the id 0", { id: 0 }],
    ["with a text as id", { id: 'a"\\b' }],
    ["with a token for progress", { params: { ...params, _meta: { progressToken: 0 } } }],
    [
      "with all that a client says of itself",
      { params: { ...params, clientInfo: { ...clientInfo, title: "T" } } },
    ],
    [
      "with the capabilities of the specification",
      {
        params: {
          ...params,
          capabilities: {
            elicitation: { form: { applyDefaults: true }, url: {} },
            sampling: { tools: {}, context: {} },
            roots: { listChanged: true },
            experimental: { a: { b: {} } },
            extensions: { "io.modelcontextprotocol/ui": { mimeTypes: ["text/html;profile=mcp-app"] } },
          },
        },
      },
    ],
  ])("%s", (_, change) => {
    expect(revisionOf({ ...opening, ...change })).toBeDefined();
  });
});

describe("initialize is left to the program", () => {
  test.each<[string, object | string]>([
    ["of a revision without a handshake", { params: { ...params, protocolVersion: "2026-07-28" } }],
    ["of an unknown revision", { params: { ...params, protocolVersion: "2099-01-01" } }],
    ["without parameters", { params: undefined }],
    ["without its client", { params: { ...params, clientInfo: undefined } }],
    ["with null as capabilities", { params: { ...params, capabilities: null } }],
    ["with a list as capabilities", { params: { ...params, capabilities: [] } }],
    ["with a switch that is an object", { params: { ...params, capabilities: { elicitation: true } } }],
    ["with icons", { params: { ...params, clientInfo: { ...clientInfo, icons: [] } } }],
    ["with unknown members", { params: { ...params, locale: "de" } }],
    ["with a fraction as id", { id: 1.5 }],
    ["with null as id", { id: null }],
    ["of another JSON-RPC", { jsonrpc: "1.0" }],
    ["with members beside its own", { extra: 1 }],
    ["in a batch", JSON.stringify([opening])],
    ["that is not JSON", "{nope"],
    ["behind a byte order mark", `\uFEFF${JSON.stringify(opening)}`],
  ])("%s", (_, change) => {
    expect(revisionOf(typeof change === "string" ? change : { ...opening, ...change })).toBeUndefined();
  });
});

test.each([
  ["its envelope", { _meta: meta }, true],
  ["a token for progress besides", { _meta: { ...meta, progressToken: "a" } }, true],
  ["another revision", { _meta: { ...meta, [`${P}protocolVersion`]: "2025-11-25" } }, false],
  ["a log level, which has a meaning", { _meta: { ...meta, [`${P}logLevel`]: "debug" } }, false],
  ["a cursor", { _meta: meta, cursor: "a" }, false],
  ["no envelope", {}, false],
])("a request of the latest revision with %s", (_, given, expected) => {
  expect(isLatest({ method: "tools/list", params: given }, "2026-07-28")).toBe(expected);
});

test("a cursor or a wrong token is no bare request", () => {
  expect([undefined, {}, { _meta: { progressToken: 0 } }].map((one) => isBare(one))).toEqual([
    true,
    true,
    true,
  ]);
  expect(
    [{ cursor: "" }, { _meta: null }, { _meta: { progressToken: 1.5 } }].map((one) => isBare(one)),
  ).toEqual([false, false, false]);
});

test("what is recognized is valid for the protocol's own schemas", () => {
  const value = fc.jsonValue({ maxDepth: 4 });
  const capabilities = fc.oneof(
    value,
    fc.dictionary(
      fc.constantFrom("elicitation", "sampling", "roots", "experimental", "extensions", "tasks"),
      value,
    ),
  );
  const odd = fc.record({
    jsonrpc: fc.constantFrom("2.0", "2.0", 2),
    id: fc.oneof(fc.integer(), fc.string(), value),
    method: fc.constant("initialize"),
    params: fc.record({
      protocolVersion: fc.constantFrom("2025-11-25", "2025-06-18", 1),
      capabilities: fc.oneof(fc.constant({}), capabilities),
      clientInfo: fc.oneof(fc.constant(clientInfo), value),
    }),
  });
  let recognized = 0;
  fc.assert(
    fc.property(odd, (message) => {
      if (revisionOf(message) === undefined) return;
      recognized += 1;
      const sent: unknown = JSON.parse(JSON.stringify(message));
      expect(isInitializeRequest(sent) && isJSONRPCRequest(sent)).toBe(true);
    }),
    { numRuns: 3000 },
  );
  expect(recognized).toBeGreaterThan(20);
});
