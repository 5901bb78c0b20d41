import { describe, expect, it } from "vitest";
import { adaptBackend } from "../../../src/backends/foreign/adapt.ts";
import type { Backend } from "../../../src/backends/backend.ts";
import { CompositeBackend } from "../../../src/backends/composite/composite.ts";
import { errors } from "../../../src/backends/errors.ts";
import { resolveBackend, snapshotFiles } from "../../../src/backends/runtime.ts";
import { StateBackend } from "../../../src/backends/stores/state.ts";
import { foreignV1, foreignV2 } from "./foreign-backends.ts";

const FOREIGN: [name: string, make: () => Backend][] = [
  ["version 2", () => adaptBackend(foreignV2())],
  ["version 1", () => adaptBackend(foreignV1(true))],
  ["version 1 without readRaw", () => adaptBackend(foreignV1(false))],
];

describe.each(FOREIGN)("a foreign backend of %s", (_name, make) => {
  it("creates, and overwrites only when asked to", async () => {
    const backend = make();
    expect((await backend.write("/a.txt", "one\n")).error).toBeUndefined();
    expect(await backend.write("/a.txt", "two\n")).toEqual(errors.alreadyExists("/a.txt"));
    expect((await backend.write("/a.txt", "two\n", { mode: "overwrite" })).error).toBeUndefined();
    expect((await backend.readRaw("/a.txt")).data?.content).toBe("two\n");
  });

  it("lets one of many parallel creates win", async () => {
    const backend = make();
    const results = await Promise.all([1, 2, 3, 4].map(async (index) => backend.write("/a.txt", `${index}`)));
    expect(results.filter((result) => result.error === undefined)).toHaveLength(1);
    expect(results.filter((result) => result.code === "exists")).toHaveLength(3);
  });

  it("reads pages whose lines count from 0", async () => {
    const backend = make();
    await backend.write("/a.txt", "0\n1\n2\n3\n");
    const page = await backend.read("/a.txt", 1, 2);
    expect(page).toMatchObject({ startLine: 1, endLine: 3 });
    expect((page.content as string).split("\n").slice(0, 2)).toEqual(["1", "2"]);
  });

  it("gives failures codes, and tells nothing of its host", async () => {
    const backend = make();
    expect(await backend.read("/a.txt")).toEqual(errors.fileNotFound("/a.txt"));
    expect(await backend.readRaw("/a.txt")).toEqual(errors.fileNotFound("/a.txt"));
    expect(await backend.edit("/a.txt", "a", "b")).toEqual(errors.fileNotFound("/a.txt"));
    await backend.write("/b.txt", "a a");
    expect(await backend.edit("/b.txt", "x", "b")).toEqual(errors.stringNotFound("x"));
    expect((await backend.edit("/b.txt", "a", "b")).code).toBe("ambiguous");
    expect((await backend.edit("/b.txt", "a", "b")).error).not.toMatch(/^Error/);
  });

  it("edits the cells of a notebook, which it knows as text only", async () => {
    const backend = make();
    const cell = (source: string[]) => ({ cell_type: "code", metadata: {}, outputs: [], source });
    const file = (...sources: string[][]) =>
      JSON.stringify({ cells: sources.map(cell), metadata: {}, nbformat: 4, nbformat_minor: 4 });
    await backend.write("/a.ipynb", file(["x = 1\n", "y"], ["z"]));
    expect((await backend.edit("/a.ipynb", "x = 1\ny", "x = 2\ny")).error).toBeUndefined();
    expect((await backend.readRaw("/a.ipynb")).data?.content).toBe(file(["x = 2\n", "y"], ["z"]));
  });

  it("edits the version that was seen", async () => {
    const backend = make();
    await backend.write("/a.txt", "one");
    const { version = "" } = await backend.readRaw("/a.txt");
    expect(
      (await backend.edit("/a.txt", "one", "two", false, { expectedVersion: version })).error,
    ).toBeUndefined();
    const stale = await backend.edit("/a.txt", "two", "three", false, { expectedVersion: version });
    expect(stale).toEqual(errors.changedSinceRead("/a.txt"));
    const overwrite = { mode: "overwrite", expectedVersion: version } as const;
    expect(await backend.write("/a.txt", "x", overwrite)).toEqual(errors.changedSinceRead("/a.txt"));
  });

  it("searches in order, with a cap, and expressions too", async () => {
    const backend = make();
    for (const name of ["a", "b", "c"]) await backend.write(`/${name}.txt`, `hit ${name}\n`);
    const found = await backend.grep("hit", "/", null, 2);
    expect(found.matches?.map(({ path }) => path)).toEqual(["/a.txt", "/b.txt"]);
    expect(found.truncated).toBe(true);
    const options = { regex: true, contextLines: 1 };
    const matched = await backend.grep("^hit [bc]$", "/", "*.txt", null, options);
    expect(matched.matches?.map(({ path, text }) => `${path}:${text}`)).toEqual([
      "/b.txt:hit b",
      "/c.txt:hit c",
    ]);
    const one = await backend.grep("^h", "/b.txt", null, null, options);
    expect(one.matches?.map(({ path }) => path)).toEqual(["/b.txt"]);
    expect((await backend.grep("(", "/", null, null, options)).code).toBe("invalid_pattern");
    expect((await backend.glob("**/*.txt")).files?.map(({ path }) => path)).toEqual([
      "/a.txt",
      "/b.txt",
      "/c.txt",
    ]);
    expect((await backend.ls("/")).files?.map(({ path }) => path)).toEqual(["/a.txt", "/b.txt", "/c.txt"]);
  });

  it("is no longer waited for after an abort", async () => {
    expect(await make().read("/a.txt", 0, 1, { signal: AbortSignal.abort() })).toEqual(
      errors.operationAborted("/a.txt"),
    );
  });

  it("works in a tree", async () => {
    const source = new CompositeBackend(new StateBackend(), { "/foreign/": make() });
    const backend = await resolveBackend(source, { files: snapshotFiles() });
    await backend.write("/foreign/a.txt", "hit");
    expect(await backend.write("/foreign/a.txt", "x")).toEqual(errors.alreadyExists("/foreign/a.txt"));
    expect(await backend.read("/foreign/b.txt")).toEqual(errors.fileNotFound("/foreign/b.txt"));
    expect((await backend.grep("hit")).matches?.map(({ path }) => path)).toEqual(["/foreign/a.txt"]);
  });
});

describe("adaptBackend", () => {
  it("asks a complete backend for everything", async () => {
    const backend = new StateBackend({ files: snapshotFiles() });
    const adapted = adaptBackend(backend);
    expect(adapted.capabilities).toBe(backend.capabilities);
    expect(await adapted.write("/a.txt", "a")).toEqual({
      ...backend.write("/a.txt", "a", { mode: "overwrite" }),
      filesUpdate: expect.anything(),
    });
    expect(await adapted.read("/a.txt")).toEqual(backend.read("/a.txt"));
  });

  it("keeps `this`, optional methods and commands", async () => {
    class Foreign {
      readonly id = "foreign-1";
      readonly #plain = foreignV2();
      ls = this.#plain.ls;
      read = this.#plain.read;
      readRaw = this.#plain.readRaw;
      grep = this.#plain.grep;
      glob = this.#plain.glob;
      write = this.#plain.write;
      edit = this.#plain.edit;
      execute(command: string) {
        return { output: `${this.id}: ${command}`, exitCode: 0, truncated: false };
      }
    }
    const backend = adaptBackend(new Foreign());
    expect(backend.delete).toBeUndefined();
    expect(backend.uploadFiles).toBeUndefined();
    expect(backend).toMatchObject({ id: "foreign-1" });
    const { execute } = backend as Foreign & Backend;
    expect(execute("ls").output).toBe("foreign-1: ls");
  });

  it("tells no path of the host that a failure has in its text", async () => {
    const said = "Error writing file: EEXIST: file already exists, mkdir '/srv/host/a.txt'";
    const foreign = { ...foreignV2(), write: () => ({ error: said }) };
    const result = await adaptBackend(foreign).write("/a.txt/b.txt", "x");
    expect(result).toEqual(errors.parentIsFile("/a.txt/b.txt"));
    const other = { ...foreignV2(), ls: () => ({ error: "EIO: i/o error, scandir '/srv/host'" }) };
    expect((await adaptBackend(other).ls("/")).error).not.toContain("/srv");
  });

  it("takes names that are found as paths from the searched directory on", async () => {
    const files = ["/src/a.ts", "b.ts", "/c/d.ts"].map((path) => ({ path }));
    const foreign = {
      ...foreignV2(),
      glob: () => ({ files: [...files, { path: "/src/dir", is_dir: true }] }),
    };
    const found = await adaptBackend(foreign).glob("**/*.ts", "/src");
    expect(found.files?.map(({ path }) => path)).toEqual(["/src/a.ts", "/src/b.ts", "/src/c/d.ts"]);
  });

  it("shares its order of writes between adapters of one backend", async () => {
    const foreign = foreignV2();
    const results = await Promise.all(
      [1, 2, 3].map(async (index) => adaptBackend(foreign).write("/a.txt", `${index}`)),
    );
    expect(results.filter((result) => result.error === undefined)).toHaveLength(1);
  });
});
