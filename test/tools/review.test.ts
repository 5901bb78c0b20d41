import { describe, expect, it } from "vitest";
import { answerText, checkAnswer, fieldsOf, requestText } from "../../src/tools/check-answer.ts";
import type { Question, ReviewedFile } from "../../src/tools/request.ts";

const file = (path: string, more: Partial<ReviewedFile> = {}): ReviewedFile => ({
  path,
  change: "edited",
  version: "v",
  added: 2,
  removed: 1,
  places: 2,
  ...more,
});

const question = (
  files: ReviewedFile[],
  more: Partial<Extract<Question, { kind: "review" }>> = {},
): Extract<Question, { kind: "review" }> => ({ kind: "review", files, more: 0, hasBranches: false, ...more });

const MIXED = question([
  file("a.md"),
  file("b.md", { change: "added" }),
  file("conflict.md", { conflict: true }),
  file(".env", { apart: true }),
]);

describe("the fields of a review", () => {
  it("say what each answer applies", () => {
    const [decision, files, message] = fieldsOf(MIXED) ?? [];
    expect(decision).toMatchObject({
      required: true,
      options: ["all", "chosen", "none"],
      labels: [
        "Apply 2 of 4 files",
        "Apply the selected files",
        expect.stringContaining("Apply nothing now"),
      ],
    });
    expect(files).toMatchObject({ many: true, options: ["a.md", "b.md", ".env"] });
    expect(message).toMatchObject({ type: "text" });
  });

  it("offer a branch where the workspace is a repository, and nothing to apply where all is in conflict", () => {
    const only = question([file("a.md", { conflict: true })], { hasBranches: true });
    expect(fieldsOf(only)?.[0]).toMatchObject({ options: ["none"] });
    const one = question([file("a.md")], { hasBranches: true });
    expect(fieldsOf(one)?.[0]).toMatchObject({ options: ["all", "branch", "none"] });
  });

  it("list no files if they are too many for a form", () => {
    const many = question(Array.from({ length: 101 }, (_, index) => file(`f${index}`)));
    expect(fieldsOf(many)?.map(({ name }) => name)).toEqual(["decision", "message"]);
    expect(requestText(many)).toContain("- and 61 files more");
  });
});

it("the text of a review says which file was renamed", () => {
  const renamed = question([file("lib/new.md", { change: "renamed", from: "src/old.md" })]);
  expect(requestText(renamed)).toContain("- lib/new.md (renamed from src/old.md, +2 −1)");
});

describe("the answer of a form", () => {
  it.each([
    [{ decision: "all" }, { apply: { "a.md": "all", "b.md": "all" } }],
    [{ decision: "chosen", files: [".env"] }, { apply: { ".env": "all" } }],
    [
      { decision: "none", message: " Later " },
      { apply: {}, message: "Later" },
    ],
  ])("%j", (values, choice) => {
    expect(checkAnswer(MIXED, { type: "fields", values })).toEqual({
      ok: true,
      answer: { type: "review", choice },
    });
  });

  it.each([
    [{}, "missing"],
    [{ decision: "chosen" }, "Select the files"],
    [{ decision: "chosen", files: ["conflict.md"] }, "must be one or more of"],
    [{ decision: "branch", branch: "x" }, "must be one of"],
  ])("refuses %j", (values: Record<string, string | string[]>, problem) => {
    expect(checkAnswer(MIXED, { type: "fields", values })).toMatchObject({
      ok: false,
      message: expect.stringContaining(problem),
    });
  });
});

describe("a choice", () => {
  it.each([
    [{ apply: { "other.md": "all" as const } }, "has no file 'other.md'"],
    [{ apply: { "a.md": [2] } }, "has changes 1 to 2"],
    [{ apply: { "a.md": [] } }, "has changes 1 to 2"],
    [{ apply: { "conflict.md": "all" as const }, fit: ["conflict.md"] }, "at once"],
    [{ apply: { "a.md": "all" as const }, branch: "x" }, "no branch can be made"],
    [{ apply: {}, message: "x".repeat(5000) }, "at most 4000"],
    [{ apply: {}, refused: JSON.parse('{"__proto__":"x"}') as Record<string, string> }, "has no file"],
  ])("%j is refused", (choice, problem) => {
    expect(checkAnswer(MIXED, { type: "review", choice })).toMatchObject({
      ok: false,
      message: expect.stringContaining(problem),
    });
  });

  it("stands in the journal in a few words", () => {
    const choice = { apply: { "a.md": [1] }, refused: { "b.md": "on purpose" }, message: "Use capitals." };
    expect(answerText({ type: "review", choice })).toBe(
      "apply 1 file; refuse b.md: on purpose; Use capitals.",
    );
  });
});
