import { describe, expect, test } from "vitest";
import type { GrepOptions } from "../../src/backends/backend.ts";
import { BACKENDS } from "./backends.ts";
import { foreignBackend, harness } from "./harness.ts";

describe.each(BACKENDS)("grep over $name", ({ open }) => {
  const files = {
    "/b.md": "x.y\nxay\r\nX.Y\n",
    "/a.ts": "one\nx.y two\n",
    "/deep/c.md": "nothing\n",
    "/deep/d.bin": Uint8Array.from([120, 46, 121, 0]),
  };

  test("literal text by default: files sorted, lines in order", async () => {
    const tools = harness(await open(files));
    expect(await tools.text("grep", { pattern: "x.y" })).toBe("/a.ts:\n  2: x.y two\n/b.md:\n  1: x.y");
  });

  test("the other output modes", async () => {
    const tools = harness(await open(files));
    const search = { pattern: "x", case_sensitive: false };
    expect(await tools.text("grep", { ...search, output_mode: "files_with_matches" })).toBe("/a.ts\n/b.md");
    expect(await tools.text("grep", { ...search, output_mode: "count" })).toBe("/a.ts: 1\n/b.md: 3");
  });

  test("expressions, case, context", async () => {
    const tools = harness(await open(files));
    expect(
      await tools.text("grep", { pattern: "^X.Y$", regex: true, case_sensitive: false, path: "/b.md" }),
    ).toBe("/b.md:\n  1: x.y\n  2: xay\n  3: X.Y");
    expect(await tools.text("grep", { pattern: "xay", context_lines: 1 })).toBe(
      "/b.md:\n  1- x.y\n  2: xay\n  3- X.Y",
    );
  });

  test("glob filters by name at any depth; a path may be one file", async () => {
    const tools = harness(await open(files));
    expect(await tools.text("grep", { pattern: "n", glob: "*.md" })).toBe("/deep/c.md:\n  1: nothing");
    expect(await tools.text("grep", { pattern: "n", glob: null, path: "/a.ts" })).toBe("/a.ts:\n  1: one");
  });

  test("nothing found", async () => {
    const tools = harness(await open(files));
    expect(await tools.text("grep", { pattern: "zzz" })).toBe("No matches found for pattern 'zzz'");
    for (const [pattern, finds] of [
      ["o.e", "with regex: true it matches 1 line, the first in /a.ts:1"],
      ["one|nothing", "with regex: true it matches 2 lines, the first in /a.ts:1"],
      ["\\bzzz.*", "as an expression it matches nothing either"],
      ["one(", "as an expression it cannot be searched"],
    ]) {
      expect(await tools.text("grep", { pattern })).toBe(
        `No matches found for pattern '${pattern}'\n\n[the pattern was searched as literal text; ${finds}]`,
      );
    }
    expect(await tools.text("grep", { pattern: "o.e", glob: "*.md" })).toContain("matches nothing either");
    expect(await tools.text("grep", { pattern: "z+", regex: true })).toBe(
      "No matches found for pattern 'z+'",
    );
  });

  test("the cap is stated, and raising max_count gives the rest", async () => {
    const tools = harness(await open({ "/a": "x\n".repeat(5) }));
    expect(await tools.text("grep", { pattern: "x", max_count: 2 })).toBe(
      "/a:\n  1: x\n  2: x\n\n[stopped at 2 matches; narrow the pattern or path, or raise max_count]",
    );
    expect(await tools.text("grep", { pattern: "x", max_count: 5 })).toBe(
      "/a:\n  1: x\n  2: x\n  3: x\n  4: x\n  5: x",
    );
    const few = harness(await open({ "/a": "x\n".repeat(5) }), { grepMaxCount: 3 });
    expect(await few.text("grep", { pattern: "x" })).toContain("[stopped at 3 matches;");
  });

  test("files_with_matches finds a file behind one with many matches", async () => {
    const tools = harness(await open({ "/a": "x\n".repeat(50), "/b": "x\n" }));
    expect(await tools.text("grep", { pattern: "x", max_count: 5, output_mode: "files_with_matches" })).toBe(
      "/a\n/b",
    );
  });

  test("an expression with a line break says why it matches nothing", async () => {
    const tools = harness(await open(files));
    const text = async (pattern: string) => tools.text("grep", { pattern, regex: true });
    expect(await text(String.raw`x\.y\nxay`)).toContain(
      "[the search reads single lines, in which \\n matches nothing",
    );
    expect(await text(String.raw`zz[^\n]*`)).not.toContain("single lines");
    expect(await text(String.raw`x[^\n]y\ntwo`)).toContain("single lines");
    expect(await text(String.raw`C:\\new`)).not.toContain("single lines");
  });

  test("a long line is shown around its match", async () => {
    const tools = harness(await open({ "/a": `${"-".repeat(5000)}needle${"-".repeat(5000)}\n` }));
    const text = await tools.text("grep", { pattern: "needle" });
    expect(text).toMatch(/^\/a:\n {2}1: …-+needle-+…\n\n\[1 line over 1000 characters shown in part;/);
    expect(text.length).toBeLessThan(1300);
  });

  test.each([
    [{ pattern: "(", regex: true }, /^Error: Invalid regex pattern: ./],
    [{ pattern: "a\nb" }, /^Error: Search pattern contains a line break/],
    [{ pattern: "a", glob: "[" }, /^Error: Invalid glob pattern: ./],
    [{ pattern: "a", glob: "../*" }, /^Error: Path traversal not allowed: \.\.\/\*$/],
  ])("%j fails", async (args, text) => {
    const tools = harness(await open(files));
    const result = await tools.call("grep", args);
    expect(result).toMatchObject({ status: "error", artifact: { code: "invalid_pattern" } });
    expect(result.content).toMatch(text);
  });
});

describe("grep", () => {
  test("a search out of time, and files that were passed over", async () => {
    const result = { matches: [{ path: "/a", line: 1, text: "x" }], truncated: true, skipped: 1 };
    const tools = harness(foreignBackend({ grep: () => result }));
    expect(await tools.call("grep", { pattern: "x" })).toEqual({
      content:
        "/a:\n  1: x\n\n[the search stopped before it was complete; narrow the pattern or path]\n[1 file not searched: too large or not readable]",
      artifact: { matches: [{ path: "/a", line: 1 }], count: 1, truncated: true, skipped: 1 },
    });
  });

  test("a backend that ignores the cap and the length of lines", async () => {
    const matches = Array.from({ length: 5 }, (_, index) => ({
      path: "/a",
      line: index + 1,
      text: `${"-".repeat(3000)}x`,
    }));
    const tools = harness(foreignBackend({ grep: () => ({ matches }) }));
    const text = await tools.text("grep", { pattern: "x", max_count: 2 });
    expect(text.length).toBeLessThan(2400);
    expect(text).toContain("\n\n[2 lines over 1000 characters shown in part;");
    expect(text).toContain("[stopped at 2 matches;");
  });

  test("what a backend is asked", async () => {
    const asked: unknown[] = [];
    const grep = (...args: [string, (string | null)?, (string | null)?, (number | null)?, GrepOptions?]) => {
      const { signal, ...options } = args[4] ?? {};
      asked.push([...args.slice(0, 4), options, signal !== undefined]);
      return { matches: [] };
    };
    const tools = harness(foreignBackend({ grep }));
    await tools.call("grep", { pattern: "x", path: "a/", context_lines: 2 });
    await tools.call("grep", {
      pattern: "x",
      glob: "*.md",
      context_lines: 2,
      output_mode: "count",
      regex: true,
    });
    expect(asked).toEqual([
      ["x", "/a", null, 1000, { regex: false, caseSensitive: true, contextLines: 2 }, true],
      ["x", "/", "*.md", 1000, { regex: true, caseSensitive: true }, true],
    ]);
  });
});
