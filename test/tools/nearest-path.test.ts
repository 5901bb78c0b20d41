import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { BaseSandbox } from "../../src/backends/sandbox/base-sandbox.ts";
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

test("a sandbox, each of whose operations is a command, is asked twice at most", async () => {
  const commands: string[] = [];
  class Remote extends BaseSandbox {
    readonly id = "remote";
    execute(command: string) {
      commands.push(command);
      const { stdout, status } = spawnSync("sh", ["-c", command], { encoding: "utf8" });
      return { output: stdout, exitCode: status ?? 1, truncated: false };
    }
  }
  const root = mkdtempSync(join(tmpdir(), "deepagent-nearest-"));
  onTestFinished(() => rmSync(root, { recursive: true }));
  mkdirSync(join(root, "src"));
  writeFileSync(join(root, "src", "main.ts"), "");
  const tools = harness(new Remote({ root }));
  const ask = async (path: string) => [
    await tools.text("read_file", { file_path: path }),
    commands.splice(0).length,
  ];
  expect(await ask("/src/mian.ts")).toEqual([
    "Error: File '/src/mian.ts' not found. Did you mean /src/main.ts?",
    2,
  ]);
  expect(await ask("/scr/a/b/c.ts")).toEqual(["Error: File '/scr/a/b/c.ts' not found", 2]);
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
