import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { errors } from "../../../src/backends/errors.ts";
import { base, make, outside, root } from "./jail-folder.ts";

for (const descriptorPaths of [true, false]) {
  describe(`links, ${descriptorPaths ? "with" : "without"} descriptor paths`, () => {
    it("that stay inside are followed", async () => {
      mkdirSync(join(root, "real/deep"), { recursive: true });
      writeFileSync(join(root, "real/a.txt"), "one\n");
      symlinkSync("real", join(root, "relative"));
      symlinkSync(join(root, "real"), join(root, "absolute"));
      symlinkSync("../a.txt", join(root, "real/deep/up"));
      symlinkSync("relative/deep/../a.txt", join(root, "winding"));
      const backend = make({ descriptorPaths });
      for (const path of ["/relative/a.txt", "/absolute/a.txt", "/real/deep/up", "/winding"]) {
        expect((await backend.read(path)).content, path).toBe("one\n");
      }
      expect((await backend.write("/absolute/new.txt", "new")).error).toBeUndefined();
      expect(readFileSync(join(root, "real/new.txt"), "utf8")).toBe("new");
      expect((await backend.edit("/winding", "one", "two")).error).toBeUndefined();
      expect(readFileSync(join(root, "real/a.txt"), "utf8")).toBe("two\n");
      expect(lstatSync(join(root, "winding")).isSymbolicLink()).toBe(true);
      expect((await backend.glob("**")).files?.map(({ path }) => path)).toEqual([
        "/real/a.txt",
        "/real/deep/up",
        "/real/new.txt",
        "/winding",
      ]);
      expect((await backend.grep("two", "/winding")).matches?.map(({ path }) => path)).toEqual(["/winding"]);
      expect((await backend.grep("two", "/relative")).matches?.map(({ path }) => path)).toEqual([
        "/relative/a.txt",
      ]);
    });

    const ESCAPES: [name: string, target: () => string][] = [
      ["absolute file", () => join(outside, "secret.txt")],
      ["relative file", () => "../outside/secret.txt"],
      ["directory", () => outside],
      ["parent", () => ".."],
      ["root of the system", () => "/"],
      ["itself", () => "link"],
      ["nowhere", () => "missing"],
      ["a name that starts like the root", () => `${root}side/x`],
    ];

    it.each(ESCAPES)("to the outside are refused by every method: %s", async (_name, target) => {
      mkdirSync(join(base, "rootside"));
      writeFileSync(join(base, "rootside/x"), "SECRET");
      symlinkSync(target(), join(root, "link"));
      const backend = make({ descriptorPaths });
      const paths = ["/link", "/link/secret.txt", "/link/outside/secret.txt", "/link/new/file.txt"];
      const answers: unknown[] = [
        await backend.glob("**"),
        await backend.grep("SECRET"),
        await backend.ls("/"),
      ];
      for (const path of paths) {
        const results = [
          await backend.read(path),
          await backend.readRaw(path),
          await backend.grep("SECRET", path),
          await backend.glob("**", path),
          await backend.edit(path, "SECRET", "x"),
          await backend.write(path, "x"),
          await backend.write(path, "x", { mode: "overwrite" }),
        ];
        // Through a link to nowhere inside the root, files can be made below the root only.
        for (const result of results.slice(0, 5)) expect(result.error, path).toBeDefined();
        answers.push(...results);
        answers.push(await backend.ls(path), await backend.downloadFiles([path]));
      }
      const said = JSON.stringify(answers);
      expect(said).not.toContain("SECRET");
      expect(said).not.toContain(base);
      expect(readdirSync(outside)).toEqual(["secret.txt"]);
      expect(readFileSync(join(outside, "secret.txt"), "utf8")).toBe("SECRET\n");
      expect(readdirSync(base).sort()).toEqual(["outside", "root", "rootside"]);
    });

    it("are not written to, and of a link only the link is deleted", async () => {
      symlinkSync(outside, join(root, "dir"));
      symlinkSync("a.txt", join(root, "inside"));
      writeFileSync(join(root, "a.txt"), "a");
      const backend = make({ descriptorPaths });
      expect(await backend.write("/inside", "x")).toEqual(errors.writeToSymlink("/inside"));
      expect(await backend.write("/dir", "x", { mode: "overwrite" })).toEqual(errors.writeToSymlink("/dir"));
      expect(await backend.delete("/dir/secret.txt")).toEqual(
        errors.symlinkNotAllowed("/dir/secret.txt", "outside_root"),
      );
      expect((await backend.delete("/dir")).error).toBeUndefined();
      expect((await backend.delete("/inside")).error).toBeUndefined();
      expect(existsSync(join(outside, "secret.txt"))).toBe(true);
      expect(readFileSync(join(root, "a.txt"), "utf8")).toBe("a");
    });

    it("inside a deleted directory are removed, not followed", async () => {
      mkdirSync(join(root, "dir/sub"), { recursive: true });
      symlinkSync(outside, join(root, "dir/sub/link"));
      const backend = make({ descriptorPaths });
      expect((await backend.delete("/dir")).error).toBeUndefined();
      expect(existsSync(join(outside, "secret.txt"))).toBe(true);
    });

    it("are listed by name, with the facts of what they lead to inside only", async () => {
      mkdirSync(join(root, "dir"));
      writeFileSync(join(root, "a.txt"), "abc");
      symlinkSync("dir", join(root, "to-dir"));
      symlinkSync("a.txt", join(root, "to-file"));
      symlinkSync(join(outside, "secret.txt"), join(root, "to-outside"));
      const { files = [] } = await make({ descriptorPaths }).ls("/");
      expect(files.map(({ path, size }) => [path, size])).toEqual([
        ["/a.txt", 3],
        ["/dir/", undefined],
        ["/to-dir/", undefined],
        ["/to-file", 3],
        ["/to-outside", undefined],
      ]);
    });
  });
}
