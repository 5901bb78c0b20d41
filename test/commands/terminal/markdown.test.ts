import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { shownMarkdown } from "../../../src/cli/terminal/markdown.ts";
import { colorsFor, displayWidth } from "../../../src/cli/terminal/text.ts";

const plain = colorsFor({}, {});
const shown = (markdown: string, columns = 61): string[] =>
  shownMarkdown(markdown, { isTTY: true, columns }, plain).split("\n");

describe("shownMarkdown", () => {
  it("shows headings, lists, code, quotes and links for reading", () => {
    const markdown = [
      "# Result",
      "",
      "It is **good**, see `a.md` and [the docs](https://example.com/docs). <https://example.com>",
      "A line goes on.  \nAnother begins.",
      "",
      "- one",
      "  with more",
      "  - inner",
      "- [x] done",
      "",
      "3. third",
      "4. fourth",
      "",
      "```js",
      "const  a = 1; // as it is",
      "```",
      "> quoted",
      "",
      "---",
      "<b>html</b>",
    ].join("\n");
    expect(shown(markdown)).toEqual([
      "Result",
      "",
      "It is good, see `a.md` and the docs",
      "(https://example.com/docs). https://example.com A line goes",
      "on.",
      "Another begins.",
      "",
      "• one with more",
      "  • inner",
      "☑ done",
      "",
      "3. third",
      "4. fourth",
      "",
      "    const  a = 1; // as it is",
      "",
      "│ quoted",
      "",
      "─".repeat(40),
      "",
      "<b>html</b>",
    ]);
  });

  it("wraps the cells of a table, and lists them where there is no room", () => {
    const table =
      "| name | what it is |\n|---|--:|\n| 漢字 | words that are wrapped in here |\n| b | **c** |";
    expect(shown(table, 31)).toEqual([
      "name │              what it is",
      "─────┼────────────────────────",
      "漢字 │  words that are wrapped",
      "     │                 in here",
      "b    │                       c",
    ]);
    const cells = "name: 漢字|what it is:|words that|are wrapped|in here||name: b|what it is:|c";
    expect(shown(table, 13)).toEqual(cells.split("|"));
  });

  it("gives a pipe the text as it is, and shows control and direction characters as escapes", () => {
    const text = "# T\r\n\u001b[31mred\u202e\u0007";
    expect(shownMarkdown(text, {}, plain)).toBe("# T\n\\u001b[31mred\\u202e\\u0007");
    expect(shown(text).join("\n")).toBe("T\n\n\\u001b[31mred\\u202e\\u0007");
  });

  it("uses colours where it may", () => {
    const colors = colorsFor({ isTTY: true }, {});
    const text = shownMarkdown("# A\n\n**b** `c`", { isTTY: true, columns: 60 }, colors);
    expect(text).toBe(`${colors.bold(colors.cyan("A"))}\n\n${colors.bold("b")} ${colors.cyan("c")}`);
  });

  it("shows what nests more deeply than can be read as it is", () => {
    const deep = `${">".repeat(50_000)} a`;
    expect(shown(deep).join("\n")).toContain(">>>>");
  });

  it("loses no word of any text, and writes no control character", () => {
    const word = fc.stringMatching(/^[a-z]{1,12}$/);
    const mark = fc.constantFrom(
      "# ",
      "- ",
      "1. ",
      "> ",
      "**",
      "_",
      "`",
      "~~",
      "| ",
      "\n",
      "\n\n",
      "    ",
      "![",
      "](x)",
    );
    fc.assert(
      fc.property(
        fc.array(fc.oneof(word, mark, fc.constant(" "))),
        fc.integer({ min: 20, max: 90 }),
        (parts, columns) => {
          const words = parts.filter((part) => /^[a-z]+$/.test(part));
          const text = shown(parts.join(" "), columns).join(" ");
          for (const each of words) expect(text).toContain(each);
        },
      ),
    );
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        expect(shown(text).join("")).not.toMatch(/[^\P{Cc}\t]/u);
      }),
    );
  });

  it("wraps paragraphs to the terminal", () => {
    fc.assert(
      fc.property(
        fc.array(fc.stringMatching(/^[a-z]{1,9}$/)),
        fc.integer({ min: 20, max: 90 }),
        (words, columns) => {
          for (const line of shown(words.join(" "), columns))
            expect(displayWidth(line)).toBeLessThan(columns);
        },
      ),
    );
  });

  it("shows a text that is too long as it was written", () => {
    const text = "**a** ".repeat(20_000).trim();
    expect(shown(text)).toEqual([text]);
  });

  it("reads marks that do not pair up", () => {
    expect(shown("**a* ".repeat(20_000)).join(" ").match(/a/g)).toHaveLength(20_000);
  });
});
