import {
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Backend } from "../../../src/backends/backend.ts";
import { CompositeBackend } from "../../../src/backends/composite/composite.ts";
import { errors } from "../../../src/backends/errors.ts";
import { OverlayBackend } from "../../../src/backends/overlay.ts";
import { type PolicyOptions, SENSITIVE_GLOBS } from "../../../src/backends/policy-rules.ts";
import { PolicyBackend } from "../../../src/backends/policy.ts";
import { resolveBackend, snapshotFiles } from "../../../src/backends/runtime.ts";
import { StateBackend } from "../../../src/backends/stores/state.ts";
import { make, root } from "../filesystem/jail-folder.ts";

const RULES: PolicyOptions = {
  denyGlobs: [...SENSITIVE_GLOBS, "*.pem", "/config/*.key"],
  denyPrefixes: ["/vendor", "/Locked/deep"],
};

const file = (path: string, content = `SECRET of ${path}`): void => {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), content);
};
const link = (path: string, target: string): void => {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  symlinkSync(target, join(root, path));
};

/** A folder as a hostile repository ships it. */
function repository(): void {
  for (const path of [".env", "secrets/x.txt", "keys/a.pem", "config/prod.key"]) file(path);
  file("config/plain.txt", "plain");
  file("vendor/v.txt", "vendor");
  file("Locked/deep/l.txt", "locked");
  file("open/o.txt", "open");
  link("env.txt", ".env");
  link("chain.txt", "env.txt");
  link("s", "secrets");
  link("absolute", join(root, "secrets"));
  link("a.txt", "keys/a.pem");
  link("c", "config");
  link("self", ".");
  link("v", "vendor");
  link("v.txt", "vendor/v.txt");
  link("winding", "open/../self/./vendor");
  link("l", "Locked");
  link("o", "open");
  link("o.txt", "open/o.txt");
  link("round", "round");
  link("out.txt", "../outside/secret.txt");
  link("unmade", "new/secrets");
}

const HIDDEN_FILES = [
  "/env.txt",
  "/chain.txt",
  "/s/x.txt",
  "/absolute/x.txt",
  "/a.txt",
  "/c/prod.key",
  "/self/config/prod.key",
  "/self/c/prod.key",
  "/self/env.txt",
  "/s//./x.txt",
  "/self/self/self/s/x.txt",
  "/unmade/x.txt",
];
const READ_ONLY_FILES = ["/v/v.txt", "/v.txt", "/winding/v.txt", "/self/v/v.txt", "/l/deep/l.txt"];

const arrangements: [name: string, over: (disk: Backend) => Promise<Backend> | Backend, prefix: string][] = [
  ["the folder", (disk) => new PolicyBackend(disk, RULES), ""],
  [
    "a mount",
    (disk) => new CompositeBackend(new StateBackend(), { "/work/": new PolicyBackend(disk, RULES) }),
    "/work",
  ],
  [
    "a tree that has it as its default",
    (disk) => new PolicyBackend(new CompositeBackend(disk, { "/other/": new StateBackend() }), RULES),
    "",
  ],
  ["another policy", (disk) => new PolicyBackend(new PolicyBackend(disk, { readOnly: false }), RULES), ""],
  ["an overlay", (disk) => new PolicyBackend(new OverlayBackend(disk), RULES), ""],
];

for (const [name, over, prefix] of arrangements) {
  describe(`rules by place, over ${name}`, () => {
    const open = async (descriptorPaths = true): Promise<Backend> => {
      repository();
      return resolveBackend(await over(make({ descriptorPaths })), { files: snapshotFiles() });
    };
    const at = (path: string): string => prefix + path;

    it.each([true, false])("hide links to hidden files, with descriptor paths: %s", async (descriptors) => {
      const backend = await open(descriptors);
      for (const path of HIDDEN_FILES) {
        const there = at(path.replaceAll(/\/\.?(?=\/)/g, ""));
        const missing = errors.fileNotFound(there);
        expect(await backend.read(at(path)), path).toEqual(missing);
        expect(await backend.readRaw(at(path)), path).toEqual(missing);
        expect(await backend.edit(at(path), "SECRET", "x"), path).toEqual(missing);
        expect(await backend.delete?.(at(path)), path).toEqual(missing);
        expect(await backend.ls(at(path)), path).toEqual(errors.directoryNotFound(there));
        expect(await backend.glob("**", at(path)), path).toEqual(errors.directoryNotFound(there));
        expect(await backend.grep("SECRET", at(path)), path).toEqual(errors.pathNotFound(there));
        for (const mode of ["create", "overwrite"] as const) {
          const refused = await backend.write(at(path), "x", { mode });
          expect(refused, path).toEqual(errors.permissionDenied(there));
        }
        const [upload] = (await backend.uploadFiles?.([[at(path), new Uint8Array()]])) ?? [];
        expect(upload?.error, path).toBe("permission_denied");
        const [download] = (await backend.downloadFiles?.([at(path)])) ?? [];
        expect(download, path).toMatchObject({ content: null, error: "file_not_found" });
      }
      for (const path of [".env", "secrets/x.txt", "keys/a.pem", "config/prod.key"]) {
        expect(readFileSync(join(root, path), "utf8")).toBe(`SECRET of ${path}`);
      }
    });

    it("show no link to a hidden place in listings and searches", async () => {
      const backend = await open();
      const listed = (await backend.ls(at("/"))).files?.map(({ path }) => path.slice(prefix.length));
      expect(listed?.filter((path) => !path.startsWith("/other"))).toEqual([
        "/Locked/",
        "/c/",
        "/config/",
        "/keys/",
        "/l/",
        "/o.txt",
        "/o/",
        "/open/",
        "/out.txt",
        "/round",
        "/self/",
        "/v.txt",
        "/v/",
        "/vendor/",
        "/winding/",
      ]);
      expect((await backend.ls(at("/c"))).files?.map(({ path }) => path)).toEqual([at("/c/plain.txt")]);
      const shown = ["/Locked/deep/l.txt", "/config/plain.txt", "/o.txt", "/open/o.txt"];
      for (const top of ["", "/self", "/self/self"]) {
        const found = (await backend.glob("**", at(top || "/"))).files?.map(({ path }) => path);
        expect(found, top).toEqual([...shown, "/v.txt", "/vendor/v.txt"].map((path) => at(top + path)));
        expect((await backend.grep("SECRET", at(top || "/"))).matches, top).toEqual([]);
      }
      expect((await backend.glob("**", at("/c"))).files?.map(({ path }) => path)).toEqual([
        at("/c/plain.txt"),
      ]);
    });

    it("let links to protected folders be read, and nothing be changed there", async () => {
      const backend = await open();
      for (const path of READ_ONLY_FILES) {
        expect((await backend.read(at(path))).error, path).toBeUndefined();
        expect(await backend.edit(at(path), "o", "x"), path).toEqual(errors.editsNotAllowed(at(path)));
      }
      for (const path of ["/v/n", "/winding/n", "/self/v/sub/n", "/l/deep/n", "/self/Locked/deep/n"]) {
        expect(await backend.write(at(path), "x"), path).toEqual(errors.writesNotAllowed(at(path)));
        const [upload] = (await backend.uploadFiles?.([[at(path), new Uint8Array()]])) ?? [];
        expect(upload?.error, path).toBe("permission_denied");
      }
      for (const path of ["/v/v.txt", "/l/deep", "/self/vendor", "/self/Locked", "/l/deep/l.txt"]) {
        expect(await backend.delete?.(at(path)), path).toEqual(errors.deletesNotAllowed(at(path)));
      }
      expect(readdirSync(join(root, "vendor"))).toEqual(["v.txt"]);
      expect(readdirSync(join(root, "Locked/deep"))).toEqual(["l.txt"]);
    });

    it("leave links between other places as they were", async () => {
      const backend = await open();
      expect((await backend.read(at("/o/o.txt"))).content).toBe("open");
      expect((await backend.edit(at("/o.txt"), "open", "shut")).error).toBeUndefined();
      expect((await backend.write(at("/o/new/n.txt"), "new")).error).toBeUndefined();
      expect((await backend.read(at("/o/new/n.txt"))).content).toBe("new");
      expect((await backend.read(at("/round"))).code).toBe("symlink");
      expect((await backend.read(at("/out.txt"))).error).toBe(`Symlinks are not allowed: ${at("/out.txt")}`);
      expect((await backend.read(at("/o/none.txt"))).code).toBe("not_found");
    });
  });
}

const guard = (options: PolicyOptions = RULES): PolicyBackend => new PolicyBackend(make(), options);

it("a hard link to a file that may not be changed is left alone, and another one is changed under both names", async () => {
  mkdirSync(join(root, "ro"));
  writeFileSync(join(root, "ro/a.txt"), "kept");
  linkSync(join(root, "ro/a.txt"), join(root, "b.txt"));
  const policy = new PolicyBackend(make(), { denyPrefixes: ["/ro"] });
  expect((await policy.edit("/b.txt", "kept", "x")).code).toBe("permission_denied");
  expect((await policy.write("/b.txt", "x", { mode: "overwrite" })).code).toBe("permission_denied");
  expect(readFileSync(join(root, "ro/a.txt"), "utf8")).toBe("kept");
  expect(await policy.read("/b.txt")).toMatchObject({ content: "kept" });
  linkSync(join(root, "ro/a.txt"), join(root, "c.txt"));
  const free = new PolicyBackend(make(), { denyPrefixes: ["/other"] });
  expect(await free.edit("/b.txt", "kept", "x")).toMatchObject({ otherNames: ["/c.txt", "/ro/a.txt"] });
});

describe("links in a folder with rules", () => {
  it("can be deleted if they lead to a protected place, and the place stays", async () => {
    repository();
    const backend = guard();
    for (const path of ["/self/v", "/v.txt", "/self/self/winding", "/l", "/self/out.txt", "/round"]) {
      expect((await backend.delete(path)).error, path).toBeUndefined();
      const there = lstatSync(join(root, basename(path)), { throwIfNoEntry: false });
      expect(there, path).toBeUndefined();
    }
    expect(readFileSync(join(root, "vendor/v.txt"), "utf8")).toBe("vendor");
    expect(readdirSync(join(root, "Locked/deep"))).toEqual(["l.txt"]);
  });

  it("go with the folder that they are in, and what they lead to stays", async () => {
    repository();
    link("folder/env", "../.env");
    link("folder/v", "../vendor");
    expect((await guard().delete("/folder")).error).toBeUndefined();
    expect(readFileSync(join(root, ".env"), "utf8")).toContain("SECRET");
    expect(readFileSync(join(root, "vendor/v.txt"), "utf8")).toBe("vendor");
  });

  it("do not let a tree with hidden files be deleted by another name", async () => {
    file("area/deep/.env");
    link("other", "area");
    const backend = guard();
    expect(await backend.delete("/other/deep")).toEqual(errors.deletesNotAllowed("/other/deep"));
    expect(await backend.delete("/area")).toEqual(errors.deletesNotAllowed("/area"));
    expect(existsSync(join(root, "area/deep/.env"))).toBe(true);
  });

  it("make no difference if they lead to a place that does not exist yet", async () => {
    link("later", "a/secrets");
    link("later-key", "config/new.key");
    link("later-vendor", "vendor/deep/er");
    link("up", "none/../vendor");
    link("up-hidden", "none/../secrets");
    const backend = guard();
    expect(await backend.write("/later/x", "x")).toEqual(errors.permissionDenied("/later/x"));
    expect(await backend.write("/later-key", "x")).toEqual(errors.permissionDenied("/later-key"));
    expect(await backend.write("/later-vendor/x", "x")).toEqual(errors.writesNotAllowed("/later-vendor/x"));
    // The system follows no link through a missing directory and back, so nobody follows it.
    for (const path of ["/up/x", "/up-hidden/x"]) {
      expect((await backend.write(path, "x")).code).toBe("symlink");
      expect((await backend.read(path)).code).toBe("symlink");
    }
    const listed = (await backend.ls("/")).files?.map(({ path }) => path);
    expect(listed).toEqual(["/later-vendor", "/up", "/up-hidden"]);
    expect(readdirSync(root)).toHaveLength(5);
    expect((await backend.write("/none/n.txt", "x")).error).toBeUndefined();
    expect(await backend.write("/up/x", "x")).toEqual(errors.writesNotAllowed("/up/x"));
    expect((await backend.read("/up-hidden/x")).code).toBe("not_found");
  });

  it("count by any spelling of the place", async () => {
    file("SECRETS/x.txt");
    file("Vendor/v.txt", "vendor");
    link("s", "SECRETS");
    link("v", "Vendor");
    const backend = guard();
    expect((await backend.read("/s/x.txt")).code).toBe("not_found");
    expect(await backend.write("/v/n", "x")).toEqual(errors.writesNotAllowed("/v/n"));
  });

  it("take rules with them if a rule names them", async () => {
    file("lib/v.txt", "lib");
    file("real-config/prod.key");
    link("vendor", "lib");
    link("config", "real-config");
    const backend = guard();
    expect(await backend.edit("/lib/v.txt", "lib", "x")).toEqual(errors.editsNotAllowed("/lib/v.txt"));
    expect(await backend.write("/lib/n.txt", "x")).toEqual(errors.writesNotAllowed("/lib/n.txt"));
    expect(await backend.delete("/lib")).toEqual(errors.deletesNotAllowed("/lib"));
    expect(await backend.read("/real-config/prod.key")).toEqual(errors.fileNotFound("/real-config/prod.key"));
    expect((await backend.grep("SECRET")).matches).toEqual([]);
    expect((await backend.glob("**")).files?.map(({ path }) => path)).toEqual(["/lib/v.txt"]);
    expect((await backend.write("/other/n.txt", "x")).error).toBeUndefined();
  });

  it("lead out of the allowed folders for nobody", async () => {
    file("src/a.txt", "a");
    file("private/p.txt");
    link("src/p", "../private");
    link("src/p.txt", "../private/p.txt");
    link("src/up", "..");
    link("alias", "src");
    const backend = guard({ allowPrefixes: ["/src"] });
    for (const path of ["/src/p/p.txt", "/src/p.txt", "/src/up/private/p.txt"]) {
      expect(await backend.read(path), path).toEqual(errors.fileNotFound(path));
    }
    expect((await backend.ls("/src")).files?.map(({ path }) => path)).toEqual(["/src/a.txt", "/src/up/"]);
    expect((await backend.ls("/src/up")).files?.map(({ path }) => path)).toEqual(["/src/up/src/"]);
    expect((await backend.grep("SECRET", "/src/up")).matches).toEqual([]);
    expect((await backend.ls("/")).files?.map(({ path }) => path)).toEqual(["/src/"]);
  });

  it("are not followed when they appear after the place was judged", async () => {
    repository();
    const disk = make();
    const turned = (method: "read" | "write" | "ls" | "grep") => async (): Promise<unknown> => {
      const judged: Backend = {
        ...bound(disk),
        followLinks: (path, options) => {
          const real = disk.followLinks(path, options);
          if (path === "/open/sub/x.txt" || path === "/open/sub") {
            rmSync(join(root, "open/sub"), { recursive: true, force: true });
            symlinkSync("../secrets", join(root, "open/sub"));
          }
          return real;
        },
      };
      rmSync(join(root, "open/sub"), { recursive: true, force: true });
      file("open/sub/x.txt", "open");
      const backend = new PolicyBackend(judged, RULES);
      if (method === "read") return backend.read("/open/sub/x.txt");
      if (method === "write") return backend.write("/open/sub/x.txt", "PWN", { mode: "overwrite" });
      return method === "ls" ? backend.ls("/open/sub") : backend.grep("SECRET", "/open/sub");
    };
    for (const method of ["read", "write", "ls", "grep"] as const) {
      expect(await turned(method)(), method).toMatchObject({ code: "symlink" });
    }
    expect(readFileSync(join(root, "secrets/x.txt"), "utf8")).toBe("SECRET of secrets/x.txt");
  });

  it("do not have to be links: a second name of a hidden file cannot be read either", async () => {
    repository();
    linkSync(join(root, "keys/a.pem"), join(root, "second.txt"));
    linkSync(join(root, "open/o.txt"), join(root, "twin.txt"));
    for (const ripgrep of [undefined, false as const]) {
      const backend = new PolicyBackend(make(ripgrep === undefined ? {} : { ripgrep }), RULES);
      const refused = errors.permissionDenied("/second.txt");
      expect(await backend.read("/second.txt")).toEqual(refused);
      expect(await backend.readRaw("/self/second.txt")).toEqual(errors.permissionDenied("/self/second.txt"));
      expect(await backend.edit("/second.txt", "SECRET", "x")).toEqual(refused);
      expect((await backend.grep("SECRET", "/second.txt")).matches).toEqual([]);
      expect(await backend.grep("SECRET")).toMatchObject({ matches: [], skipped: 0 });
      expect((await backend.read("/twin.txt")).content).toBe("open");
      expect((await backend.grep("open", "/")).matches?.map(({ path }) => path)).toEqual([
        "/open/o.txt",
        "/twin.txt",
      ]);
    }
  });

  it("do not protect files that git ignores from being found before a folder is deleted", async () => {
    file("app/.gitignore", ".env\n");
    file("app/.env");
    const backend = new PolicyBackend(make({ respectGitignore: true }), RULES);
    expect(await backend.delete("/app")).toEqual(errors.deletesNotAllowed("/app"));
    expect(existsSync(join(root, "app/.env"))).toBe(true);
  });

  it("count where paths are real ones of the machine, also relative ones", async () => {
    repository();
    const rules = { denyGlobs: SENSITIVE_GLOBS, denyPrefixes: [join(root, "vendor")] };
    const backend = new PolicyBackend(make({ virtualMode: false }), rules);
    for (const path of [join(root, "env.txt"), "env.txt", "self/env.txt", join(root, "s/x.txt")]) {
      expect((await backend.read(path)).code, path).toBe("not_found");
    }
    for (const path of [join(root, "v/n.txt"), "v/n.txt", "vendor/n.txt"]) {
      expect((await backend.write(path, "x")).code, path).toBe("permission_denied");
    }
    expect((await backend.read("o/o.txt")).content).toBe("open");
    expect((await backend.grep("SECRET", root)).matches?.map(({ path }) => path)).toEqual([
      join(root, "config/prod.key"),
      join(root, "keys/a.pem"),
    ]);
  });

  it("may be the root itself", async () => {
    repository();
    const real = join(dirname(root), "real");
    renameSync(root, real);
    symlinkSync(real, root);
    const backend = guard();
    expect(lstatSync(root).isSymbolicLink()).toBe(true);
    expect((await backend.read("/env.txt")).code).toBe("not_found");
    expect((await backend.read("/absolute/x.txt")).error).toBeDefined();
    expect((await backend.read("/o/o.txt")).content).toBe("open");
    expect((await backend.write("/v/n.txt", "x")).code).toBe("permission_denied");
  });

  it("cost nothing where no rule tells places apart", async () => {
    repository();
    let asked = 0;
    const counted: Backend = {
      ...bound(make()),
      followLinks: () => {
        asked += 1;
        return undefined;
      },
    };
    const readOnly = new PolicyBackend(counted, { readOnly: true });
    expect((await readOnly.read("/o.txt")).content).toBe("open");
    expect((await readOnly.write("/n.txt", "x")).code).toBe("permission_denied");
    const protecting = new PolicyBackend(counted, { denyPrefixes: ["/vendor"] });
    expect((await protecting.read("/v.txt")).content).toBe("vendor");
    expect(asked).toBe(0);
  });
});

/** The methods of a backend as members of a plain object. */
function bound(backend: ReturnType<typeof make>): Backend {
  return {
    ls: backend.ls.bind(backend),
    read: backend.read.bind(backend),
    readRaw: backend.readRaw.bind(backend),
    grep: backend.grep.bind(backend),
    glob: backend.glob.bind(backend),
    write: backend.write.bind(backend),
    edit: backend.edit.bind(backend),
    delete: backend.delete.bind(backend),
    capabilities: backend.capabilities,
  };
}
