import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { FilesystemBackend } from "../../src/backends/filesystem/filesystem.ts";
import { harness } from "./harness.ts";

/** A folder of this machine with a file outside of it. */
async function folder() {
  const base = await mkdtemp(join(tmpdir(), "deepagent-tools-"));
  onTestFinished(() => rm(base, { recursive: true, force: true }));
  const rootDir = await mkdtemp(join(base, "root-"));
  await writeFile(join(base, "outside.txt"), "secret\n");
  const backend = new FilesystemBackend({ rootDir, virtualMode: true, maxFileSizeMb: 1 });
  return { base, rootDir, tools: harness(backend) };
}

test("a link that leads out is refused, and nothing outside is shown or changed", async () => {
  const { base, rootDir, tools } = await folder();
  await symlink(join(base, "outside.txt"), join(rootDir, "link.txt"));
  await symlink(base, join(rootDir, "up"));
  const calls: [string, Record<string, unknown>][] = [
    ["read_file", { file_path: "/link.txt" }],
    ["read_file", { file_path: "/up/outside.txt" }],
    ["edit_file", { file_path: "/link.txt", old_string: "secret", new_string: "x" }],
    ["write_file", { file_path: "/up/new.txt", content: "x" }],
    ["ls", { path: "/up" }],
  ];
  for (const [name, args] of calls) {
    const result = await tools.call(name, args);
    expect(result).toMatchObject({ status: "error", content: expect.stringMatching(/^Error: /) });
    expect(result.content).not.toContain(base);
    expect(result.content).not.toContain("secret");
  }
  expect(await tools.text("read_file", { file_path: "/link.txt" })).toBe(
    "Error: Symlinks are not allowed: /link.txt",
  );
  expect(await tools.text("write_file", { file_path: "/link.txt", content: "x" })).toBe(
    "Error: Cannot write to /link.txt because it is a symlink. Symlinks are not allowed.",
  );
  expect(await tools.text("grep", { pattern: "secret" })).toMatch(/^No matches found for pattern 'secret'/);
});

test("the preview of a change through a link shows nothing from outside", async () => {
  const { base, rootDir, tools } = await folder();
  await symlink(join(base, "outside.txt"), join(rootDir, "link.txt"));
  for (const preview of [
    await tools.preview("write_file", { file_path: "/link.txt", content: "x" }),
    await tools.preview("edit_file", { file_path: "/link.txt", old_string: "se", new_string: "x" }),
  ]) {
    expect(preview).toMatchObject({
      kind: "arguments",
      summary: expect.stringMatching(/\/link\.txt; it would fail: .*symlink/i),
    });
    expect(JSON.stringify(preview)).not.toMatch(/secret|outside\.txt/);
  }
});

test("large files: read by pages, not edited, not searched, which the answers say", async () => {
  const { rootDir, tools } = await folder();
  await writeFile(join(rootDir, "big.log"), "needle 0123456789\n".repeat(100_000));
  expect(await tools.text("read_file", { file_path: "/big.log", offset: 50_000, limit: 1 })).toMatch(
    /^50001\tneedle 0123456789\n\n\[lines 50001-50001( of 100000)?; continue with offset=50001\]$/,
  );
  expect(
    await tools.text("edit_file", { file_path: "/big.log", old_string: "needle", new_string: "x" }),
  ).toMatch(/^Error: File '\/big\.log' is too large to edit \(1\.7 MB, limit 1 MB\)$/);
  expect(await tools.text("grep", { pattern: "needle" })).toBe(
    "No matches found for pattern 'needle'\n\n[1 file not searched: too large or not readable]",
  );
});
