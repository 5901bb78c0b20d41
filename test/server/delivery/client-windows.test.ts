import { expect, test } from "vitest";
import { ConfigSchema, type ConfigInput } from "../../../src/config/schema.ts";
import { CLIENT_WINDOWS, windowsFor } from "../../../src/server/delivery/client-windows.ts";
import { leavingBy, stopsRun } from "../../../src/server/delivery/stop.ts";

const delivery = (changes: NonNullable<ConfigInput["delivery"]> = {}) =>
  ConfigSchema.parse({ dataDir: "/data", delivery: changes }).delivery;

test("calls wait 40 seconds without a token and 240 with one, whoever calls", () => {
  const general = { windowWithoutProgress: 40, windowWithProgress: 240 };
  expect(windowsFor(undefined, delivery())).toEqual(general);
  expect(windowsFor({ name: "someone", version: "1" }, delivery())).toEqual(general);
});

test.each(Object.keys(CLIENT_WINDOWS))("%s waits no longer than it is known to", (name) => {
  const client = { name, version: "1.2.3" };
  expect(windowsFor(client, delivery()).windowWithProgress).toBeLessThan(60);
  expect(windowsFor(client, delivery({ windowWithProgress: 5 })).windowWithProgress).toBe(5);
});

test("the configuration replaces what is known, for a client or for some of its versions", () => {
  const configured = delivery({
    clients: {
      "codex-mcp-client": { windowWithProgress: 600 },
      "codex-mcp-client/0.16": { windowWithoutProgress: 10 },
    },
  });
  const windows = (version: string) => windowsFor({ name: "codex-mcp-client", version }, configured);
  expect(windows("1.0")).toEqual({ windowWithoutProgress: 40, windowWithProgress: 600 });
  expect(windows("0.16.2")).toEqual({ windowWithoutProgress: 10, windowWithProgress: 240 });
  expect(windows("0.161")).toEqual({ windowWithoutProgress: 40, windowWithProgress: 600 });
});

test.each<[unknown, "cancellation" | "disconnect"]>([
  ["the user pressed escape", "cancellation"],
  ["AbortError: This operation was aborted", "cancellation"],
  ["McpError: MCP error -32001: Request timed out", "disconnect"],
  ["SdkError: Request timed out", "disconnect"],
  ["tool call timeout after 60s", "disconnect"],
  [new Error("Connection closed"), "disconnect"],
  [new DOMException("This operation was aborted", "AbortError"), "disconnect"],
  [undefined, "disconnect"],
])("%s is taken for a %s", (reason, leaving) => {
  expect(leavingBy(reason)).toBe(leaving);
});

test("a run ends with a call only as configured", () => {
  const table = (["request", "cancellation", "disconnect"] as const).map((on) =>
    (["cancellation", "disconnect"] as const).map((leaving) => stopsRun(leaving, on)),
  );
  expect(table).toEqual([
    [false, false],
    [true, false],
    [true, true],
  ]);
});
