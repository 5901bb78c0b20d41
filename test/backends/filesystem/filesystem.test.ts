import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { errors } from "../../../src/backends/errors.ts";
import { FilesystemBackend } from "../../../src/backends/filesystem/filesystem.ts";
import { ConfigurationError } from "../../../src/core/errors.ts";
import { base, make, outside, root } from "./jail-folder.ts";

describe("FilesystemBackend construction", () => {
  it("refuses a root that is a file, or below one", () => {
    const file = join(outside, "secret.txt");
    for (const rootDir of [file, join(file, "sub")]) {
      expect(() => make({ rootDir })).toThrow(ConfigurationError);
    }
  });

  it.each([true, false])("makes a missing root on first write, virtual paths: %s", async (virtualMode) => {
    const rootDir = join(root, "not", "yet");
    const backend = make({ rootDir, virtualMode });
    const top = virtualMode ? "/" : rootDir;
    expect(await backend.ls(top)).toEqual({ files: [], skipped: 0 });
    expect(await backend.glob("**")).toEqual({ files: [], skipped: 0, truncated: false });
    expect(await backend.grep("x")).toEqual({ matches: [], skipped: 0, truncated: false });
    const file = join(top, "sub", "a.txt");
    expect(await backend.read(file)).toEqual(errors.fileNotFound(file));
    expect(await backend.edit(file, "a", "b")).toEqual(errors.fileNotFound(file));
    expect(existsSync(rootDir)).toBe(false);
    expect(await backend.write(file, "x")).toMatchObject({ path: file });
    expect(readFileSync(join(rootDir, "sub", "a.txt"), "utf8")).toBe("x");
    expect((await backend.grep("x")).matches).toHaveLength(1);
  });

  it("does not make a root again that somebody has removed", async () => {
    const rootDir = join(root, "made");
    const backend = make({ rootDir });
    await backend.write("/a.txt", "x");
    rmSync(rootDir, { recursive: true });
    expect(await backend.write("/b.txt", "x")).toMatchObject({ code: "io" });
    expect(await backend.ls("/")).toMatchObject({ code: "io" });
  });

  it("takes a root that is reached through a link", async () => {
    symlinkSync(root, join(base, "alias"));
    writeFileSync(join(root, "a.txt"), "a");
    symlinkSync(join(base, "alias", "a.txt"), join(root, "by-alias"));
    const backend = make({ rootDir: join(base, "alias") });
    expect((await backend.read("/a.txt")).content).toBe("a");
    expect((await backend.read("/by-alias")).content).toBe("a");
  });

  it("uses the working directory by default", async () => {
    const backend = new FilesystemBackend({ virtualMode: true });
    expect((await backend.read("/package.json")).content).toContain('"name"');
  });
});

describe("real paths", () => {
  it("takes and gives paths of this machine", async () => {
    const backend = make({ virtualMode: false });
    expect(backend.capabilities.paths).toBe("real");
    expect(await backend.write("sub/a.txt", "a")).toMatchObject({ path: join(root, "sub/a.txt") });
    expect((await backend.read(join(root, "sub/a.txt"))).content).toBe("a");
    expect((await backend.glob("**")).files).toEqual([{ path: join(root, "sub/a.txt"), is_dir: false }]);
  });

  it("does not leave the root all the same", async () => {
    const backend = make({ virtualMode: false });
    const secret = join(outside, "secret.txt");
    expect(await backend.read(secret)).toEqual(errors.outsideRoot(secret, root));
    expect(await backend.write(join(base, "root-beside.txt"), "x")).toMatchObject({ code: "outside_root" });
    expect(await backend.ls("/")).toEqual(errors.outsideRoot("/", root));
    expect(existsSync(join(base, "root-beside.txt"))).toBe(false);
  });

  it("leaves it when containment is switched off", async () => {
    const backend = make({ virtualMode: false, containment: "none" });
    expect((await backend.read(join(outside, "secret.txt"))).content).toBe("SECRET\n");
    expect((await backend.write("a.txt", "a")).path).toBe(join(root, "a.txt"));
    expect(await backend.delete(root)).toEqual(errors.refusedToDelete(root));
    expect(await backend.delete(base)).toEqual(errors.refusedToDelete(base));
  });
});

it("what is no regular file is not waited for", async () => {
  execFileSync("mkfifo", [join(root, "pipe")]);
  const backend = make();
  expect(await backend.read("/pipe")).toEqual(errors.notRegularFile("/pipe"));
  const listener = createServer().listen(join(root, "socket"));
  await new Promise((resolve) => listener.once("listening", resolve));
  expect(await backend.read("/socket")).toEqual(errors.notRegularFile("/socket"));
  expect(await backend.grep("a", "/socket")).toMatchObject({ matches: [] });
  listener.close();
  expect(await backend.readRaw("/pipe")).toEqual(errors.notRegularFile("/pipe"));
  expect(await backend.grep("a", "/pipe")).toMatchObject({ matches: [] });
  expect(await backend.edit("/pipe", "a", "b")).toEqual(errors.notRegularFile("/pipe"));
  expect(await backend.write("/pipe", "a", { mode: "overwrite" })).toEqual(errors.notRegularFile("/pipe"));
  expect((await backend.grep("a")).matches).toEqual([]);
  expect((await backend.glob("**")).files).toEqual([]);
});

describe("writing", () => {
  it("keeps no right of the owner for other content", async () => {
    writeFileSync(join(root, "tool"), "old");
    chmodSync(join(root, "tool"), 0o6755);
    await make().edit("/tool", "old", "new");
    expect(statSync(join(root, "tool")).mode & 0o7777).toBe(0o755);
  });

  it("keeps the mode of a file, and leaves no temporary file", async () => {
    writeFileSync(join(root, "run.sh"), "echo one\n");
    chmodSync(join(root, "run.sh"), 0o750);
    const backend = make();
    await backend.edit("/run.sh", "one", "two");
    expect(statSync(join(root, "run.sh")).mode & 0o7777).toBe(0o750);
    await backend.write("/run.sh", "echo three\n", { mode: "overwrite" });
    expect(statSync(join(root, "run.sh")).mode & 0o7777).toBe(0o750);
    expect(readdirSync(root)).toEqual(["run.sh"]);
  });

  it("changes a file with several names under all of them, and gives those that it finds", async () => {
    mkdirSync(join(root, "dir"));
    linkSync(join(outside, "secret.txt"), join(root, "hard.txt"));
    linkSync(join(outside, "secret.txt"), join(root, "dir/other.txt"));
    const backend = make();
    const edited = await backend.edit("/hard.txt", "SECRET", "a longer text");
    expect(edited).toMatchObject({ occurrences: 1, otherNames: ["/dir/other.txt"] });
    expect(edited.version).toBe((await backend.read("/dir/other.txt")).version);
    const written = await backend.write("/dir/other.txt", "short", { mode: "overwrite" });
    expect(written.otherNames).toEqual(["/hard.txt"]);
    for (const name of ["root/hard.txt", "root/dir/other.txt", "outside/secret.txt"]) {
      expect(readFileSync(join(base, name), "utf8")).toBe("short");
    }
    expect(readdirSync(root)).toEqual(["dir", "hard.txt"]);
    expect((await backend.ls("/hard.txt")).files).toMatchObject([{ names: 3 }]);
    rmSync(join(root, "dir/other.txt"));
    expect(await backend.edit("/hard.txt", "short", "long")).toMatchObject({ otherNames: [] });
  });

  it("leaves a file alone that has a hidden name besides, and one that cannot be written to", async () => {
    writeFileSync(join(root, "key"), "KEY");
    linkSync(join(root, "key"), join(root, "copy"));
    const hides = (path: string): boolean => path === "/key";
    const options = { mode: "overwrite", hides } as const;
    expect(await make().write("/copy", "x", options)).toEqual(errors.permissionDenied("/copy"));
    expect(await make().edit("/copy", "KEY", "x", false, options)).toEqual(errors.permissionDenied("/copy"));
    expect(readFileSync(join(root, "key"), "utf8")).toBe("KEY");
  });

  it("changes a read-only file only when that is allowed, and keeps its mode", async () => {
    writeFileSync(join(root, "ro.txt"), "one");
    chmodSync(join(root, "ro.txt"), 0o444);
    const backend = make();
    const refused = errors.readOnlyFile("/ro.txt");
    expect(await backend.edit("/ro.txt", "one", "two")).toEqual(refused);
    expect(await backend.write("/ro.txt", "two", { mode: "overwrite" })).toEqual(refused);
    expect(await backend.uploadFiles([["/ro.txt", new Uint8Array(1)]])).toMatchObject([
      { error: "permission_denied" },
    ]);
    expect((await backend.ls("/")).files).toMatchObject([{ path: "/ro.txt", read_only: true }]);
    expect(readFileSync(join(root, "ro.txt"), "utf8")).toBe("one");
    const allowed = { evenReadOnly: true };
    expect((await backend.edit("/ro.txt", "one", "two", false, allowed)).error).toBeUndefined();
    expect(
      (await backend.write("/ro.txt", "three", { mode: "overwrite", ...allowed })).error,
    ).toBeUndefined();
    expect(readFileSync(join(root, "ro.txt"), "utf8")).toBe("three");
    expect(statSync(join(root, "ro.txt")).mode & 0o777).toBe(0o444);
  });

  it("shows nobody a temporary file", async () => {
    writeFileSync(join(root, ".deepagent-0123456789abcdef01234567.tmp"), "half");
    const backend = make();
    expect((await backend.ls("/")).files).toEqual([]);
    expect((await backend.glob("**")).files).toEqual([]);
    expect((await backend.grep("half")).matches).toEqual([]);
  });

  it("tells a file that someone else changed, even to the same size and time", async () => {
    const file = join(root, "a.txt");
    writeFileSync(file, "one");
    const time = new Date("2026-01-01T00:00:00Z");
    utimesSync(file, time, time);
    const backend = make();
    const { version = "" } = await backend.read("/a.txt");
    writeFileSync(file, "two");
    utimesSync(file, time, time);
    const edit = await backend.edit("/a.txt", "two", "three", false, { expectedVersion: version });
    expect(edit).toEqual(errors.changedSinceRead("/a.txt"));
  });

  it("loses no edit of several backends on one directory", async () => {
    writeFileSync(join(root, "a.txt"), Array.from({ length: 30 }, (_, index) => `<${index}>`).join("\n"));
    const results = await Promise.all(
      Array.from({ length: 30 }, (_, index) => make().edit("/a.txt", `<${index}>`, `[${index}]`)),
    );
    expect(results.map((result) => result.error)).toEqual(results.map(() => undefined));
    expect(readFileSync(join(root, "a.txt"), "utf8")).not.toContain("<");
  });

  it("does not edit a file over the limit, and says how large it is", async () => {
    writeFileSync(join(root, "big.txt"), "x".repeat(3 * 1024 * 1024));
    const backend = make({ maxFileSizeMb: 2 });
    expect(await backend.edit("/big.txt", "x", "y")).toMatchObject({
      code: "too_large",
      error: "File '/big.txt' is too large to edit (3 MB, limit 2 MB)",
    });
  });

  it("leaves the file alone when it is aborted", async () => {
    writeFileSync(join(root, "a.txt"), "one");
    const signal = AbortSignal.abort();
    const backend = make();
    expect((await backend.edit("/a.txt", "one", "two", false, { signal })).code).toBe("aborted");
    expect((await backend.write("/b.txt", "x", { signal })).code).toBe("aborted");
    expect(readdirSync(root)).toEqual(["a.txt"]);
    expect(readFileSync(join(root, "a.txt"), "utf8")).toBe("one");
  });
});

describe("reading", () => {
  it("pages through a file far larger than the limit", async () => {
    const line = `${"x".repeat(99)}\n`;
    writeFileSync(join(root, "big.txt"), line.repeat(300_000));
    const backend = make({ maxFileSizeMb: 1 });
    const middle = await backend.read("/big.txt", 150_000, 3);
    expect(middle).toMatchObject({ content: line.repeat(3), startLine: 150_000, nextOffset: 150_003 });
    expect(middle.totalLines).toBeUndefined();
    const end = await backend.read("/big.txt", 299_999, 10);
    expect(end).toMatchObject({ content: line, endLine: 300_000, totalLines: 300_000 });
    expect(await backend.read("/big.txt", 300_000, 1)).toEqual(errors.offsetPastEnd(300_000, 300_000));
  });

  it("ends a page that grows too large at a line, and refuses a line that is too large", async () => {
    const line = `${"x".repeat(4 * 1024 * 1024)}\n`;
    writeFileSync(join(root, "long.txt"), line.repeat(3));
    const page = await make().read("/long.txt");
    expect(page).toMatchObject({ startLine: 0, endLine: 2, nextOffset: 2 });
    expect(page.content).toHaveLength(line.length * 2);
    writeFileSync(join(root, "longest.txt"), `a\n${"x".repeat(11 * 1024 * 1024)}\n`);
    expect((await make().read("/longest.txt", 0, 5)).nextOffset).toBe(1);
    expect(await make().read("/longest.txt", 1)).toMatchObject({ code: "too_large" });
  });

  it("holds no more than it is asked for of a file without lines", async () => {
    writeFileSync(join(root, "sparse.bin"), "");
    truncateSync(join(root, "sparse.bin"), 50 * 1024 ** 3);
    expect(await make().read("/sparse.bin")).toMatchObject({ code: "too_large" });
    expect(await make().readRaw("/sparse.bin")).toMatchObject({ code: "too_large" });
    expect(await make().edit("/sparse.bin", "a", "b")).toMatchObject({ code: "too_large" });
  });
});

describe("deep and wide trees", () => {
  it("lists, searches and deletes a tree deeper than the path limit of one call", async () => {
    const backend = make();
    const deep = `/${Array.from({ length: 60 }, () => "d".repeat(100)).join("/")}`;
    expect((await backend.write(`${deep}/a.txt`, "needle")).error).toBeUndefined();
    expect((await backend.read(`${deep}/a.txt`)).content).toBe("needle");
    expect((await backend.glob("**/*.txt")).files?.map(({ path }) => path)).toEqual([`${deep}/a.txt`]);
    expect((await make({ ripgrep: false }).grep("needle")).matches).toHaveLength(1);
    expect((await backend.delete(`/${"d".repeat(100)}`)).error).toBeUndefined();
    expect(readdirSync(root)).toEqual([]);
  });

  it("tells a name that is too long", async () => {
    expect(await make().write(`/${"x".repeat(300)}`, "x")).toMatchObject({ code: "io" });
  });
});
