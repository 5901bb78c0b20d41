import { describe, expect, test } from "vitest";
import { type RunEvent, activityOf } from "../../src/runs/events.ts";
import { scriptedModel, type ScriptedRequest } from "../support/scripted-model.ts";
import { databaseFile, follow, kinds, mine, openServer, reach, startRun } from "./support.ts";

const LIMITED = Object.assign(new Error("slow down"), { status: 429, headers: { "retry-after": "300" } });
const isRetry = ({ kind }: RunEvent): boolean => kind === "model_retry";
const limits = { modelPatienceMs: 600_000 };

/** Delegates, and the subagent looks twice; the model is limited where `fails` says so. */
const delegating = (fails: (request: ScriptedRequest, isSubagent: boolean) => boolean) =>
  scriptedModel((request) => {
    const isSubagent = !request.tools.includes("task");
    if (fails(request, isSubagent)) throw LIMITED;
    const results = request.messages.filter(({ type }) => type === "tool").length;
    if (isSubagent) {
      return results < 2
        ? { toolCalls: [{ id: `ls_${results}`, name: "ls", args: {} }] }
        : { text: "report" };
    }
    const args = { description: "look", subagent_type: "general-purpose" };
    return results === 0 ? { toolCalls: [{ id: "task_1", name: "task", args }] } : { text: "end" };
  });

/** A run whose subagent waits for its provider after its first call. */
async function pausedInSubagent(file: string) {
  const model = delegating(({ messages }, isSubagent) => isSubagent && messages.at(-1)?.type === "tool");
  const server = openServer(file, { model, limits });
  const run = await startRun(server.service, "look");
  const events = await follow(server.service, run.id, isRetry);
  return { server, run, model, events };
}

describe("a run whose model is limited for minutes", () => {
  test("says so in its journal and as what it does now", async () => {
    const { server, run, events } = await pausedInSubagent(databaseFile());
    const told = events.find(isRetry);
    const message = "Model rate limited (HTTP 429). Attempt 2 in 300 s.";
    expect(told?.data).toEqual({
      model: "scripted",
      reason: "model_rate_limited",
      message,
      attempt: 1,
      pauseMs: 300_000,
    });
    expect(told && activityOf(told)).toBe(`look: ${message}`);
    const view = await mine(server.service).read.view(run.id);
    expect(view).toMatchObject({
      activity: `look: ${message}`,
      subagents: [{ step: message }],
    });
    expect(view?.run.status).toBe("working");
  });

  test("is cancelled at once", async () => {
    const { server, run, model } = await pausedInSubagent(databaseFile());
    await mine(server.service).control.cancel(run.id, "enough");
    const { run: ended } = await reach(server.service, run.id, "cancelled");
    expect(ended.status).toBe("cancelled");
    expect(model.requests).toHaveLength(3);
  });

  test.each([
    ["parked when its server ends", "close"],
    ["taken up when its server was killed", "kill"],
  ] as const)("is %s, and its subagent goes on where it was", async (_name, how) => {
    const file = databaseFile();
    const { server, run } = await pausedInSubagent(file);
    if (how === "close") await server.service.close();
    else server.kill();
    const model = delegating(() => false);
    const next = openServer(file, { model, limits });
    const { run: ended } = await reach(next.service, run.id, "completed");
    expect(ended.answer).toBe("end");
    const events = await follow(next.service, run.id);
    const calls = events.flatMap(({ kind, data }) => (kind === "tool_started" ? [data.callId] : []));
    expect(calls).toEqual(["task_1", "ls_0", "ls_1"]);
    expect(model.requests).toHaveLength(3);
    expect(kinds(events).includes("run_parked")).toBe(how === "close");
  });
});
