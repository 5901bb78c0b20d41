import { expect, it, onTestFinished } from "vitest";
import { type McpTools, openMcpTools } from "../../../src/agent/mcp-tools/open-mcp-tools.ts";
import { silentLogger } from "../../../src/core/logger.ts";
import { refuse, sloppyHttp } from "../../support/sloppy-mcp-server.ts";
import { at } from "./connect-to.ts";

/** A server that refuses everything until it is well, by a clock that stands still. */
async function ailing(status: number) {
  const state = { isWell: false, now: 0 };
  const { url, seen } = await sloppyHttp(({ response }) =>
    state.isWell ? undefined : refuse(response, status, "no"),
  );
  const options = { env: {}, version: "0.0.0-test", log: silentLogger, clock: () => state.now };
  const tools = openMcpTools({ ailing: at(url) }, { ...options, patienceMs: 60_000 });
  onTestFinished(() => tools.close());
  return { state, tools, seen };
}

const reasonOf = async (tools: McpTools, options?: { isAskedFor: boolean }): Promise<string | undefined> =>
  (await tools.forAgent(options)).problems[0]?.reason;

it("a server that failed is asked again after 1 s, 2 s and so on, up to a minute", async () => {
  const { state, tools, seen } = await ailing(403);
  const plain = "it refused access (HTTP 403); check its headers";
  for (const seconds of [1, 2, 4, 8, 16, 32, 60, 60]) {
    const before = seen.length;
    expect(await reasonOf(tools)).toBe(plain);
    const asked = seen.length;
    expect(asked).toBeGreaterThan(before);
    // The reason stays true for as long as it is shown: it names no time that passes.
    state.now += 1000 * seconds - 1;
    expect(await reasonOf(tools)).toBe(plain);
    expect(seen).toHaveLength(asked);
    state.now += 1;
  }
  state.isWell = true;
  expect(await reasonOf(tools)).toBeUndefined();
});

it("a person who asks is not told of the last attempt, and success forgets the failures", async () => {
  const { state, tools, seen } = await ailing(403);
  for (let times = 0; times < 3; times += 1)
    expect(await reasonOf(tools, { isAskedFor: true })).toBeDefined();
  const asked = seen.length;
  state.now += 999;
  expect(await reasonOf(tools)).toBeDefined();
  expect(seen).toHaveLength(asked);
  // Failures of a person's own attempts do not lengthen the pause.
  state.now += 1;
  await reasonOf(tools);
  expect(seen.length).toBeGreaterThan(asked);
  state.isWell = true;
  expect(await reasonOf(tools, { isAskedFor: true })).toBeUndefined();
});

it("a server that wants a log-in is asked each time: any process may have logged in", async () => {
  const { tools, seen } = await ailing(401);
  const first = await reasonOf(tools);
  const asked = seen.length;
  expect(await reasonOf(tools)).toBe(first);
  expect(seen.length).toBeGreaterThan(asked);
});

it("many uses at once make one attempt", async () => {
  const { tools, seen } = await ailing(403);
  await tools.forAgent();
  const once = seen.length;
  const other = await ailing(403);
  await Promise.all(Array.from({ length: 5 }, () => other.tools.forAgent()));
  expect(other.seen).toHaveLength(once);
});
