import { join } from "node:path";
import { expect, test } from "vitest";
import { send } from "../support/clients-raw.ts";
import { connect, openDeps, openHome } from "../support/harness.ts";
import { deferred } from "../support/harness-deferred.ts";
import { serveHttp } from "../support/harness-http-process.ts";
import {
  askWithoutReading,
  legacyAsker,
  modernAsker,
  openSession,
  type SlowClient,
} from "../support/slow-clients.ts";
import { runIdOf, untilStatus } from "./support.ts";
import { openConnection } from "../../src/storage/sqlite/driver.ts";

const [STEPS, CALLS] = [5, 20];
/** Of each kind. */
const SLOW = 4;

const call = (runId: string) => ({
  name: "check_deep_agent",
  arguments: { run_id: runId, wait_seconds: 600 },
  _meta: { progressToken: "p" },
});

/** Clients that follow a run in every way there is over HTTP, and do not read. */
const FOLLOWERS: Record<string, (url: string, runId: string) => Promise<SlowClient>> = {
  "a call of 2025-11-25": async (url, runId) =>
    askWithoutReading(url, await legacyAsker(url)("tools/call", call(runId))),
  "a call of 2026-07-28": async (url, runId) =>
    askWithoutReading(url, await modernAsker("tools/call", call(runId))),
  "a subscription of 2025-11-25": async (url, runId) => {
    const headers = await openSession(url);
    const params = { uri: `deepagent://runs/${runId}` };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 3, method: "resources/subscribe", params });
    expect((await send(url, { headers, body })).body).not.toContain("error");
    return askWithoutReading(url, { headers });
  },
  "a subscription of 2026-07-28": async (url, runId) => {
    const notifications = { resourceSubscriptions: [`deepagent://runs/${runId}`] };
    return askWithoutReading(url, await modernAsker("subscriptions/listen", { notifications }));
  },
};

test("a run goes on past clients that do not read, and tells them its end", { tags: "long" }, async () => {
  const allThere = deferred();
  const home = await openHome({
    think: async ({ step }) => {
      if (step === 0) await allThere.promise;
      const toolCalls = Array.from({ length: CALLS }, () => ({ name: "ls", args: { path: "/workspace" } }));
      return step < STEPS ? { toolCalls } : { text: "looked around" };
    },
  });
  const { url, connector } = await serveHttp(home);
  const reader = await connect(connector, "v2-modern");
  const runId = runIdOf(await reader.call("run_deep_agent", { task: "look around", wait_seconds: 0 }));
  const slow: { kind: string; client: SlowClient }[] = [];
  for (const [kind, follow] of Object.entries(FOLLOWERS)) {
    for (let n = 0; n < SLOW; n += 1) slow.push({ kind, client: await follow(url, runId) });
  }
  // In this process, on the same data directory.
  const runs = await openDeps(home).runs();
  const signal = new AbortController().signal;
  const followed = (async () => {
    const seen: number[] = [];
    for await (const { seq } of runs.as({ principal: "local" }).watch.events(runId, { signal }))
      seen.push(seq);
    return seen;
  })();
  allThere.resolve();
  const lines: string[] = [];
  const onProgress = (line: string) => void lines.push(line);
  const wait = { run_id: runId, wait_seconds: 600 };
  const report = await reader.call("check_deep_agent", wait, { onProgress });
  expect(report.structured).toMatchObject({ status: "completed", answer: "looked around" });
  expect(await untilStatus(reader, runId, "completed")).toMatchObject({ answer: "looked around" });
  const { lastSeq = 0 } = (await runs.as({ principal: "local" }).read.view(runId))?.run ?? {};
  expect(lastSeq).toBeGreaterThan(STEPS * CALLS * 2);
  expect(await followed).toEqual(Array.from({ length: lastSeq }, (_, n) => n + 1));
  expect(lines.length).toBeGreaterThan(1);
  for (const { kind, client } of slow) {
    const end = kind.startsWith("a call") ? "looked around" : `"uri":"deepagent://runs/${runId}"`;
    expect(await client.readUntil(end), kind).toContain(end);
  }
  // Not a row for each line of progress that a session was told.
  const streams = openConnection(join(home.dataDir, "streams.db"), { readonly: true });
  const count = streams.prepare<[], number>(
    "SELECT count(*) FROM stream_events WHERE message LIKE '%notifications/progress%'",
  );
  expect(count.pluck().get()).toBe(0);
  streams.close();
});
