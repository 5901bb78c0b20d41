import { isApproval } from "../../src/runs/run.ts";
import { tool } from "@langchain/core/tools";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { DeepAgentParams } from "../../src/agent/agent.ts";
import type { PersonDecision } from "../../src/tools/request.ts";
import { deferred } from "../support/harness-deferred.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import {
  APPROVE,
  calling,
  databaseFile,
  follow,
  kinds,
  mine,
  note,
  noteTool,
  openServer,
  reach,
  type Server,
  startRun,
} from "./support.ts";

const GATED = { interruptOn: { note: true } };
const REJECT = { type: "reject", message: "no notes, please" } as const;
const EDIT = { type: "edit", editedAction: { name: "note", args: { text: "b" } } } as const;

/** Starts a run that waits for approval, has it decided where nobody works on it, and goes on in `later`. */
async function decidedBefore(
  first: DeepAgentParams,
  decision: PersonDecision,
  later: DeepAgentParams,
): Promise<{ answer: string | undefined; events: string[] }> {
  const file = databaseFile();
  const asking = openServer(file, first);
  const run = await startRun(asking.service, "note a");
  const approvals = (await reach(asking.service, run.id, "input_required")).requests.filter(isApproval);
  await asking.service.close();
  const idle = openServer(file, first, { concurrentRuns: 0 });
  const id = approvals[0]?.id ?? "";
  expect(
    await mine(idle.service).requests.answer(run.id, { requestId: id, answer: decision }, "test"),
  ).toMatchObject({ ok: true });
  await idle.service.close();
  const { service } = openServer(file, later);
  const { answer } = (await reach(service, run.id, "completed")).run;
  return { answer, events: kinds(await follow(service, run.id)) };
}

describe("a decision that was acknowledged", () => {
  const model = calling(note("a"));
  test.each([
    ["a rejection", REJECT, REJECT.message, []],
    ["an edit", EDIT, /noted b/, ["b"]],
    ["an approval", APPROVE, "noted a", ["a"]],
  ] as const)("%s counts where nobody is asked any more", async (_name, decision, answer, made) => {
    const notes: string[] = [];
    const tools = [noteTool(notes)];
    const ended = await decidedBefore({ model, tools, ...GATED }, decision, { model, tools });
    expect(ended.answer).toMatch(answer);
    expect(notes).toEqual(made);
    expect(ended.events.filter((kind) => kind.startsWith("approval_"))).toEqual([
      "approval_requested",
      "approval_decided",
    ]);
  });

  test("runs nothing where its tool is gone", async () => {
    const notes: string[] = [];
    const first = { model, tools: [noteTool(notes)], ...GATED };
    const ended = await decidedBefore(first, APPROVE, { model });
    expect(ended.answer).toMatch(/note is not/);
    expect(notes).toEqual([]);
  });

  test("runs nothing where the subagent that asked is gone", async () => {
    const notes: string[] = [];
    const delegating = scriptedModel(({ messages, tools }) => {
      if (messages.at(-1)?.type === "tool") return { text: messages.at(-1)?.text ?? "" };
      const args = { description: "go", subagent_type: "worker" };
      return { toolCalls: [tools.includes("task") ? { name: "task", args } : note("a")] };
    });
    const worker = {
      name: "worker",
      description: "d",
      systemPrompt: "p",
      tools: [noteTool(notes)],
      ...GATED,
    };
    const first = { model: delegating, subagents: [worker] };
    const ended = await decidedBefore(first, APPROVE, { model: delegating });
    expect(ended.answer).toMatch(/worker/);
    expect(notes).toEqual([]);
  });
});

describe("a call that was at work when the server died", () => {
  const never = () => new Promise<never>(() => {});

  /** Kills a server that asks nobody in the middle of the call; the next one asks. */
  async function killedAtWork(): Promise<{ server: Server; runId: string; notes: string[] }> {
    const file = databaseFile();
    const model = calling(note("a"));
    const atWork = deferred();
    const hanging = tool(
      () => {
        atWork.resolve();
        return never();
      },
      { name: "note", description: "Hangs.", schema: z.object({ text: z.string() }) },
    );
    const died = openServer(file, { model, tools: [hanging] });
    const run = await startRun(died.service, "note a");
    await atWork.promise;
    died.kill();
    const notes: string[] = [];
    const server = openServer(file, { model, tools: [noteTool(notes)], ...GATED });
    return { server, runId: run.id, notes };
  }

  test("is not put to a person as one that has still to be made, where calls are now asked about", async () => {
    const { server, runId, notes } = await killedAtWork();
    const { answer } = (await reach(server.service, runId, "completed")).run;
    expect(answer).toContain("it is unknown whether, or how far, it took effect");
    expect(notes).toEqual([]);
    expect(kinds(await follow(server.service, runId))).not.toContain("approval_requested");
  });
});
