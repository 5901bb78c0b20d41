import { expect, test } from "vitest";
import { connect, openHome, openStdio } from "../support/harness.ts";
import { play } from "../support/harness-brain.ts";
import { deferred } from "../support/harness-deferred.ts";
import { findings, met, notMet } from "../support/judge.ts";
import { untilStatus, writeFile } from "./support.ts";

const GOAL = ["/memories/report.md exists", "The answer names it"];
const JUDGE = "Judge this work.";

test("after kill -9 the next server ends the round, and each is judged once", { tags: "long" }, async () => {
  const asked = deferred();
  let silent = true;
  let rounds = 0;
  const home = await openHome({
    think: play({
      [JUDGE]: [
        { toolCalls: [{ id: "look", name: "ls", args: { path: "/memories" } }] },
        () => {
          if (silent) {
            asked.resolve();
            return { fault: "hang" };
          }
          rounds += 1;
          const { toolCalls = [] } =
            rounds === 1 ? findings(notMet("no such file"), met) : findings(met, met);
          return { toolCalls: toolCalls.map((call) => ({ id: `found_${rounds}`, ...call })) };
        },
      ],
      "Write the report": [
        { text: "It is in /memories/report.md." },
        { toolCalls: [writeFile("/memories/report.md", "all is well\n")] },
        { text: "It is in /memories/report.md now." },
      ],
    }),
  });
  const first = await openStdio(home);
  const client = await connect(first, "v2-modern");
  const started = await client.call("run_deep_agent", {
    task: "Write the report",
    goal: GOAL,
    wait_seconds: 0,
  });
  const runId = String(started.structured["run_id"]);
  await asked.promise;
  process.kill(first.pid(), "SIGKILL");
  silent = false;
  const after = await connect(await openStdio(home), "v2-modern");
  const report = await untilStatus(after, runId, "completed");
  expect(report).toMatchObject({
    answer: "It is in /memories/report.md now.",
    goal: { outcome: "Goal met", round: 2, criteria: [{ verdict: "met" }, { verdict: "met" }] },
  });
  expect(rounds).toBe(2);
  expect(home.brain.refusals).toEqual([]);
  const looks = home.brain.thoughts.filter(({ task, step }) => task.includes(JUDGE) && step === 0);
  expect(looks).toHaveLength(2);
});
