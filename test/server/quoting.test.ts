import fc from "fast-check";
import MarkdownIt, { type Token } from "markdown-it";
import { expect, test } from "vitest";
import { displayName, oneLine } from "../../src/core/text.ts";
import { asText, indented } from "../../src/server/views/quoting.ts";

const text = fc.oneof(
  fc.string(),
  fc.string({ unit: "binary" }),
  fc
    .array(
      fc.constantFrom(
        ...Array.from("![]()<>`*_~|&:/\\@#. ax1"),
        "https://evil.example/?d=1",
        "www.evil.example",
        "me@evil.example",
        "<img src=x>",
        "![p](x)",
        "__init__",
        "[x]: https://evil.example",
        "&lt;",
        "**",
        "\n",
        "\u202e",
        "&#60;img&#62;",
      ),
    )
    .map((parts) => parts.join("")),
);

/** A reader that takes everything for live that any does. */
const reader = new MarkdownIt({ html: true, linkify: true });

/** Kinds of everything in it that is not plain text. */
const live = (tokens: readonly Token[]): string[] =>
  tokens.flatMap(({ type, children }) => {
    const isText = ["paragraph_open", "paragraph_close", "inline", "text"].includes(type);
    return [...(isText ? [] : [type]), ...live(children ?? [])];
  });

test("no text of others becomes Markdown inside of a sentence", () => {
  fc.assert(
    fc.property(text, (given) => {
      const quoted = asText(given);
      expect(live(reader.parse(`The agent "${quoted}" wants to run it.`, {}))).toEqual([]);
      const unquoted = quoted.replace(/\\([\\`*[\]<>~&@(:._])/g, "$1");
      expect(unquoted).toBe(oneLine(displayName(given), 300));
    }),
    { numRuns: 500 },
  );
});

test("an ordinary name, path or sentence has no marks in it", () => {
  for (const name of [
    "researcher (Compare the prices)",
    "/workspace/src/my_file.ts",
    "Edit a-b.md (2 occurrences)",
  ])
    expect(asText(name)).toBe(name);
});

test("a block of text of others is one code block, whatever is in it", () => {
  fc.assert(
    fc.property(text, (given) => {
      const shown = given.replace(/[\r\n]+/g, "\n");
      fc.pre(shown.trim() !== "");
      const blocks = reader.parse(`Shown:\n\n${indented(shown)}\n\nThe end.`, {});
      const kinds = blocks.flatMap(({ type, nesting }) => (nesting < 0 || type === "inline" ? [] : [type]));
      expect(kinds).toEqual(["paragraph_open", "code_block", "paragraph_open"]);
    }),
  );
});
