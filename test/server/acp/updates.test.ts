import { expect, test } from "vitest";
import { diffContent } from "../../../src/server/acp/updates.ts";
import { taskOf } from "../../../src/server/acp/prompt.ts";

test("each part of a diff is a change with its texts", () => {
  const parts = "@@ -1,2 +1,2 @@\n one\n-two\n+2\n@@ -9 +9,2 @@\n nine\n+ten\n";
  const diff = `--- /workspace/a.ts\n+++ /workspace/a.ts\n${parts}\\ No newline at end of file`;
  expect(diffContent(diff, "/p/a.ts")).toEqual([
    { type: "diff", path: "/p/a.ts", oldText: "one\ntwo", newText: "one\n2" },
    { type: "diff", path: "/p/a.ts", oldText: "nine", newText: "nine\nten" },
  ]);
});

test("a diff with missing lines stays text", () => {
  const diff = "--- a\n+++ a\n@@ -1,900 +1 @@\n-one\n[… 899 lines not shown …]\n+2";
  expect(diffContent(diff, "/p/a")).toMatchObject([
    { type: "content", content: { text: `\`\`\`diff\n${diff}\n\`\`\`` } },
  ]);
  expect(diffContent("", "/p/a")).toMatchObject([{ type: "content" }]);
});

test("links to files of the folder become paths that the agent knows, and texts are quoted", () => {
  const link = (uri: string) => ({ type: "resource_link" as const, uri, name: "a" });
  expect(
    taskOf(
      [
        { type: "text", text: "Compare" },
        link("file:///p/src/a%20b.ts"),
        { type: "text", text: "with" },
        link("file:///other/c.ts"),
        link("https://example.com/d"),
        link("file:///p/e.ts#L3:9"),
        { type: "resource", resource: { uri: "file:///p/f.md", text: "```\nx" } },
      ],
      "/p",
    ),
  ).toEqual({
    ok: true,
    text: "Compare /workspace/src/a b.ts with /other/c.ts  https://example.com/d  /workspace/e.ts (lines 3 to 9) \n\n/workspace/f.md:\n````\n```\nx\n````",
  });
  expect(taskOf([{ type: "text", text: "x".repeat(100_001) }], "/p")).toMatchObject({ ok: false });
  expect(taskOf([link("file://server/share/%zz")], "/p")).toMatchObject({ ok: true });
});
