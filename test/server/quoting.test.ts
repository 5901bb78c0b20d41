import fc from "fast-check";
import { Lexer, type Token } from "marked";
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

/** Kinds of everything in it that is not plain text. */
const live = (tokens: readonly Token[]): string[] =>
  tokens.flatMap((token) => {
    const inner = "tokens" in token && Array.isArray(token.tokens) ? live(token.tokens) : [];
    return ["paragraph", "text", "escape", "space"].includes(token.type) ? inner : [token.type, ...inner];
  });

const lexed = (markdown: string): Token[] => new Lexer({ gfm: true }).lex(markdown);

test("no text of others becomes Markdown inside of a sentence", () => {
  fc.assert(
    fc.property(text, (given) => {
      const quoted = asText(given);
      expect(live(lexed(`The agent "${quoted}" wants to run it.`))).toEqual([]);
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
      const blocks = lexed(`Shown:\n\n${indented(shown)}\n\nThe end.`).filter(({ type }) => type !== "space");
      expect(blocks.map(({ type }) => type)).toEqual(["paragraph", "code", "paragraph"]);
    }),
  );
});
