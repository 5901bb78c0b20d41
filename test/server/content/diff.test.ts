import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { renderDiff, renderDiffCounts } from "../../../src/server/views/content/diff.ts";
import { fileDiff } from "../../../src/tools/diff-preview.ts";
import { attempts } from "../../support/effort.ts";
import { parsed } from "./parsed.ts";

/** Rows as `old new sign code`, with [changed words] and the marks of what cannot be seen. */
function rows(diff: string, path = "/a.txt"): string[] {
  const html = renderDiff(diff, { label: "l", path }).text;
  return [...html.matchAll(/<tr class="(\w+)">(.*?)<\/tr>/gs)].map(([, kind = "", row = ""]) => {
    const cells = [...row.matchAll(/<td[^>]*>(.*?)<\/td>/gs)].map(
      ([, cell = ""]) => parsed(cell.replaceAll("<mark>", "⟦").replaceAll("</mark>", "⟧")).text,
    );
    return kind === "gap" ? `~ ${cells.join("")}` : cells.join("|");
  });
}
const diffOf = (before: string | undefined, after: string): string =>
  fileDiff({ path: "/a.txt", before, after }).diff;
const numbered = (from: number, to: number): string =>
  Array.from({ length: to - from + 1 }, (_, index) => `line ${from + index}\n`).join("");

describe("rows", () => {
  test("have both numbers, a sign and the code; what is not shown is told", () => {
    const before = numbered(1, 40);
    const after = before.replace("line 12\n", "line twelve\nnew\n").replace("line 30\n", "");
    expect(rows(diffOf(before, after))).toEqual([
      "~ Lines 1–8 are unchanged",
      "9|9||line 9",
      "10|10||line 10",
      "11|11||line 11",
      "12||−|line ⟦12⟧",
      "|12|+|line ⟦twelve⟧",
      "|13|+|new",
      "13|14||line 13",
      "14|15||line 14",
      "15|16||line 15",
      "~ Lines 16–26 are unchanged",
      "27|28||line 27",
      "28|29||line 28",
      "29|30||line 29",
      "30||−|line 30",
      "31|31||line 31",
      "32|32||line 32",
      "33|33||line 33",
    ]);
  });

  test("lead to what is not shown, where that is known", () => {
    const before = numbered(1, 40);
    const after = before.replace("line 12\n", "line twelve\nnew\n").replace("line 30\n", "");
    const links = (diff: string): string[] =>
      [
        ...renderDiff(diff, { label: "l", path: "/a", lines: "/x?a=1" }).text.matchAll(/href="(\/[^"]*)"/g),
      ].map(([, address = ""]) => address.replaceAll("&#38;", "&"));
    expect(links(diffOf(before, after))).toEqual([
      "/x?a=1&old=1&new=1&count=8",
      "/x?a=1&old=16&new=17&count=11",
      "/x?a=1&old=34&new=34&count=0",
    ]);
    expect(links(diffOf(numbered(1, 9), `first\n${numbered(1, 9)}`))).toEqual(["/x?a=1&old=4&new=5&count=0"]);
    expect(links("@@ -5,2 +4,0 @@\n-a\n-b")).toEqual(["/x?a=1&old=1&new=1&count=4"]);
    expect(links("--- /a\n+++ /a\n@@ one place @@\n-a\n+b")).toEqual([]);
    expect(links(diffOf(undefined, "a\nb"))).toEqual([]);
  });

  test("of a new file, and of one that ends without a line break", () => {
    expect(rows(diffOf(undefined, "a\nb"))).toEqual(["|1|+|a", "|2|+|b no line break at the end"]);
    expect(rows(diffOf("a", "a\n"))).toEqual(["1||−|a no line break at the end", "|1|+|a"]);
  });

  test("show tabs and trailing blanks of changed lines, and what hides", () => {
    expect(rows(diffOf("\tx \n", "\tx \n\ty \t\n\u202ez\u200b\r\u0007\n"))).toEqual([
      "1|1||\tx ",
      "|2|+|→\ty·→\t",
      "|3|+|\\u202ez\\u200b\\r\\u0007",
    ]);
  });

  test("without numbers where a diff has none, and behind the place where it was cut", () => {
    expect(rows("--- /a\n+++ /a\n@@ one place @@\n-a\n+b")).toEqual(["~ one place", "||−|a", "||+|b"]);
    expect(rows("@@ -1,9 +1,9 @@\n a\n[… 5 of 9 characters not shown …]\n-c")).toEqual([
      "1|1||a",
      "~ … 5 of 9 characters not shown …",
      "||−|c",
    ]);
    expect(rows("@@ -1,2 +1,2 @@\n a\n[diff cut: 2 lines more not shown]")).toEqual([
      "1|1||a",
      "~ 2 more lines are not shown",
    ]);
    expect(rows("Create /x.png (image/png, 12 bytes)")).toEqual(["~ Create /x.png (image/png, 12 bytes)"]);
    expect(rows("--- /a\n+++ /a\n[content unchanged]")).toEqual(["~ content unchanged"]);
  });
});

describe("changed words", () => {
  test("are marked where most of a line stayed", () => {
    expect(
      rows(diffOf("await send(a, now());\n", "await send(a, now()).catch((error) => report(error));\n")),
    ).toEqual(["1||−|await send(a, now());", "|1|+|await send(a, now())⟦.catch((error) => report(error))⟧;"]);
  });

  test("are not where a line was replaced, or nothing stands against it", () => {
    expect(rows(diffOf("one two three\n", "a wholly other line here\n"))).toEqual([
      "1||−|one two three",
      "|1|+|a wholly other line here",
    ]);
    expect(rows("@@ -1,1 +1,1 @@\n+one two\n-one three")).toEqual(["|1|+|one two", "1||−|one three"]);
  });
});

describe("long diffs", () => {
  test("fold, and as text when they are huge", () => {
    const long = renderDiff(diffOf(undefined, numbered(1, 500)), { label: "l", path: "/a" }).text;
    const [open = "", folded = ""] = long.split("<details");
    expect([open.split("<tr").length - 1, folded.split("<tr").length - 1]).toEqual([200, 300]);
    expect(folded).toContain("Show 300 more lines");
    const lines = Array.from({ length: 6000 }, (_, index) => `+line ${index}`).join("\n");
    const huge = parsed(renderDiff(`@@ -0,0 +1,6000 @@\n${lines}`, { label: "l", path: "/a" }).text);
    expect(huge.used).not.toContain("table");
    expect(huge.text).toContain(lines);
  });

  test("of long lines and many words lose nothing", () => {
    const [before, after] = ["a b ".repeat(2000), "b a ".repeat(2000)];
    const shown = rows(`@@ -1,1 +1,1 @@\n-${before}c\n+${after}c`);
    expect(shown).toEqual([`1||−|${before}c`, `|1|+|${after}c`]);
  });
});

test("whatever a file holds, a diff of it is rows of our own elements that hold it", () => {
  const line = fc.oneof(
    fc.constantFrom(
      "",
      " ",
      "a b",
      "a c",
      "--- /x",
      "+++ /x",
      "@@ -1 +1 @@",
      "\\ x",
      "</td><script>alert(1)</script>",
      "<!--",
      "<mark>",
      "&lt;",
    ),
    fc.string({ unit: "grapheme", maxLength: 6 }),
  );
  const file = fc.array(line, { maxLength: 8 }).map((lines) => lines.map((each) => `${each}\n`).join(""));
  fc.assert(
    fc.property(file, file, fc.constantFrom("/a.ts", "/a.html", "/a.md", "/a"), (before, after, path) => {
      const diff = fileDiff({ path, before, after }).diff;
      const [, bar = "", shown = ""] =
        /^([^]*<p class="diff-bar">[^]*?<\/p>)([^]*)$/.exec(
          renderDiff(diff, { label: '"><script>', path }).text,
        ) ?? [];
      const { used, errors } = parsed(shown);
      // The bar has the whole text for its copy button, in an attribute.
      expect(bar.match(/<\w+/g)?.filter((tag) => !/^<(?:p|span|button|svg|use)$/.test(tag))).toEqual([]);
      expect(bar.split("<button").length).toBe(2);
      expect(used.map((each) => each.split("[")[0]).filter((tag) => !TAGS.has(tag ?? ""))).toEqual([]);
      expect(errors).toEqual([]);
      const count = (kind: RegExp) => rows(diff, path).filter((row) => kind.test(row)).length;
      const { added, removed } = fileDiff({ path, before, after });
      expect([count(/^\|\d+\|\+/), count(/^\d+\|\|−/)]).toEqual([added, removed]);
    }),
    attempts(500),
  );
});

const TAGS = new Set("diff-text table colgroup col tbody tr td span mark".split(" "));

test("counts", () => {
  expect(parsed(renderDiffCounts({ added: 3, removed: 0 }).text).text).toBe("+3 −0");
});
