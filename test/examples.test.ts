// @module-tag long
// Each example is a program that starts agents.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, it } from "vitest";

/** The examples check themselves and exit non-zero; what they print is checked here as well. */
const EXAMPLES: Record<string, RegExp> = {
  research: /kept in \/research\/tides\.md/,
  team: /coder wants to run write_file[\s\S]*reviewer: sound/,
  cowork: /I wrote what you allowed/,
};

async function works(name: string, output: RegExp): Promise<void> {
  const { stdout } = await promisify(execFile)(process.execPath, ["examples/run.mjs", name]);
  expect(stdout).toMatch(output);
}

it.each(Object.entries(EXAMPLES))("example %s works", works);
it("example wire works", { tags: "long" }, () => works("wire", /(as expected[\s\S]*){4}/));
