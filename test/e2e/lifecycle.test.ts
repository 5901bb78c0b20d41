import { expect, test } from "vitest";
import { connect, openHome, openStdio, type Home } from "../support/harness.ts";
import { play } from "../support/harness-brain.ts";
import { deferred } from "../support/harness-deferred.ts";
import { processesWith, startProgram, type Child } from "../support/harness-process.ts";
import { untilStatus } from "./support.ts";

const clientInfo = { name: "raw", version: "1" };
const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo };
const INITIALIZE = { id: 1, method: "initialize", params };

/** Starts the server and a run in it that waits for its model. */
async function startRun(home: Home, asked: Promise<void>): Promise<{ child: Child; runId: string }> {
  const child = await startProgram([], home.env);
  child.send(INITIALIZE);
  await child.receive(({ id }) => id === 1);
  child.send({ method: "notifications/initialized" });
  const params = { name: "run_deep_agent", arguments: { task: "Think hard" }, _meta: { progressToken: 0 } };
  child.send({ id: 2, method: "tools/call", params });
  const progress = await child.receive(({ method }) => method === "notifications/progress");
  const runId = /run_[\w-]+/.exec(JSON.stringify(progress))?.[0] ?? "";
  await asked;
  return { child, runId };
}

const ENDINGS: Record<string, (child: Child) => void> = {
  "end of input": ({ process }) => void process.stdin.end(),
  SIGINT: ({ process }) => void process.kill("SIGINT"),
  "end of input and SIGTERM": ({ process }) => {
    process.stdin.end();
    process.kill("SIGTERM");
  },
};

/** The ending of these that goes through all that the others go through. */
const ALWAYS = "end of input and SIGTERM";

for (const [name, end] of Object.entries(ENDINGS)) {
  const tags = name === ALWAYS ? [] : ["long"];
  test(`${name} ends the server, and the run goes on later`, { tags }, async () => {
    let silent = true;
    const asked = deferred();
    const home = await openHome({
      env: { DEEPAGENT_LOG_LEVEL: "debug" },
      think: play({
        "Think hard": [
          () => {
            asked.resolve();
            return silent ? new Promise(() => undefined) : { text: "thought" };
          },
        ],
      }),
    });
    const { child, runId } = await startRun(home, asked.promise);
    end(child);
    expect(await child.exited).toEqual({ code: 0, signal: null });
    expect(processesWith(home.dataDir)).toEqual([]);
    for (const line of child.output) expect(JSON.parse(line)).toMatchObject({ jsonrpc: "2.0" });
    expect(child.errors()).toContain('"level":"debug"');

    silent = false;
    const after = await connect(await openStdio(home), "v2-modern");
    expect(await untilStatus(after, runId, "completed")).toMatchObject({ answer: "thought" });
  });
}

test("the handshake is answered although agent and storage cannot be loaded", async () => {
  const home = await openHome({ think: play({}), env: { DEEPAGENT_DATA_DIR: "/dev/null/nowhere" } });
  const child = await startProgram([], home.env);
  child.send(INITIALIZE);
  expect(await child.receive(({ id }) => id === 1)).toMatchObject({
    result: { serverInfo: { name: "deepagent-mcp" } },
  });
  const params = { name: "check_deep_agent", arguments: { run_id: "run_x" } };
  child.send({ id: 2, method: "tools/call", params });
  const answer = await child.receive(({ id }) => id === 2);
  expect(answer).toMatchObject({ result: { isError: true } });
  expect(JSON.stringify(answer)).not.toMatch(/\/dev\/null|\\n\s+at /);
});
