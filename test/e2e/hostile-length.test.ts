import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { filesIn } from "../support/files-in.ts";
import { answersOf } from "../support/harness-brain.ts";
import { openWorld } from "../support/harness.ts";
import {
  enter,
  ENTRIES,
  type Entry,
  hostileModel,
  hostilePerson,
  hostileSettings,
  textsFor,
} from "../support/hostile-text.ts";
import { APPROVE } from "./support.ts";

const SIZE = 100_000;
/** A result tells what it has to in fewer characters. */
const LONGEST_RESULT = 500_000;

const LONG = "x".repeat(700_000);

test("a long answer and a long file are taken whole", async () => {
  const { think, say } = hostileModel();
  // No form shows so long a file whole, so nobody could approve it there.
  const { workspace, connect } = await openWorld("memory", {
    think,
    env: { DEEPAGENT_APPROVALS_WRITE: "none" },
  });
  const to = await connect("v2-modern", () => APPROVE);
  const write = { name: "write_file", args: { file_path: "/workspace/long.txt", content: LONG } };
  say([{ toolCalls: [write] }, { text: LONG }]);
  const { structured } = await to.call("run_deep_agent", { task: "Go" });
  expect(structured["status"]).toBe("completed");
  expect(readFileSync(join(workspace, "long.txt"), "utf8")).toBe(LONG);
  const { contents } = await to.readResource(`deepagent://runs/${String(structured["run_id"])}`);
  expect(JSON.stringify(contents)).toContain(LONG);
});

test.each([
  ["a longer answer is cut and says so", () => ({ text: LONG.repeat(2) }), "completed", /answer is cut here/],
  [
    "a longer file is not written",
    () => ({
      toolCalls: [{ name: "write_file", args: { file_path: "/workspace/a.txt", content: LONG.repeat(2) } }],
    }),
    "completed",
    /write_file was not run: the reply was cut .* give long content in several calls/,
  ],
  [
    "a name of 2 MB is none of a model",
    () => ({ toolCalls: [{ name: LONG.repeat(3), args: {} }] }),
    "failed",
    /the endpoint did not answer like a model/,
  ],
])("%s", async (_name, line, status, told) => {
  const { think, say } = hostileModel();
  const { connect, workspace } = await openWorld("memory", {
    think,
    env: { DEEPAGENT_LIMITS_MODEL_PATIENCE: "0" },
  });
  const to = await connect("v2-modern", () => APPROVE);
  say([line(), (thought) => ({ text: answersOf(thought)[0]?.text ?? "" })]);
  const { structured } = await to.call("run_deep_agent", { task: "Go" });
  expect(structured["status"]).toBe(status);
  const { contents } = await to.readResource(`deepagent://runs/${String(structured["run_id"])}/transcript`);
  expect(JSON.stringify(contents)).toMatch(told);
  expect(readdirSync(workspace)).toEqual([]);
});

/** A tool server is asked for its tools once, so each of its entries has a product of its own. */
const PRODUCTS: readonly (readonly [string, readonly Entry[]])[] = [
  ["anything but a tool server", ENTRIES.filter(({ server }) => server === undefined)],
  ...ENTRIES.filter(({ server }) => server !== undefined).map((entry) => [entry.name, [entry]] as const),
];

test.each(PRODUCTS)("long text by %s ends in a clear text", { tags: "long" }, async (_name, entries) => {
  const folder = filesIn();
  const { think, say } = hostileModel();
  const { workspace, connect } = await openWorld("memory", { think, env: hostileSettings(folder) });
  const person = hostilePerson();
  const to = await connect("v2-modern", person.answer);
  for (const entry of entries) {
    for (const { name: text, text: content } of textsFor(entry, SIZE)) {
      const name = `${entry.name}, ${text}`;
      person.expect(entry, content);
      const { raw, structured, isError } = await enter(entry, content, { workspace, folder, to, say });
      // A call that no form shows whole waits for another place.
      if (structured["status"] === "input_required")
        expect(JSON.stringify(raw), name).toContain("This is not the whole call");
      else expect(["completed", "failed", undefined], name).toContain(structured["status"]);
      if (structured["status"] === "failed") expect(isError, name).toBe(true);
      const shown = JSON.stringify(raw);
      expect(shown.length, name).toBeLessThan(LONGEST_RESULT);
      expect(shown, name).not.toMatch(/unexpectedly|\\n\s+at |Maximum call stack/);
      expect((await to.listTools()).length, name).toBeGreaterThan(0);
      for (const file of readdirSync(workspace)) rmSync(join(workspace, file), { recursive: true });
    }
  }
});
