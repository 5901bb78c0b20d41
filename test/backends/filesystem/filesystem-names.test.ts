import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { errors } from "../../../src/backends/errors.ts";
import { PolicyBackend } from "../../../src/backends/policy.ts";
import { isWindowsAlias } from "../../../src/backends/filesystem/handles.ts";
import { FilesystemBackend } from "../../../src/backends/filesystem/filesystem.ts";
import { base, make, outside, root } from "./jail-folder.ts";

describe("a root that is gone or replaced", () => {
  const failures = async (backend: FilesystemBackend) => [
    await backend.ls("/"),
    await backend.read("/a.txt"),
    await backend.grep("SECRET"),
    await backend.glob("**"),
    await backend.write("/dir/new.txt", "x"),
    await backend.edit("/a.txt", "SECRET", "x"),
    await backend.delete("/a.txt"),
  ];

  it.each([true, false])("is said, and nothing is made or followed (descriptor paths: %s)", async (way) => {
    writeFileSync(join(root, "a.txt"), "a");
    writeFileSync(join(outside, "a.txt"), "SECRET");
    const backend = make({ descriptorPaths: way });
    renameSync(root, join(base, "moved"));
    const replacements = [() => {}, () => symlinkSync(outside, root), () => writeFileSync(root, "SECRET")];
    for (const replace of replacements) {
      rmSync(root, { force: true });
      replace();
      for (const result of await failures(backend)) {
        expect(result.code).toBe("io");
        expect(result.error).toMatch(/could not be accessed: the root directory no longer exists/);
        expect(result.error).not.toContain(base);
      }
    }
    expect(readFileSync(join(outside, "a.txt"), "utf8")).toBe("SECRET");
    expect(readdirSync(outside).sort()).toEqual(["a.txt", "secret.txt"]);
    rmSync(root);
    mkdirSync(root);
    expect((await backend.write("/b.txt", "b")).error).toBeUndefined();
    expect((await backend.glob("**")).files?.map(({ path }) => path)).toEqual(["/b.txt"]);
  });
});

describe("names with characters that look alike", () => {
  const SHOT = "Screenshot at 1.01.11\u202fAM.txt";
  const NFD = "cafe\u0301";

  it.each([true, false])("are found by their plain spelling (descriptor paths: %s)", async (way) => {
    mkdirSync(join(root, NFD));
    writeFileSync(join(root, NFD, SHOT), "one\n");
    writeFileSync(join(root, "d\u2019\u00e9cran\u00a0x"), "two\n");
    const backend = make({ descriptorPaths: way });
    const plain = "/caf\u00e9/Screenshot at 1.01.11 AM.txt";
    expect(await backend.read(plain)).toMatchObject({ content: "one\n" });
    expect(await backend.read("/d'e\u0301cran x")).toMatchObject({ content: "two\n" });
    expect(await backend.edit(plain, "one", "1")).toMatchObject({ occurrences: 1 });
    expect(backend.followLinks(plain)).toBe(`/${NFD}/${SHOT}`);
    expect(backend.followLinks(plain, { lastLink: "itself" })).toBe(plain);
    expect(await backend.write(plain, "another file")).toMatchObject({ path: plain });
    expect(await backend.read(plain)).toMatchObject({ content: "another file" });
    expect(readFileSync(join(root, NFD, SHOT), "utf8")).toBe("1\n");
  });

  it("are not guessed: several fit, or another name is there", async () => {
    writeFileSync(join(root, "a\u00a0b"), "1");
    writeFileSync(join(root, "a\u202fb"), "2");
    const backend = make();
    expect(await backend.read("/a b")).toEqual(errors.fileNotFound("/a b"));
    writeFileSync(join(root, "a b"), "3");
    expect(await backend.read("/a b")).toMatchObject({ content: "3" });
    expect(await backend.read("/A B")).toEqual(errors.fileNotFound("/A B"));
    expect(await backend.read("/a\u2003b")).toEqual(errors.fileNotFound("/a\u2003b"));
  });

  it("are judged by their true spelling", async () => {
    writeFileSync(join(root, "my\u00a0keys"), "SECRET");
    const policy = new PolicyBackend(make(), { denyGlobs: ["/my\u00a0keys"] });
    expect((await policy.read("/my keys")).content).toBeUndefined();
    expect((await policy.edit("/my keys", "SECRET", "x")).error).toBeDefined();
    expect(await make({ hidden: [join(root, "my\u00a0keys")] }).read("/my keys")).toEqual(
      errors.fileNotFound("/my keys"),
    );
    expect(readFileSync(join(root, "my\u00a0keys"), "utf8")).toBe("SECRET");
  });
});

describe.runIf(process.platform === "linux")("names that are not UTF-8", () => {
  it("are counted where they cannot be named, and never taken for another file", async () => {
    const raw = Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0x61, 0xff, 0x62])]);
    writeFileSync(raw, "needle");
    writeFileSync(join(root, "back\\slash"), "needle");
    for (const ripgrep of [undefined, false] as const) {
      const backend = make(ripgrep === undefined ? {} : { ripgrep });
      expect(await backend.ls("/")).toEqual({ files: [], skipped: 2 });
      expect((await backend.glob("**")).files).toEqual([]);
      expect((await backend.grep("needle")).matches).toEqual([]);
      await backend.write("/a\ufffdb", "needle");
      expect((await backend.grep("needle")).matches).toEqual([
        { path: "/a\ufffdb", line: 1, text: "needle" },
      ]);
      expect(await backend.ls("/")).toMatchObject({ files: [{ path: "/a\ufffdb" }], skipped: 2 });
      expect((await backend.glob("**")).files).toHaveLength(1);
      await backend.delete("/a\ufffdb");
    }
    expect(readFileSync(raw, "utf8")).toBe("needle");
  });
});

describe("names Windows takes for something else", () => {
  it.each([
    ..."nul NUL con.txt aux. com1 LPT9.log CONIN$ a.txt:stream a.txt::$DATA c: dir. .. ...".split(" "),
    "a ",
    "com¹",
  ])("%j is one", (name) => expect(isWindowsAlias(name)).toBe(true));

  it.each([...". .env a.b null console com10 lpt .nul auxiliary.txt".split(" "), " a", "a b"])(
    "%j is none",
    (name) => expect(isWindowsAlias(name)).toBe(false),
  );
});
