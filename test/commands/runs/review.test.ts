import { mine } from "../../runs/support.ts";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { applyRun, reviewRun } from "../../../src/cli/review.ts";
import type { LocalRuns } from "../../../src/cli/local-runs.ts";
import { type Files, endedUnapplied, writeFiles } from "../../runs/proposing.ts";
import { filesIn } from "../../support/files-in.ts";

const LINES = Array.from({ length: 40 }, (_, index) => `line ${index + 1}`);
const edited = (...numbers: number[]): string =>
  `${LINES.map((line, index) => (numbers.includes(index + 1) ? line.toUpperCase() : line)).join("\n")}\n`;

/** A run that has ended with changes that are not applied, and the commands on it. */
async function ended(before: Files, after: Files) {
  const { service, runId, workspace, copy } = await endedUnapplied({
    before,
    work: (place) => writeFiles(place, after),
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
    runs: mine(service),
    config: { dataDir: filesIn() },
    runsCommand: (...words: readonly string[]) => words.join(" "),
  } as unknown as LocalRuns;
  const textAt = (path: string): string | undefined =>
    existsSync(join(workspace, path)) ? readFileSync(join(workspace, path), "utf8") : undefined;
  const propose = (files: Files): void => writeFiles(copy, files);
  return { local, service, runId, textAt, propose, said: () => said };
}

const renaming = () =>
  ended({ "src/old.txt": edited() }, { "src/old.txt": null, "lib/new.txt": edited(3, 30) });

const digestIn = (said: string): string => /--digest ([\da-f]+)/.exec(said)?.[1] ?? "none";

test("a renamed file is shown with both paths", async () => {
  const { local, runId, said } = await renaming();
  expect(await reviewRun(local, runId, {})).toBe(0);
  expect(said()).toMatch(/^lib\/new\.txt {2}renamed from src\/old\.txt, \+2, −2/m);
  expect(said()).toContain("Change 2 of 2");
  expect(said()).toContain(`apply ${runId} --file lib/new.txt`);
});

test.each([
  ["lib/new.txt", edited(3, 30)],
  ["src/old.txt", edited(3, 30)],
  ["lib/new.txt#2", edited(30)],
  ["src/old.txt#1", edited(3)],
])("apply --file %s names it by its new or its old path", async (file, text) => {
  const { local, runId, textAt, said } = await renaming();
  await reviewRun(local, runId, {});
  expect(await applyRun(local, runId, { file: [file] })).toBe(0);
  expect([textAt("src/old.txt"), textAt("lib/new.txt")]).toEqual([undefined, text]);
  expect(said()).toContain("Applied 1 file.");
});

const TWO = { "a.md": "A\n", "b.md": "B\n" };

test("a script applies a change that was not shown here only if it names the run by its id", async () => {
  const { local, runId, textAt, said } = await ended({}, TWO);
  expect(await applyRun(local, runId, {}, "last")).toBe(1);
  expect(said()).toContain(`the change was not shown here. To see it: review ${runId}`);
  expect(await applyRun(local, runId, { digest: "0123456789ab" })).toBe(1);
  expect(textAt("a.md")).toBeUndefined();
  expect(await applyRun(local, runId, {})).toBe(0);
  expect(textAt("a.md")).toBe("A\n");
});

test.each([["the review that was shown last"], ["a digest"]])(
  "by %s exactly that change is applied, and no other one",
  async (by) => {
    const { local, runId, textAt, propose, said } = await ended({}, TWO);
    await reviewRun(local, runId, {});
    const flags = by === "a digest" ? { digest: digestIn(said()) } : {};
    propose({ "b.md": "unseen\n" });
    expect(await applyRun(local, runId, flags)).toBe(1);
    expect(said()).toContain("Nothing was applied: b.md changed since it was shown.");
    expect(textAt("a.md")).toBeUndefined();
    propose({ "b.md": "B\n" });
    expect(await applyRun(local, runId, flags)).toBe(0);
    expect([textAt("a.md"), textAt("b.md")]).toEqual(["A\n", "B\n"]);
  },
);

test("a digest alone is enough where the review was shown to somebody else", async () => {
  const { local, runId, textAt, said } = await ended({}, TWO);
  await reviewRun(local, runId, { json: true });
  const { digest } = JSON.parse(said()) as { digest: string };
  expect(await applyRun(local, runId, {}, "last")).toBe(1);
  expect(await applyRun(local, runId, { digest })).toBe(0);
  expect(textAt("b.md")).toBe("B\n");
});

test("what a partial review left is applied, what it refused is not", async () => {
  const { local, runId, textAt, said } = await ended({}, { ...TWO, "c.md": "C\n", "d.md": "D\n" });
  await reviewRun(local, runId, {});
  expect(await applyRun(local, runId, { file: ["a.md"] })).toBe(0);
  expect(await applyRun(local, runId, { refuse: ["b.md"], message: "Not this one." })).toBe(0);
  expect(said()).toContain("Rejected 1 file. 3 files left.");
  expect(await applyRun(local, runId, {})).toBe(0);
  expect(said()).toContain("Applied 2 files. 1 file left.");
  expect(["a.md", "b.md", "c.md", "d.md"].map(textAt)).toEqual(["A\n", undefined, "C\n", "D\n"]);
  expect(await applyRun(local, runId, {})).toBe(1);
  expect(said()).toContain("Nothing was applied: the remaining files were rejected");
});

test("files that are read to their end are compared once, however many they are", async () => {
  const { local, runId, said } = await ended({}, { "a.md": "A\n", "b.md": "B\n", "c.md": "C\n" });
  const read = vi.spyOn(local.runs.changes, "proposed");
  expect(await reviewRun(local, runId, { file: ["a.md", "b.md", "c.md"] })).toBe(0);
  expect(read.mock.calls.map(([, whole]) => whole)).toEqual([undefined, ["a.md", "b.md", "c.md"]]);
  for (const text of ["+A", "+B", "+C"]) expect(said()).toContain(text);
});

test("a long file is applied once it was shown to its end", async () => {
  const long = `${"a long line of a long text\n".repeat(20_000)}THE END\n`;
  const { local, runId, textAt, said, propose } = await ended({}, { "fix.md": "fix\n", "long.md": long });
  await reviewRun(local, runId, {});
  expect(said()).not.toContain("THE END");
  expect(await applyRun(local, runId, { file: ["long.md"] })).toBe(1);
  expect(said()).toContain(`Read it first: review ${runId} --file long.md`);
  await reviewRun(local, runId, { file: ["long.md"] });
  expect(said()).toContain("THE END");
  propose({ "long.md": `${long}unseen\n` });
  expect(await applyRun(local, runId, { file: ["long.md"] })).toBe(1);
  propose({ "long.md": long });
  expect(await applyRun(local, runId, {})).toBe(0);
  expect([textAt("fix.md"), textAt("long.md")]).toEqual(["fix\n", long]);
});
