import { describe, expect, test } from "vitest";
import { BACKENDS } from "./backends.ts";
import { foreignBackend, harness, stateBackend } from "./harness.ts";

describe.each(BACKENDS)("ls over $name", ({ open }) => {
  test("lists one directory by path, directories with a slash", async () => {
    const tools = harness(await open({ "/b.md": "12345", "/a/x.md": "1", "/a/y.md": "1" }));
    expect(await tools.text("ls", {})).toBe("/a/ (directory)\n/b.md (5 bytes)");
    expect(await tools.text("ls", { path: "/a/" })).toBe("/a/x.md (1 bytes)\n/a/y.md (1 bytes)");
  });

  test("tells times when asked", async () => {
    const tools = harness(await open({ "/b.md": "12345", "/a/x.md": "1" }));
    expect(await tools.text("ls", { times: true })).toMatch(
      /^\/a\/ \(directory\)\n\/b\.md \(5 bytes, modified \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\)$/,
    );
  });

  test("lists a file given by its path", async () => {
    const tools = harness(await open({ "/a/x.md": "12" }));
    expect(await tools.text("ls", { path: "a/x.md" })).toBe("/a/x.md (2 bytes)");
  });

  test("an empty root", async () => {
    expect(await harness(await open()).text("ls", { path: "/" })).toBe("No files found in /");
  });

  test("a missing directory", async () => {
    const tools = harness(await open({ "/a.md": "" }));
    expect(await tools.call("ls", { path: "/nope/" })).toEqual({
      content: "Error: Directory '/nope' not found",
      status: "error",
      artifact: { code: "not_found" },
    });
  });

  test("control characters in names are shown escaped", async () => {
    const tools = harness(await open({ "/a\nb.md": "1", "/c\u001b[31m/d": "1" }));
    const lines = (await tools.text("ls", {})).split("\n");
    expect(lines).toHaveLength(2);
    expect(lines[0]).toBe("/a\\nb.md (1 bytes)");
    expect(lines[1]).toBe("/c\\u001b[31m/ (directory)");
    expect(await tools.text("ls", { path: "/no\npe" })).toBe("Error: Directory '/no\\npe' not found");
  });
});

describe("ls", () => {
  test("the artifact carries the entries", async () => {
    const tools = harness(stateBackend({ "/a.md": "1" }));
    expect((await tools.call("ls", {})).artifact).toMatchObject({
      path: "/",
      entries: [{ path: "/a.md", size: 1 }],
      count: 1,
      skipped: 0,
    });
  });

  test("entries without size or time, and entries that could not be read", async () => {
    const files = [
      { path: "/a" },
      { path: "/b", size: 3 },
      { path: "/c", modified_at: "2026-01-01T00:00:00.000Z" },
    ];
    const full = harness(foreignBackend({ ls: () => ({ files, skipped: 2 }) }));
    expect(await full.text("ls", { times: true })).toBe(
      "/a\n/b (3 bytes)\n/c (modified 2026-01-01T00:00:00.000Z)\n\n[2 entries not listed: permission denied, or a name that no path can express]",
    );
    const empty = harness(foreignBackend({ ls: () => ({ files: [], skipped: 1 }) }));
    expect(await empty.text("ls", {})).toBe(
      "No files found in /\n\n[1 entry not listed: permission denied, or a name that no path can express]",
    );
  });

  test("pathOf gives the normalised path", () => {
    const tools = harness(stateBackend(), { allowedPrefixes: ["/data/"] });
    expect(tools.pathOf("ls", { path: "data//x/./" })).toBe("/data/x");
    expect(tools.pathOf("ls", { path: "/data/../etc" })).toBeUndefined();
    expect(tools.pathOf("ls", { path: "/etc" })).toBeUndefined();
  });
});

describe("paths", () => {
  const reads = ["ls", "read_file", "write_file", "edit_file", "glob", "grep", "delete"] as const;
  const rest = { pattern: "x", content: "c", old_string: "o", new_string: "n" };
  const tools = harness(stateBackend({ "/data/a": "x" }), { allowedPrefixes: ["/data/"] });
  const callWith = async (name: string, path: string) => {
    const known = Object.keys(tools.tool(name).schema.shape);
    const key = known.includes("file_path") ? "file_path" : "path";
    const others = Object.entries(rest).filter(([other]) => known.includes(other));
    return tools.call(name, { [key]: path, ...Object.fromEntries(others) });
  };

  test.each(reads)("%s refuses what is not a path inside", async (name) => {
    for (const [path, text] of [
      ["", "Path must be a non-empty string"],
      [" ", "Path must be a non-empty string"],
      ["/data/a\0", "Path contains a NUL character"],
      ["../etc/passwd", "Path traversal not allowed: ../etc/passwd"],
      ["/data/..\\x", "Path traversal not allowed: /data/..\\x"],
      ["~/x", "Path traversal not allowed: ~/x"],
      ["C:\\Users\\file", "Windows absolute paths are not supported: C:\\Users\\file"],
      ["/etc/f.txt", 'Path must start with one of ["/data/"]: /etc/f.txt'],
      ["/etc/\n", 'Path must start with one of ["/data/"]: /etc/\\n'],
      ["/data/\ud83d", "Path contains half of a surrogate pair: /data/\\ud83d"],
    ] as const) {
      expect(await callWith(name, path)).toEqual({
        content: `Error: ${text}`,
        status: "error",
        artifact: { code: "invalid_path" },
      });
    }
  });
});
