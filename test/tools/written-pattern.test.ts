import { expect, test } from "vitest";
import { otherReading } from "../../src/tools/glob.ts";
import { BACKENDS } from "./backends.ts";
import { harness } from "./harness.ts";

test.each<[source: string, written: string, read: string]>([
  ["agentscope-ai/agentscope#1809", String.raw`src\*.ts`, "src/*.ts"],
  ["a deep path of Windows", String.raw`src\**\*.ts`, "src/**/*.ts"],
  ["Aider-AI/aider#5530", "app/[slug]/page.tsx", String.raw`app/\[slug\]/page.tsx`],
  ["vercel/next.js#9055", "article/[id].js", String.raw`article/\[id\].js`],
  ["dukeluo/eslint-plugin-check-file#27", "[[...auth]]/*.ts", String.raw`\[\[...auth\]\]/*.ts`],
  ["patterns behind commas", "**/*.ts, **/*.tsx", "{**/*.ts,**/*.tsx}"],
  ["patterns behind blanks", "*.{ts,js} *.md", "{*.{ts,js},*.md}"],
  ["patterns between bars", "*.ts|*.tsx", "{*.ts,*.tsx}"],
  ["blanks in braces", "*.{ts, tsx}", "*.{ts,tsx}"],
  ["quotes", '"**/*.ts"', "**/*.ts"],
  ["blanks around it", " **/*.ts\n", "**/*.ts"],
  ["a group of bash", "src/@(x|y).ts", "src/{x,y}.ts"],
  ["a group of an expression", "*.(ts|tsx)", "*.{ts,tsx}"],
  ["two stars before an ending", "src/**.ts", "src/**/*.ts"],
])("%s: %j is read as %j", (_source, written, read) => {
  expect(otherReading(written)).toBe(read);
});

test.each([
  "**/*.ts",
  "src/a, b.md",
  "(auth)/page.tsx",
  String.raw`\[id\].ts`,
  String.raw`a\{b`,
  "[a-z].ts",
  "[!ab].ts",
  "a|b.txt",
  "\n",
])("%j has no other reading", (written) => {
  expect(otherReading(written)).toBeUndefined();
});

test.each(BACKENDS)("searches over $name try it if nothing matches the pattern itself", async ({ open }) => {
  const tools = harness(await open({ "/app/[id]/x.ts": "hit\n", "/app/i.ts": "hit\n", "/b.ts": "hit\n" }));
  const notice = (pattern: string): string =>
    `\n\n[nothing matches the pattern as it stands; it was read as ${pattern}]`;
  expect(await tools.text("glob", { pattern: "app/[id]/*.ts" })).toBe(
    `/app/[id]/x.ts${notice(String.raw`app/\[id\]/*.ts`)}`,
  );
  // A set that matches is one.
  expect(await tools.text("glob", { pattern: "app/[id].ts" })).toBe("/app/i.ts");
  expect(await tools.text("grep", { pattern: "hit", glob: "*.md,b*.ts" })).toBe(
    `/b.ts:\n  1: hit${notice("{*.md,b*.ts}")}`,
  );
});
