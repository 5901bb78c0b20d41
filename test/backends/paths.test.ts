import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  addPrefix,
  baseName,
  isAtOrBelow,
  joinPath,
  parentPaths,
  relativeTo,
  sanitizeToolCallId,
  stripPrefix,
  validatePath,
} from "../../src/backends/paths.ts";

const outcome = (path: unknown, options?: Parameters<typeof validatePath>[1]): string => {
  const result = validatePath(path, options);
  return result.ok ? result.path : `error: ${result.error}`;
};

describe("validatePath", () => {
  it.each([
    ["foo/bar", "/foo/bar"],
    ["/./foo//bar", "/foo/bar"],
    ["/", "/"],
    [".", "/"],
    ["/a/", "/a"],
    ["a\\b", "/a/b"],
    ["/a..b/[...slug]/...", "/a..b/[...slug]/..."],
    ["/ leading and trailing ", "/ leading and trailing "],
    ["/%2e%2e/x", "/%2e%2e/x"],
    ["/x~", "/x~"],
    ["/~x", "/~x"],
    ["/C:", "/C:"],
    ["../etc/passwd", "error: Path traversal not allowed: ../etc/passwd"],
    ["a/../b", "error: Path traversal not allowed: a/../b"],
    ["/a/..", "error: Path traversal not allowed: /a/.."],
    ["a\\..\\b", "error: Path traversal not allowed: a\\..\\b"],
    ["~/x", "error: Path traversal not allowed: ~/x"],
    ["~root", "error: Path traversal not allowed: ~root"],
    ["C:\\Users\\file", "error: Windows absolute paths are not supported: C:\\Users\\file"],
    ["c:/x", "error: Windows absolute paths are not supported: c:/x"],
    ["\\\\server\\share", "error: Windows absolute paths are not supported: \\\\server\\share"],
    ["", "error: Path must be a non-empty string"],
    [" \t\n", "error: Path must be a non-empty string"],
    [undefined, "error: Path must be a non-empty string"],
    [7, "error: Path must be a non-empty string"],
    ["/a\0", "error: Path contains a NUL character"],
  ])("%j gives %j", (path, expected) => {
    expect(outcome(path)).toBe(expected);
  });

  it("tells whether a directory was meant", () => {
    expect(validatePath("/a/")).toEqual({ ok: true, path: "/a", directory: true });
    expect(validatePath("/a/.")).toEqual({ ok: true, path: "/a", directory: true });
    expect(validatePath("/")).toEqual({ ok: true, path: "/", directory: true });
    expect(validatePath("/a")).toEqual({ ok: true, path: "/a", directory: false });
  });

  it.each([
    ["/data/f.txt", ["/data/"], "/data/f.txt"],
    ["/data", ["/data/"], "/data"],
    ["/data/f.txt", ["/x", "/data"], "/data/f.txt"],
    ["/etc/f.txt", ["/data/"], 'error: Path must start with one of ["/data/"]: /etc/f.txt'],
    ["/database/f.txt", ["/data"], 'error: Path must start with one of ["/data"]: /database/f.txt'],
    ["/data/f.txt", [], "error: Path must start with one of []: /data/f.txt"],
    ["/data/f.txt", ["/"], "/data/f.txt"],
  ])("%j with the prefixes %j gives %j", (path, allowedPrefixes, expected) => {
    expect(outcome(path, { allowedPrefixes })).toBe(expected);
  });

  it("leaves a relative path relative for real paths", () => {
    expect(outcome("a/./b", { form: "real" })).toBe("a/b");
    expect(outcome(".", { form: "real" })).toBe(".");
    expect(outcome("/a//b", { form: "real" })).toBe("/a/b");
    expect(outcome("a/../b", { form: "real" })).toBe("error: Path traversal not allowed: a/../b");
  });

  it("is idempotent, and its results never climb", () => {
    const pieces = fc.constantFrom("a", "b.txt", ".", "..", "", "~", "...", "C:", " ", "\\", "é", "%2e%2e");
    const path = fc.array(pieces, { maxLength: 8 }).map((parts) => parts.join("/"));
    fc.assert(
      fc.property(fc.oneof(path, fc.string()), (input) => {
        const first = validatePath(input);
        if (!first.ok) return;
        expect(validatePath(first.path)).toMatchObject({ ok: true, path: first.path });
        const segments = first.path.split("/").slice(1);
        expect(first.path.startsWith("/")).toBe(true);
        if (first.path !== "/") expect(segments.some((part) => ["", ".", ".."].includes(part))).toBe(false);
      }),
    );
  });
});

describe("path arithmetic", () => {
  it("compares whole segments", () => {
    expect(isAtOrBelow("/mem", "/mem/")).toBe(true);
    expect(isAtOrBelow("/mem/a", "/mem")).toBe(true);
    expect(isAtOrBelow("/memo", "/mem")).toBe(false);
    expect(isAtOrBelow("/anything", "/")).toBe(true);
  });

  it("names the parents, outermost first", () => {
    expect(parentPaths("/a/b/c")).toEqual(["/a", "/a/b"]);
    expect(parentPaths("/a")).toEqual([]);
    expect(parentPaths("/")).toEqual([]);
    expect(baseName("/a/b/")).toBe("b");
    expect(baseName("/")).toBe("");
  });

  it("prefixes and strips without loss", () => {
    const segment = fc.stringMatching(/^[a-z.]{1,5}$/).filter((name) => !/^\.{1,2}$/.test(name));
    const path = fc.array(segment, { maxLength: 4 }).map((parts) => `/${parts.join("/")}`);
    fc.assert(
      fc.property(path, path, (prefix, inner) => {
        const outer = addPrefix(prefix, inner);
        expect(isAtOrBelow(outer, prefix)).toBe(true);
        expect(stripPrefix(prefix, outer)).toBe(inner);
        if (inner !== "/") expect(relativeTo(prefix, joinPath(prefix, inner.slice(1)))).toBe(inner.slice(1));
      }),
    );
  });
});

describe("sanitizeToolCallId", () => {
  it("keeps what is safe already", () => {
    expect(sanitizeToolCallId("call_Ab-9")).toBe("call_Ab-9");
  });

  it("never gives two ids one name, nor a name that is a path", () => {
    const id = fc.oneof(
      fc.string(),
      fc.string({ unit: fc.constantFrom("a", "_", "/", ".", "-"), maxLength: 130 }),
    );
    fc.assert(
      fc.property(id, id, (left, right) => {
        const name = sanitizeToolCallId(left);
        expect(name).toMatch(/^[A-Za-z0-9_-]{1,120}$/);
        if (left !== right) expect(sanitizeToolCallId(right)).not.toBe(name);
      }),
    );
  });

  it("tells long ids with the same beginning apart", () => {
    expect(sanitizeToolCallId("x".repeat(101))).not.toBe(sanitizeToolCallId("x".repeat(102)));
  });
});
