import type { ServerContext } from "@modelcontextprotocol/server";
import { expect, onTestFinished, test, vi } from "vitest";
import { createLogger } from "../../../src/core/logger.ts";
import { authInfoOf, principalOf } from "../../../src/server/auth/auth.ts";
import { createStateCodec, type ApprovalState } from "../../../src/server/calls/state.ts";

const KEYS = [1, 2, 3].map((byte) => new Uint8Array(32).fill(byte));
const STATE: ApprovalState = { id: "a", run: "run_1", call: "digest", round: 1, at: 5, asked: [], left: [] };

/** What the codec reads of a request. */
const request = (principal: string, method = "tools/call"): ServerContext =>
  ({
    mcpReq: { method },
    http: { authInfo: authInfoOf({ principal, scopes: ["run"] }) },
  }) as ServerContext;

function codec(current = KEYS[0]!, previous?: Uint8Array) {
  const lines: { event: string; reason?: string; principal?: string }[] = [];
  const logger = createLogger("debug", (line) => lines.push(JSON.parse(line)));
  const keys = { current, previous };
  const made = createStateCodec({
    stateKey: async () => keys.current,
    previousStateKey: async () => keys.previous,
    principalOf,
    logger,
  });
  return { ...made, keys, lines };
}

test("what the previous key signed is accepted while there is one, and then no more", async () => {
  const { mint, verify, keys, lines } = codec();
  const before = await mint(STATE, request("alice"));
  [keys.current, keys.previous] = [KEYS[1]!, KEYS[0]];
  const after = await mint(STATE, request("alice"));
  expect(await verify(before, request("alice"))).toEqual(STATE);
  expect(await verify(after, request("alice"))).toEqual(STATE);
  expect(lines).toEqual([]);
  keys.previous = undefined;
  await expect(verify(before, request("alice"))).rejects.toThrow();
  expect(await verify(after, request("alice"))).toEqual(STATE);
});

test.each<[string, (state: string) => string, ServerContext, string]>([
  ["another principal", (state) => state, request("bob"), "bind"],
  ["another method", (state) => state, request("alice", "prompts/get"), "bind"],
  ["a changed payload", (state) => `v1.A${state.slice(4)}`, request("alice"), "mac"],
  ["a changed signature", (state) => `${state.slice(0, -4)}AAAA`, request("alice"), "mac"],
  ["no state at all", () => "x", request("alice"), "malformed"],
])("%s is refused and logged, without the state", async (_name, change, context, reason) => {
  const { mint, verify, lines } = codec(KEYS[0], KEYS[1]);
  const state = change(await mint(STATE, request("alice")));
  await expect(verify(state, context)).rejects.toThrow();
  expect(lines).toMatchObject([
    { event: "state.refused", level: "warn", reason, principal: principalOf(context.http?.authInfo) },
  ]);
  expect(JSON.stringify(lines)).not.toContain(state.length > 5 ? state : "run_1");
});

test("a state expires after a day", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  onTestFinished(() => void vi.useRealTimers());
  const { mint, verify, lines } = codec();
  const state = await mint(STATE, request("alice"));
  vi.advanceTimersByTime(86_000_000);
  expect(await verify(state, request("alice"))).toEqual(STATE);
  vi.advanceTimersByTime(800_000);
  await expect(verify(state, request("alice"))).rejects.toThrow();
  expect(lines).toMatchObject([{ event: "state.refused", reason: "expired" }]);
});
