import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { FilesystemBackend } from "../../src/backends/filesystem/filesystem.ts";
import type { CallPreview } from "../../src/tools/request.ts";
import { harness } from "./harness.ts";

const root = mkdtempSync(join(tmpdir(), "deepagent-destination-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));
mkdirSync(join(root, "deep/er"), { recursive: true });
writeFileSync(join(root, "deep/er/real.sh"), "one\n");
const LINK = `${"harmless-".repeat(25)}.txt`;
symlinkSync("deep/er/real.sh", join(root, LINK));

const tools = harness(new FilesystemBackend({ rootDir: root, virtualMode: true }));

async function previewOf(name: string, args: Record<string, unknown>): Promise<CallPreview> {
  const context = { callId: "c", signal: new AbortController().signal, backend: tools.backend };
  const preview = await tools.tool(name).preview?.({ replace_all: false, ...args }, context);
  if (preview === undefined) throw new Error(`${name} has no preview`);
  return preview;
}

test("a change through a link with a long name names the file that changes, on a line of its own", async () => {
  const edit = { file_path: `/${LINK}`, old_string: "one", new_string: "two" };
  const { summary, destination } = await previewOf("edit_file", edit);
  expect(destination).toBe("/deep/er/real.sh");
  expect(summary).toContain("which leads to /deep/er/real.sh");
  expect(summary.length).toBeLessThan(300);
  const write = await previewOf("write_file", { file_path: `/${LINK}`, content: "x" });
  expect(write.destination).toBe("/deep/er/real.sh");
});

test("a link that is deleted is itself the destination", async () => {
  expect((await previewOf("delete", { file_path: `/${LINK}` })).destination).toBe(`/${LINK}`);
});

test("a place whose name ends in a blank is told from one that does not", async () => {
  const { destination } = await previewOf("write_file", { file_path: "/notes.md ", content: "x" });
  expect(destination).toBe(String.raw`/notes.md\u0020`);
});

test("every entry of a folder that would be deleted is shown", async () => {
  for (let index = 0; index < 300; index += 1) writeFileSync(join(root, "deep/er", `${index}.txt`), "");
  const { detail, isPart } = await previewOf("delete", { file_path: "/deep" });
  expect(isPart).toBeUndefined();
  expect(detail.split("\n")).toHaveLength(302);
});

test("a binary file is shown whole on demand only", async () => {
  const content = Buffer.alloc(600, "x").toString("base64");
  expect(await previewOf("write_file", { file_path: "/a.png", content })).toMatchObject({ isPart: true });
});
