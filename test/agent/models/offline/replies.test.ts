import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { offlineReply } from "../../../../src/agent/models/offline/offline-model.ts";
import { readAssignment, writeAssignment } from "../../../../src/agent/models/offline/survey.ts";
import {
  currentTurn,
  searchWords,
  parseListing,
  parseMatches,
  parsePaths,
} from "../../../../src/agent/models/offline/conversation.ts";
import { messageFrom } from "../../../../src/agent/messages/messages.ts";
import { attempts } from "../../../support/effort.ts";

const task = "How is the tide predicted, and where is `predictTide` defined?";

describe("replies as such", () => {
  const offered = ["write_todos", "ls", "glob", "grep", "read_file", "write_file", "edit_file", "task"];
  const tool = (name: string) => ({ name, description: name === "task" ? "- scout: looks around" : name });

  test("a failing tool is told, not hidden, and ends nothing", () => {
    const last = converse(new HumanMessage(task), offered, () => ({
      text: "Error: disk on fire",
      failed: true,
    }));
    expect(last.text).toContain("There is nothing to examine");
  });

  test("failing subagents are named in the answer", () => {
    const last = converse(new HumanMessage(task), offered, (name, args) => {
      if (name === "task") return { text: "Error: subagent 'scout' failed: out of luck", failed: true };
      if (name === "ls" && args["path"] === "/workspace/")
        return { text: "/workspace/src/ (directory)", failed: false };
      if (name === "glob") return { text: "/workspace/src/a.ts", failed: false };
      if (name === "ls") return { text: "/workspace/ (directory)", failed: false };
      return { text: "ok", failed: false };
    });
    expect(last.text).toContain("Not examined: src/ (subagent 'scout' failed: out of luck)");
  });

  test("an unoffered subagent type is not asked for", () => {
    const types: unknown[] = [];
    converse(new HumanMessage(task), offered, (name, args) => {
      if (name === "task") types.push(args["subagent_type"]);
      return {
        text: name === "ls" ? "/workspace/a.ts (3 bytes, modified 2026-01-01T00:00:00Z)" : "ok",
        failed: false,
      };
    });
    expect(types).toEqual(["scout"]);
  });

  test("names that are taken are tried further, a few times", () => {
    const tried: unknown[] = [];
    converse(new HumanMessage(task), offered, (name, args) => {
      if (name === "ls")
        return { text: "/workspace/a.ts (3 bytes, modified 2026-01-01T00:00:00Z)", failed: false };
      if (name !== "write_file") return { text: "ok", failed: false };
      tried.push(args["file_path"]);
      const text = `Error: Cannot write to ${String(args["file_path"])} because it already exists. Read it and change it.`;
      return { text, failed: true };
    });
    expect(tried.filter((path) => String(path).includes("report"))).toHaveLength(5);
    expect(new Set(tried).size).toBe(tried.length);
  });

  test("whatever tools answer and whichever are offered, it ends soon and never repeats itself", () => {
    const outputs = fc.oneof(
      fc.string(),
      fc.constantFrom(
        "",
        "Error: no",
        "No files found in /workspace/",
        "/workspace/ (directory)\n/memories/ (directory)",
        "/workspace/src/ (directory)\n/workspace/a.md (1 bytes, modified x)",
        "/workspace/src/a.ts\n/workspace/src/b c.ts\n[7 more not shown; narrow the pattern]",
        "/workspace/src/a.ts:\n  3: export class A {\n  9: // TODO: x",
        "1\t# Title\n\ttext",
        "Error: Cannot write to /x because it already exists.",
      ),
    );
    fc.assert(
      fc.property(
        fc.subarray(offered),
        fc.string(),
        fc.infiniteStream(fc.tuple(outputs, fc.boolean())),
        (names, text, answers) => {
          const stream = answers[Symbol.iterator]();
          const last = converse(new HumanMessage(text), names, () => {
            const [output, failed] = stream.next().value as [string, boolean];
            return { text: output, failed };
          });
          expect(last.text.length).toBeGreaterThan(0);
        },
      ),
      attempts(300),
    );
  });

  test("usage is an estimate of four characters a token", () => {
    const reply = offlineReply([new HumanMessage("x".repeat(400))], []);
    expect(reply.usage_metadata).toMatchObject({ input_tokens: 100 });
    expect(reply.usage_metadata?.total_tokens).toBe(100 + (reply.usage_metadata?.output_tokens ?? 0));
  });

  /** Plays tools until the model makes no more calls; at most twenty replies. */
  function converse(
    opening: HumanMessage,
    names: readonly string[],
    play: (name: string, args: Record<string, unknown>) => { text: string; failed: boolean },
  ): AIMessage {
    const messages: BaseMessage[] = [opening];
    const ids = new Set<string>();
    for (let reply = 0; reply < 20; reply += 1) {
      const message = offlineReply(messages, names.map(tool));
      if (message.tool_calls?.length === 0) return message;
      messages.push(message);
      for (const { id = "", name, args } of message.tool_calls ?? []) {
        expect(names).toContain(name);
        expect(ids).not.toContain(id);
        ids.add(id);
        const { text, failed } = play(name, args);
        messages.push(
          new ToolMessage({ content: text, tool_call_id: id, status: failed ? "error" : "success" }),
        );
      }
    }
    throw new Error("the model did not come to an end");
  }
});

describe("search words", () => {
  test.each([
    ["Where is `predictTide` defined, and who calls tide_table?", ["predictTide", "tide_table"]],
    ["Summarize the project", []],
    ["Find all TODOs", ["todo"]],
    ["Explain src/tides.ts and its callers", ["src/tides.ts", "caller"]],
    ["Wie werden die Gezeiten berechnet?", ["gezeiten", "berechnet"]],
    ["潮汐の計算方法", ["潮汐", "計算", "方法"]],
  ])("of '%s'", (text, words) => {
    expect(searchWords(text)).toEqual(words);
  });

  test("are few, distinct and taken from the task", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (text) => {
        const words = searchWords(text);
        expect(words.length).toBeLessThanOrEqual(5);
        expect(new Set(words).size).toBe(words.length);
        for (const word of words) expect(text.toLowerCase()).toContain(word.toLowerCase());
      }),
    );
  });
});

describe("an assignment", () => {
  test("is read as it was written, whatever the names", () => {
    const segment = fc.stringMatching(/^[^\n\r/]{1,12}$/).filter((name) => name.trim() === name);
    const folder = fc.record({ path: segment.map((name) => `/workspace/${name}/`), deep: fc.boolean() });
    fc.assert(
      fc.property(
        fc.array(folder, { minLength: 1, maxLength: 3 }),
        fc.array(fc.string()),
        (folders, words) => {
          const text = writeAssignment({ title: "x", folders, files: 1 }, "the goal", words);
          const read = readAssignment(text, "/");
          expect(read).toEqual({ goal: "the goal", folders, words });
        },
      ),
    );
  });

  test("in other words takes the folders it names, or the given one", () => {
    const read = readAssignment("Look through /workspace/src/ for tides.", "/workspace/");
    expect(read).toMatchObject({ folders: [{ path: "/workspace/src/", deep: true }], words: ["tide"] });
    expect(readAssignment("tides", "/workspace/").folders).toEqual([{ path: "/workspace/", deep: true }]);
  });
});

test("tool output is read leniently", () => {
  const listing =
    "/w/a (1).md (12 bytes, modified 2026-01-01T00:00:00Z)\n/w/src/ (directory)\n/w/plain\n\n[2 entries could not be read]";
  expect(parseListing(listing)).toEqual(["/w/a (1).md", "/w/src/", "/w/plain"]);
  expect(parsePaths("/w/a: b.ts\n/w/dir/\n[7 more not shown; narrow the pattern]")).toEqual({
    paths: ["/w/a: b.ts"],
    more: 7,
  });
  expect(
    parseMatches("/w/a.ts:\n  3: x: 1\n  4- context\n\n/w/b.ts:\n  10: \n[stopped at 2 matches]"),
  ).toEqual([
    { path: "/w/a.ts", line: 3, text: "x: 1" },
    { path: "/w/b.ts", line: 10, text: "" },
  ]);
});

test("messages that arrive during the work are a part of the turn", () => {
  const call = { id: "a", name: "ls", args: { path: "/" } };
  const { task, remarks, calls } = currentTurn([
    new HumanMessage("Where are the tides?"),
    new AIMessage({ content: "", tool_calls: [call] }),
    new ToolMessage({ tool_call_id: "a", content: "/src/" }),
    messageFrom("inbox", "b", "Please do not change anything."),
    messageFrom("end_check", "c", "Is anything missing?"),
  ]);
  expect({ task, remarks, names: calls.map(({ name }) => name) }).toEqual({
    task: "Where are the tides?",
    remarks: ["Please do not change anything."],
    names: ["ls"],
  });
});
