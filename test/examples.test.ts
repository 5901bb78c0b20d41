import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, it } from "vitest";

/** The examples check themselves and exit non-zero; what they print is checked here as well. */
const EXAMPLES: Record<string, RegExp> = {
  "wire/transcript.mjs": /(as expected[\s\S]*){4}/,
  "research/research.mjs": /kept in \/research\/tides\.md/,
  "team/team.mjs": /coder wants to run write_file[\s\S]*reviewer: sound/,
};

it.each(Object.entries(EXAMPLES))("example %s works", async (file, output) => {
  const { stdout } = await promisify(execFile)(process.execPath, [`examples/${file}`]);
  expect(stdout).toMatch(output);
});
