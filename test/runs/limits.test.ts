import { isApproval } from "../../src/runs/run.ts";
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { expect, test } from "vitest";
import type { DeepAgentParams } from "../../src/agent/agent.ts";
import type { RunView } from "../../src/runs/run.ts";
import type { RunService } from "../../src/runs/service.ts";
import { scriptedModel, type ScriptedToolCall } from "../support/scripted-model.ts";
import {
  APPROVE,
  approve,
  databaseFile,
  follow,
  mine,
  note,
  noteTool,
  openServer,
  reach,
  startRun,
} from "./support.ts";

/** Replies of an agent, each with its calls; it ends after the last one. */
type Plan = ScriptedToolCall[][];
const task = (id: string, plan: Plan, subagent_type = "general-purpose"): ScriptedToolCall => ({
  id,
  name: "task",
  args: { description: JSON.stringify(plan), subagent_type },
});
const looking = (count: number): Plan => Array.from({ length: count }, () => [{ name: "ls", args: {} }]);

const agentOf = (notes: string[], params: DeepAgentParams): DeepAgentParams => ({
  model: scriptedModel(({ messages }) => {
    const at = messages.findLastIndex((message) => HumanMessage.isInstance(message));
    const plan = JSON.parse(messages[at]?.text ?? "[]") as Plan; // written by the test
    const toolCalls = plan[messages.slice(at).filter((message) => AIMessage.isInstance(message)).length];
    return toolCalls ? { toolCalls } : { text: "end" };
  }),
  tools: [noteTool(notes)],
  interruptOn: { note: true },
  ...params,
});

test("a run whose limit is reached while calls wait for a person ends, and nobody is asked any more", async () => {
  const notes: string[] = [];
  const { service } = openServer(databaseFile(), agentOf(notes, { limits: { tokens: 100 } }));
  const plan = [[note("a"), task("s", [[note("b")]]), task("eager", looking(20))]];
  const started = await startRun(service, JSON.stringify(plan));
  const { run, subagents, requests } = await reach(service, started.id, "completed");
  const approvals = requests.filter(isApproval);
  expect(run).toMatchObject({ stopReason: "max_tokens", answer: expect.stringContaining("100 tokens") });
  expect(approvals.map(({ status }) => status)).toEqual(["withdrawn", "withdrawn"]);
  expect(subagents.map(({ status }) => status)).toEqual(["failed", "failed"]);
  const events = await follow(service, run.id);
  const closed = events.filter(
    ({ kind, data }) => kind === "approval_decided" && data["decision"] === "withdrawn",
  );
  expect(closed).toHaveLength(2);
  const late = await mine(service).requests.answer(
    run.id,
    { requestId: approvals[0]?.id ?? "", answer: APPROVE },
    "test",
  );
  expect(late).toMatchObject({ ok: false, message: expect.stringContaining("no longer needs a decision") });
  const next = await startRun(service, JSON.stringify([[note("c")]]), { threadId: run.threadId });
  await reach(service, next.id, "input_required");
  await approve(service, next.id, "c");
  expect((await reach(service, next.id, "completed")).run.answer).toBe("end");
  expect(notes).toEqual(["c"]);
});

test("a subagent that a limit has ended asks nothing more, while its siblings are waited for", async () => {
  const notes: string[] = [];
  const short = { name: "short", description: "d", systemPrompt: "p", limits: { tokens: 100 } };
  const agent = agentOf(notes, { subagents: [short], limits: { subagentDepth: 2 } });
  const { service } = openServer(databaseFile(), agent);
  const inside = [[note("b"), task("t", [[note("c")]]), task("eager", looking(20))]];
  const started = await startRun(service, JSON.stringify([[note("a"), task("s", inside, "short")]]));
  await follow(
    service,
    started.id,
    ({ kind, data }) => kind === "subagent_finished" && data["name"] === "short",
  );
  const { run, subagents, requests } = await reach(service, started.id, "input_required");
  const approvals = requests.filter(isApproval);
  const byText = Object.fromEntries(approvals.map(({ args, status }) => [args["text"], status]));
  expect(byText).toEqual({ a: "pending", b: "withdrawn", c: "withdrawn" });
  expect(subagents.every(({ status }) => status === "failed")).toBe(true);
  await approve(service, run.id, "a");
  expect((await reach(service, run.id, "completed")).run).toMatchObject({ answer: "end" });
  expect(notes).toEqual(["a"]);
});

test("what a run used counts in the server that goes on with it, waiting for a person does not", async () => {
  const notes: string[] = [];
  const file = databaseFile();
  const agent = () => agentOf(notes, { limits: { tokens: 60, wallTimeMs: 60_000 } });
  const plan = Array.from({ length: 9 }, (_, n) => [note(`n${n}`)]);
  const first = openServer(file, agent());
  const { id } = await startRun(first.service, JSON.stringify(plan));
  await first.service.close();
  for (let asked = 0; ; asked += 1) {
    const { service } = openServer(file, agent());
    const view = await settled(service, id, `n${asked}`);
    if (view.run.status === "completed") break;
    await approve(service, id, `n${asked}`);
    await service.close(); // parks what goes on with the answer
  }
  expect(notes).toEqual(["n0", "n1", "n2", "n3"]); // 15 tokens a call
});

/** The run's view once it has ended, or asks about the note. */
async function settled(service: RunService, id: string, text: string): Promise<RunView> {
  for await (const _event of mine(service).watch.events(id, { signal: new AbortController().signal })) {
    const view = await mine(service).read.view(id);
    const isAsked = view?.requests
      .filter(isApproval)
      .some(({ args, status }) => args["text"] === text && status === "pending");
    if (view && (isAsked || view.run.status === "completed")) return view;
  }
  throw new Error(`run ${id} ended otherwise`);
}
