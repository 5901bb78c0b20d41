import { InMemoryStore } from "@langchain/langgraph-checkpoint";
import { expect, test } from "vitest";
import { CompositeBackend } from "../../src/backends/composite/composite.ts";
import { StoreBackend } from "../../src/backends/stores/langgraph-store.ts";
import { filesystemBackend } from "./backends.ts";
import { harness, stateBackend } from "./harness.ts";

/** The tree of an agent: thread files at the root, memories in a store. */
const tree = () => {
  const memories = new StoreBackend({ store: new InMemoryStore() });
  return harness(new CompositeBackend(stateBackend({ "/plan.md": "find it\n" }), { "/memories/": memories }));
};

test("every result and error names the path in the whole tree", async () => {
  const tools = tree();
  const file_path = "/memories/a\nb.md";
  expect(await tools.text("write_file", { file_path, content: "find me\n" })).toBe(
    "Successfully wrote to '/memories/a\\nb.md'",
  );
  expect(await tools.text("write_file", { file_path, content: "x" })).toMatch(
    /^Error: Cannot write to \/memories\/a\\nb\.md because it already exists\./,
  );
  expect(await tools.text("edit_file", { file_path, old_string: "me", new_string: "it" })).toBe(
    "Successfully replaced 1 occurrence(s) in '/memories/a\\nb.md'",
  );
  expect(await tools.text("read_file", { file_path })).toBe("1\tfind it");
  expect(await tools.text("ls", {})).toMatch(/^\/memories\/ \(directory\)\n\/plan\.md \(8 bytes\)/);
  expect(await tools.text("ls", { path: "/memories" })).toMatch(/^\/memories\/a\\nb\.md \(8 bytes\)/);
  expect(await tools.text("glob", { pattern: "**/*.md" })).toBe("/memories/a\\nb.md\n/plan.md");
  expect(await tools.text("grep", { pattern: "find it" })).toBe(
    "/memories/a\\nb.md:\n  1: find it\n/plan.md:\n  1: find it",
  );
  expect(await tools.text("read_file", { file_path: "/memories/no\tpe" })).toBe(
    "Error: File '/memories/no\\tpe' not found",
  );
  expect(await tools.text("delete", { file_path: "/memories" })).toBe(
    "Error: Refusing to delete '/memories'",
  );
  expect(await tools.text("delete", { file_path })).toBe("Deleted /memories/a\\nb.md");
});

test("only files of the thread become an update of its state", async () => {
  const tools = tree();
  const inStore = await tools.call("write_file", { file_path: "/memories/a.md", content: "x" });
  expect(inStore).not.toHaveProperty("update");
  const inState = await tools.call("write_file", { file_path: "/a.md", content: "x" });
  expect(inState.update).toEqual({ files: { "/a.md": expect.objectContaining({ content: "x" }) } });
});

test("a preview reads the current content through the mount", async () => {
  const tools = tree();
  await tools.call("write_file", { file_path: "/memories/a.md", content: "one\n" });
  const edit = { file_path: "/memories/a.md", old_string: "one", new_string: "two" };
  expect(await tools.preview("edit_file", edit)).toEqual({
    kind: "diff",
    summary: "Edit /memories/a.md (1 occurrence)",
    detail: "--- /memories/a.md\n+++ /memories/a.md\n@@ -1,1 +1,1 @@\n-one\n+two",
  });
});

test("a file whose name the model spells plainly is used under its true name, which the answers say", async () => {
  const folder = await filesystemBackend({ "/Shot at 1.01\u202fPM.txt": "one\n" });
  const tools = harness(new CompositeBackend(stateBackend(), { "/disk/": folder }));
  const path = "/disk/Shot at 1.01 PM.txt";
  const shown = "/disk/Shot at 1.01\\u202fPM.txt";
  expect(await tools.text("read_file", { path })).toBe(
    `1\tone\n\n[the name of this file is spelled ${shown}]`,
  );
  expect(await tools.text("edit_file", { path, old_string: "one", new_string: "two" })).toBe(
    `Successfully replaced 1 occurrence(s) in '${shown}'`,
  );
  expect(await tools.text("write_file", { path, content: "x" })).toContain(
    `Cannot write to ${shown} because it already exists`,
  );
  expect((await tools.preview("delete", { path })).summary).toBe(`Delete ${shown}`);
  expect(await tools.text("delete", { path })).toBe(`Deleted ${shown}`);
  expect(await tools.text("write_file", { path, content: "x" })).toBe(`Successfully wrote to '${path}'`);
});
