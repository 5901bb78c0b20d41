import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { applyRun, reviewRun } from "../../../src/cli/review.ts";
import type { LocalRuns } from "../../../src/cli/local-runs.ts";
import { endedUnapplied, writeFiles } from "../../runs/proposing.ts";

const LINES = Array.from({ length: 40 }, (_, index) => `line ${index + 1}`);
const edited = (...numbers: number[]): string =>
  `${LINES.map((line, index) => (numbers.includes(index + 1) ? line.toUpperCase() : line)).join("\n")}\n`;

/** A run that has ended, with a renamed file that is not applied, and the commands on it. */
async function renaming() {
  const { service, runId, workspace } = await endedUnapplied({
    before: { "src/old.txt": edited() },
    work: (copy) => writeFiles(copy, { "src/old.txt": null, "lib/new.txt": edited(3, 30) }),
  });
  let said = "";
  const writing = ["stdout", "stderr"] as const;
  const spies = writing.map((stream) =>
    vi.spyOn(process[stream], "write").mockImplementation((text) => {
      said += String(text);
      return true;
    }),
  );
  onTestFinished(() => spies.forEach((spy) => spy.mockRestore()));
  // The commands use nothing else of it.
  const local = {
    runs: service,
    runsCommand: (...words: readonly string[]) => words.join(" "),
  } as unknown as LocalRuns;
  const textAt = (path: string): string | undefined =>
    existsSync(join(workspace, path)) ? readFileSync(join(workspace, path), "utf8") : undefined;
  return { local, runId, textAt, said: () => said };
}

test("a renamed file is shown with both paths", async () => {
  const { local, runId, said } = await renaming();
  expect(await reviewRun(local, runId, {})).toBe(0);
  expect(said()).toMatch(/^lib\/new\.txt {2}renamed from src\/old\.txt, \+2, −2/m);
  expect(said()).toContain("Place 2 of 2");
  expect(said()).toContain(`apply ${runId} --file lib/new.txt`);
});

test.each([
  ["lib/new.txt", edited(3, 30)],
  ["src/old.txt", edited(3, 30)],
  ["lib/new.txt#2", edited(30)],
  ["src/old.txt#1", edited(3)],
])("apply --file %s names it by its new or its old path", async (file, text) => {
  const { local, runId, textAt, said } = await renaming();
  expect(await applyRun(local, runId, { file: [file] })).toBe(0);
  expect([textAt("src/old.txt"), textAt("lib/new.txt")]).toEqual([undefined, text]);
  expect(said()).toContain("Applied 1 file.");
});
