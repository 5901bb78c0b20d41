import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseFrontMatter } from "../../../src/agent/messages/front-matter.ts";

const read = (...lines: string[]) => parseFrontMatter(["---", ...lines, "---", "body"].join("\n"));

describe("front matter that is not YAML", () => {
  it.each<[string, string[], object]>([
    ["a colon in a text", ["name: a", "description: Use when: x"], { description: "Use when: x" }],
    [
      "lines without indentation",
      ["description: First.", "Triggers: b", "and that.", 'user: "hi"', "tools: Read, Grep"],
      { description: 'First. Triggers: b and that. user: "hi"', tools: "Read, Grep" },
    ],
    ["tabs", ["name: a", "\tdescription:\tb: c", "\t\tmore"], { name: "a", description: "b: c more" }],
    [
      "characters that YAML reserves",
      ["name: @a", "description: `x` runs", "tools: *", "note: [beta] y", "hint: %d"],
      { name: "@a", description: "`x` runs", tools: "*", note: "[beta] y", hint: "%d" },
    ],
    ["a name twice: the later counts", ["name: a", "name: b"], { name: "b" }],
    [
      "lists, maps and block texts beside a broken field",
      [
        "x: a: b",
        "tools: [Read, Grep]",
        "more:",
        "- c",
        "meta:",
        "  v: 1",
        "description: >-",
        "  one: two",
        "three",
      ],
      { x: "a: b", tools: ["Read", "Grep"], more: ["c"], meta: { v: 1 }, description: "one: two three" },
    ],
    [
      "quotes in quotes",
      [`description: 'it's: this'`, `note: "a "b": c"`],
      { description: "it's: this", note: 'a "b": c' },
    ],
    ["a number sign", ["description: C# when: a #tag"], { description: "C# when: a #tag" }],
    ["comments", ["name: a: b", "# description: no"], { name: "a: b" }],
    ["an empty field", ["name: a: b", "color:"], { color: null }],
    ["Windows line ends", ["name: a: b\r", "model: opus\r"], { name: "a: b", model: "opus" }],
    [
      "an example longer than YAML may be",
      ["name: a", `description: ${"x: y ".repeat(2000)}`],
      { description: "x: y ".repeat(2000).trim() },
    ],
  ])("is read line by line: %s", (_what, lines, fields) => {
    const found = read(...lines);
    expect(found).toMatchObject({ fields, body: "body" });
    expect(found?.notice).toMatch(/; it was read line by line$/);
  });

  it("may have a byte order mark, and blanks behind its lines", () => {
    expect(parseFrontMatter("\uFEFF--- \t\r\nname: a: b\r\n---  \r\nbody")).toMatchObject({
      fields: { name: "a: b" },
      body: "body",
    });
  });

  it("without any field says what is wrong with it", () => {
    expect(read(": [")).toEqual({
      fields: undefined,
      problem: expect.stringContaining("is not YAML"),
      body: "body",
    });
  });

  it("never throws, and gives every text that stands alone in its line", () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const line = text.replace(/[\r\n]/g, " ");
        const found = read("name: broken: x", `description: ${line}`, "tools: Read");
        expect(found?.fields).toMatchObject({ name: "broken: x", tools: "Read" });
      }),
    );
  });
});

it("front matter that is YAML is left to its parser", () => {
  expect(read("name: a", "description: b # no")).toEqual({
    fields: { name: "a", description: "b" },
    body: "body",
  });
});
