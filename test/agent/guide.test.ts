import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { threadTexts } from "../../scripts/thread-texts.mjs";

const root = resolve(import.meta.dirname, "../..");
const library = join(root, "src/index.ts");
const guide = readFileSync(join(root, "docs/guide.md"), "utf8");
/** The code of each section that has some, by its heading. */
const snippets = guide.split("\n## ").flatMap((section): Array<[string, string]> => {
  const code = /```ts\n(.*?)```/s.exec(section)?.[1];
  return code === undefined ? [] : [[section.split("\n", 1)[0] ?? "", code]];
});

describe("the guide", () => {
  let folder = "";
  const fileOf = (index: number, extension: string) => join(folder, `snippet-${index}.${extension}`);

  beforeAll(() => {
    const cache = join(root, "node_modules/.cache");
    mkdirSync(cache, { recursive: true });
    folder = mkdtempSync(join(cache, "guide-"));
    for (const [index, [, code]] of snippets.entries()) writeFileSync(fileOf(index, "ts"), code);
    // Where snippets leave their files.
    vi.stubEnv("TMPDIR", folder);
  });
  afterAll(() => {
    vi.unstubAllEnvs();
    rmSync(folder, { recursive: true, force: true });
  });

  it("has code in every section", () => {
    expect(snippets).toHaveLength(guide.split("\n## ").length - 1);
    expect(guide.match(/```ts/g)).toHaveLength(snippets.length);
  });

  it("names all that is exported, and every parameter of an agent", () => {
    const exported = [...readFileSync(library, "utf8").matchAll(/^export (?:type )?\{([^}]*)\}/gm)]
      .flatMap(([, names = ""]) => names.split(","))
      .map((name) => name.replace(/^\s*(type )?(\w+ as )?/, "").trim());
    const params =
      readFileSync(join(root, "src/agent/build/params.ts"), "utf8").split("interface DeepAgentParams")[1] ??
      "";
    const keys = [...params.matchAll(/^ {2}(\w+)\?:/gm)].map(([, key = ""]) => key);
    expect([exported.length, keys.length].every((count) => count > 20)).toBe(true);
    const names = [...exported, ...keys].filter((name) => name !== "");
    expect(names.filter((name) => !guide.includes(`\`${name}\``))).toEqual([]);
  });

  it("walks through the loop by files and functions that exist, in fewer than 750 lines", () => {
    const walk = guide.split("\n### The agent loop\n")[1]?.split("\n## ")[0] ?? "";
    const files = [...walk.matchAll(/`([\w-]+\.ts)`/g)].map(([, name = ""]) => name);
    const sources = files.map((name) => {
      const places = ["langgraph", "calls"].map((room) => join(root, "src/agent", room, name));
      return readFileSync(places.find((path) => existsSync(path)) ?? name, "utf8");
    });
    const names = [...walk.matchAll(/`([a-zA-Z]+)`/g)].map(([, name = ""]) => name);
    expect(names.length).toBeGreaterThan(10);
    expect(names.filter((name) => !sources.some((source) => source.includes(name)))).toEqual([]);
    const lines = sources.slice(0, 4).reduce((sum, source) => sum + source.trimEnd().split("\n").length, 0);
    expect(lines).toBeLessThan(750);
  });

  it.each(snippets.map(([heading], index) => ({ heading, index })))("runs: $heading", async ({ index }) => {
    await build({
      entryPoints: [fileOf(index, "ts")],
      outfile: fileOf(index, "mjs"),
      bundle: true,
      packages: "external",
      plugins: [threadTexts],
      alias: { "deepagent-mcp": library },
      format: "esm",
      platform: "node",
      logLevel: "silent",
    });
    await expect(import(pathToFileURL(fileOf(index, "mjs")).href)).resolves.toBeDefined();
  });
});
