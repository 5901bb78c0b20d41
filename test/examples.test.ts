// @module-tag long
// Each example is a program that starts agents.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { nodeWithSqlite } from "./support/node-with-sqlite.ts";

/** The examples check themselves and exit non-zero; what they print is checked here as well. */
const EXAMPLES: Record<string, RegExp> = {
  research: /kept in \/research\/tides\.md/,
  team: /coder wants to run write_file[\s\S]*reviewer: sound/,
  cowork: /I wrote what you allowed/,
  langchain: /asked: .* write_file[\s\S]*app\.js:1/,
  langgraph: /the stream shows: files, messages, structuredResponse, todos\n[\s\S]*note is in/,
};

async function works(name: string, output: RegExp): Promise<void> {
  const { stdout } = await promisify(execFile)(process.execPath, ["examples/run.mjs", name]);
  expect(stdout).toMatch(output);
}

it.each(Object.entries(EXAMPLES))("example %s works", works);
it("example wire works", { tags: "long" }, () => works("wire", /(as expected[\s\S]*){4}/));

it(
  "example ai-sdk works, on the Node that its packages ask for",
  { tags: ["ai-sdk", "node22"] },
  async () => {
    const { stdout } = await promisify(execFile)(nodeWithSqlite() ?? "", ["examples/ai-sdk/agent.mjs"]);
    expect(stdout).toMatch(/run: working[^]*asked: .* write_file[^]*run: completed[^]*app\.js:1/);
  },
);
