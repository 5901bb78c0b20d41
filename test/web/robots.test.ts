import { expect, test } from "vitest";
import { readRobots } from "../../src/web/robots.ts";

const reads = (text: string, path: string): boolean =>
  readRobots(text, "deepagent-mcp")(new URL(path, "https://example.com"));

test.each([
  ["", "/a", true],
  ["User-agent: *\nDisallow: /", "/a", false],
  ["User-agent: *\nDisallow: /", "/robots.txt", true],
  ["User-agent: *\nDisallow:", "/a", true],
  ["User-agent: *\nDisallow: /a", "/abc", false],
  ["User-agent: *\nDisallow: /a\nAllow: /ab", "/abc", true],
  ["User-agent: *\nAllow: /a\nDisallow: /a", "/a", true],
  ["User-agent: *\nDisallow: /*.php$", "/x/y.php", false],
  ["User-agent: *\nDisallow: /*.php$", "/x/y.php?a", true],
  ["User-agent: *\nDisallow: /a*b*c", "/a-c-b", true],
  ["User-agent: *\nDisallow: /a*b*c", "/axbxcx", false],
  ["User-agent: *\nDisallow: /*?session=", "/a?session=1", false],
  ["User-agent: *\nDisallow: /caf%C3%A9", "/café", false],
  ["User-agent: *\nDisallow: /café", "/caf%c3%a9", false],
  ["User-agent: other\nDisallow: /", "/a", true],
  ["User-agent: deepagent-mcp\nDisallow: /", "/a", false],
  ["User-agent: DeepAgent-MCP/2.0\nDisallow: /", "/a", false],
  ["User-agent: *\nDisallow: /\n\nUser-agent: deepagent-mcp\nDisallow: /x", "/a", true],
  ["User-agent: other\nUser-agent: deepagent-mcp\nDisallow: /x", "/x", false],
  ["user-agent : *  # all\r\ndisallow : /x  # this", "/x", false],
  ["User-agent: *\nUser-agent: other\nDisallow: /x", "/x", false],
  ["User-agent: deepagent-mcp\nDisallow: /a\nUser-agent: other\nDisallow: /x", "/x", true],
  ["Disallow: /", "/a", true],
  ["<html>not found</html>", "/a", true],
])("%j lets a program read %s: %s", (text, path, expected) => {
  expect(reads(text, path)).toBe(expected);
});

test("hostile rules are judged without effort", () => {
  const rules = Array.from({ length: 5000 }, () => `Disallow: /${"*a".repeat(50)}$`).join("\n");
  expect(reads(`User-agent: *\n${rules}`, `/${"a".repeat(1900)}b`)).toBe(true);
});
