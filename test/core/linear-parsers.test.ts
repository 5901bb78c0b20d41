/** Everything that reads text from outside on the event loop takes work in proportion to its length. */
import { growth, workOf } from "../support/work.ts";
import { describe, expect, test } from "vitest";
import { parseMessages, strictEvent } from "../../src/agent/mcp-tools/messages.ts";
import { lastWords } from "../../src/agent/mcp-tools/failure-reasons.ts";
import { readResult, readTool } from "../../src/agent/mcp-tools/answers.ts";
import { parseFrontMatter } from "../../src/agent/messages/front-matter.ts";
import { GitignoreRules } from "../../src/backends/filesystem/gitignore.ts";
import { compileGlob } from "../../src/backends/glob.ts";
import { looseJson } from "../../src/core/loose-json.ts";
import { mediaFacts } from "../../src/core/media.ts";
import { displayBlock, displayMarked } from "../../src/core/text.ts";
import { flatFields } from "../../src/tools/check-answer.ts";
import { decodeBody, readContentType } from "../../src/web/page-reader.ts";
import { readRobots } from "../../src/web/robots.ts";

const URL_WITH_MUCH = new URL(`https://example.com/${"a".repeat(1900)}`);
const bytes = (head: string, body: string, size: number): Buffer =>
  Buffer.concat([Buffer.from(head, "latin1"), Buffer.alloc(size, Buffer.from(body, "latin1"))]);

/** Lines of a file that each name is compared with. */
const ignores = (pattern: string, size: number): GitignoreRules =>
  new GitignoreRules(`${pattern}\n`.repeat(size), "", undefined);

const NAME = "a".repeat(240);

const PARSERS: ReadonlyArray<readonly [name: string, size: number, parse: (size: number) => unknown]> = [
  ["names in robots.txt", 500, (n) => readRobots("user-agent:a\n".repeat(n), "x")],
  ["names of all in robots.txt", 500, (n) => readRobots("user-agent:*\nuser-agent:x\n".repeat(n), "x")],
  [
    "rules of robots.txt",
    200,
    (n) => readRobots(`user-agent:*\n${`disallow:/${"*a".repeat(50)}$\n`.repeat(n)}`, "x")(URL_WITH_MUCH),
  ],
  ["lines of .gitignore", 50, (n) => ignores(`*${"[!b]".repeat(20)}b`, n).exclude(NAME, false)],
  ["names and .gitignore", 50, (n) => ignores("*a*a*a*a*b", 20).exclude("a".repeat(n), false)],
  ["parts of a glob", 40, (n) => compileGlob(`**/${"a/".repeat(n)}b`)],
  ["depths of a path", 50, (n) => ignores("**/a/**/a/b", 1).exclude("a/".repeat(n), false)],
  ["strings of loose JSON", 500, (n) => looseJson(`{${'"a\u0001":"\\x",'.repeat(n)}`)],
  ["front matter", 100, (n) => parseFrontMatter(`---\n${"a: [b\n".repeat(n)}---\nbody`)],
  ["texts before front matter", 50, (n) => parseFrontMatter(`${"<!-- a -->\n".repeat(n)}---\na: b\n---\n`)],
  ["charsets", 1000, (n) => decodeBody({ bytes: bytes("", "<meta charset", n), isCut: false }, "x", true)],
  ["content types", 100, (n) => readContentType(`text/html${";charset=".repeat(n)}`, Buffer.alloc(0))],
  ["sections of a GIF", 500, (n) => mediaFacts(bytes("GIF89a\0\0\0\0\0\0\0", "\x21\xf9\0", n * 3))],
  ["sections of a JPEG", 500, (n) => mediaFacts(bytes("\xff\xd8", "\xff\xe0\x00\x02", n * 4))],
  ["messages in a batch", 200, (n) => parseMessages(`[${'{"method":"a"},'.repeat(n)}{"method":"a"}]`)],
  ["lines of an event", 200, (n) => strictEvent("data: x\n".repeat(n))],
  ["last words of a program", 200, (n) => lastWords("error /a/b\n".repeat(n))],
  [
    "parts of a result",
    200,
    (n) => readResult({ content: Array.from({ length: n }, () => ({ type: "text", text: "a" })) }),
  ],
  [
    "a schema",
    200,
    (n) =>
      readTool({ name: "a", inputSchema: { type: "object", items: Array.from({ length: n }, () => ({})) } }),
  ],
  [
    "options of a form",
    200,
    (n) => flatFields({ properties: { a: { enum: Array.from({ length: n }, String) } } }),
  ],
  ["shown text", 500, (n) => [displayMarked, displayBlock].map((show) => show(" \t\n\u202e".repeat(n)))],
];

describe.each(PARSERS)("%s", (_name, size, parse) => {
  test("take work in proportion to their number", async () => {
    expect(await growth(size, parse)).toBeLessThan(6);
  });
});

test.each(["?", "[!b]", "[a-z]"])("a pattern of many %s judges a name with few looks", async (sign) => {
  const work = (count: number): Promise<number> => {
    const compiled = compileGlob(`*${sign.repeat(count)}b`);
    if (!compiled.ok) throw new Error(compiled.error);
    compiled.glob.matches("a");
    return workOf(() => compiled.glob.matches(NAME));
  };
  // A look for each sign at each place would be forty times as much.
  expect((await work(120)) / (await work(3))).toBeLessThan(8);
});

test("quadratic work is noticed", async () => {
  const rules = (size: number) => {
    const all = ignores("*ab", size);
    for (let at = 0; at < size; at += 1) all.exclude("aa", false);
  };
  expect(await growth(300, rules)).toBeGreaterThan(10);
});
