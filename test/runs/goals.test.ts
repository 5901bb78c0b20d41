import { isQuestion } from "../../src/runs/run.ts";
import { expect, test } from "vitest";
import type { ModelLender } from "../../src/agent/agent.ts";
import { ClientModel } from "../../src/agent/models/client-model.ts";
import type { RunEvent } from "../../src/runs/events.ts";
import { findings, isJudge, met, notMet, unsettled } from "../support/judge.ts";
import { type ScriptedReply, scriptedModel } from "../support/scripted-model.ts";
import { FAST, mine, databaseFile, follow, kinds, openServer, reach, startRun } from "./support.ts";

const GOAL = ["There is a report", "The customer likes it"];

/** A server whose judges give these findings in turn. */
function judging(...judged: ScriptedReply[]) {
  let round = 0;
  let answers = 0;
  const model = scriptedModel((request) =>
    isJudge(request) ? (judged[round++] ?? {}) : { text: `answer ${++answers}` },
  );
  const file = databaseFile();
  const agent = ({ goal = [] }: { goal?: readonly string[] }) => ({
    model,
    askUser: true,
    ...(goal.length === 0 ? {} : { goal: { criteria: goal, rounds: 3 } }),
  });
  return { ...openServer(file, agent), model, file, agent };
}

const judgedIn = (events: readonly RunEvent[]) =>
  events.flatMap((event) => (event.kind === "goal_judged" ? [event.data] : []));

test("a run works until its judge finds the goal met, and its journal has every verdict", async () => {
  const { service } = judging(findings(met, notMet("no letter")), findings(met, met));
  const { id, goal } = await startRun(service, "report", { goal: GOAL });
  expect(goal).toEqual(GOAL);
  const view = await reach(service, id, "completed");
  expect(view.run).toMatchObject({ answer: "answer 2", goal: GOAL });
  expect(view.run.stopReason).toBeUndefined();
  expect(view.goal).toMatchObject({
    criteria: GOAL,
    judged: { round: 2, rounds: 3 },
    line: "goal met",
  });
  const events = await follow(service, id);
  expect(judgedIn(events).map(({ verdicts }) => verdicts.map(({ verdict }) => verdict))).toEqual([
    ["met", "not_met"],
    ["met", "met"],
  ]);
  expect(kinds(events).filter((kind) => kind.startsWith("goal"))).toEqual([
    "goal_judged",
    "goal_judged",
    "goal_ended",
  ]);
});

test("a person decides what the judge cannot settle, also after the server was killed", async () => {
  const first = judging(findings(met, unsettled("uncertain")));
  const { id } = await startRun(first.service, "report", { goal: GOAL });
  await reach(first.service, id, "input_required");
  first.kill();
  const { service } = openServer(first.file, first.agent);
  const questions = (await reach(service, id, "input_required")).requests.filter(isQuestion);
  expect(questions).toHaveLength(1);
  const values = { decision: "accept" };
  const answer = { type: "fields" as const, values };
  expect(
    await mine(service).requests.answer(id, { requestId: questions[0]?.id ?? "", answer: answer }, "page"),
  ).toMatchObject({
    ok: true,
  });
  const view = await reach(service, id, "completed");
  expect(view.run).toMatchObject({ answer: "answer 1" });
  expect(view.goal?.line).toMatch(/^goal accepted by a person/);
  expect(judgedIn(await follow(service, id))).toHaveLength(1);
  expect(first.model.requests.filter(isJudge)).toHaveLength(1);
});

test("a run that is over without meeting its goal says so", async () => {
  const looks = [1, 2, 3].map((part) => findings(met, notMet(`only ${part} parts`)));
  const { service } = judging(...looks);
  const { id } = await startRun(service, "report", { goal: GOAL });
  const { run, goal } = await reach(service, id, "completed");
  expect(run).toMatchObject({ stopReason: "goal_not_met" });
  expect(run.answer).toMatch(/^Goal not met: all 3 rounds are used\./);
  expect(goal?.line).toBe("goal not met: all 3 rounds are used");
});

test("criteria that make no goal are refused, and nothing is started", async () => {
  const { service } = judging();
  const start = (goal: string[]) => mine(service).control.start({ task: "report", goal });
  expect(await start([])).toMatchObject({
    code: "invalid_goal",
    message: "No run was started. A goal needs at least one criterion.",
  });
  expect(await start(["a", " a"])).toMatchObject({ code: "invalid_goal" });
  expect(await start(["a", ""])).toMatchObject({
    code: "invalid_goal",
    message: expect.stringContaining("Criterion 2 of the goal is empty"),
  });
  expect(await start(["x".repeat(1001)])).toMatchObject({ code: "invalid_goal" });
  expect(await start(Array.from({ length: 21 }, (_, at) => `c${at}`))).toMatchObject({
    code: "invalid_goal",
  });
  expect(await mine(service).read.list({ limit: 10 })).toEqual([]);
});

test("the same task with another goal is another request", async () => {
  const { service } = judging(findings(met), findings(met));
  const one = await mine(service).control.start({ task: "report", goal: ["a"], idempotencyKey: "k" });
  const same = await mine(service).control.start({ task: "report", goal: ["a"], idempotencyKey: "k" });
  expect([one, same]).toMatchObject([{ how: "started" }, { how: "existing" }]);
  const other = await mine(service).control.start({ task: "report", goal: ["b"], idempotencyKey: "k" });
  expect(other).toMatchObject({ code: "idempotency_conflict" });
});

test("a judge works with a model that a client lends, also after nobody lent it for a while", async () => {
  const params = ({ goal = [] }: { goal?: readonly string[] }, lender: ModelLender) => ({
    model: new ClientModel(lender),
    goal: { criteria: goal },
  });
  const { service } = openServer(databaseFile(), params, { timing: { ...FAST, lendMs: 20 } });
  const { id } = await startRun(service, "report", { goal: ["There is a report"] });
  const lend = async (content: object) => {
    await follow(service, id, ({ kind }) => kind === "model_requested");
    await expect.poll(() => mine(service).read.modelCalls(id)).toHaveLength(1);
    await expect.poll(async () => (await mine(service).read.view(id))?.run.status).toBe("input_required");
    const [call] = await mine(service).read.modelCalls(id);
    const reply = {
      kind: "answer" as const,
      model: "lent-1",
      content: [content as { type: "text"; text: string }],
    };
    await mine(service).control.replyToModel(id, call?.id ?? "", reply);
    await expect.poll(async () => (await mine(service).read.modelCalls(id))[0]?.id).not.toBe(call?.id);
  };
  await lend({ type: "text", text: "done" });
  const [finding] = findings(met).toolCalls ?? [];
  await lend({ type: "tool_use", id: "use_1", name: "findings", input: finding?.args ?? {} });
  const { run, goal } = await reach(service, id, "completed");
  expect(run.answer).toBe("done");
  expect(goal?.line).toBe("goal met");
});

test("a message to a run whose goal is met is worked on, and the new answer is judged", async () => {
  const { service, model } = judging(findings(met, met), findings(met, met));
  const { id } = await startRun(service, "report", { goal: GOAL });
  const told = follow(service, id, ({ kind }) => kind === "goal_ended");
  await told;
  const sent = await mine(service).control.tell(id, { text: "add a letter" });
  const { run, goal } = await reach(service, id, "completed");
  const rounds = sent.ok ? 2 : 1; // it may have ended before
  expect(run.answer).toBe(`answer ${rounds}`);
  expect(goal).toMatchObject({ judged: { round: rounds }, line: "goal met" });
  expect(model.requests.filter(isJudge)).toHaveLength(rounds);
});
