import { existsSync, linkSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { FilesystemBackend } from "../../../src/backends/filesystem/filesystem.ts";
import { findRipgrep } from "../../../src/backends/filesystem/ripgrep.ts";
import { filesIn } from "../../support/files-in.ts";

const KEY = "the key of the server";

/** A home with a program's folder and a file of settings in it, and links of every kind that lead there. */
function home(options: { descriptorPaths: boolean; ripgrep: string | false }) {
  const root = filesIn();
  const data = join(root, "share/program");
  mkdirSync(join(data, "deep"), { recursive: true });
  for (const path of ["share/program/state.md", "share/program/deep/key.md", "settings.md"]) {
    writeFileSync(join(root, path), KEY);
  }
  writeFileSync(join(root, "share/other.md"), "plain");
  symlinkSync("share/program", join(root, "folder-link"));
  symlinkSync(join(data, "state.md"), join(root, "file-link.md"));
  symlinkSync("settings.md", join(root, "settings-link.md"));
  linkSync(join(data, "deep/key.md"), join(root, "second-name.md"));
  linkSync(join(root, "settings.md"), join(root, "second-settings.md"));
  const hidden = [data, join(root, "settings.md")];
  return { root, backend: new FilesystemBackend({ rootDir: root, virtualMode: true, hidden, ...options }) };
}

const FOLDERS = [
  "/share/program",
  "/folder-link",
  "/share/./program",
  "/share/program/deep",
  "/folder-link/deep",
];
const FILES = [
  "/share/program/state.md",
  "/share/program/deep/key.md",
  "/folder-link/state.md",
  "/folder-link/../share/program/state.md",
  "/file-link.md",
  "/settings.md",
  "/settings-link.md",
  "/second-name.md",
  "/second-settings.md",
];

const ripgrep: string | false = (await findRipgrep()) ?? false;
const VARIANTS = [true, false].flatMap((descriptorPaths) =>
  [...new Set<string | false>([ripgrep, false])].map((rg) => ({ descriptorPaths, ripgrep: rg })),
);

describe.each(VARIANTS)("what is hidden below a folder, with %j", (variant) => {
  it("is not listed, found or searched", async () => {
    const { backend } = home(variant);
    const listed = (await backend.ls("/")).files?.map(({ path }) => path);
    expect(listed).not.toContain("/settings.md");
    expect(listed).not.toContain("/second-name.md");
    expect((await backend.ls("/share")).files?.map(({ path }) => path)).toEqual(["/share/other.md"]);
    for (const path of FOLDERS) {
      expect(await backend.ls(path), path).toHaveProperty("error");
      expect(await backend.glob("**/*", path), path).toHaveProperty("error");
      expect(await backend.grep("key", path), path).toHaveProperty("error");
    }
    for (const pattern of ["**/state.md", "**/key.md", "settings.md"]) {
      expect((await backend.glob(pattern)).files, pattern).toEqual([]);
    }
    expect((await backend.grep("key of")).matches).toEqual([]);
    expect((await backend.grep("plain")).matches).toHaveLength(1);
    for (const path of FILES) expect((await backend.grep("key of", path)).matches ?? [], path).toEqual([]);
  });

  it("is not read, by any name", async () => {
    const { backend } = home(variant);
    expect(await backend.read("/settings.md")).toMatchObject({ code: "not_found" });
    for (const path of FILES) {
      expect(await backend.read(path), path).toHaveProperty("error");
      expect(await backend.readRaw(path), path).toHaveProperty("error");
    }
    expect(JSON.stringify(await backend.downloadFiles(FILES))).not.toContain(KEY);
  });

  it("is not changed, and neither is what it lies in", async () => {
    const { backend, root } = home(variant);
    for (const path of [
      ...FILES,
      "/share/program/new.md",
      "/folder-link/new.md",
      "/share/program/new/new.md",
    ]) {
      expect(await backend.write(path, "planted", { mode: "overwrite" }), path).toHaveProperty("error");
      expect(await backend.edit(path, "key", "planted"), path).toHaveProperty("error");
    }
    for (const { error } of await backend.uploadFiles([["/settings.md", Buffer.from("planted")]])) {
      expect(error).not.toBeNull();
    }
    for (const path of [
      "/share",
      "/share/program",
      "/share/program/state.md",
      "/settings.md",
      "/second-name.md",
    ]) {
      expect(await backend.delete(path), path).toHaveProperty("error");
    }
    expect(await backend.delete("/share")).toMatchObject({ code: "permission_denied" });
    for (const path of ["share/program/state.md", "share/program/deep/key.md", "settings.md"]) {
      expect(readFileSync(join(root, path), "utf8"), path).toBe(KEY);
    }
    expect(existsSync(join(root, "share/other.md"))).toBe(true);
    expect(existsSync(join(root, "share/program/new.md"))).toBe(false);
    expect(await backend.delete("/share/other.md")).not.toHaveProperty("error");
    expect(await backend.delete("/folder-link")).not.toHaveProperty("error");
  });

  it("may be replaced meanwhile", async () => {
    const { backend, root } = home(variant);
    rmSync(join(root, "share/program"), { recursive: true });
    expect(await backend.write("/second.md", "mine")).not.toHaveProperty("error");
    mkdirSync(join(root, "share/program"));
    writeFileSync(join(root, "share/program/state.md"), KEY);
    expect(await backend.read("/share/program/state.md")).toHaveProperty("error");
    expect((await backend.read("/second.md")).content).toBe("mine");
  });
});
