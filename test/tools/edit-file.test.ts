import { describe, expect, test } from "vitest";
import { BACKENDS } from "./backends.ts";
import { foreignBackend, harness, stateBackend } from "./harness.ts";

const edit = (file_path: string, old_string: string, new_string: string, replace_all = false) => ({
  file_path,
  old_string,
  new_string,
  replace_all,
});

describe.each(BACKENDS)("edit_file over $name", ({ open }) => {
  test("replaces one occurrence, literally", async () => {
    const tools = harness(await open({ "/a.md": "a.c abc $1" }));
    const result = await tools.call("edit_file", edit("/a.md", "a.c", "$& $1 $$ \\n {x} %s"));
    expect(result.content).toBe("Successfully replaced 1 occurrence(s) in '/a.md'");
    expect(result.artifact).toMatchObject({ path: "/a.md", occurrences: 1 });
    expect(await tools.contentOf("/a.md")).toBe("$& $1 $$ \\n {x} %s abc $1");
  });

  test.each([
    ["/a.md", "zz", "y", `String not found in file: 'zz'. ${ON_MISS}`, "no_match"],
    [
      "/a.md",
      "z".repeat(300),
      "y",
      `String not found in file: '${"z".repeat(200)}…'. ${ON_MISS}`,
      "no_match",
    ],
    [
      "/a.md",
      "x",
      "y",
      "String 'x' appears 2 times in file. Use replace_all=True to replace all of them, or add surrounding text so that it is unique.",
      "ambiguous",
    ],
    ["/a.md", "x", "x", "old_string and new_string are identical; nothing to change.", "no_match"],
    ["/nope", "x", "y", "File '/nope' not found", "not_found"],
    ["/no\rpe", "x", "y", "File '/no\\rpe' not found", "not_found"],
    ["/dir", "x", "y", "'/dir' is a directory", "is_directory"],
    ["/b.bin", "x", "y", "File '/b.bin' is binary and cannot be edited as text", "binary"],
  ])("%j: %j to %j fails", async (path, old, replacement, text, code) => {
    const files = { "/a.md": "x\nx", "/dir/x": "1", "/b.bin": Uint8Array.from([120, 0, 1]) };
    const tools = harness(await open(files));
    expect(await tools.call("edit_file", edit(path, old, replacement))).toEqual({
      content: `Error: ${text}`,
      status: "error",
      artifact: { code },
    });
    expect(await tools.contentOf("/a.md")).toBe("x\nx");
  });

  test("half a surrogate pair matches no whole character", async () => {
    const tools = harness(await open({ "/a.md": "😀" }));
    expect(await tools.text("edit_file", edit("/a.md", "\ud83d", "x"))).toBe(
      `Error: String not found in file: '\ufffd'. ${ON_MISS}`,
    );
    expect(await tools.contentOf("/a.md")).toBe("😀");
  });
});

test("a miss shows the nearest lines of the file, and what differs", async () => {
  const tools = harness(stateBackend({ "/a.ts": "if (x) {\n\tsay(“hi”);\n}\n" }));
  expect(await tools.text("edit_file", edit("/a.ts", '  say("hi");\n}', "y"))).toBe(
    `Error: String not found in file: '  say("hi");\n}'. ${ON_MISS} Lines 2 to 3 of the file differ in quotes, dashes, tabs and blanks:\n\tsay(“hi”);\n}`,
  );
});

const ON_MISS =
  "Read the file again and copy the text exactly, with its whitespace and without the number and tab before each line.";

describe("edit_file", () => {
  test("a file in thread state comes back as an update of the state", async () => {
    const tools = harness(stateBackend({ "/a.md": "x" }));
    const { update } = await tools.call("edit_file", edit("/a.md", "x", "y"));
    expect(update).toEqual({ files: { "/a.md": expect.objectContaining({ content: "y" }) } });
  });

  test("conflicts of the backend are passed on", async () => {
    const error = "File '/a.md' changed since it was read; read it again and retry.";
    const tools = harness(foreignBackend({ edit: () => ({ error, code: "conflict" }) }));
    expect(await tools.text("edit_file", edit("/a.md", "x", "y"))).toBe(`Error: ${error}`);
  });

  test("a failure without a code, and one that has the prefix already", async () => {
    const tools = harness(foreignBackend({ edit: () => ({ error: "Error: disk full" }) }));
    expect(await tools.call("edit_file", edit("/a.md", "x", "y"))).toEqual({
      content: "Error: disk full",
      status: "error",
    });
  });
});

describe.each(BACKENDS)("preview of edit_file over $name", ({ open }) => {
  test("a diff against the current content", async () => {
    const tools = harness(await open({ "/a.md": "one\r\ntwo\r\nthree\r\n" }));
    expect(await tools.preview("edit_file", edit("/a.md", "two\nthree", "2\n3"))).toEqual({
      kind: "diff",
      summary: "Edit /a.md (1 occurrence)",
      detail: "--- /a.md\n+++ /a.md\n@@ -1,3 +1,3 @@\n one\n-two\n-three\n+2\n+3",
    });
  });

  test("changes nothing", async () => {
    const tools = harness(await open({ "/a.md": "one" }));
    await tools.preview("edit_file", edit("/a.md", "one", "two"));
    expect(await tools.contentOf("/a.md")).toBe("one");
  });

  test.each([
    ["/nope", "Edit /nope; it would fail: File '/nope' not found"],
    ["/a.md", "Edit /a.md; it would fail: String not found in file: 'zz'"],
    ["/b.bin", "Edit /b.bin; it would fail: File '/b.bin' is binary and cannot be edited as text"],
    ["~/x", "Edit a file; it would fail: Path traversal not allowed: ~/x"],
  ])("%s: the arguments, and why it would fail", async (path, summary) => {
    const tools = harness(await open({ "/a.md": "x", "/b.bin": Uint8Array.from([0]) }));
    expect(await tools.preview("edit_file", edit(path, "zz", "y"))).toEqual({
      kind: "arguments",
      summary,
      detail: JSON.stringify(edit(path, "zz", "y"), null, 2),
    });
  });
});

test("a file too large to compare is not read for a preview", async () => {
  const backend = foreignBackend({ ls: (path) => ({ files: [{ path, size: 20 * 1024 * 1024 }] }) });
  expect((await harness(backend).preview("edit_file", edit("/big", "a", "b"))).summary).toBe(
    "Edit /big; its content could not be compared: the file is too large to compare",
  );
});
