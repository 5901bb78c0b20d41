import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { expect, test } from "vitest";
import { type Database } from "../../src/storage/sqlite/database.ts";
import { deferred } from "../support/harness-deferred.ts";
import { scriptedModel, type ScriptedReply } from "../support/scripted-model.ts";
import {
  checkpointsOf,
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

const DAY = 86_400_000;
const LARGE = "large ".repeat(20_000);
const CALLS: Record<string, { name: string; args: Record<string, unknown> }[]> = {
  large: [{ name: "write_file", args: { file_path: "/large.md", content: LARGE } }],
  look: [{ name: "ls", args: { path: "/" } }],
  parallel: [
    note("fast"),
    note("slow"),
    note("ask"),
    { name: "task", args: { description: "small", subagent_type: "general-purpose" } },
  ],
  small: [{ name: "write_file", args: { file_path: "/small.md", content: "small" } }],
};

const model = scriptedModel(({ messages }): ScriptedReply => {
  const last = messages.at(-1);
  const toolCalls = HumanMessage.isInstance(last) ? CALLS[last.text] : undefined;
  if (toolCalls !== undefined) return { toolCalls };
  return { text: ToolMessage.isInstance(last) ? last.text.slice(0, 100) : "done" };
});

/** Tables of a file that have rows, without those that say what the tables are, and those of a search over words. */
function filled(database: Database): unknown[] {
  const tables = database
    .prepare<[], string>(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT IN ('schema_versions', 'sqlite_sequence') AND name NOT GLOB 'run_texts_*'",
    )
    .pluck()
    .all();
  return tables.filter((table) => database.prepare(`SELECT 1 FROM ${table} LIMIT 1`).get() !== undefined);
}

test("every point of a thread can be forked, lives apart, leaves nothing", { tags: "long" }, async () => {
  const file = databaseFile();
  const { checkpoints, checkpointer } = checkpointsOf(file);
  const [atWork, released] = [deferred(), deferred()];
  const notes: string[] = [];
  const tool = noteTool(notes, async (text) => {
    if (text !== "slow") return;
    atWork.resolve();
    await released.promise;
  });
  const { service, database } = openServer(
    file,
    {
      model,
      tools: [tool],
      checkpointer,
      interruptOn: { note: { when: ({ args }) => args["text"] === "ask" } },
      summarization: { trigger: { messages: 6 }, keep: { messages: 2 } },
    },
    { checkpoints: async () => checkpointer },
  );
  const ended = async (task: string, threadId?: string) => {
    const run = await startRun(service, task, threadId === undefined ? {} : { threadId });
    return (await reach(service, run.id, "completed")).run;
  };
  const { threadId } = await ended("large");
  await ended("look", threadId);
  const run = await startRun(service, "parallel", { threadId });
  await atWork.promise;
  await follow(service, run.id, ({ kind }) => kind === "approval_requested");

  const points = (await mine(service).read.points(run.id)) ?? [];
  expect(points.map(({ summary }) => summary.split(":")[0])).toEqual([
    "You",
    "Called write_file",
    "Results of write_file",
    "Agent",
    "You",
    "Called ls",
    "Results of ls",
    "Agent",
    "You",
    "Called note, started 1 agent",
  ]);
  const forks = [];
  for (const [index, { id }] of points.entries()) {
    const fork = await ended("look", id);
    const own = (await mine(service).read.points(fork.id)) ?? [];
    // One of the points that it has from the original, and the last one of its own.
    for (const from of [own[index]?.id, own.at(-1)?.id]) forks.push(await ended("look", from));
    // What was written by then, nothing of what waits, and what had ended beside it.
    expect(fork.answer?.includes("/large.md")).toBe(index > 1);
  }
  expect(await mine(service).read.points(run.id)).toEqual(points);
  released.resolve();
  await approve(service, run.id, "ask");
  await reach(service, run.id, "completed");
  expect(notes.toSorted()).toEqual(["ask", "fast", "slow"]);

  const isOld = database.prepare("UPDATE runs SET ended_at = 1 WHERE thread_id = ?");
  isOld.run(threadId);
  expect(await service.prune({ maxAgeMs: DAY })).toMatchObject({ runs: 3, threads: 1 });
  for (const fork of forks.slice(4)) {
    const read = await (await mine(service).files.ofRun(fork.id))?.readRaw("/large.md");
    expect(read).toMatchObject({ data: { content: LARGE } });
  }
  for (const { threadId: thread } of forks) isOld.run(thread);
  database.exec("UPDATE runs SET ended_at = 1");
  await service.prune({ maxAgeMs: DAY });
  expect([filled(database), filled(checkpoints)]).toEqual([[], []]);
});
