import { describe, expect, test } from "vitest";
import { parseArguments } from "../../src/tools/call.ts";
import { BACKENDS } from "./backends.ts";
import { foreignBackend, harness, stateBackend } from "./harness.ts";

describe.each(BACKENDS)("write_file over $name", ({ open }) => {
  test("creates a file and its parent directories", async () => {
    const tools = harness(await open());
    const result = await tools.call("write_file", {
      file_path: "notes//deep/a.md",
      content: "$& $1 `x`\r\n",
    });
    expect(result.content).toBe("Successfully wrote to '/notes/deep/a.md'");
    expect(result.artifact).toMatchObject({ path: "/notes/deep/a.md" });
    expect(await tools.contentOf("/notes/deep/a.md")).toBe("$& $1 `x`\r\n");
  });

  test("an existing file is not overwritten", async () => {
    const tools = harness(await open({ "/a.md": "old" }));
    expect(await tools.call("write_file", { path: "/a.md", content: "new" })).toEqual({
      content:
        "Error: Cannot write to /a.md because it already exists. Read it and change it with edit_file, or choose a new path.",
      status: "error",
      artifact: { code: "exists" },
    });
    expect(await tools.contentOf("/a.md")).toBe("old");
  });

  test.each([
    ["/dir", "'/dir' is a directory"],
    ["/new/", "'/new' is a directory"],
    ["/", "'/' is a directory"],
    ["/a.md/b", "'/a.md/b' cannot exist because one of its parent directories is a file"],
  ])("%s is refused", async (path, text) => {
    const tools = harness(await open({ "/dir/x": "1", "/a.md": "1" }));
    expect(await tools.text("write_file", { file_path: path, content: "x" })).toBe(`Error: ${text}`);
  });

  test("a binary type takes base64 and nothing else", async () => {
    const tools = harness(await open());
    expect(await tools.text("write_file", { file_path: "/a.png", content: "not base64!" })).toBe(
      "Error: Content of '/a.png' must be base64, because its type is image/png",
    );
    expect(await tools.text("write_file", { file_path: "/a.png", content: "AAEC" })).toBe(
      "Successfully wrote to '/a.png'",
    );
    expect(await tools.contentOf("/a.png")).toEqual(Uint8Array.from([0, 1, 2]));
  });

  test("half a surrogate pair is refused, a whole one is kept", async () => {
    const tools = harness(await open());
    expect(
      parseArguments(tools.tool("write_file"), { file_path: "/a.md", content: "x\ud83d" }),
    ).toMatchObject({
      ok: false,
      message:
        "Invalid arguments for write_file: content: Has half of a surrogate pair; send the whole character or leave it out",
    });
    expect(await tools.text("write_file", { file_path: "/a.md", content: "x😀" })).toBe(
      "Successfully wrote to '/a.md'",
    );
    expect(await tools.contentOf("/a.md")).toBe("x😀");
  });

  test("control characters in the name are shown escaped", async () => {
    const tools = harness(await open());
    expect(await tools.text("write_file", { file_path: "/a\nb\u202e", content: "x" })).toBe(
      "Successfully wrote to '/a\\nb\\u202e'",
    );
    expect(await tools.text("write_file", { file_path: "/a\nb\u202e", content: "x" })).toContain(
      "Cannot write to /a\\nb\\u202e because it already exists.",
    );
    expect(await tools.contentOf("/a\nb\u202e")).toBe("x");
  });
});

describe("write_file", () => {
  test("a file in thread state comes back as an update of the state", async () => {
    const tools = harness(stateBackend());
    const { update } = await tools.call("write_file", { file_path: "/a.md", content: "x" });
    expect(update).toEqual({ files: { "/a.md": expect.objectContaining({ content: "x" }) } });
  });

  test("external storage gives no update", async () => {
    const backend = foreignBackend({ write: (path) => ({ path, filesUpdate: null }) });
    const result = await harness(backend).call("write_file", { file_path: "/a.md", content: "x" });
    expect(result).not.toHaveProperty("update");
  });
});

describe.each(BACKENDS)("preview of write_file over $name", ({ open }) => {
  test("a new file", async () => {
    const tools = harness(await open());
    expect(await tools.preview("write_file", { file_path: "/a.md", content: "one\ntwo\n" })).toEqual({
      kind: "diff",
      summary: "Create /a.md (2 lines)",
      detail: "--- /dev/null\n+++ /a.md\n@@ -0,0 +1,2 @@\n+one\n+two",
    });
    expect((await tools.preview("write_file", { file_path: "/b.md", content: "one" })).summary).toBe(
      "Create /b.md (1 line)",
    );
  });

  test("an existing file: what differs, and that the call would fail", async () => {
    const tools = harness(await open({ "/a.md": "one\ntwo\n" }));
    expect(await tools.preview("write_file", { file_path: "/a.md", content: "one\nTWO\n" })).toEqual({
      kind: "diff",
      summary: "Write /a.md; it would fail, because the file already exists",
      detail: "--- /a.md\n+++ /a.md\n@@ -1,2 +1,2 @@\n one\n-two\n+TWO",
    });
  });

  test("a binary type: type and size instead of base64", async () => {
    const tools = harness(await open());
    expect(await tools.preview("write_file", { file_path: "/a.png", content: "AAEC" })).toMatchObject({
      kind: "arguments",
      summary: "Create /a.png (image/png, 3 bytes)",
    });
    expect((await tools.preview("write_file", { file_path: "/a.png", content: "?" })).summary).toBe(
      "Write /a.png; it would fail: Content of '/a.png' must be base64, because its type is image/png",
    );
  });

  test("a path that is refused, and a directory", async () => {
    const tools = harness(await open({ "/dir/x": "1" }));
    expect(await tools.preview("write_file", { file_path: "../x", content: "c" })).toEqual({
      kind: "arguments",
      summary: "Write a file; it would fail: Path traversal not allowed: ../x",
      detail: '{\n  "file_path": "../x",\n  "content": "c"\n}',
    });
    expect((await tools.preview("write_file", { file_path: "/dir", content: "c" })).summary).toBe(
      "Write /dir; it would fail: '/dir' is a directory",
    );
  });

  test("arguments that cannot be shown as a diff are bounded", async () => {
    const tools = harness(await open());
    const { detail } = await tools.preview("write_file", { file_path: "../x", content: "c".repeat(50_000) });
    expect(detail.length).toBeLessThan(20_100);
    expect(detail).toMatch(/\n\[\d+ more characters not shown\]$/);
  });
});
