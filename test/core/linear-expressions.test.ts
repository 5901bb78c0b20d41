import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { parseAst } from "vitest/node";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import words from "../../src/agent/models/profiles/words.json" with { type: "json" };
import errors from "../../src/backends/errors.json" with { type: "json" };
import facts from "../../src/agent/layers/workspace-facts.json" with { type: "json" };
import outputs from "../../src/backends/sandbox/output-patterns.json" with { type: "json" };
import wrappers from "../../src/rules/shell/wrappers.json" with { type: "json" };
import textForms from "../../src/agent/models/text-forms.json" with { type: "json" };

/** Expressions made from strings. They see nothing but text of our own; the reason says which. */
const MADE_FROM_STRINGS: Readonly<Record<string, string>> = {
  "agent/layers/workspace.ts": "names of manifests in our own table, which are looked at below",
  "agent/mcp-tools/server-config.ts":
    "patterns of our own table of variables, none of which repeats within a repetition",
  "agent/models/profiles/learned.ts":
    "names of members of requests, without other characters than letters and digits; the rest takes linear time",
  "agent/models/profiles/profile.ts": "patterns of the table of families, for the name of a model",
  "agent/models/provider-words.ts": "words of refusals in our own table, which are looked at below",
  "agent/models/text-reply.ts": "forms of calls in our own table, which are looked at below",
  "agent/models/tool-binder.ts": "names of classes in our own table, for the names of a model",
  "agent/models/tool-schema.ts": "patterns of tools, which are compiled to see if they can be, and never run",
  "backends/errors.ts": "words of errors in our own table, which are looked at below",
  "backends/filesystem/ripgrep.ts": "constants of that file, joined; recheck finds both of them linear",
  "backends/sandbox/command-notes.ts": "outputs of commands in our own table, which are looked at below",
  "backends/sandbox/environment.ts":
    "patterns and names of this process's environment variables, both set by whoever starts it",
  "cli/terminal/text.ts": "a mark of this process, which is random digits, before the codes of colours",
  "core/text.ts": "names of our own blocks; the rest of the pattern takes linear time",
  "rules/shell/command.ts":
    "patterns of our own table of wrappers, which are looked at below; each option ends with a mark that it cannot have",
  "server/api/routes.ts": "addresses of our own table, where each variable is one part between slashes",
};

/**
 * Expressions that recheck found linear. UPDATE_EXPRESSIONS=1 looks at new ones, which can take minutes, and adds them.
 * With its programs recheck takes 58 MB, so it is installed for that alone.
 */
const KNOWN = new URL("linear-expressions.json", import.meta.url);
const isUpdate = process.env["UPDATE_EXPRESSIONS"] === "1";
const CHECKER: string = "recheck";
const INSTALL = "npm install --no-save recheck@4.5.0";

type Check = (pattern: string, flags: string, options?: object) => { status: string };

async function loadCheck(): Promise<Check> {
  const { checkSync } = (await import(CHECKER).catch((cause: unknown) => {
    throw new Error(`recheck is not installed: ${INSTALL}`, { cause });
  })) as { checkSync: Check }; // as its package documents it
  return checkSync;
}

const known = z.array(z.string()).parse(JSON.parse(readFileSync(KNOWN, "utf8")));

/** The verdict is one of work, whatever else this machine does. */
const UNHURRIED = { timeout: null, attackTimeout: null, incubationTimeout: null, seedingTimeout: null };

interface Expression {
  file: string;
  pattern: string;
  flags: string;
}

const SOURCES = new URL("../../src/", import.meta.url);

function expressions(): { literals: Expression[]; made: string[] } {
  const literals: Expression[] = [];
  const made: string[] = [];
  for (const file of readdirSync(SOURCES, { recursive: true, encoding: "utf8" })) {
    if (!file.endsWith(".ts")) continue;
    const visit = (node: unknown): void => {
      if (typeof node !== "object" || node === null) return;
      const regex: unknown = Reflect.get(node, "regex");
      const callee: unknown = Reflect.get(node, "callee");
      if (isLiteral(regex)) literals.push({ file, ...regex });
      if (isNamed(callee, "RegExp")) made.push(file);
      for (const part of Object.values(node)) visit(part);
    };
    visit(parseAst(readFileSync(new URL(file, SOURCES), "utf8"), { lang: "ts" }));
  }
  for (const pattern of WORDS)
    literals.push({ file: "agent/models/profiles/words.json", pattern, flags: "i" });
  for (const pattern of textForms.forms.flatMap(({ opening, closing }) => [opening, closing]))
    literals.push({ file: "agent/models/text-forms.json", pattern, flags: "y" });
  for (const { options, operand } of Object.values(wrappers))
    literals.push({
      file: "rules/shell/wrappers.json",
      pattern: `^(?:(?:${(options || "(?!)").replaceAll(" ", "\\0")})\\0)*(?:--\\0)?${operand && `(?:${operand})\\0`}`,
      flags: "",
    });
  const tables: [file: string, patterns: string[], flags: string][] = [
    ["agent/layers/workspace-facts.json", facts.manifests.map(([name = ""]) => name), ""],
    ["backends/errors.json", errors.spoken.map(([spoken = ""]) => spoken), "i"],
    ["backends/sandbox/output-patterns.json", Object.values(outputs), "i"],
  ];
  for (const [file, patterns, flags] of tables)
    literals.push(...patterns.map((pattern) => ({ file, pattern, flags })));
  return { literals, made };
}

/** Patterns of the table of refusals. */
const WORDS = [
  ...words.refusals.flatMap(({ rows }) =>
    rows.flatMap(({ text, code }: { text?: string; code?: string }) =>
      [text, code].filter((one) => one !== undefined),
    ),
  ),
  ...words.counts.flatMap(({ patterns }) => patterns),
];

const isNamed = (node: unknown, name: string): boolean =>
  typeof node === "object" && node !== null && Reflect.get(node, "name") === name;

const isLiteral = (given: unknown): given is Omit<Expression, "file"> =>
  typeof given === "object" && given !== null && "pattern" in given && "flags" in given;

describe("regular expressions of the source", () => {
  const { literals, made } = expressions();

  test("are made from strings only where the text is our own", () => {
    expect([...new Set(made)].toSorted()).toEqual(Object.keys(MADE_FROM_STRINGS));
  });

  test("take linear time, whatever text they meet", async () => {
    const patterns = new Map(literals.map((one) => [`/${one.pattern}/${one.flags}`, one]));
    expect(patterns.size).toBeGreaterThan(100);
    const unknown = [...patterns].filter(([shown]) => !known.includes(shown));
    const check = isUpdate ? await loadCheck() : undefined;
    const slow = unknown.filter(
      ([, { pattern, flags }]) => check?.(pattern, flags, UNHURRIED).status !== "safe",
    );
    const advice = `${INSTALL} && UPDATE_EXPRESSIONS=1 npx vitest run test/core/linear-expressions.test.ts`;
    expect(
      slow.map(([shown, { file }]) => `${file} ${shown}`),
      isUpdate ? "these take too long" : `not looked at yet: ${advice}`,
    ).toEqual([]);
    if (isUpdate) writeFileSync(KNOWN, `${JSON.stringify([...patterns.keys()].toSorted(), null, 2)}\n`);
  });

  test.runIf(isUpdate)("are refused when they are quadratic", async () => {
    const check = await loadCheck();
    expect(check(String.raw`\S*\*{3,}\S*`, "g").status).toBe("vulnerable");
  });
});
