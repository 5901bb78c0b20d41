import { InMemoryStore } from "@langchain/langgraph-checkpoint";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Backend, BackendSource } from "../../../src/backends/backend.ts";
import { CompositeBackend } from "../../../src/backends/composite/composite.ts";
import { errors } from "../../../src/backends/errors.ts";
import { PolicyBackend } from "../../../src/backends/policy.ts";
import { resolveBackend, snapshotFiles } from "../../../src/backends/runtime.ts";
import { StateBackend } from "../../../src/backends/stores/state.ts";
import { StoreBackend } from "../../../src/backends/stores/langgraph-store.ts";
import { ConfigurationError } from "../../../src/core/errors.ts";
import { attempts } from "../../support/effort.ts";

const state = (): StateBackend => new StateBackend({ files: snapshotFiles() });

const filled = (files: Record<string, string>): StateBackend => {
  const backend = state();
  for (const [path, content] of Object.entries(files)) backend.write(path, content);
  return backend;
};

/** A backend on which every call fails, as a store that is down. */
const down = (): Backend => new StoreBackend();

const pathsOf = (result: { files?: { path: string }[] }): string[] | undefined =>
  result.files?.map(({ path }) => path);

describe("CompositeBackend construction", () => {
  it.each([["/"], [""], ["memories"], ["/a/../b/"], ["~/x/"], ["//"]])("refuses the route %j", (route) => {
    expect(() => new CompositeBackend(state(), { [route]: state() })).toThrow(ConfigurationError);
  });

  it("refuses a route that is given twice", () => {
    const routes = { "/a": state(), "/a/": state() };
    expect(() => new CompositeBackend(state(), routes)).toThrow(ConfigurationError);
  });
});

describe("CompositeBackend routing", () => {
  it("gives a path to the longest prefix of whole segments", async () => {
    const inner = { root: state(), memories: state(), projects: state() };
    const backend = new CompositeBackend(inner.root, {
      "/memories/": inner.memories,
      "/memories/projects": inner.projects,
    });
    for (const path of ["/memories/a.md", "/memories/projects/b.md", "/memo.md", "/memories-old/c.md"]) {
      await backend.write(path, path);
    }
    expect(pathsOf(inner.memories.glob("**"))).toEqual(["/a.md"]);
    expect(pathsOf(inner.projects.glob("**"))).toEqual(["/b.md"]);
    expect(pathsOf(inner.root.glob("**"))).toEqual(["/memo.md", "/memories-old/c.md"]);
  });

  it("shows the outer path in every error text", async () => {
    const backend = new CompositeBackend(state(), { "/m/": filled({ "/a.txt": "a", "/d/b.txt": "b" }) });
    expect(await backend.read("/m/x.txt")).toEqual(errors.fileNotFound("/m/x.txt"));
    expect(await backend.read("/m/d")).toEqual(errors.isDirectory("/m/d"));
    expect(await backend.read("/m")).toEqual(errors.isDirectory("/m"));
    expect(await backend.write("/m/a.txt", "x")).toEqual(errors.alreadyExists("/m/a.txt"));
    expect(await backend.write("/m/a.txt/c", "x")).toEqual(errors.parentIsFile("/m/a.txt/c"));
    expect(await backend.ls("/m/nowhere")).toEqual(errors.directoryNotFound("/m/nowhere"));
    expect(await backend.grep("x", "/m/nowhere")).toEqual(errors.pathNotFound("/m/nowhere"));
    // Quoted text that happens to look like a path is left alone.
    expect(await backend.edit("/m/a.txt", "/a.txt", "x")).toEqual(errors.stringNotFound("/a.txt"));
  });

  it("keeps a mount of the thread's own files apart from the rest", async () => {
    const runtime = { files: snapshotFiles() };
    const source = new CompositeBackend(new StateBackend(), { "/scratch/": new StateBackend() });
    const backend = await resolveBackend(source, runtime);
    await backend.write("/a.txt", "outer");
    const { filesUpdate } = await backend.write("/scratch/a.txt", "inner");
    expect(Object.keys(filesUpdate ?? {})).toEqual(["/scratch/a.txt"]);
    expect((await backend.read("/a.txt")).content).toBe("outer");
    expect(pathsOf(await backend.glob("**"))).toEqual(["/a.txt", "/scratch/a.txt"]);
    // What the state keeps under the prefix is what the mount finds in the next step.
    const next = await resolveBackend(source, {
      files: snapshotFiles(Object.fromEntries(runtime.files.entries())),
    });
    expect((await next.read("/scratch/a.txt")).content).toBe("inner");
  });
});

describe("CompositeBackend listings", () => {
  it("show mounts and the way to them, at every level", async () => {
    const backend = new CompositeBackend(filled({ "/a.txt": "a", "/deep/b.txt": "b" }), {
      "/m/": state(),
      "/deep/er/mount/": filled({ "/c.txt": "c" }),
    });
    expect(pathsOf(await backend.ls("/"))).toEqual(["/a.txt", "/deep/", "/m/"]);
    expect(pathsOf(await backend.ls("/deep/"))).toEqual(["/deep/b.txt", "/deep/er/"]);
    expect(pathsOf(await backend.ls("/deep/er"))).toEqual(["/deep/er/mount/"]);
    expect(pathsOf(await backend.ls("/deep/er/mount"))).toEqual(["/deep/er/mount/c.txt"]);
    expect(pathsOf(await backend.ls("/m"))).toEqual([]);
    expect(await backend.ls("/nowhere")).toEqual(errors.directoryNotFound("/nowhere"));
  });

  it("hide what a mount covers", async () => {
    const root = filled({ "/m/hidden.txt": "needle", "/seen.txt": "needle" });
    const backend = new CompositeBackend(root, { "/m/": filled({ "/own.txt": "needle" }) });
    expect(pathsOf(await backend.ls("/"))).toEqual(["/m/", "/seen.txt"]);
    expect(pathsOf(await backend.glob("**"))).toEqual(["/m/own.txt", "/seen.txt"]);
    expect((await backend.grep("needle")).matches?.map(({ path }) => path)).toEqual([
      "/m/own.txt",
      "/seen.txt",
    ]);
    const covered = new CompositeBackend(filled({ "/m": "a file" }), { "/m/": state() });
    expect(pathsOf(await covered.ls("/"))).toEqual(["/m/"]);
  });
});

describe("CompositeBackend searches", () => {
  const tree = (): CompositeBackend =>
    new CompositeBackend(filled({ "/b.md": "hit", "/z.ts": "hit" }), {
      "/a/": filled({ "/x.md": "hit\nhit", "/d/y.ts": "hit" }),
      "/a/d/e/": filled({ "/w.md": "hit" }),
    });

  it("ask the owner and everything mounted below", async () => {
    const backend = tree();
    expect(pathsOf(await backend.glob("**/*.md"))).toEqual(["/a/d/e/w.md", "/a/x.md", "/b.md"]);
    expect(pathsOf(await backend.glob("a/*"))).toEqual(["/a/x.md"]);
    expect(pathsOf(await backend.glob("/a/**/*.md"))).toEqual(["/a/d/e/w.md", "/a/x.md"]);
    expect(pathsOf(await backend.glob("/a/d/**/*.md", "/a/d"))).toEqual(["/a/d/e/w.md"]);
    expect(pathsOf(await backend.glob("/*.md"))).toEqual(["/b.md"]);
    expect(pathsOf(await backend.glob("*"))).toEqual(["/b.md", "/z.ts"]);
    expect(pathsOf(await backend.glob("**", "/a/d"))).toEqual(["/a/d/e/w.md", "/a/d/y.ts"]);
    expect(pathsOf(await backend.glob("!**/*.md"))).toEqual(["/a/d/y.ts", "/z.ts"]);
    const found = await backend.grep("hit", "/a", "*.md");
    expect(found.matches?.map(({ path, line }) => `${path}:${line}`)).toEqual([
      "/a/d/e/w.md:1",
      "/a/x.md:1",
      "/a/x.md:2",
    ]);
    expect((await backend.grep("hit", "/", "a/*.md")).matches).toHaveLength(2);
    expect((await backend.grep("hit", "/", "/a/*.md")).matches).toHaveLength(2);
  });

  it("share one cap, filled in path order", async () => {
    const result = await tree().grep("hit", "/", null, 3);
    expect(result.matches?.map(({ path, line }) => `${path}:${line}`)).toEqual([
      "/a/d/e/w.md:1",
      "/a/d/y.ts:1",
      "/a/x.md:1",
    ]);
    expect(result.truncated).toBe(true);
    expect((await tree().grep("hit", "/", null, 6)).truncated).toBe(false);
  });

  it("note a mount that fails instead of hiding the others", async () => {
    const backend = new CompositeBackend(filled({ "/a.txt": "hit" }), { "/down/": down() });
    const note = `/down/: ${errors.storeMissing().error}`;
    expect(await backend.glob("**")).toMatchObject({ files: [{ path: "/a.txt" }], notes: [note] });
    expect(await backend.grep("hit")).toMatchObject({ matches: [{ path: "/a.txt" }], notes: [note] });
    expect(await backend.glob("**", "/down")).toEqual(errors.storeMissing());
    expect((await tree().glob("**")).notes).toBeUndefined();
  });

  it("are not asked of mounts that cannot match", async () => {
    const backend = new CompositeBackend(filled({ "/a.txt": "hit" }), { "/down/": down() });
    expect((await backend.glob("*.txt")).notes).toBeUndefined();
    expect((await backend.grep("hit", "/", "other/*.txt")).notes).toBeUndefined();
  });
});

describe("CompositeBackend deletion", () => {
  it("refuses the root and mount points", async () => {
    const backend = new CompositeBackend(filled({ "/a.txt": "a" }), { "/m/": filled({ "/b.txt": "b" }) });
    expect(await backend.delete("/")).toEqual(errors.refusedToDelete("/"));
    expect(await backend.delete("/m/")).toEqual(errors.refusedToDelete("/m"));
    expect(pathsOf(await backend.glob("**"))).toEqual(["/a.txt", "/m/b.txt"]);
  });

  it("includes what is mounted below", async () => {
    const mounted = filled({ "/c.txt": "c", "/d/e.txt": "e" });
    const backend = new CompositeBackend(filled({ "/a/b.txt": "b" }), { "/a/m/": mounted });
    const result = await backend.delete("/a");
    expect(Object.keys(result.filesUpdate ?? {}).sort()).toEqual(["/a/b.txt", "/a/m/c.txt", "/a/m/d/e.txt"]);
    expect(pathsOf(await backend.glob("**"))).toEqual([]);
  });

  it("touches nothing when a part cannot be deleted", async () => {
    const { delete: _without, ...methods } = bound(filled({ "/c.txt": "c" }));
    const backend = new CompositeBackend(filled({ "/a/b.txt": "b" }), { "/a/m/": methods });
    expect(await backend.delete("/a")).toEqual(errors.deletionUnavailable("/a"));
    expect((await backend.read("/a/b.txt")).content).toBe("b");
  });

  it("tells what was removed before a part failed", async () => {
    const guarded = new PolicyBackend(filled({ "/c.txt": "c" }), { readOnly: true });
    const backend = new CompositeBackend(filled({ "/a/b.txt": "b" }), { "/a/m/": guarded });
    const result = await backend.delete("/a");
    expect(result.code).toBe("io");
    expect(result.error).toBe(
      "'/a' was deleted only partly (removed: /a): Deletes are not allowed under /a/m/c.txt",
    );
  });
});

it("CompositeBackend transfers go to the owners and answer in the order asked", async () => {
  const backend = new CompositeBackend(state(), { "/m/": state(), "/down/": down() });
  const text = new TextEncoder().encode("x");
  const paths = ["/m/b.txt", "/a.txt", "/down/c.txt", "", "/m/a.txt"];
  const uploaded = await backend.uploadFiles(paths.map((path): [string, Uint8Array] => [path, text]));
  expect(uploaded.map(({ path, error }) => [path, error])).toEqual([
    ["/m/b.txt", null],
    ["/a.txt", null],
    ["/down/c.txt", "invalid_path"],
    ["", "invalid_path"],
    ["/m/a.txt", null],
  ]);
  const downloaded = await backend.downloadFiles(paths);
  expect(downloaded.map(({ path, content }) => [path, content?.length])).toEqual([
    ["/m/b.txt", 1],
    ["/a.txt", 1],
    ["/down/c.txt", undefined],
    ["", undefined],
    ["/m/a.txt", 1],
  ]);
});

/** A backend as a plain object, for taking methods away. */
const bound = (backend: StateBackend): Backend => ({
  ls: (path) => backend.ls(path),
  read: (...args) => backend.read(...args),
  readRaw: (path) => backend.readRaw(path),
  grep: (...args) => backend.grep(...args),
  glob: (...args) => backend.glob(...args),
  write: (...args) => backend.write(...args),
  edit: (...args) => backend.edit(...args),
  delete: (path) => backend.delete(path),
});

describe("CompositeBackend, for any tree", () => {
  const name = fc.constantFrom("a", "b", "m", "am");
  const file = fc.array(name, { minLength: 1, maxLength: 3 }).map((names) => `/${names.join("/")}.txt`);
  const pattern = fc.constantFrom(
    "**",
    "*",
    "**/*.txt",
    "a/**",
    "{a,m}/*",
    "m/**/b.txt",
    "!**/a.txt",
    "*/*.txt",
  );
  const mounts = fc.uniqueArray(fc.constantFrom("/m", "/m/m", "/a/b", "/am"), { maxLength: 3 });

  it("answers like one backend with all the files", async () => {
    await fc.assert(
      fc.asyncProperty(
        mounts,
        fc.uniqueArray(file, { maxLength: 8 }),
        pattern,
        fc.constantFrom("/", "/m", "/a"),
        async (prefixes, paths, globPattern, directory) => {
          const routes: Record<string, BackendSource> = Object.fromEntries(
            prefixes.map((prefix) => [prefix, new StoreBackend({ store: new InMemoryStore() })]),
          );
          const whole = state();
          const split = new CompositeBackend(state(), routes);
          for (const path of paths) {
            whole.write(path, `hit ${path}`);
            await split.write(path, `hit ${path}`);
          }
          for (const path of paths) {
            const [one, other] = [whole.read(path), await split.read(path)];
            expect(other.content).toEqual(one.content);
          }
          const [one, other] = [whole.glob(globPattern, directory), await split.glob(globPattern, directory)];
          if (one.error === undefined) expect(pathsOf(other)).toEqual(pathsOf(one));
          const found = await whole.grep("hit", directory, globPattern, 3);
          const foundSplit = await split.grep("hit", directory, globPattern, 3);
          if (found.error === undefined) expect(foundSplit.matches).toEqual(found.matches);
        },
      ),
      attempts(150),
    );
  });
});
