// What clients install with one click: the bundle for desktop clients, and the plugin with its skill.
import { execFileSync } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative, sep } from "node:path";
import { AjvJsonSchemaValidator } from "@modelcontextprotocol/client/validators/ajv";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { hasNodeSqlite } from "../../src/storage/sqlite/node-driver.ts";
import { ROOT } from "../commands/built-bin.ts";
import { connect } from "../support/harness.ts";
import { stdioCommand } from "../support/harness-stdio.ts";
import { BUNDLE_TOOL } from "../support/programs.ts";

const json = (path: string): unknown => JSON.parse(readFileSync(path, "utf8"));
const SCHEMA = "mcpb-manifest-v0.3.schema.json";
const inRoot = (name: string): unknown => json(join(ROOT, name));

describe("the bundle", () => {
  let folder: string;
  let project: string;
  beforeAll(() => {
    folder = realpathSync(mkdtempSync(join(tmpdir(), "one-click-")));
    project = join(folder, "project");
    mkdirSync(project);
    const needed = ["scripts", "skills", "package.json", "project.json", "config.schema.json", "LICENSE"];
    for (const name of needed) cpSync(join(ROOT, name), join(project, name), { recursive: true });
    for (const name of ["node_modules", "dist"]) symlinkSync(join(ROOT, name), join(project, name));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true, maxRetries: 20 }));

  const pack = (...args: string[]): string =>
    execFileSync(process.execPath, [join(project, "scripts/mcpb.mjs"), ...args], { encoding: "utf8" });

  /** What a client makes of the manifest: its command, with the person's values in it. */
  function startOf(bundle: string, values: Record<string, string>): { words: string[]; env: string[] } {
    const { server, user_config: asked } = Manifest.parse(json(join(bundle, "manifest.json")));
    const filled = (text: string): string =>
      text
        .replaceAll("${__dirname}", bundle)
        .replaceAll(
          /\$\{user_config\.(\w+)\}/g,
          (_, name: string) => values[name] ?? asked[name]?.default ?? "",
        );
    const { command, args, env } = server.mcp_config;
    expect(command).toBe("node");
    // Replaced by a text, `$$` becomes `$`, as in Claude Desktop.
    const assigned = Object.entries(env).map(
      ([name, value]) => `${name}=${value.replaceAll(/^.*$/g, filled(value))}`,
    );
    return { words: [process.execPath, ...args.map(filled)], env: assigned };
  }

  async function completesRun(bundle: string): Promise<void> {
    // Node 20 has no SQLite in it, and is not among the versions that the manifest names.
    const modules = join(bundle, "node_modules");
    for (const name of hasNodeSqlite() ? [] : ["better-sqlite3", "bindings", "file-uri-to-path"])
      symlinkSync(join(ROOT, "node_modules", name), join(modules, name));
    const workspace = join(folder, "my $$ work");
    mkdirSync(workspace, { recursive: true });
    const { words, env } = startOf(bundle, { workspace, model: "offline" });
    const data = `DEEPAGENT_DATA_DIR=${mkdtempSync(join(folder, "data-"))}`;
    const client = await connect(stdioCommand(["env", "-i", data, ...env, ...words], {}), "v2-modern");
    expect((await client.call("run_deep_agent", { task: "Say hello" })).text).toContain("completed");
    expect(words.slice(-2)).toEqual(["--workspace", workspace]);
  }

  it("has only what the server needs, and its command starts with an empty environment", async () => {
    pack("--stage");
    const bundle = join(project, "build/bundle");
    const files = readdirSync(bundle, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => relative(bundle, join(entry.parentPath, entry.name)));
    expect(new Set(files.map((name) => name.split(sep)[0]))).toEqual(
      new Set(["LICENSE", "dist", "manifest.json", "node_modules", "package.json", "skills"]),
    );
    expect(files.filter((name) => /\.d\.ts$|dist\/index\.js$/.test(name) && name.startsWith("dist"))).toEqual(
      [],
    );
    expect(files.some((name) => /ripgrep-.*bin.rg/.test(name))).toBe(true);
    const { user_config: asked } = Manifest.parse(json(join(bundle, "manifest.json")));
    expect(asked["workspace"]).toMatchObject({ type: "directory", required: true });
    for (const [name, option] of Object.entries(asked))
      expect(option.sensitive === true).toBe(name.endsWith("_key"));
    await completesRun(bundle);
  });

  it("has a manifest that fits the official schema", () => {
    const schema = z.looseObject({}).parse(inRoot(`test/package/fixtures/${SCHEMA}`));
    const check = new AjvJsonSchemaValidator().getValidator(schema);
    pack("--stage");
    const manifest = z.looseObject({}).parse(json(join(project, "build/bundle/manifest.json")));
    expect(check(manifest).errorMessage).toBeUndefined();
    // Unlike a client, the schema takes no member that it does not name.
    for (const wrong of [
      { ...manifest, server: {} },
      { ...manifest, author: "A. Maker" },
      { ...manifest, x: 1 },
    ])
      expect(check(wrong).valid).toBe(false);
  });

  it("passes the official tool, and runs from what that unpacks", { tags: "mcpb" }, async () => {
    const [name = ""] = pack().trim().split("\n");
    const bundle = join(folder, "unpacked");
    execFileSync(process.execPath, [BUNDLE_TOOL, "unpack", join(project, name), bundle], { stdio: "pipe" });
    execFileSync(process.execPath, [BUNDLE_TOOL, "validate", join(bundle, "manifest.json")], {
      stdio: "pipe",
    });
    await completesRun(bundle);
  });
});

const Manifest = z.object({
  server: z.object({
    mcp_config: z.object({
      command: z.string(),
      args: z.array(z.string()),
      env: z.record(z.string(), z.string()),
    }),
  }),
  user_config: z.record(
    z.string(),
    z.object({
      type: z.string(),
      required: z.boolean(),
      sensitive: z.boolean().optional(),
      default: z.string().optional(),
    }),
  ),
});

describe("the plugin", () => {
  const PLUGIN = "plugins/deepagent";
  const about = {
    name: z.string().regex(/^[a-z][a-z\d-]*$/),
    version: z.string().regex(/^\d+\.\d+\.\d+$/),
    description: z.string().min(1),
    author: z.strictObject({ name: z.string().min(1) }),
    homepage: z.url().optional(),
    repository: z.url().optional(),
    license: z.literal("MIT"),
    keywords: z.array(z.string()),
  };

  it.each([
    ["Claude Code", `${PLUGIN}/.claude-plugin/plugin.json`, z.strictObject(about)],
    [
      "Claude Code's list",
      ".claude-plugin/marketplace.json",
      z.strictObject({
        name: z.string(),
        owner: z.strictObject({ name: z.string().min(1) }),
        plugins: z.tuple([
          z.strictObject({
            name: z.literal("deepagent"),
            source: z.literal(`./${PLUGIN}`),
            description: z.string(),
          }),
        ]),
      }),
    ],
    [
      "Codex",
      `${PLUGIN}/.codex-plugin/plugin.json`,
      z.strictObject({
        ...about,
        skills: z.literal("./skills/"),
        mcpServers: z.literal("./.mcp.json").optional(),
        interface: z.strictObject({
          displayName: z.string(),
          shortDescription: z.string(),
          category: z.string(),
        }),
      }),
    ],
    [
      "Codex's list",
      ".agents/plugins/marketplace.json",
      z.strictObject({
        name: z.string(),
        interface: z.strictObject({ displayName: z.string() }),
        plugins: z.tuple([
          z.strictObject({
            name: z.literal("deepagent"),
            source: z.strictObject({ source: z.literal("local"), path: z.literal(`./${PLUGIN}`) }),
            policy: z.strictObject({
              installation: z.literal("AVAILABLE"),
              authentication: z.literal("ON_INSTALL"),
            }),
            category: z.string(),
          }),
        ]),
      }),
    ],
    [
      "Gemini CLI",
      `${PLUGIN}/gemini-extension.json`,
      z.strictObject({
        // The name of the folder.
        name: z.literal(basename(PLUGIN)),
        version: about.version,
        description: z.string(),
        mcpServers: z.record(z.string(), z.unknown()).optional(),
        settings: z.array(z.unknown()).optional(),
      }),
    ],
  ])("has the form that is documented for %s", (_, name, form) => {
    expect(form.safeParse(inRoot(name)).error?.issues).toBeUndefined();
  });

  it("has a skill that names only tools of the server", async () => {
    const file = join(ROOT, PLUGIN, "skills/delegate-long-tasks/SKILL.md");
    const text = readFileSync(file, "utf8");
    const head: unknown = parse(/^---\n([^]*?)\n---\n/.exec(text)?.[1] ?? "");
    expect(head).toMatchObject({ name: basename(dirname(file)) });
    const { description } = z.object({ description: z.string().max(1024) }).parse(head);
    expect(description).toMatch(/minutes to hours/);
    const server = stdioCommand([process.execPath, join(ROOT, "dist/bin/deepagent-mcp.js")], {
      DEEPAGENT_MODEL: "offline",
      DEEPAGENT_DATA_DIR: mkdtempSync(join(tmpdir(), "one-click-data-")),
    });
    const client = await connect(server, "v2-modern");
    const known = (await client.listTools()).map(({ name }) => name);
    const named = [...text.matchAll(/`(\w+_(?:deep_agent|agent_file|memories))`/g)].map(
      ([, name = ""]) => name,
    );
    expect(named.length).toBeGreaterThan(4);
    for (const name of named) expect(known).toContain(name);
  });
});
