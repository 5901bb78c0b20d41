import { describe, expect, test } from "vitest";
import { CLIENT_KINDS } from "../../support/clients.ts";
import { play } from "../../support/harness-brain.ts";
import { APPROVE, person, runIdOf, untilStatus, writeFile } from "../../e2e/support.ts";
import { entry, openGuarded, withTokens } from "./support.ts";

const BOTH = { authenticator: withTokens(entry("alice-token", "alice"), entry("bob-token", "bob")) };

const brain = play({
  "Remember the launch": [
    { toolCalls: [writeFile("/memories/launch.md", "The launch code is zanzibar.\n")] },
    { toolCalls: [writeFile("/draft.md", "zanzibar draft\n")] },
    { text: "remembered zanzibar" },
  ],
  "Change a file": [{ toolCalls: [writeFile("/workspace/new.md", "new\n")] }, { text: "changed" }],
});

/** The text of an error without the id it names, so that two answers can be compared. */
const shape = (text: string, ...ids: string[]): string =>
  ids.reduce((rest, id) => rest.replaceAll(id, "ID"), text);

describe.each(CLIENT_KINDS)("%s", (kind) => {
  test("runs, threads, files and memories of a principal do not exist for another", async () => {
    const server = await openGuarded(brain, BOTH);
    const alice = await server.connect("alice-token", kind);
    const bob = await server.connect("bob-token", kind);
    const started = await alice.call("run_deep_agent", { task: "Remember the launch" });
    const runId = runIdOf(started);
    const report = await untilStatus(alice, runId, "completed");
    expect(report).toMatchObject({ answer: "remembered zanzibar" });

    const none = "run_none";
    const calls = { check_deep_agent: {}, cancel_deep_agent: {}, read_agent_file: { path: "/draft.md" } };
    for (const [tool, args] of Object.entries(calls)) {
      const foreign = await bob.call(tool, { ...args, run_id: runId });
      const unknown = await bob.call(tool, { ...args, run_id: none });
      expect(foreign.isError).toBe(true);
      expect(shape(foreign.text, runId)).toBe(shape(unknown.text, none));
    }
    const threadId = String(report["thread_id"]);
    const foreignThread = await bob.call("run_deep_agent", { task: "x", thread_id: threadId });
    const unknownThread = await bob.call("run_deep_agent", { task: "x", thread_id: "thr_none" });
    expect(foreignThread.isError).toBe(true);
    expect(shape(foreignThread.text, threadId)).toBe(shape(unknownThread.text, "thr_none"));

    expect((await alice.call("search_memories", { query: "zanzibar" })).text).toContain("launch.md");
    expect((await bob.call("search_memories", { query: "zanzibar" })).structured).toEqual({ memories: [] });
    const memory = { path: "/memories/launch.md" };
    expect((await alice.call("read_agent_file", memory)).text).toContain("zanzibar");
    expect((await bob.call("read_agent_file", memory)).text).not.toContain("zanzibar");

    expect((await alice.listResources()).map(({ name }) => name)).toContain(runId);
    expect((await bob.listResources()).map(({ name }) => name)).not.toContain(runId);
    for (const path of ["", "/report", "/events", "/todos", "/files/draft.md"]) {
      const uri = `deepagent://runs/${runId}${path}`;
      expect(JSON.stringify(await alice.readResource(uri))).toContain(path === "/todos" ? "[]" : "zanzibar");
      const messageOf = (wanted: string) =>
        bob.readResource(wanted).then(
          () => "read",
          (error: Error) => error.message,
        );
      const foreign = await messageOf(uri);
      expect(foreign).not.toBe("read");
      expect(shape(foreign, runId)).toBe(shape(await messageOf(uri.replace(runId, none)), none));
    }
    await expect(bob.readResource("deepagent://files/memories/launch.md")).rejects.toThrow();
    const template = "deepagent://runs/{run_id}";
    expect(await alice.complete(template, "run_id", runId.slice(0, 8))).toContain(runId);
    expect(await bob.complete(template, "run_id", runId.slice(0, 8))).toEqual([]);
    expect(await bob.complete("deepagent://files/{+path}", "path", "memories/l")).toEqual([]);
  });

  test("nobody but its principal is told about changes of a run, decides on it or ends it", async () => {
    const server = await openGuarded(brain, BOTH);
    const alice = await server.connect("alice-token", kind);
    const bob = await server.connect("bob-token", kind, person({ "new.md": APPROVE }).answer);
    const runId = runIdOf(await alice.call("run_deep_agent", { task: "Change a file" }));
    await untilStatus(alice, runId, "input_required");
    const uri = `deepagent://runs/${runId}`;
    const files = "deepagent://files/workspace/new.md";
    // A 2025-era client is refused; a 2026-07-28 one may ask for anything, and hears nothing.
    await bob.watch(uri).catch(() => undefined);
    await bob.watch(files);
    await alice.watch(uri);
    await alice.watch(files);

    expect((await bob.call("check_deep_agent", { run_id: runId })).isError).toBe(true);
    expect((await bob.call("cancel_deep_agent", { run_id: runId })).isError).toBe(true);
    expect(await untilStatus(alice, runId, "input_required")).toMatchObject({ status: "input_required" });

    const other = await server.connect("alice-token", kind, person({ "new.md": APPROVE }).answer);
    await untilStatus(other, runId, "completed");
    await expect.poll(() => alice.updates).toContain(files);
    await expect.poll(() => alice.updates).toContain(uri);
    // What Bob asks for after the news has been sent out is answered after anything sent to him before.
    await bob.listTools();
    expect(bob.updates).toEqual([]);
  });
});
