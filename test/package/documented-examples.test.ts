// The examples of the documentation: TypeScript is compiled, configurations are read, shell code is parsed.
import { createHash } from "node:crypto";
import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { parseAgentFile } from "../../src/agent/build/agent-files.ts";
import { parseJson } from "../../src/config/load.ts";
import { ConfigSchema } from "../../src/config/schema.ts";
import { ROOT } from "../commands/built-bin.ts";

interface Example {
  /** File and line, as an editor opens them. */
  at: string;
  language: string;
  code: string;
}

const names = readdirSync(join(ROOT, "docs")).filter((name) => name.endsWith(".md"));
const texts = ["README.md", "CONTRIBUTING.md", "AGENTS.md", ...names.map((name) => `docs/${name}`)];

function examplesOf(name: string): Example[] {
  const text = readFileSync(join(ROOT, name), "utf8");
  return [...text.matchAll(/^```(\w+)\n([^]*?)^```/gm)].map(({ 1: language = "", 2: code = "", index }) => ({
    at: `${name}:${text.slice(0, index).split("\n").length}`,
    language,
    code,
  }));
}
const examples = texts.flatMap(examplesOf);
const inLanguage = (...languages: string[]) =>
  examples.filter(({ language }) => languages.includes(language));

it("has examples of each kind", () => {
  expect(inLanguage("ts").length).toBeGreaterThan(25);
  expect(inLanguage("sh").length).toBeGreaterThan(25);
  expect(inLanguage("json", "jsonc").length).toBeGreaterThan(10);
});

/** The packages of its example want Node 22, so they are not among ours; `examples/ai-sdk` has the whole program. */
const OF_NEWER_NODE = "docs/ai-sdk.md:";

it("TypeScript compiles", () => {
  const cache = join(ROOT, "node_modules/.cache");
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, "examples-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const programs = inLanguage("ts").filter(({ at }) => !at.startsWith(OF_NEWER_NODE));
  const files = programs.map(({ code }, index) => {
    const file = join(folder, `example-${index}.ts`);
    // An example without imports or exports is a module too.
    writeFileSync(file, `${code}\nexport {};\n`);
    return file;
  });
  const paths = { "deepagent-mcp": [join(ROOT, "src/index.ts")] };
  const compilerOptions = { rootDir: ROOT, noEmit: true, noUnusedLocals: false, paths };
  const config = { extends: join(ROOT, "tsconfig.json"), compilerOptions, files, include: [] };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
  const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
  const { stdout } = spawnSync(process.execPath, [tsc, "-p", folder], { encoding: "utf8" });
  const named = stdout.replaceAll(
    /\S*example-(\d+)\.ts/g,
    (_, index: string) => programs[Number(index)]?.at ?? "",
  );
  expect(named).toBe("");
});

const digestOf = (text: string) => createHash("sha256").update(text).digest("hex");

/** These have files of clients, of other programs, and bodies of requests; what `install` writes has tests of its own. */
const FILES_OF_OTHERS = [
  "README.md:",
  "docs/acp.md:",
  "docs/api.md:",
  "docs/clients.md:",
  "docs/langchain.md:",
];

it.each(inLanguage("json", "jsonc"))("is JSON that the server takes: $at", ({ at, code }) => {
  const parsed = parseJson(code.replaceAll(/<[^>]*>/g, digestOf));
  if (!parsed.ok) throw new Error(`${at} is not JSON: ${parsed.place}`);
  if (FILES_OF_OTHERS.some((name) => at.startsWith(name))) return;
  // The folder is a default that the machine gives.
  const { error } = ConfigSchema.safeParse({ dataDir: "/data", ...Object(parsed.value) });
  expect(error?.issues).toBeUndefined();
});

it.each(inLanguage("sh"))("is a script for a shell, of files and npm scripts that exist: $at", ({ code }) => {
  expect(spawnSync("bash", ["-n"], { input: code, encoding: "utf8" })).toMatchObject({
    status: 0,
    stderr: "",
  });
  const { scripts }: { scripts: object } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  for (const [, script = ""] of code.matchAll(/npm run (?:--?\w+ )*([\w:]+)/g))
    expect(scripts).toHaveProperty([script]);
  for (const [, file = ""] of code.matchAll(/node ((?:scripts|examples|bench)\/\S+)/g))
    expect(existsSync(join(ROOT, file))).toBe(true);
});

it("the line that makes a token prints it, and its digest", () => {
  const line = inLanguage("sh").find(({ at }) => at.startsWith("docs/http.md:"))?.code ?? "";
  const { stdout } = spawnSync("bash", ["-c", line], { encoding: "utf8" });
  const [token = "", digest] = stdout.split("\n");
  expect(token.length).toBeGreaterThan(40);
  expect(digest).toBe(digestOf(token));
});

it.each(inLanguage("md"))("is a subagent that the agent takes: $at", ({ code }) => {
  expect(parseAgentFile("/.deepagent/agents/example.md", code)).toMatchObject({ ok: true });
});
