import { describe, expect, it } from "vitest";
import { toRustRegex } from "../../../src/backends/filesystem/ripgrep.ts";

describe("toRustRegex", () => {
  it.each([
    ["foo.*bar", "foo.*bar"],
    ["^a$", "^a(?:\\r?$)"],
    ["\\Aa\\z", "^a(?:\\r?$)"],
    ["\\d\\W", "[0-9][^0-9A-Za-z_]"],
    ["\\bx\\B", "(?-u:\\b)x(?-u:\\B)"],
    ["[\\d-]", "[0-9\\-]"],
    ["[a[b]", "[a\\[b]"],
    ["[a&&b]", "[a\\&\\&b]"],
    ["[[:alpha:]x]", "[[:alpha:]x]"],
    ["\\<a\\>", "<a>"],
    ["\\Qa.b\\E+", "a\\.b+"],
    ["\\pL\\PL\\p{^Lu}", "\\p{L}\\P{L}\\P{Lu}"],
    ["\\101\\x41\\x{e9}", "\\x{41}\\x{41}\\x{e9}"],
    ["(?P<year>\\d)", "(?:[0-9])"],
    ["(?im)a", "(?i)a"],
    ["(?m)a", "a"],
    ["(?i-m:a)", "(?i:a)"],
  ])("%j becomes %j", (expression, expected) => {
    expect(toRustRegex(expression)).toBe(expected);
  });

  it.each(["\\C", "\\", "[a", "a(?i)*", "\\Q\\E*", "(?=a)", "(?", "\\p{", "\\x", "\\9"])(
    "%j is left to the built-in search",
    (expression) => {
      expect(toRustRegex(expression)).toBeUndefined();
    },
  );
});
