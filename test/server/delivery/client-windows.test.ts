import { expect, test } from "vitest";
import { ConfigSchema, type ConfigInput } from "../../../src/config/schema.ts";
import { windowFor } from "../../../src/server/calls/client.ts";
import { CLIENTS } from "../../../src/server/calls/known-clients.ts";
import { leavingBy, stopsRun } from "../../../src/server/delivery/deliver.ts";

const delivery = (changes: NonNullable<ConfigInput["delivery"]> = {}) =>
  ConfigSchema.parse({ dataDir: "/data", delivery: changes }).delivery;

test("calls of unknown clients wait 40 seconds, with a progress token or without", () => {
  for (const client of [undefined, { name: "someone", version: "1" }]) {
    for (const tellsProgress of [true, false]) {
      expect(windowFor(client, tellsProgress, delivery())).toEqual({ seconds: 40, pausesForForms: false });
    }
  }
});

test("only clients known to extend wait longer, and only while they are told of progress", () => {
  const seconds = (name: string, tellsProgress: boolean) =>
    windowFor({ name, version: "1.2.3" }, tellsProgress, delivery()).seconds;
  const known = CLIENTS.flatMap(({ names, waits }) => names.map((name) => ({ name, waits })));
  expect(known.map(({ name }) => seconds(name, false))).toEqual(known.map(() => 40));
  expect(known.map(({ name }) => seconds(name, true))).toEqual(
    known.map(({ waits }) => (waits?.extendsOnProgress === true ? 240 : 40)),
  );
  expect(seconds("claude-code", true)).toBe(240);
});

test("the configuration replaces what is known, for a client or for some of its versions", () => {
  const configured = delivery({
    clients: { "codex-mcp-client": { window: 600 }, "codex-mcp-client/0.16": { pausesForForms: false } },
  });
  const window = (version: string) => windowFor({ name: "codex-mcp-client", version }, true, configured);
  expect(window("1.0")).toEqual({ seconds: 600, pausesForForms: true });
  expect(window("0.16.2")).toEqual({ seconds: 40, pausesForForms: false });
  expect(window("0.161")).toEqual({ seconds: 600, pausesForForms: true });
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
