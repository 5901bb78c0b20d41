import { describe, expect, test } from "vitest";
import { CompositeBackend } from "../../src/backends/composite/composite.ts";
import { OverlayBackend } from "../../src/backends/overlay.ts";
import { resolveBackend, snapshotFiles } from "../../src/backends/runtime.ts";
import { BACKENDS } from "./backends.ts";
import { foreignBackend, harness, stateBackend } from "./harness.ts";

describe.each(BACKENDS)("delete over $name", ({ open }) => {
  test("a file, and a directory with everything in it", async () => {
    const tools = harness(await open({ "/a.md": "1", "/dir/x": "1", "/dir/deep/y": "1", "/dirt": "1" }));
    expect(await tools.text("delete", { file_path: "a.md" })).toBe("Deleted /a.md");
    expect(await tools.text("delete", { path: "/dir/" })).toBe("Deleted /dir");
    expect(await tools.text("glob", { pattern: "**" })).toBe("/dirt");
  });

  test.each([
    ["/nope", "File '/nope' not found", "not_found"],
    ["/", "Refusing to delete '/'", "permission_denied"],
    [".", "Refusing to delete '/'", "permission_denied"],
  ])("%s is refused", async (path, text, code) => {
    const tools = harness(await open({ "/a.md": "1" }));
    expect(await tools.call("delete", { file_path: path })).toEqual({
      content: `Error: ${text}`,
      status: "error",
      artifact: { code },
    });
    expect(await tools.text("glob", { pattern: "**" })).toBe("/a.md");
  });
});

describe("delete", () => {
  test("files in thread state are taken out of the state", async () => {
    const tools = harness(stateBackend({ "/dir/x": "1" }));
    expect((await tools.call("delete", { file_path: "/dir" })).update).toEqual({ files: { "/dir/x": null } });
  });

  test("what is deleted of an overlay's base is recorded in the state, also below a mount", async () => {
    const runtime = { files: snapshotFiles() };
    const overlay = new OverlayBackend(stateBackend({ "/dir/x": "1" }));
    const mounted = new CompositeBackend(stateBackend({}), { "/mnt/": overlay });
    const tools = harness(await resolveBackend(mounted, runtime));
    const { update } = await tools.call("delete", { file_path: "/mnt/dir" });
    expect(Object.keys(update?.files ?? {})).toEqual(["/mnt/.wh.dir"]);
    expect(await tools.text("ls", { path: "/mnt" })).toBe("No files found in /mnt");
  });

  test("a backend without deletion", async () => {
    const tools = harness(foreignBackend({}));
    expect(await tools.text("delete", { file_path: "/a" })).toBe(
      "Error: deletion is not available for '/a'.",
    );
  });

  test("the preview names what goes", async () => {
    const files = { "/a\u001b": "1", "/d/b": "2", "/d/e/c": "3" };
    const tools = harness(stateBackend(files));
    expect(await tools.preview("delete", { file_path: "/a\u001b" })).toEqual({
      kind: "arguments",
      summary: "Delete /a\\u001b",
      detail: "/a\\u001b",
      lost: "1 line, 1 byte\n\n1",
    });
    expect(await tools.preview("delete", { file_path: "/d" })).toEqual({
      kind: "arguments",
      summary: "Delete /d and everything below it: 3 entries",
      detail: "/d/b\n/d/e/\n/d/e/c",
      lost: "3 entries, 2 bytes\n\n/d/b\n/d/e/\n/d/e/c",
    });
  });

  test("the preview has the size and the beginning of a file", async () => {
    const lines = Array.from({ length: 30 }, (_, at) =>
      at === 1 ? `  ${"潮".repeat(300)}\u202E` : `line ${at}\r`,
    );
    const tools = harness(stateBackend({ "/long.md": `${lines.join("\n")}\n` }));
    const { lost = "" } = (await tools.preview("delete", { file_path: "/long.md" })) ?? {};
    expect(lost.split("\n")).toEqual([
      "30 lines, 1158 bytes",
      "",
      "line 0",
      `  ${"潮".repeat(197)}…`,
      ...Array.from({ length: 18 }, (_, at) => `line ${at + 2}`),
      "…",
    ]);
  });
});
