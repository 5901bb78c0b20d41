import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { reviewProgram, startReview } from "../proposals/review-program.ts";
import type { ReviewChoice } from "../../src/tools/request.ts";
import { endedUnapplied, reviewOf, writeFiles } from "./proposing.ts";
import { mine, reach, startRun } from "./support.ts";

const BEFORE = { "a.md": "a\n", "b.md": "b\n" };
const work = (copy: string): void => writeFiles(copy, { "a.md": "A\n", "b.md": "B\n" });
const all = { apply: { "a.md": "all", "b.md": "all" } } as const;

test("what was left is applied after the end, and the run has nothing left then", async () => {
  const { service, runId, workspace } = await endedUnapplied({ before: BEFORE, work });
  expect((await mine(service).read.view(runId))?.run.unapplied).toBe(2);
  expect(await mine(service).changes.review(runId, { apply: { "a.md": "all" } }, "test")).toMatchObject({
    ok: true,
    record: { applied: ["a.md"], unapplied: 1 },
  });
  expect(readFileSync(join(workspace, "a.md"), "utf8")).toBe("A\n");
  expect((await mine(service).read.view(runId))?.run.unapplied).toBe(1);
  expect(await mine(service).changes.review(runId, { apply: { "b.md": "all" } }, "test")).toMatchObject({
    ok: true,
  });
  expect(await mine(service).changes.proposed(runId)).toBeUndefined();
  expect(await mine(service).changes.review(runId, all, "test")).toMatchObject({ code: "nothing_proposed" });
});

test("nothing is applied while another run works in the same copy, which then counts for both", async () => {
  let count = 0;
  const { service, runId, workspace } = await endedUnapplied({
    before: BEFORE,
    work: (copy) => writeFiles(copy, { "a.md": `A${(count += 1)}\n`, "b.md": "B\n" }),
  });
  const threadId = (await mine(service).read.view(runId))?.run.threadId ?? "";
  const { id: next } = await startRun(service, "more", { threadId });
  const { id: question } = await reviewOf(service, next);
  expect(await mine(service).changes.review(runId, all, "test")).toMatchObject({ ok: false, code: "open" });
  expect(readFileSync(join(workspace, "a.md"), "utf8")).toBe("a\n");
  await mine(service).requests.answer(
    next,
    { requestId: question, answer: { type: "review", choice: { apply: all.apply } } },
    "test",
  );
  await reach(service, next, "completed");
  expect(readFileSync(join(workspace, "a.md"), "utf8")).toBe("A2\n");
  expect((await mine(service).read.view(runId))?.run.unapplied).toBe(0);
});

test("what was applied counts as changed, once for a renamed file, and nothing else does", async () => {
  const before = {
    "a.md": "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n",
    "old.md": "one\ntwo\nthree\n",
    "no.md": "no\n",
    "c.md": "c\n",
  };
  const { service, runId, workspace } = await endedUnapplied({
    before,
    work: (copy) =>
      writeFiles(copy, {
        "a.md": "A\nb\nc\nd\ne\nf\ng\nh\ni\nJ\n",
        "old.md": null,
        "new.md": "one\ntwo\n3\n",
        "no.md": "NO\n",
        "c.md": "C\n",
      }),
  });
  writeFiles(workspace, { "c.md": "mine\n" });
  const viewed = async () => {
    const { run, filesChanged } = (await mine(service).read.view(runId)) ?? {};
    return { applied: run?.applied, filesChanged };
  };
  expect(await viewed()).toEqual({ applied: {}, filesChanged: [] });
  const review = (choice: ReviewChoice) => mine(service).changes.review(runId, choice, "test");
  expect(await review({ apply: { "a.md": [1] }, refused: { "no.md": "No." } })).toMatchObject({ ok: true });
  expect(await viewed()).toEqual({ applied: { "a.md": "part" }, filesChanged: ["/workspace/a.md"] });
  expect(await review({ apply: { "a.md": "all", "new.md": "all" } })).toMatchObject({ ok: true });
  expect(await viewed()).toEqual({
    applied: { "a.md": "whole", "new.md": "whole" },
    filesChanged: ["/workspace/a.md", "/workspace/new.md"],
  });
});

test("what a process that was killed had begun to apply is completed by whoever looks at it", async () => {
  const { service, runId, workspace } = await endedUnapplied({ before: BEFORE, work });
  const threadId = (await mine(service).read.view(runId))?.run.threadId ?? "";
  const killed = startReview(reviewProgram(), dirname(workspace), threadId, "4");
  await killed.ended;
  expect(killed.text()).toContain("stops");
  const contents = () => Object.keys(BEFORE).map((name) => readFileSync(join(workspace, name), "utf8"));
  expect(contents()).not.toEqual(["A\n", "B\n"]);
  expect(await mine(service).changes.proposed(runId)).toBeUndefined();
  expect(contents()).toEqual(["A\n", "B\n"]);
});

test("of many who apply a change at once, one does, and the others are told so", async () => {
  const { service, runId, workspace } = await endedUnapplied({ before: BEFORE, work });
  const outcomes = await Promise.all(
    Array.from({ length: 5 }, () => mine(service).changes.review(runId, all, "test")),
  );
  expect(outcomes.filter(({ ok }) => ok)).toHaveLength(1);
  expect(readFileSync(join(workspace, "a.md"), "utf8")).toBe("A\n");
  expect((await mine(service).read.view(runId))?.run.unapplied).toBe(0);
});
