import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compileGlob, type Glob, type GlobOptions } from "../../../src/backends/glob.ts";
import { attempts } from "../../support/effort.ts";

function compiled(pattern: string, options?: GlobOptions): Glob {
  const result = compileGlob(pattern, options);
  if (!result.ok) throw new Error(`${pattern}: ${result.error}`);
  return result.glob;
}

const matches = (pattern: string, path: string, options?: GlobOptions): boolean =>
  compiled(pattern, options).matches(path);

describe("compileGlob", () => {
  it.each([
    ["*.ts", "a.ts", true],
    ["*.ts", "src/a.ts", false],
    ["*", ".env", true],
    ["**", "a/b/c", true],
    ["**/*.ts", "a.ts", true],
    ["**/*.ts", "a/b/c.ts", true],
    ["a/**", "a/b/c", true],
    ["a/**", "a", false],
    ["a/**", "ab/c", false],
    ["a/**/b", "a/b", true],
    ["a/**/b", "a/x/y/b", true],
    ["a/**/**/b", "a/b", true],
    ["**/a/**/b/*", "x/a/y/a/b/z", true],
    ["a**b", "axxb", true],
    ["a**b", "a/b", false],
    ["?", "é", true],
    ["?", "🎉", true],
    ["??", "🎉", false],
    ["[a-c]x", "bx", true],
    ["[!a-c]x", "bx", false],
    ["[^a-c]x", "dx", true],
    ["[]a]", "]", true],
    ["[!]a]", "]", false],
    ["[a-]", "-", true],
    ["[[]", "[", true],
    ["[🎉]", "🎉", true],
    ["{a,b}.ts", "b.ts", true],
    ["{a,{b,c}d}.ts", "cd.ts", true],
    ["{,x}a", "a", true],
    ["{src,test/**}/*.ts", "test/a/b.ts", true],
    ["{src,test/**}/*.ts", "src/a/b.ts", false],
    ["a}b,c", "a}b,c", true],
    ["\\*", "*", true],
    ["\\*", "x", false],
    ["\\{a,b\\}", "{a,b}", true],
    ["./a", "a", true],
    ["a/./b", "a/b", true],
    ["a//b", "a/b", true],
    ["a/", "a", false],
    ["!*.ts", "a.ts", false],
    ["!*.ts", "a.md", true],
    ["!*.ts", "src/a.ts", true],
    ["\\!a", "!a", true],
    ["a!b", "a!b", true],
    ["a+b(c)$", "a+b(c)$", true],
    ["constructor", "__proto__", false],
  ])("%j against %j is %j", (pattern, path, expected) => {
    expect(matches(pattern, path)).toBe(expected);
  });

  it.each([
    ["*.ts", "a/b.ts", true],
    ["{*.ts,src/*.md}", "src/a.md", true],
    ["{*.ts,src/*.md}", "x/src/a.md", false],
    ["./*.ts", "a/b.ts", false],
    ["!*.test.ts", "a/b.test.ts", false],
  ])("as a filter by name %j against %j is %j", (pattern, path, expected) => {
    expect(matches(pattern, path, { nameAtAnyDepth: true })).toBe(expected);
  });

  it("takes patterns from the root only when told to", () => {
    expect(matches("/a/*", "a/b", { fromRoot: true })).toBe(true);
    expect(compileGlob("/a/*")).toMatchObject({ ok: false, code: "invalid_pattern" });
    expect(compileGlob("{/a,b}")).toMatchObject({ ok: false, code: "invalid_pattern" });
  });

  it.each(["..", "../a", "a/../b", "{a,..}/b", "~", "~/a", "!../a", "..\\/a"])(
    "refuses to climb with %j",
    (pattern) => {
      expect(compileGlob(pattern)).toMatchObject({
        ok: false,
        error: `Path traversal not allowed: ${pattern}`,
      });
    },
  );

  it.each([
    ["", "the pattern is empty"],
    ["!", "the pattern is empty"],
    ["[a", "a '[' is not closed"],
    ["[", "a '[' is not closed"],
    ["[a/b]", "a '[' is not closed"],
    ["[b-a]", "a range in brackets is reversed"],
    ["{a,b", "a '{' is not closed"],
    ["a\\", "the pattern ends in a backslash"],
    ["a\0", "the pattern contains a NUL character"],
    ["x".repeat(1001), "the pattern is longer than 1000 characters"],
    ["{a,b}".repeat(9), "the braces expand to more than 256 patterns"],
    [`${"{".repeat(17)}a${"}".repeat(17)}`, "braces are nested more than 16 deep"],
  ])("of %j says what is wrong", (pattern, reason) => {
    expect(compileGlob(pattern)).toMatchObject({ ok: false, error: `Invalid glob pattern: ${reason}` });
  });
});

const name = fc.stringMatching(/^[ab.-]{1,3}$/).filter((text) => !/^\.{1,2}$/.test(text));
const path = fc.array(name, { minLength: 1, maxLength: 4 }).map((names) => names.join("/"));
const part = fc.constantFrom(
  "a",
  "b",
  "*",
  "?",
  "[ab]",
  "[!a]",
  "a*",
  "*b",
  "**",
  "{a,b*}",
  "{a/b,**}",
  ".*",
);
const pattern = fc
  .tuple(fc.constantFrom("", "", "!"), fc.array(part, { minLength: 1, maxLength: 4 }))
  .map(([bang, parts]) => bang + parts.join("/"));

/** The dialect said once more, slowly: all ways to take a path apart. */
function matchesBySpecification(globPattern: string, target: string): boolean {
  if (globPattern.startsWith("!")) return !matchesBySpecification(globPattern.slice(1), target);
  const group = /\{([^{}]*)\}/.exec(globPattern);
  if (group !== null) {
    const [whole, options = ""] = group;
    return options
      .split(",")
      .some((option) =>
        matchesBySpecification(
          globPattern.slice(0, group.index) + option + globPattern.slice(group.index + whole.length),
          target,
        ),
      );
  }
  const [first = "", ...rest] = globPattern.split("/");
  const [head = "", ...tail] = target.split("/");
  if (first === "**") {
    if (rest.length === 0) return true;
    const restPattern = rest.join("/");
    return (
      matchesBySpecification(restPattern, target) ||
      (tail.length > 0 && matchesBySpecification(globPattern, tail.join("/")))
    );
  }
  const expression = first
    .replace(/[.]/g, "\\.")
    .replace(/\*+/g, ".*")
    .replace(/\?/g, ".")
    .replace(/\[!/g, "[^");
  if (!new RegExp(`^${expression}$`, "u").test(head)) return false;
  if (rest.length === 0 || tail.length === 0) return rest.length === 0 && tail.length === 0;
  return matchesBySpecification(rest.join("/"), tail.join("/"));
}

describe("glob matching", () => {
  it("agrees with its specification", () => {
    fc.assert(
      fc.property(pattern, path, (globPattern, target) => {
        expect(matches(globPattern, target)).toBe(matchesBySpecification(globPattern, target));
      }),
      attempts(2000),
    );
  });

  it("what is left below a directory decides like the whole", () => {
    fc.assert(
      fc.property(pattern, path, path, fc.boolean(), (globPattern, directory, rest, nameAtAnyDepth) => {
        const glob = compiled(globPattern, { nameAtAnyDepth });
        const whole = glob.matches(`${directory}/${rest}`);
        const below = glob.below(directory);
        const inside = below === undefined ? false : matches(below, rest, { nameAtAnyDepth });
        expect(inside).toBe(whole);
        if (whole) expect(glob.reaches(directory)).toBe(true);
      }),
      attempts(2000),
    );
  });

  it("takes any text as a pattern without throwing", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom(..."ab*?[]{},!\\/.~-^é🎉".split("")) }),
        path,
        (text, target) => {
          const result = compileGlob(text);
          if (result.ok) expect(typeof result.glob.matches(target)).toBe("boolean");
          else expect(result.code).toBe("invalid_pattern");
        },
      ),
    );
  });

  it("finishes on patterns that blow up backtracking matchers", () => {
    const stars = `${"*a".repeat(400)}b`;
    expect(matches(stars, "a".repeat(2000))).toBe(false);
    const deep = `${"**/a/".repeat(150)}b`;
    expect(matches(deep, Array.from({ length: 800 }, () => "a").join("/"))).toBe(false);
  });
});
