import { describe, expect, it } from "vitest";
import { errors } from "../../../src/backends/errors.ts";
import { CompositeBackend } from "../../../src/backends/composite/composite.ts";
import { type PolicyOptions, SENSITIVE_GLOBS } from "../../../src/backends/policy-rules.ts";
import { PolicyBackend } from "../../../src/backends/policy.ts";
import { StateBackend } from "../../../src/backends/stores/state.ts";
import { snapshotFiles } from "../../../src/backends/runtime.ts";
import { ConfigurationError } from "../../../src/core/errors.ts";

const FILES = ["/.env", "/a.txt", "/docs/b.txt", "/docs/.env.local", "/docs/secrets/key.txt", "/docs2/c.txt"];

function guard(options: PolicyOptions): { inner: StateBackend; backend: PolicyBackend } {
  const inner = new StateBackend({ files: snapshotFiles() });
  for (const path of FILES) inner.write(path, `needle ${path}`);
  return { inner, backend: new PolicyBackend(inner, options) };
}

const pathsOf = (result: { files?: { path: string }[] }): string[] | undefined =>
  result.files?.map(({ path }) => path);

it("PolicyBackend, read only, refuses every change with its own text", async () => {
  const { inner, backend } = guard({ readOnly: true });
  expect(await backend.write("/new.txt", "x")).toEqual(errors.writesNotAllowed("/new.txt"));
  expect(await backend.edit("/a.txt", "needle", "x")).toEqual(errors.editsNotAllowed("/a.txt"));
  expect(await backend.delete("/docs")).toEqual(errors.deletesNotAllowed("/docs"));
  const [answer] = await backend.uploadFiles([["/a.txt", Uint8Array.from([1])]]);
  expect(answer).toEqual({ path: "/a.txt", error: "permission_denied" });
  expect(pathsOf(inner.glob("**"))).toEqual([...FILES].sort());
  expect((await backend.read("/a.txt")).content).toBe("needle /a.txt");
  expect(errors.writesNotAllowed("/x").error).toBe("Writes are not allowed under /x");
  expect(errors.editsNotAllowed("/x").error).toBe("Edits are not allowed under /x");
  expect(errors.deletesNotAllowed("/x").error).toBe("Deletes are not allowed under /x");
});

describe("PolicyBackend, with denied prefixes", () => {
  it("matches whole segments, the directory itself and any letter case", async () => {
    const { backend } = guard({ denyPrefixes: ["/docs/"] });
    expect((await backend.write("/docs/new.txt", "x")).code).toBe("permission_denied");
    expect((await backend.write("/DOCS/new.txt", "x")).code).toBe("permission_denied");
    expect((await backend.write("/docs", "x")).code).toBe("permission_denied");
    expect((await backend.write("/docs//./new.txt", "x")).code).toBe("permission_denied");
    expect((await backend.write("/docs2/new.txt", "x")).error).toBeUndefined();
    expect((await backend.read("/docs/b.txt")).content).toBe("needle /docs/b.txt");
  });

  it("takes every spelling that is the same file somewhere", async () => {
    const { backend } = guard({ denyGlobs: ["secrets"], denyPrefixes: ["/caf\u00e9"] });
    for (const path of ["/SECRETS/a", "/\u017fecrets/a", "/sec\u200crets/a", "/x/secret\u017f"]) {
      expect((await backend.read(path)).code, path).toBe("permission_denied");
    }
    for (const path of ["/cafe\u0301/a", "/CAF\u00c9/a", "/caf\u00e9\u200b/a"]) {
      expect((await backend.write(path, "x")).code, path).toBe("permission_denied");
    }
    expect((await backend.write("/cafe/a", "x")).error).toBeUndefined();
  });

  it("does not let a tree be deleted around them", async () => {
    const { backend } = guard({ denyPrefixes: ["/docs/secrets"] });
    expect(await backend.delete("/docs")).toEqual(errors.deletesNotAllowed("/docs"));
    expect((await backend.delete("/docs/b.txt")).error).toBeUndefined();
  });

  it("passes on the files of an upload that are allowed", async () => {
    const { backend } = guard({ denyPrefixes: ["/docs"] });
    const bytes = Uint8Array.from([97]);
    const answers = await backend.uploadFiles([
      ["/docs/x.txt", bytes],
      ["/x.txt", bytes],
      ["/docs/y.txt", bytes],
      ["/y.txt", bytes],
    ]);
    expect(answers.map(({ error }) => error)).toEqual(["permission_denied", null, "permission_denied", null]);
  });
});

describe("PolicyBackend, with denied globs", () => {
  const hidden = [
    "/.env",
    "/docs/.env.local",
    "/docs/secrets/key.txt",
    "/docs/secrets",
    "/docs/SECRETS/key.txt",
    "/.ENV",
  ];

  it.each(hidden)("gives no access to %s", async (path) => {
    const { backend } = guard({ denyGlobs: SENSITIVE_GLOBS });
    const forbidden = { code: "permission_denied", error: "Access to sensitive paths is forbidden" };
    expect(await backend.read(path)).toEqual(forbidden);
    expect(await backend.readRaw(path)).toEqual(forbidden);
    expect(await backend.ls(path)).toEqual(forbidden);
    expect(await backend.glob("**", path)).toEqual(forbidden);
    expect(await backend.grep("needle", path)).toEqual(forbidden);
    expect(await backend.write(path, "x", { mode: "overwrite" })).toEqual(forbidden);
    expect(await backend.edit(path, "needle", "x")).toEqual(forbidden);
    expect(await backend.delete(path)).toEqual(forbidden);
    expect(await backend.downloadFiles([path])).toEqual([
      { path, content: null, error: "permission_denied" },
    ]);
  });

  it("leaves them out of listings and searches", async () => {
    const { backend } = guard({ denyGlobs: SENSITIVE_GLOBS });
    expect(pathsOf(await backend.ls("/"))).toEqual(["/a.txt", "/docs/", "/docs2/"]);
    expect(pathsOf(await backend.ls("/docs"))).toEqual(["/docs/b.txt"]);
    expect(pathsOf(await backend.glob("**"))).toEqual(["/a.txt", "/docs/b.txt", "/docs2/c.txt"]);
    const found = await backend.grep("needle");
    expect(found.matches?.map(({ path }) => path)).toEqual(["/a.txt", "/docs/b.txt", "/docs2/c.txt"]);
  });

  it("fills a capped search with what may be seen", async () => {
    const { backend } = guard({ denyGlobs: SENSITIVE_GLOBS });
    const found = await backend.grep("needle", "/", null, 2);
    expect(found.matches?.map(({ path }) => path)).toEqual(["/a.txt", "/docs/b.txt"]);
    expect(found.truncated).toBe(true);
    expect((await backend.grep("needle", "/", null, 3)).truncated).toBe(false);
  });

  it("does not let a tree be deleted around them", async () => {
    const { backend } = guard({ denyGlobs: SENSITIVE_GLOBS });
    expect(await backend.delete("/docs")).toEqual(errors.deletesNotAllowed("/docs"));
    expect((await backend.delete("/docs2")).error).toBeUndefined();
    expect((await backend.delete("/docs/b.txt")).error).toBeUndefined();
  });
});

it("PolicyBackend, with allowed prefixes, shows nothing else but the way there", async () => {
  const { backend } = guard({ allowPrefixes: ["/docs/secrets/"] });
  expect(pathsOf(await backend.ls("/"))).toEqual(["/docs/"]);
  expect(pathsOf(await backend.ls("/docs"))).toEqual(["/docs/secrets/"]);
  expect(pathsOf(await backend.glob("**"))).toEqual(["/docs/secrets/key.txt"]);
  expect((await backend.read("/docs/b.txt")).error).toBe("Access to sensitive paths is forbidden");
  expect((await backend.read("/docs/secrets/key.txt")).content).toBe("needle /docs/secrets/key.txt");
  expect((await backend.write("/docs/new.txt", "x")).code).toBe("permission_denied");
  expect((await backend.write("/docs/secrets/new.txt", "x")).error).toBeUndefined();
});

describe("PolicyBackend", () => {
  it.each<PolicyOptions>([
    { denyPrefixes: ["docs"] },
    { denyPrefixes: ["/../x"] },
    { allowPrefixes: [""] },
    { denyGlobs: ["[a"] },
    { denyGlobs: ["../x"] },
  ])("refuses the options %j", (options) => {
    expect(() => guard(options)).toThrow(ConfigurationError);
  });

  it("over a composite looks at the outer paths", async () => {
    const mounted = new StateBackend({ files: snapshotFiles() });
    const tree = new CompositeBackend(new StateBackend({ files: snapshotFiles() }), { "/m/": mounted });
    const backend = new PolicyBackend(tree, { denyPrefixes: ["/m/fixed"] });
    expect(await backend.write("/m/fixed/a.txt", "x")).toEqual(errors.writesNotAllowed("/m/fixed/a.txt"));
    expect((await backend.write("/m/free.txt", "x")).error).toBeUndefined();
    expect(await backend.lifetimeOf("/m/free.txt")).toBe("thread");
  });

  it("inside a composite names the outer paths", async () => {
    const { backend } = guard({ readOnly: true });
    const tree = new CompositeBackend(new StateBackend({ files: snapshotFiles() }), { "/skills/": backend });
    expect(await tree.write("/skills/x.md", "x")).toEqual(errors.writesNotAllowed("/skills/x.md"));
  });
});
