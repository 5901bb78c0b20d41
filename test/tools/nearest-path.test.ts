import { describe, expect, test } from "vitest";
import { CompositeBackend } from "../../src/backends/composite/composite.ts";
import { harness, stateBackend } from "./harness.ts";

const FILES = {
  "/README.md": "# Title",
  "/src/main.ts": "main()",
  "/src/deep/options.ts": "none",
};

/** The server's tree: scratch space, and the user's files in a mount. */
const tree = () =>
  new CompositeBackend(stateBackend({ "/plan.md": "1. read" }), { "/workspace/": stateBackend(FILES) });

describe("a path that does not exist", () => {
  test.each([
    ["README.md", "/workspace/README.md"],
    ["/src/main.ts", "/workspace/src/main.ts"],
    ["/workspace/scr/main.ts", "/workspace/src/main.ts"],
    ["/workspace/readme.md", "/workspace/README.md"],
    ["/home/me/project/src/deep/options.ts", "/workspace/src/deep/options.ts"],
    ["/workspace/src/options.ts", undefined],
    ["/nothing/like/it", undefined],
  ])("%s", async (path, nearest) => {
    const tools = harness(tree());
    const suggested = nearest === undefined ? "not found" : `not found. Did you mean ${nearest}?`;
    const shown = path.startsWith("/") ? path : `/${path}`;
    const file = `Error: File '${shown}' ${suggested}`;
    expect(await tools.text("read_file", { file_path: path })).toBe(file);
    expect(await tools.text("edit_file", { file_path: path, old_string: "a", new_string: "b" })).toBe(file);
    expect(await tools.text("delete", { file_path: path })).toBe(file);
    expect(await tools.text("ls", { path })).toBe(`Error: Directory '${shown}' ${suggested}`);
    expect(await tools.text("grep", { pattern: "a", path })).toBe(`Error: '${shown}' ${suggested}`);
  });

  test("the code stays for programs", async () => {
    const { artifact } = await harness(tree()).call("read_file", { file_path: "/README.md" });
    expect(artifact).toEqual({ code: "not_found" });
  });
});

describe("a pattern that finds nothing", () => {
  const NOTICE = "\n\n[searched only /; to search one of its directories, pass it as path: /workspace/]";
  test.each([
    ["src/*.ts", NOTICE],
    ["*.rs", NOTICE],
    ["**/*.rs", ""],
    ["/workspace/src/*.rs", ""],
    ["*/src/*.rs", ""],
  ])("%s says where it was looked for", async (pattern, notice) => {
    const tools = harness(tree());
    expect(await tools.text("glob", { pattern })).toBe(
      `No files found matching pattern '${pattern}' in /${notice}`,
    );
  });

  test("in grep too", async () => {
    const tools = harness(tree());
    expect(await tools.text("grep", { pattern: "main", glob: "src/*.ts" })).toBe(
      `No matches found for pattern 'main'${NOTICE}`,
    );
    expect(await tools.text("grep", { pattern: "main", glob: "*.rs" })).toBe(
      "No matches found for pattern 'main'",
    );
  });
});
