import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import type { Backend, Failure, ThreadFiles } from "../../../src/backends/backend.ts";
import { errors } from "../../../src/backends/errors.ts";
import { FilesystemBackend } from "../../../src/backends/filesystem/filesystem.ts";
import { OverlayBackend } from "../../../src/backends/overlay.ts";
import { resolveBackend, snapshotFiles } from "../../../src/backends/runtime.ts";
import { attempts } from "../../support/effort.ts";
import { filesIn } from "../../support/files-in.ts";

let root: string;

const FILES = {
  "a.txt": "one hit\n",
  "dir/b.txt": "two hit\n",
  "dir/deep/c.txt": "three hit\n",
  "other/d.txt": "four\n",
};

beforeEach(() => {
  root = filesIn();
  plant(join(root, "base"));
});

function plant(folder: string): void {
  for (const [path, content] of Object.entries(FILES)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
}

const onDisk = (folder: string): FilesystemBackend =>
  new FilesystemBackend({ rootDir: folder, virtualMode: true });

const make = (files: ThreadFiles = snapshotFiles()): Promise<Backend> =>
  resolveBackend(new OverlayBackend(onDisk(join(root, "base"))), { files });

const contents = (): Record<string, string> =>
  Object.fromEntries(
    readdirSync(join(root, "base"), { recursive: true, encoding: "utf8" })
      .filter((path) => path.endsWith(".txt"))
      .map((path) => [path, readFileSync(join(root, "base", path), "utf8")]),
  );

const paths = (result: { files?: { path: string }[] }): string[] | undefined =>
  result.files?.map(({ path }) => path);

describe("OverlayBackend", () => {
  it("shows changes on top of its base, which stays as it is", async () => {
    const backend = await make();
    expect((await backend.edit("/a.txt", "one", "1")).occurrences).toBe(1);
    expect((await backend.write("/dir/new.txt", "new hit\n")).error).toBeUndefined();
    expect((await backend.delete?.("/dir/deep"))?.error).toBeUndefined();
    expect((await backend.read("/a.txt")).content).toBe("1 hit\n");
    expect(paths(await backend.ls("/dir"))).toEqual(["/dir/b.txt", "/dir/new.txt"]);
    expect(paths(await backend.glob("**"))).toEqual(["/a.txt", "/dir/b.txt", "/dir/new.txt", "/other/d.txt"]);
    expect((await backend.grep("hit")).matches?.map(({ path, text }) => `${path} ${text}`)).toEqual([
      "/a.txt 1 hit",
      "/dir/b.txt two hit",
      "/dir/new.txt new hit",
    ]);
    expect(await backend.read("/dir/deep/c.txt")).toEqual(errors.fileNotFound("/dir/deep/c.txt"));
    expect((await backend.ls("/dir/deep")).code).toBe("not_found");
    expect(contents()).toEqual(FILES);
  });

  it("keeps a deletion when something new is put in its place", async () => {
    const backend = await make();
    await backend.delete?.("/dir");
    await backend.write("/dir/x.txt", "x");
    expect(paths(await backend.glob("**", "/dir"))).toEqual(["/dir/x.txt"]);
    await backend.delete?.("/dir/x.txt");
    await backend.write("/dir", "a file now");
    expect((await backend.read("/dir")).content).toBe("a file now");
    expect(await backend.write("/dir/y.txt", "y")).toEqual(errors.parentIsFile("/dir/y.txt"));
    expect(await backend.delete?.("/nowhere")).toEqual(errors.fileNotFound("/nowhere"));
    expect(contents()).toEqual(FILES);
  });

  it("gives every change to the caller, so that the thread keeps it", async () => {
    const files = snapshotFiles();
    const backend = await make(files);
    const results = [
      await backend.edit("/a.txt", "one", "1"),
      await backend.delete?.("/dir"),
      ...((await backend.uploadFiles?.([["/up.txt", new TextEncoder().encode("up")]])) ?? []),
      await backend.delete?.("/a.txt"),
    ];
    const kept = new Map<string, unknown>();
    for (const result of results) {
      const recorded = result !== undefined && "recorded" in result ? result.recorded : {};
      for (const [path, data] of Object.entries({ ...result?.filesUpdate, ...recorded })) {
        if (data === null) kept.delete(path);
        else kept.set(path, data);
      }
    }
    expect([...kept.keys()].sort()).toEqual([...files.entries()].map(([path]) => path).sort());
    expect(paths(await (await make(files)).glob("**"))).toEqual(["/other/d.txt", "/up.txt"]);
  });

  it("reserves the names of its record, and needs a thread", async () => {
    const backend = await make();
    expect(await backend.write("/dir/.wh.b.txt", "")).toEqual(errors.reservedName("/dir/.wh.b.txt"));
    expect((await new OverlayBackend(onDisk(root)).read("/a.txt")).error).toBe(
      errors.threadFilesMissing().error,
    );
  });

  it("answers like a copy that is really changed", { tags: "long" }, async () => {
    const file = fc.constantFrom(
      "/a.txt",
      "/new.txt",
      "/dir/b.txt",
      "/dir/e.txt",
      "/dir/deep/c.txt",
      "/other/d.txt",
    );
    const step = fc.oneof(
      fc.record({ kind: fc.constant("write" as const), path: file, overwrite: fc.boolean() }),
      fc.record({ kind: fc.constant("edit" as const), path: file, overwrite: fc.boolean() }),
      fc.record({ kind: fc.constant("delete" as const), path: file, overwrite: fc.boolean() }),
      fc.record({
        kind: fc.constant("clear" as const),
        path: fc.constantFrom("/dir", "/dir/deep", "/other"),
        overwrite: fc.boolean(),
      }),
    );
    let runs = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 10 }), async (steps) => {
        const copy = join(root, `copy-${(runs += 1)}`);
        cpSync(join(root, "base"), copy, { recursive: true });
        const [real, overlay] = [onDisk(copy), await make()];
        for (const [index, { kind, path, overwrite }] of steps.entries()) {
          const run = async (backend: Backend): Promise<Failure> => {
            if (kind === "edit") return backend.edit(path, "hit", `<${index}> hit`, overwrite);
            if (kind !== "write") return (await backend.delete?.(path)) ?? {};
            return backend.write(path, `hit ${index}\n`, { mode: overwrite ? "overwrite" : "create" });
          };
          const [expected, given] = [await run(real), await run(overlay)];
          // A directory that was emptied stays on a disk, and is none in the files of a thread.
          if (kind !== "clear") expect([given.code, given.error]).toEqual([expected.code, expected.error]);
        }
        for (const pattern of ["**", "*", "dir/**", "!**/b.txt"]) {
          expect(paths(await overlay.glob(pattern))).toEqual(paths(await real.glob(pattern)));
        }
        for (const cap of [1, 3, 100]) {
          const [expected, given] = [
            await real.grep("hit", "/", null, cap),
            await overlay.grep("hit", "/", null, cap),
          ];
          expect(given.matches).toEqual(expected.matches);
          expect(given.truncated).toBe(expected.truncated);
        }
        expect(contents()).toEqual(FILES);
        rmSync(copy, { recursive: true });
      }),
      attempts(60),
    );
  });
});
