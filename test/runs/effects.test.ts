import { isApproval } from "../../src/runs/run.ts";
import { tool } from "@langchain/core/tools";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { CompositeBackend } from "../../src/backends/composite/composite.ts";
import { StateBackend } from "../../src/backends/stores/state.ts";
import { StoreBackend } from "../../src/backends/stores/langgraph-store.ts";
import { LeaseLostError } from "../../src/runs/ports.ts";
import { sqliteRuns } from "../../src/storage/sqlite/runs/repository.ts";
import { createCheckpointer } from "../../src/storage/sqlite/checkpoints/checkpointer.ts";
import type { Database } from "../../src/storage/sqlite/database.ts";
import { createStore } from "../../src/storage/sqlite/memories/store.ts";
import { defineTool, toolError, type ToolResult } from "../../src/tools/tool.ts";
import { deferred } from "../support/harness-deferred.ts";
import { scriptedModel, type ScriptedToolCall } from "../support/scripted-model.ts";
import {
  approve,
  calling,
  connect,
  databaseFile,
  follow,
  kinds,
  losing,
  ME,
  note,
  noteTool,
  openServer,
  reach,
  startRun,
} from "./support.ts";

const never = () => new Promise<never>(() => {});

/** A tool that is counted, and does not return in the process that is going to die. */
function countedTool(kind: "read" | "write" | "execute", work: () => Promise<string>) {
  const calls: string[] = [];
  return {
    calls,
    tool: {
      name: "counted",
      description: "Is counted.",
      schema: z.object({}),
      kind,
      invoke: () => {
        calls.push(kind);
        return work();
      },
    },
  };
}

/** A server that was killed while the tool worked on the call of its run; `calls` are those it had begun. */
async function killedAtWork(kind: "read" | "write" | "execute") {
  const file = databaseFile();
  const model = calling({ name: "counted", args: {} });
  const atWork = deferred();
  const { tool: counted, calls } = countedTool(kind, () => {
    atWork.resolve();
    return never();
  });
  const died = openServer(file, { model, tools: [counted] });
  const run = await startRun(died.service, "go");
  await atWork.promise;
  await follow(died.service, run.id, (event) => event.kind === "tool_started");
  died.kill();
  return { file, model, run, calls };
}

describe("a call that was at work when the server died", () => {
  test.each(["execute", "write"] as const)("is not made again if it %ss: the model is told", async (kind) => {
    const { file, model, run, calls } = await killedAtWork(kind);
    const second = countedTool(kind, () => Promise.resolve("made"));
    const next = openServer(file, { model, tools: [second.tool] });
    const { run: ended } = await reach(next.service, run.id, "completed");
    expect(ended.answer).toBe(
      "Error: The server stopped while counted was at work, so it is unknown whether, or how far, it took effect. It was not repeated. Check for its traces, such as files or output, before you call it again.",
    );
    expect([calls, second.calls]).toEqual([[kind], []]);
    const events = await follow(next.service, run.id);
    expect(kinds(events).filter((kind) => kind.startsWith("tool_"))).toEqual([
      "tool_started",
      "tool_finished",
    ]);
    expect(next.database.prepare("SELECT count(*) FROM effects").pluck().get()).toBe(0);
  });

  test("is not answered by what it said when the server stopped it", async () => {
    const file = databaseFile();
    const model = calling({ name: "counted", args: {} });
    const atWork = deferred();
    const stopped = defineTool({
      name: "counted",
      description: "Is counted.",
      schema: z.object({}),
      kind: "execute",
      handle: (_args, { signal }) =>
        new Promise<ToolResult>((resolve) => {
          atWork.resolve();
          signal.addEventListener("abort", () => resolve(toolError("It was stopped.")));
        }),
    });
    const first = openServer(file, { model, tools: [stopped] });
    const run = await startRun(first.service, "go");
    await atWork.promise;
    await first.service.close();

    const second = countedTool("execute", () => Promise.resolve("made"));
    const next = openServer(file, { model, tools: [second.tool] });
    const { run: ended } = await reach(next.service, run.id, "completed");
    expect(ended.answer).toMatch(/^Error: The server stopped while counted was at work/);
    expect(second.calls).toEqual([]);
  });

  test("is told so too when the tool takes or allows it no more, or has gone", async () => {
    const schemas = [z.object({ text: z.string() }), undefined] as const;
    for (const schema of schemas) {
      const { file, model, run } = await killedAtWork("execute");
      const { tool: changed, calls } = countedTool("execute", () => Promise.resolve("made"));
      const tools = schema === undefined ? [] : [{ ...changed, schema }];
      const next = openServer(file, { model, tools });
      const { run: ended } = await reach(next.service, run.id, "completed");
      expect(ended.answer).toMatch(/^Error: The server stopped while counted was at work/);
      expect(calls).toEqual([]);
    }
  });

  test("is made again when it only reads", async () => {
    const { file, model, run } = await killedAtWork("read");
    const second = countedTool("read", () => Promise.resolve("seen"));
    const next = openServer(file, { model, tools: [second.tool] });
    expect((await reach(next.service, run.id, "completed")).run.answer).toBe("seen");
  });

  test("is not made again when it was approved, nor is anybody asked again", async () => {
    const file = databaseFile();
    const notes: string[] = [];
    const atWork = deferred();
    const stuck = noteTool(notes, async () => {
      notes.push("begun");
      atWork.resolve();
      await never();
    });
    const agent = { model: calling(note("a")), interruptOn: { note: true } };
    const died = openServer(file, { ...agent, tools: [stuck] });
    const run = await startRun(died.service, "go");
    await reach(died.service, run.id, "input_required");
    await approve(died.service, run.id, "a");
    await atWork.promise;
    died.kill();

    const next = openServer(file, { ...agent, tools: [noteTool(notes)] });
    const view = await reach(next.service, run.id, "completed");
    expect(view.run.answer).toMatch(/^Error: The server stopped while note was at work/);
    expect(view.requests.filter(isApproval).map(({ status }) => status)).toEqual(["approved"]);
    expect(notes).toEqual(["begun"]);
  });
});

const writing = (file_path: string): ScriptedToolCall => ({
  name: "write_file",
  args: { file_path, content: "text\n" },
});

describe("a call that had ended when the server died, but not in the checkpoint", () => {
  /** Makes the calls, kills the server before the checkpoint knows their results, and goes on in another. */
  async function lost(model: ReturnType<typeof calling>, notes: string[], calls: number) {
    const file = databaseFile();
    const first = connect(file);
    const agent = (database: Database) => ({
      model,
      tools: [noteTool(notes)],
      backend: new CompositeBackend(StateBackend, { "/memories/": new StoreBackend() }),
      store: createStore(database),
    });
    const died = openServer(file, () => ({ ...agent(first), checkpointer: losing(first) }));
    const run = await startRun(died.service, "go");
    let ended = 0;
    await follow(died.service, run.id, ({ kind }) => kind === "tool_finished" && (ended += 1) === calls);
    died.kill();
    const second = connect(file);
    const next = openServer(file, () => ({ ...agent(second), checkpointer: createCheckpointer(second) }));
    const view = await reach(next.service, run.id, "completed");
    return { view, events: await follow(next.service, run.id) };
  }

  test("gives its stored result, and the journal tells of it once", async () => {
    const notes: string[] = [];
    const { view, events } = await lost(calling(note("a"), note("b")), notes, 2);
    expect(view.run.answer).toBe("noted a; noted b");
    expect(notes.toSorted()).toEqual(["a", "b"]);
    expect(kinds(events).filter((kind) => kind === "tool_started")).toHaveLength(2);
    expect(kinds(events).filter((kind) => kind === "tool_finished")).toHaveLength(2);
  });

  test("gives its stored result where files stay, and runs again where they were lost", async () => {
    const { view } = await lost(calling(writing("/memories/kept.md"), writing("/lost.md")), [], 2);
    // Written a second time, the kept file would be in the way.
    expect(view.run.answer).toBe(
      "Successfully wrote to '/memories/kept.md'; Successfully wrote to '/lost.md'",
    );
  });

  test("gives its stored result to a subagent too", async () => {
    const notes: string[] = [];
    const model = scriptedModel(({ messages, tools }) => {
      const last = messages.at(-1);
      if (last?.type === "tool") return { text: last.text };
      if (!tools.includes("task")) return { toolCalls: [note("deep")] };
      return { toolCalls: [{ name: "task", args: { description: "go", subagent_type: "general-purpose" } }] };
    });
    const { view } = await lost(model, notes, 1);
    expect(view.run.answer).toBe("noted deep");
    expect(notes).toEqual(["deep"]);
  });
});

test("a tool that asks a person itself starts over with the answer", async () => {
  const { interrupt } = await import("@langchain/langgraph");
  const asking = tool(
    () => `told ${JSON.stringify(interrupt({ actionRequests: [ASKED], reviewConfigs: [] }))}`,
    {
      name: "ask",
      description: "Asks.",
      schema: z.object({}),
    },
  );
  const server = openServer(databaseFile(), { model: calling({ name: "ask", args: {} }), tools: [asking] });
  const run = await startRun(server.service, "go");
  await reach(server.service, run.id, "input_required");
  await approve(server.service, run.id, "x");
  const { run: ended } = await reach(server.service, run.id, "completed");
  expect(ended.answer).toBe('told {"decisions":[{"type":"approve"}]}');
});

const ASKED = { name: "ask", args: { text: "x" }, description: "Ask", toolCallId: "1" };

test("no call begins under a lease that is lost, and the work is told to stop", async () => {
  const database = connect(databaseFile());
  const runs = sqliteRuns(database);
  const work = runs.work({});
  const request = { owner: "one", environment: "test", now: 1, expiresAt: 1 };
  await runs.create(ME, { task: "go" }, { runId: "r", newThreadId: "t", environment: "test", now: 1 });
  const lease = (await runs.claimNext(request, 9))!.lease;
  const failures: unknown[] = [];
  const log = work.effectLog(
    lease,
    () => 1,
    (error) => failures.push(error),
  );
  const call = (callId: string) => ({ agent: [], messageId: "m", callId });
  await log.begin(call("before"), "note");
  for (const expired of await runs.expiredLeases(2, 10_000)) await runs.revoke(expired);
  expect(await runs.claimNext({ ...request, owner: "two" }, 9)).toBeDefined();
  await expect(log.begin(call("after"), "note")).rejects.toThrow(LeaseLostError);
  expect(failures).toHaveLength(1);
  expect(await log.find(call("before"))).toEqual({});
  expect(await log.find(call("after"))).toBeUndefined();
  // What began before may still tell how it ended.
  await log.finish(call("before"), { type: "json", data: new Uint8Array([1]) });
  expect(await log.find(call("before"))).toMatchObject({ outcome: { type: "json" } });
});
