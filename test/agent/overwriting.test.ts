import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ToolMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import { describe, expect, it } from "vitest";
import { type AgentEvent, buildAgent, type DeepAgentParams } from "../../src/agent/agent.ts";
import { CompositeBackend } from "../../src/backends/composite/composite.ts";
import { FilesystemBackend } from "../../src/backends/filesystem/filesystem.ts";
import { encodeText } from "../../src/backends/encoding.ts";
import { StateBackend } from "../../src/backends/stores/state.ts";
import { collect, paused, toolMessages } from "../support/run-agent.ts";
import { scriptedModel, type ScriptedToolCall } from "../support/scripted-model.ts";
import { answer, approve } from "./calls/approvals/asking.ts";
import { filesIn } from "../support/files-in.ts";

const write = (path: string, content: string, id = `w-${content}`): ScriptedToolCall => ({
  id,
  name: "write_file",
  args: { file_path: path, content },
});
const edit = (path: string, from: string, to: string): ScriptedToolCall => ({
  id: `e-${from}`,
  name: "edit_file",
  args: { file_path: path, old_string: from, new_string: to },
});
const read = (path: string, id = "r"): ScriptedToolCall => ({
  id,
  name: "read_file",
  args: { file_path: path },
});

/** An agent that makes the calls of one reply after another; its workspace is a new folder. */
function agentMaking(replies: readonly ScriptedToolCall[][], params: DeepAgentParams = {}) {
  const folder = filesIn();
  const model = scriptedModel(({ messages }) => {
    const done = messages.filter((message) => ToolMessage.isInstance(message)).length;
    const lengths = replies.map((_, index) => replies.slice(0, index).flat().length);
    const next = replies[lengths.indexOf(done)];
    return next ? { toolCalls: next } : { text: "end" };
  });
  const disk = new FilesystemBackend({ rootDir: folder, virtualMode: true });
  const backend = new CompositeBackend(StateBackend, { "/workspace/": disk });
  const agent = buildAgent({ checkpointer: new MemorySaver(), model, backend, ...params });
  const results = async () => (await toolMessages(agent)).map(({ text }) => text);
  return { agent, folder, results };
}
const go = { kind: "task", task: "go" } as const;
const diffsOf = (events: readonly AgentEvent[]) =>
  events.flatMap((event) => (event.kind === "file_changed" ? [event.diff] : []));

describe.each(["/workspace/a.md", "/a.md"])("write_file on %s", (path) => {
  it("overwrites what the conversation read or wrote last, and tells the difference", async () => {
    const replies = [
      [write(path, "one\ntwo\n")],
      [write(path, "one\n2\n")],
      [read(path)],
      [write(path, "3\n")],
    ];
    const { agent, results } = agentMaking([...replies, [read(path, "r2")]]);
    const diffs = diffsOf(await collect(agent, go));
    const wrote = `Successfully wrote to '${path}'`;
    expect(await results()).toEqual([wrote, wrote, "1\tone\n\t2", wrote, "1\t3"]);
    expect(diffs[1]).toBe(`--- ${path}\n+++ ${path}\n@@ -1,2 +1,2 @@\n one\n-two\n+2`);
  });
});

describe.each(["/workspace/a.md", "/a.md"])("edit_file on %s", (path) => {
  it("tells the difference with the lines of the file", async () => {
    const lines = (fifth: string) => ["1", "2", "3", "4", fifth, "6", "7", "8", "9"].join("\n");
    const { agent } = agentMaking([[write(path, lines("five"))], [edit(path, "five", "a\nb\nc")]]);
    const changes = (await collect(agent, go)).filter(({ kind }) => kind === "file_changed");
    expect(changes).toMatchObject([
      { added: 9, removed: 0 },
      {
        added: 3,
        removed: 1,
        diff: `--- ${path}\n+++ ${path}\n@@ -2,7 +2,9 @@\n 2\n 3\n 4\n-five\n+a\n+b\n+c\n 6\n 7\n 8`,
      },
    ]);
  });
});

describe("write_file on a file of another system", () => {
  const bytesAfter = async (before: Buffer, content: string) => {
    const path = "/workspace/build.cmd";
    const { agent, folder, results } = agentMaking([[read(path)], [write(path, content)]]);
    writeFileSync(join(folder, "build.cmd"), before);
    const diffs = diffsOf(await collect(agent, go));
    return { bytes: readFileSync(join(folder, "build.cmd")), said: (await results()).at(-1), diffs };
  };

  it("keeps line ends and byte order mark, and says so", async () => {
    const { bytes, said } = await bytesAfter(Buffer.from("\ufeffa\r\nb\r\n"), "a\nc\n");
    expect(bytes.toString()).toBe("\ufeffa\r\nc\r\n");
    expect(said).toBe(
      "Successfully wrote to '/workspace/build.cmd'. Kept from the file before: CRLF line ends, byte order mark",
    );
  });

  it.each(["utf-16le", "utf-16be"] as const)("keeps %s", async (encoding) => {
    const inIt = (text: string): Buffer => encodeText(`\ufeff${text}`, encoding);
    const { bytes, said, diffs } = await bytesAfter(inIt("eins\r\nzwei 😀\r\n"), "eins\ndrei ß\n");
    expect(bytes).toEqual(inIt("eins\r\ndrei ß\r\n"));
    expect(said).toContain(`CRLF line ends, byte order mark, encoding (${encoding.toUpperCase()})`);
    expect(diffs.at(-1)).toContain("-zwei 😀");
  });

  it("leaves a text that has the form already as it is, and says nothing", async () => {
    const { bytes, said } = await bytesAfter(Buffer.from("a\r\n"), "b\r\n");
    expect(bytes.toString()).toBe("b\r\n");
    expect(said).toBe("Successfully wrote to '/workspace/build.cmd'");
  });

  it("shows a person the text as it will be stored", async () => {
    const path = "/workspace/a.md";
    const { agent, folder } = agentMaking([[read(path)], [write(path, "one\n2\n")]], {
      interruptOn: { write_file: true },
    });
    writeFileSync(join(folder, "a.md"), encodeText("\ufeffone\r\ntwo\r\n", "utf-16le"));
    const [open] = paused(await collect(agent, go));
    expect(open?.request.actionRequests[0]?.preview).toMatchObject({
      kind: "diff",
      summary: `Overwrite ${path}`,
    });
    expect(open?.request.actionRequests[0]?.preview?.detail).toMatch(/one\S*\n-two\S*\n\+2\S*$/);
    await answer(agent, open, approve);
    expect(readFileSync(join(folder, "a.md"))).toEqual(encodeText("\ufeffone\r\n2\r\n", "utf-16le"));
  });
});

describe("write_file on a file that others change", () => {
  it("refuses what the conversation has not read", async () => {
    const path = "/workspace/a.md";
    const { agent, folder, results } = agentMaking([[write(path, "mine")]]);
    writeFileSync(join(folder, "a.md"), "theirs");
    await collect(agent, go);
    expect(await results()).toEqual([
      `Error: Cannot write to ${path} because it already exists. Read it and change it with edit_file, or choose a new path.`,
    ]);
    expect(readFileSync(join(folder, "a.md"), "utf8")).toBe("theirs");
  });

  it("refuses when it changed since it was read", async () => {
    const path = "/workspace/a.md";
    const { agent, folder, results } = agentMaking([[read(path)], [write(path, "mine")]], {
      interruptOn: { write_file: { when: () => (writeFileSync(join(folder, "a.md"), "theirs"), false) } },
    });
    writeFileSync(join(folder, "a.md"), "before");
    await collect(agent, go);
    expect((await results())[1]).toBe(
      `Error: File '${path}' changed since it was read; read it again and retry.`,
    );
    expect(readFileSync(join(folder, "a.md"), "utf8")).toBe("theirs");
  });

  it("shows the difference to the person who approves it", async () => {
    const path = "/workspace/a.md";
    const { agent, folder } = agentMaking([[read(path)], [write(path, "one\n2\n")]], {
      interruptOn: { write_file: true },
    });
    writeFileSync(join(folder, "a.md"), "one\ntwo\n");
    const [open] = paused(await collect(agent, go));
    expect(open?.request.actionRequests[0]?.preview).toEqual({
      kind: "diff",
      summary: `Overwrite ${path}`,
      destination: path,
      detail: `--- ${path}\n+++ ${path}\n@@ -1,2 +1,2 @@\n one\n-two\n+2`,
    });
    await answer(agent, open, approve);
    expect(readFileSync(join(folder, "a.md"), "utf8")).toBe("one\n2\n");
  });
});

describe.each(["/workspace/a.md", "/a.md"])("a read of %s beside a write in one reply", (path) => {
  /** Lets a write begin only when everything that does not wait for it has ended. */
  const slowWrites = {
    name: "SlowWrites",
    wrapToolCall: async (
      request: { toolCall: { name: string } },
      next: (request: never) => Promise<never>,
    ) => {
      if (request.toolCall.name !== "read_file") {
        for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      }
      return next(request as never);
    },
  };

  it("waits for the write", async () => {
    const { agent, results } = agentMaking([[write(path, "new"), read(path)]], {
      middleware: [slowWrites],
    });
    await collect(agent, go);
    expect(await results()).toEqual([`Successfully wrote to '${path}'`, "1\tnew"]);
  });

  it("sees what was there before a write that stands behind it", async () => {
    const { agent, results } = agentMaking([[write(path, "old")], [read(path), write(path, "new")]]);
    await collect(agent, go);
    expect((await results())[1]).toBe("1\told");
  });

  it("that searches the folder sees nothing of a write that stands behind it", async () => {
    const search = { id: "s", name: "grep", args: { pattern: "old" } };
    const { agent, results } = agentMaking([
      [write(path, "old")],
      [search, read(path), edit(path, "old", "new")],
    ]);
    await collect(agent, go);
    expect((await results()).slice(1)).toEqual([
      `${path}:\n  1: old`,
      "1\told",
      `Successfully replaced 1 occurrence(s) in '${path}'`,
    ]);
  });

  it("says that it is older than a write that waits for a person", async () => {
    const { agent, results } = agentMaking([[write(path, "new"), read(path)]], {
      interruptOn: { write_file: true },
    });
    const [open] = paused(await collect(agent, go));
    await answer(agent, open, approve);
    expect(await results()).toEqual([
      `Successfully wrote to '${path}'`,
      `[Result from before write_file of the same reply, which waits for a person]\nError: File '${path}' not found`,
    ]);
  });
});
