import { describe, expect, test } from "vitest";
import { BACKENDS } from "./backends.ts";
import { foreignBackend, harness } from "./harness.ts";

describe.each(BACKENDS)("glob over $name", ({ open }) => {
  const files = {
    "/a.md": "",
    "/.hidden.md": "",
    "/src/b.md": "",
    "/src/deep/c.md": "",
    "/src/c.ts": "",
    "/odd\nname.md": "",
  };

  test("absolute paths, sorted, one per line, names escaped", async () => {
    const tools = harness(await open(files));
    expect(await tools.text("glob", { pattern: "**/*.md" })).toBe(
      "/.hidden.md\n/a.md\n/odd\\nname.md\n/src/b.md\n/src/deep/c.md",
    );
    expect(await tools.text("glob", { pattern: "*.md", path: "/src/" })).toBe("/src/b.md");
    expect(await tools.text("glob", { pattern: "{b,c}.[mt]?", path: "src" })).toBe("/src/b.md\n/src/c.ts");
  });

  test("nothing found", async () => {
    const tools = harness(await open(files));
    expect(await tools.text("glob", { pattern: "*.rs" })).toBe(
      "No files found matching pattern '*.rs' in /\n\n[searched only /; to search one of its directories, pass it as path: /src/]",
    );
    expect(await tools.text("glob", { pattern: "**/*.rs" })).toBe(
      "No files found matching pattern '**/*.rs' in /",
    );
    expect(await tools.text("glob", { pattern: "\n", path: "/src" })).toBe(
      "No files found matching pattern '\\n' in /src",
    );
  });

  test.each([
    ["../*", "Path traversal not allowed: ../*"],
    ["~/*", "Path traversal not allowed: ~/*"],
  ])("%s is refused", async (pattern, text) => {
    const tools = harness(await open(files));
    expect(await tools.call("glob", { pattern })).toEqual({
      content: `Error: ${text}`,
      status: "error",
      artifact: { code: "invalid_pattern" },
    });
  });

  test("a pattern that begins with a slash is taken from the root", async () => {
    const tools = harness(await open(files));
    expect(await tools.text("glob", { pattern: "/src/*.md" })).toBe("/src/b.md");
    expect(await tools.text("glob", { pattern: "/*.md" })).toBe("/.hidden.md\n/a.md\n/odd\\nname.md");
    expect(await tools.text("glob", { pattern: "/src/**/*.md", path: "/src" })).toBe(
      "/src/b.md\n/src/deep/c.md",
    );
    expect(await tools.text("glob", { pattern: "!/src/**" })).toBe("/.hidden.md\n/a.md\n/odd\\nname.md");
  });

  test("invalid patterns, and those that lead out of the path, are refused", async () => {
    const tools = harness(await open(files));
    expect(await tools.text("glob", { pattern: "[a" })).toMatch(/^Error: Invalid glob pattern: ./);
    expect(await tools.text("glob", { pattern: "/src/*.md", path: "/src/deep" })).toBe(
      "Error: Invalid glob pattern: '/src/*.md' is absolute; give the directory as path",
    );
  });

  test("at most 1000 lines", async () => {
    const many = Object.fromEntries(
      Array.from({ length: 1003 }, (_, index) => [`/f${String(index).padStart(4, "0")}`, ""]),
    );
    const tools = harness(await open(many));
    const text = await tools.text("glob", { pattern: "*" });
    expect(text.split("\n")).toHaveLength(1002);
    expect(text.endsWith("/f0999\n\n[3 more not shown; narrow the pattern]")).toBe(true);
  });
});

describe("glob", () => {
  test("a search that stopped early, and directories that could not be searched", async () => {
    const result = { files: [{ path: "/a" }], truncated: true, skipped: 2 };
    const tools = harness(foreignBackend({ glob: () => result }));
    expect(await tools.call("glob", { pattern: "*" })).toEqual({
      content:
        "/a\n\n[the search stopped before it was complete; narrow the pattern or path]\n[2 directories could not be searched: permission denied]",
      artifact: { paths: ["/a"], count: 1, truncated: true, skipped: 2 },
    });
  });

  test("a bad pattern does not reach a backend", async () => {
    const tools = harness(foreignBackend({ glob: () => ({ files: [{ path: "/secret" }] }) }));
    expect(await tools.text("glob", { pattern: "../*" })).toBe("Error: Path traversal not allowed: ../*");
  });
});
