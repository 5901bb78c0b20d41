import { isApproval } from "../../../src/runs/run.ts";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { z } from "zod";
import { CompositeBackend } from "../../../src/backends/composite/composite.ts";
import { FilesystemBackend } from "../../../src/backends/filesystem/filesystem.ts";
import { StateBackend } from "../../../src/backends/stores/state.ts";
import { changedLines } from "../../../src/core/diff.ts";
import { diffCounts } from "../../../src/server/views/content/diff.ts";
import { sharedRuns } from "../../../src/server/auth/shared-reader.ts";
import { keyOf } from "../../../src/server/views/room/timeline.ts";
import { createCheckpointer } from "../../../src/storage/sqlite/checkpoints/checkpointer.ts";
import { APPROVE, ME, mine, connect, databaseFile, openServer, reach, startRun } from "../../runs/support.ts";
import { filesIn } from "../../support/files-in.ts";
import { type ScriptedToolCall, scriptedModel } from "../../support/scripted-model.ts";
import { createPatch } from "diff";
import { type Visitor, linkTo, openPages, post, visit, visitorOf } from "./support.ts";

/** Texts that agents only read, by where they stood. */
const READ = {
  first: "CANARY-first-line",
  second: "CANARY-second-line",
  match: "CANARY-of-a-search",
  listed: "CANARY-of-a-listing",
  above: "CANARY-above-a-change",
  below: "CANARY-below-a-change",
  beside: "CANARY-beside-a-proposed-change",
  tool: "CANARY-of-a-tool",
  failure: "CANARY-of-a-failure",
  child: "CANARY-of-a-subagent",
  childFailure: "CANARY-of-a-failure-of-a-subagent",
} as const;
/** Texts that they wrote. */
const WROTE = ["WROTE-the-new-line", "WROTE-the-proposal"];

const FILES: Readonly<Record<string, string>> = {
  "secret.txt": `${READ.first}\n${READ.second}\n`,
  "found.txt": `x ${READ.match}\n`,
  [`${READ.listed}.txt`]: "",
  "edited.txt": `${READ.above}\nold line\n${READ.below}\n`,
  "asked.txt": `${READ.beside}\nold line\n`,
  "child.txt": `${READ.child}\n`,
};

const file = (name: string) => ({ file_path: `/workspace/${name}` });
const edit = (name: string, text: string): ScriptedToolCall => ({
  name: "edit_file",
  args: { ...file(name), old_string: "old line", new_string: text },
});
const STEPS: readonly ScriptedToolCall[] = [
  { name: "read_file", args: file("secret.txt") },
  { name: "grep", args: { pattern: "x CANARY", output_mode: "content" } },
  { name: "ls", args: { path: "/workspace" } },
  { name: "look", args: {} },
  { name: "task", args: { description: "child", subagent_type: "general-purpose" } },
  edit("edited.txt", WROTE[0] ?? ""),
  { name: "break", args: { text: READ.failure } },
  edit("asked.txt", WROTE[1] ?? ""),
];
const CHILD: readonly ScriptedToolCall[] = [
  { name: "read_file", args: file("child.txt") },
  { name: "break", args: { text: READ.childFailure } },
];

/** A run that reads all of that and then waits for the approval of its last change. */
async function readingRun() {
  const rootDir = filesIn();
  for (const [name, text] of Object.entries(FILES)) writeFileSync(join(rootDir, name), text);
  const model = scriptedModel(({ messages }) => {
    const last = messages.findLastIndex((message) => HumanMessage.isInstance(message));
    const steps = messages[last]?.text.startsWith("child") ? CHILD : STEPS;
    const call = steps[messages.slice(last).filter((message) => AIMessage.isInstance(message)).length];
    return call === undefined ? { text: "The end." } : { toolCalls: [call] };
  });
  const look = tool(async () => `${READ.tool}\nmore`, {
    name: "look",
    description: "Looks.",
    schema: z.object({}),
  });
  const fail = tool(
    async () => {
      const open = Object.values(READ).filter((text) => text.includes("failure"));
      throw new Error(open.join(" "));
    },
    { name: "break", description: "Fails.", schema: z.object({ text: z.string() }) },
  );
  const mounts = { "/workspace/": new FilesystemBackend({ rootDir, virtualMode: true }) };
  const database = databaseFile();
  const checkpointer = createCheckpointer(connect(database));
  const { service } = openServer(
    database,
    {
      model,
      checkpointer,
      tools: [look, fail],
      backend: () => new CompositeBackend(new StateBackend(), mounts),
      interruptOn: { edit_file: { when: ({ args }) => args["file_path"] === "/workspace/asked.txt" } },
    },
    {
      checkpoints: async () => checkpointer,
      treeWithThread: async () => (runtime) => new CompositeBackend(new StateBackend(runtime), mounts),
    },
  );
  const { id } = await startRun(service, "Read all of it");
  const view = await reach(service, id, "input_required");
  return { service, runId: id, view };
}

test("no screen, export or stream of a shared link has a text that agents only read", async () => {
  const { service, runId, view } = await readingRun();
  const pages = await openPages(service, undefined, { sharedRuns: async () => service });
  const owner = await visit(linkTo(pages, runId, "decide"));
  const { body } = await owner.post(`/runs/${runId}/share`, { for: "day" });
  const code = /data-address="\/shared#([^"]+)"/.exec(body)?.[1] ?? "";
  const { origin } = owner;
  const reader = visitorOf(origin, await post(`${origin}/shared`, { code }, { origin }));
  const [approval] = view.requests.filter(isApproval);
  const child = keyOf(view.subagents[0]?.agent ?? []);
  const lastSeq = view.run.lastSeq;
  const at = (path: string): string => `/runs/${runId}${path}`;
  const agent = `/work?agent=${child}`;
  const looks = ["", "?as=text", "?view=file", "?view=changes", "?view=history", "?q=canary-of"];
  // A screen says the path in its address.
  const files = ["secret.txt", "edited.txt", "asked.txt"].flatMap((name) =>
    looks.map((look) => `/files/workspace/${name}${look}`),
  );
  const steps = Array.from({ length: lastSeq }, (_, seq) => [`/steps/${seq}`, `/lines?change=${seq}`]);
  const paths = [
    "",
    "/work",
    "/work?events=all",
    "/work?view=list",
    agent,
    `${agent}&events=all`,
    "/review",
    "/answer",
    "/export?as=json",
    "/export?as=markdown",
    "/files",
    "/files/",
    "/files/workspace/",
    "/files/?q=canary-of",
    "/change",
    `/call?approval=${approval?.id}`,
    `/lines?approval=${approval?.id}`,
    "/lines?file=/workspace/edited.txt",
    ...files,
    ...steps.flat(),
  ].map(at);
  const others = [
    "/",
    "/search?q=canary-of",
    "/files/workspace/secret.txt",
    "/files/?q=canary-of",
    "/review",
    "/schedules",
  ];
  const seenBy = async (visitor: Visitor): Promise<string> => {
    const live = paths.filter((path) => !/files|steps|lines|export|call/.test(path));
    const stream = { accept: "text/event-stream" };
    const bodies = [...paths, ...others].map(async (path) => (await visitor.get(path)).body);
    const streams = live.map(async (path) => {
      const once = `${path}${path.includes("?") ? "&" : "?"}once`;
      return (await visitor.get(once, stream)).body;
    });
    return (await Promise.all([...bodies, ...streams])).join("\n");
  };
  const found = (text: string, of: readonly string[]): string[] => of.filter((one) => text.includes(one));
  const canaries = Object.values(READ);
  for (const status of ["input_required", "completed"] as const) {
    if (status === "completed")
      await mine(service).requests.answer(runId, { requestId: approval?.id ?? "", answer: APPROVE }, "test");
    await reach(service, runId, status);
    const [own, shared] = [await seenBy(owner), await seenBy(reader)];
    // The owner of the run sees all of them, so that the addresses are those that could show them.
    expect(found(own, canaries)).toEqual(canaries);
    expect(found(shared, canaries)).toEqual([]);
    expect(found(shared, WROTE)).toEqual(WROTE);
  }
});

test("a reader of a shared link reaches runs by the reduced methods alone", async () => {
  const { service, runId } = await readingRun();
  const { read, watch, files, ...others } = sharedRuns(service, ME);
  const { view, recentEvents, ...refusedReads } = read;
  const { events, ...refusedStreams } = watch;
  const { ofRun, ...refusedFiles } = files;
  for (const { kind, data } of (await recentEvents(runId, { limit: 100 })) ?? [])
    if (kind === "tool_finished") expect(data.summary).toBe("");
  expect((await view(runId))?.activity).toBe("needs you");
  expect(await ofRun("another")).toBeUndefined();
  for await (const event of events(runId, { signal: AbortSignal.timeout(60_000) })) {
    expect(JSON.stringify(event)).not.toContain("CANARY-first");
    if (event.kind === "approval_requested") break;
  }
  const answer = { id: "x", by: "test", decisions: [], answers: [], replies: [] };
  for (const group of [refusedReads, refusedStreams, refusedFiles, ...Object.values(others)])
    for (const [name, method] of Object.entries(group as object))
      await expect(
        async () => (method as (...args: unknown[]) => unknown)(runId, answer),
        name,
      ).rejects.toThrow("does not have the scope");
});

test("a diff keeps its changed lines with their numbers, and none around them", () => {
  const line = fc.constantFrom("a", "b", "c", "same");
  const text = fc
    .array(line, { maxLength: 30 })
    .map((lines) => lines.map((one, at) => `${one} ${at % 7}\n`).join(""));
  const changed = (diff: string): string[] => diff.split("\n").filter((one) => /^[-+](?![-+]{2} )/.test(one));
  fc.assert(
    fc.property(text, text, fc.integer({ min: 0, max: 4 }), (before, after, context) => {
      const patch = (around: number) => createPatch("f", before, after, "", "", { context: around });
      const diff = patch(context).split("\n").slice(2).join("\n");
      const bare = changedLines(diff);
      expect(changed(bare)).toEqual(changed(diff));
      expect(diffCounts(bare)).toEqual(diffCounts(diff));
      expect(bare.split("\n").filter((one) => one.startsWith(" "))).toEqual([]);
      expect(changedLines(bare)).toBe(bare);
    }),
  );
  expect(changedLines("--- a\n+++ b\n@@\n x\n-1\n+2\n y\n[diff cut: 3 lines more not shown]")).toBe(
    "--- a\n+++ b\n@@\n-1\n+2\n[diff cut: 3 lines more not shown]",
  );
  expect(
    changedLines("--- a\n+++ b\n@@ -4,3 +4,4 @@ x\n x\n-1\n+2\n+3\n y\n\\ No newline at end of file"),
  ).toBe("--- a\n+++ b\n@@ -5,1 +5,2 @@\n-1\n+2\n+3");
});
