import { tmpdir } from "node:os";
import { expect, test } from "vitest";
import { openRuns } from "../../src/app/open-runs.ts";
import { loadConfig } from "../../src/config/load.ts";
import { silentLogger } from "../../src/core/logger.ts";
import type { StartRequest } from "../../src/runs/ports.ts";
import { mine, reach } from "../runs/support.ts";
import { type Home, connect, openDeps, openHome, openStdio } from "../support/harness.ts";
import { play, type Thought } from "../support/harness-brain.ts";
import { deferred } from "../support/harness-deferred.ts";
import { delegate, untilStatus, writeFile } from "./support.ts";

const SMALL = "anthropic:claude-small";
const modelOf = ({ request }: Thought): unknown => request.body["model"];

test("a model and limits that are chosen for one run count for its agents, and for no other run", async () => {
  const home = await openHome({
    env: { DEEPAGENT_ALLOWED_MODELS: SMALL, DEEPAGENT_LIMITS_MODEL_CALLS: "5" },
    think: play({
      "Look twice": [{ toolCalls: [delegate("look around")] }, { text: "more" }, { text: "and more" }],
      "look around": [{ text: "nothing special" }],
      "Say hello": [{ text: "hello" }],
    }),
  });
  const service = await openDeps(home).runs();
  expect(await mine(service).agents.readiness()).toMatchObject({
    model: "anthropic:claude-test",
    models: [{ spec: "anthropic:claude-test" }, { spec: SMALL }],
    limits: { modelCalls: 5 },
  });
  const tooMany = await mine(service).control.start({ task: "x", limits: { modelCalls: 6 } });
  expect(tooMany).toMatchObject({ ok: false, code: "limit_not_allowed" });
  const started = await mine(service).control.start({
    task: "Look twice",
    model: SMALL,
    limits: { modelCalls: 1 },
  });
  if (!started.ok) throw new Error(started.message);
  const { run } = await reach(service, started.run.id, "completed");
  expect(run).toMatchObject({ model: SMALL, limits: { modelCalls: 1 }, stopReason: "max_iterations" });
  expect(new Set(home.brain.thoughts.map(modelOf))).toEqual(new Set(["claude-small"]));
  const other = await mine(service).control.start({ task: "Say hello" });
  if (!other.ok) throw new Error(other.message);
  await reach(service, other.run.id, "completed");
  expect(home.brain.thoughts.map(modelOf).at(-1)).toBe("claude-test");
});

test("after kill -9 the next server continues with them", { tags: "long" }, async () => {
  let silent = true;
  const asked = deferred();
  const home = await openHome({
    env: { DEEPAGENT_ALLOWED_MODELS: SMALL },
    think: play({
      "Note and report": [
        { toolCalls: [writeFile("/memories/once.md", "first\n")] },
        () => {
          asked.resolve();
          return silent ? { fault: "hang" } : { text: "reported" };
        },
      ],
    }),
  });
  const runId = await startElsewhere(home, { task: "Note and report", model: SMALL });
  const first = await openStdio(home);
  await connect(first, "v2-modern").then((client) => client.call("check_deep_agent", {}));
  await asked.promise;
  process.kill(first.pid(), "SIGKILL");
  silent = false;
  const after = await connect(await openStdio(home), "v2-modern");
  expect(await untilStatus(after, runId, "completed")).toMatchObject({ answer: "reported" });
  expect(new Set(home.brain.thoughts.map(modelOf))).toEqual(new Set(["claude-small"]));
});

/** Stores a run in a process that works on none. */
async function startElsewhere({ env }: Home, request: StartRequest): Promise<string> {
  const loaded = loadConfig({ flags: {}, cwd: tmpdir(), home: tmpdir(), platform: process.platform, env });
  if (!loaded.ok) throw new Error(loaded.problems.join("\n"));
  const service = await openRuns({ config: loaded.config, env, logger: silentLogger, works: false });
  const started = await mine(service).control.start(request);
  await service.close();
  if (!started.ok) throw new Error(started.message);
  return started.run.id;
}
