import { afterEach, describe, expect, test } from "vitest";
import { list, type Json } from "../../support/wire-server-protocol.ts";
import type { WireServer } from "../../support/wire-server.ts";
import { PROVIDERS, wireThread } from "../../support/wire-thread.ts";

const servers: WireServer[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()));
});

/** A request up to and without its newest turn: what a provider's cache has of it, in order. */
const prefix = ({ tools, system, instructions, messages, input }: Json): string[] => [
  JSON.stringify([tools, system, instructions]),
  ...list(messages ?? input).flatMap(({ role, content, ...rest }) =>
    Array.isArray(content)
      ? content.map((block) => JSON.stringify([role, block, rest]))
      : [JSON.stringify([role, content, rest])],
  ),
];

describe.each(PROVIDERS)("over $protocol", (protocol) => {
  test("requests begin with the bytes of the one before when a person's message went into a file", async () => {
    const ls = { toolCalls: [{ id: "a", name: "ls", args: {} }] };
    const steps = [ls, ls, { text: "one" }, ls, { text: "two" }];
    const { run, server } = await wireThread(protocol, steps);
    servers.push(server);
    const task = "a line of a log\n".repeat(20_000);
    await run({ kind: "task", task });
    await run({ kind: "task", task: `${task}again` }, { runId: "run_2" });
    const requests = server.requests.map(({ body }) => prefix(body));
    expect(requests).toHaveLength(5);
    for (const [n, later] of requests.slice(1).entries()) {
      expect(later.slice(0, requests[n]?.length)).toEqual(requests[n]);
    }
    const sizes = server.requests.map(({ body }) => JSON.stringify(body).length);
    expect(Math.max(...sizes)).toBeLessThan(40_000);
    expect(server.refusals).toEqual([]);
  });
});
