// @module-tag long
// It packs the package and installs it, in several ways.
import { execFileSync, spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { serialize } from "node:v8";
import { transformSync } from "esbuild";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { runProgram } from "../../src/core/child-process.ts";
import { hasNodeSqlite } from "../../src/storage/sqlite/node-driver.ts";
import { INITIALIZE, ROOT } from "../commands/built-bin.ts";
import { connect } from "../support/harness.ts";
import { serveHttp } from "../support/harness-http-process.ts";
import { stdioServer } from "../support/harness-stdio.ts";

/**
 * The package as npm would install it: the tarball is unpacked into an empty folder, and of what is
 * installed here only its declared dependencies are linked beside it. So a file that is not packed and a
 * dependency that is not declared both show, without the minute that compiling better-sqlite3 takes. Users of the
 * library add LangChain, as the tests of it do.
 */
const Manifest = z.object({
  bin: z.object({ "deepagent-mcp": z.string() }),
  dependencies: z.record(z.string(), z.string()),
  optionalDependencies: z.record(z.string(), z.string()),
  peerDependenciesMeta: z.record(z.string(), z.object({ optional: z.boolean() })),
});

let folder: string;
let installed: string;
let files: string[];

beforeAll(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "package-")));
  // The build has run already; running it again would pull dist away from tests beside this one.
  const packing = [join(ROOT, "scripts/package.mjs"), folder];
  const tarball = execFileSync(process.execPath, packing, { encoding: "utf8" }).trim();
  installed = join(folder, "node_modules/deepagent-mcp");
  mkdirSync(installed, { recursive: true });
  execFileSync("tar", ["-xzf", tarball, "--strip-components=1", "-C", installed]);
  files = readdirSync(installed, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => relative(installed, join(parentPath, name)));
  const { dependencies, optionalDependencies } = manifest();
  const optional = Object.keys(optionalDependencies).filter((name) =>
    existsSync(join(ROOT, "node_modules", name)),
  );
  for (const name of [...Object.keys(dependencies), ...optional]) link(name);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What users of the library install themselves. */
const LANGCHAIN = ["core", "langgraph", "langgraph-checkpoint"].map((name) => `@langchain/${name}`);
const SHARED = [...LANGCHAIN, "langchain", "zod"];

/** Installs a package beside ours. */
function link(name: string): void {
  const target = join(folder, "node_modules", name);
  if (existsSync(target)) return;
  mkdirSync(dirname(target), { recursive: true });
  symlinkSync(join(ROOT, "node_modules", name), target);
}

const manifest = () => Manifest.parse(JSON.parse(readFileSync(join(installed, "package.json"), "utf8")));

describe("what people read", () => {
  const linksOf = (name: string): string[] => {
    const text = readFileSync(join(installed, name), "utf8").replaceAll(/```[^]*?```/g, "");
    return [...text.matchAll(/\]\(([^)\s#]+)(?:#[^)]*)?\)/g)].map(([, target = ""]) => target);
  };

  it("comes with the package, and leads to nothing that does not", () => {
    const texts = files.filter((name) => name.endsWith(".md") && !name.startsWith("demo/"));
    expect(texts).toEqual(
      expect.arrayContaining(["README.md", "docs/guide.md", "docs/decisions/000-index.md"]),
    );
    expect(files.some((name) => name.startsWith("examples/"))).toBe(true);
    const lost = texts.flatMap((name) =>
      linksOf(name)
        // Pictures are shown where the repository is, and are not in the package.
        .filter((target) => !/^[a-z]+:/.test(target))
        .filter((target) => !existsSync(join(installed, dirname(name), target)))
        .map((target) => `${name}: ${target}`),
    );
    expect(lost).toEqual([]);
  });
});

/** An environment without anything that points at this checkout. */
const environment = () => {
  const { PATH = "" } = process.env;
  return { PATH, HOME: folder, TMPDIR: folder, XDG_DATA_HOME: join(folder, "data") };
};

/** Runs Node in the empty folder. */
function node(args: string[], input = ""): string {
  const options = { cwd: folder, env: environment(), input, encoding: "utf8", stdio: "pipe" } as const;
  return execFileSync(process.execPath, args, options);
}

const bin = () => join(installed, manifest().bin["deepagent-mcp"]);

it("holds what runs and what a reader needs, and no sources or tests", () => {
  const top = new Set(files.map((path) => path.split("/")[0]));
  for (const name of ["dist", "demo", "docs", "examples", "README.md", "LICENSE", "package.json"])
    expect(top).toContain(name);
  expect(files.filter((path) => path.startsWith("bench/"))).toEqual(["bench/README.md"]);
  for (const name of ["src", "test", "evals", "scripts"]) expect(top).not.toContain(name);
  const needed = [
    "dist/index.js",
    "dist/src/index.d.ts",
    "dist/sbom.cdx.json",
    "demo/workspace/src/server.js",
  ];
  expect(files).toEqual(expect.arrayContaining(needed));
});

it("brings at most two packages with it, and asks for no other", () => {
  const { dependencies, optionalDependencies, peerDependenciesMeta } = manifest();
  expect(Object.keys({ ...dependencies, ...optionalDependencies })).toEqual([
    "@vscode/ripgrep",
    "better-sqlite3",
  ]);
  expect(Object.values(peerDependenciesMeta).every(({ optional }) => optional)).toBe(true);
});

it("has the code of threads and of their process as texts, and reads a PDF with them", async () => {
  const textOf = async (name: string): Promise<string> => {
    const chunks = files.filter((path) => path.startsWith("dist/library/") && path.includes(`/${name}`));
    expect(chunks).toHaveLength(1);
    const loaded = (await import(join(installed, chunks[0] ?? ""))) as { default: string };
    return loaded.default;
  };
  const pdf = new Uint8Array(
    Buffer.from(
      "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 144]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>endobj\n4 0 obj<</Length 42>>stream\nBT /F1 24 Tf 20 100 Td (Hello tides) Tj ET\nendstream endobj\n5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF",
    ),
  );
  const workerData = { pdf, timeMs: 60_000, characters: 1000 };
  const code = await textOf("pdf.thread-");
  const input = serialize({ code, workerData, timeMs: 60_000, bytes: 2 ** 29, parent: process.pid });
  const options = { env: {}, inputs: [input], timeout: 60_000 };
  const output = await runProgram(process.execPath, ["-e", await textOf("bounded-process.thread-")], options);
  expect(JSON.parse(output)).toEqual({ text: "[page 1]\nHello tides", notes: [] });
});

it("names the licence of everything that is bundled", () => {
  const text = readFileSync(join(installed, "dist/THIRD-PARTY-LICENSES.txt"), "utf8");
  for (const name of ["@langchain/core", "@modelcontextprotocol/server", "zod", "openai", "preact"])
    expect(text).toMatch(new RegExp(`^${name} \\d`, "m"));
  expect(text).toContain("SIL OPEN FONT LICENSE");
  expect(text).not.toContain("(undefined)");
});

it("answers initialize in the folder it was installed into", () => {
  const answer = node([bin(), "--workspace", folder, "--log-level", "silent"], INITIALIZE);
  expect(JSON.parse(answer)).toMatchObject({ id: 1, result: { serverInfo: { name: "deepagent-mcp" } } });
});

it("serves a client over stdio to the end of a run", async () => {
  const settings = { DEEPAGENT_MODEL: "offline", DEEPAGENT_WORKSPACE: folder };
  const client = await connect(stdioServer(bin(), { ...environment(), ...settings }), "v2-modern");
  expect((await client.call("run_deep_agent", { task: "Say hello" })).text).toContain("completed");
});

it("has everything a run needs", () => {
  expect(node([bin(), "doctor", "--model", "offline", "--workspace", folder])).toContain(
    "All checks passed.",
  );
});

it("runs the demo", () => {
  expect(node([bin(), "demo"])).toMatch(/✔ completed in/);
});

describe("the tests for a backend of one's own", () => {
  const guide = () =>
    readFileSync(join(installed, "docs/guide.md"), "utf8").split("\n## Custom backends\n")[1] ?? "";
  const block = (language: string): string =>
    new RegExp(`\\n\`\`\`${language}\\n([^]*?)\`\`\``).exec(guide())?.[1] ?? "";

  /** Runs a test file with Vitest in the empty folder; gives what it printed. */
  function runTests(name: string, code: string): { status: number | null; output: string } {
    writeFileSync(join(folder, name), code);
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      [join(ROOT, "node_modules/vitest/vitest.mjs"), "run", "--root", folder, "--reporter=verbose", name],
      { cwd: folder, env: { ...environment(), NO_COLOR: "1" }, encoding: "utf8" },
    );
    return { status, output: stdout + stderr };
  }

  beforeAll(() => {
    for (const name of [...SHARED, "vitest"]) link(name);
    writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
    const { code } = transformSync(block("ts"), { loader: "ts" });
    writeFileSync(join(folder, "map-store.js"), code);
  });

  it("pass for the backend that the guide makes", () => {
    const { status, output } = runTests("map-store.test.js", block("js"));
    expect(output).toContain("a map > edit: ");
    expect(status, output).toBe(0);
  });

  it("fail by name for one with a fault", () => {
    const broken = block("js").replace(
      "new FileStoreBackend(mapStore(new Map()))",
      "Object.assign(new FileStoreBackend(mapStore(new Map())), { edit: async (path) => ({ path, occurrences: 1 }) })",
    );
    const { status, output } = runTests("broken.test.js", broken);
    expect(status).toBe(1);
    expect(output).toMatch(/(?:FAIL|×).* a map > edit: /);
    expect(output).not.toMatch(/(?:FAIL|×).* a map > read: /);
  });
});

describe("the library", () => {
  beforeAll(() => {
    for (const name of [...SHARED, "@types/node"]) link(name);
  });

  it("says which package is missing", () => {
    const name = join(folder, "node_modules/@langchain/langgraph");
    rmSync(name);
    const { stderr } = spawnSync(process.execPath, ["-e", 'import("deepagent-mcp")'], {
      cwd: folder,
      encoding: "utf8",
    });
    link("@langchain/langgraph");
    expect(stderr).toContain("@langchain/langgraph");
  });

  it("runs an agent, on the LangChain of whoever uses it", () => {
    const script = join(folder, "library.mjs");
    writeFileSync(
      script,
      `import { AIMessage } from "@langchain/core/messages";
       import { createDeepAgent, StateBackend } from "deepagent-mcp";
       const agent = createDeepAgent({ model: "offline", backend: new StateBackend({ files: {} }) });
       const { messages } = await agent.invoke({ messages: [{ role: "user", content: "Say hello" }] });
       console.log(messages.at(-1) instanceof AIMessage);`,
    );
    expect(node([script])).toBe("true\n");
  });

  it.each(["nodenext", "bundler"])("has declarations for a strict compiler: %s", (resolution) => {
    const source = join(folder, "use.mts");
    writeFileSync(
      source,
      `import { createCheckpointer, createDeepAgent, openDatabase, S3Backend } from "deepagent-mcp";
       import { backendContract } from "deepagent-mcp/testing";
       export const agent = createDeepAgent({ model: "offline" });
       export const checkpointer = createCheckpointer(openDatabase(":memory:"));
       export { backendContract, S3Backend };
       // @ts-expect-error: it is no model
       createDeepAgent({ model: 7 });`,
    );
    const settings =
      "--noEmit --strict --exactOptionalPropertyTypes --skipLibCheck false --target es2023 --types node";
    const tsc = [join(ROOT, "node_modules/typescript/bin/tsc")];
    const form = ["--module", resolution === "bundler" ? "esnext" : resolution];
    const { stdout } = spawnSync(
      process.execPath,
      [...tsc, ...settings.split(" "), ...form, "--moduleResolution", resolution, source],
      { cwd: folder, encoding: "utf8" },
    );
    // LangChain's own declarations do not pass with exact optional properties.
    const ours = stdout
      .split("\n")
      .filter((line) => /^(?:node_modules\/deepagent-mcp|use\.mts).*error TS/.test(line));
    expect(ours).toEqual([]);
  });
});

// A Node that brings SQLite never loads the module: test/storage/node-driver.test.ts.
describe.skipIf(hasNodeSqlite()).each([
  ["is not there", undefined],
  ["is of another system", "MZ, as programs of Windows begin"],
])("when the native module %s", (_, content) => {
  const sqlite = () => join(folder, "node_modules/better-sqlite3");
  const original = join(ROOT, "node_modules/better-sqlite3");
  const binary = "build/Release/better_sqlite3.node";
  const built = () => join(sqlite(), binary);
  let told: string;

  beforeAll(() => {
    rmSync(sqlite());
    // As `npm ci --ignore-scripts` leaves it.
    for (const part of ["lib", "package.json"]) cpSync(join(original, part), join(sqlite(), part), TREE);
    symlinkSync(join(ROOT, "node_modules/bindings"), join(folder, "node_modules/bindings"));
    mkdirSync(dirname(built()), TREE);
    if (content !== undefined) writeFileSync(built(), content);
    const { stdout } = failing("doctor", "--model", "offline", "--workspace", folder);
    told = /SQLite cannot be loaded: .*$/m.exec(stdout)?.[0] ?? "";
    expect(told).toContain(`"npm rebuild better-sqlite3 --ignore-scripts=false"`);
    expect(stdout).toMatch(/^ *In any folder: npm --prefix ".*" rebuild better-sqlite3/m);
  });
  afterAll(() => {
    rmSync(sqlite(), TREE);
    rmSync(join(folder, "node_modules/bindings"));
    symlinkSync(original, sqlite());
  });

  it.each([["run", "task"], ["runs", "list"], ["demo"]])("%s says what doctor says", (...args) => {
    const { stderr } = failing(...args);
    expect(stderr).toContain(told);
    expect(stderr).not.toMatch(/^\s+at /m);
  });

  it("a client is told the same by its first call, and is served as soon as that is mended", async () => {
    const http = await serveHttp(
      { env: environment() },
      ["--model", "offline", "--workspace", folder],
      bin(),
    );
    for (const server of [http.connector, stdioServer(bin(), environment())]) {
      const client = await connect(server, "v2-modern");
      const list = () => client.call("check_deep_agent", { run_id: "run_x" });
      expect(await list()).toMatchObject({ isError: true, text: told });
      rmSync(built(), { force: true });
      cpSync(join(original, binary), built());
      expect((await list()).text).toContain("run_x");
      rmSync(built());
      if (content !== undefined) writeFileSync(built(), content);
    }
  });
});

const TREE = { recursive: true } as const;

/** What the program says that does not end well. */
function failing(...args: string[]): { stdout: string; stderr: string } {
  const options = { cwd: folder, env: environment(), encoding: "utf8" } as const;
  const { status, stdout, stderr } = spawnSync(process.execPath, [bin(), ...args], options);
  expect(status).toBe(1);
  return { stdout, stderr };
}
