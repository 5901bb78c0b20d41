// What has to be true before the package is published, in copies of the project: as it is, and with facts that are
// made up for the test.
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, sep } from "node:path";
import { AjvJsonSchemaValidator } from "@modelcontextprotocol/client/validators/ajv";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { ROOT } from "../commands/built-bin.ts";

const FACTS = {
  repository: "https://github.com/example-owner/example",
  homepage: "https://example.org/agent",
  author: "A. Maker <maker@example.org>",
  npmName: "deepagent-mcp",
  registryName: "io.github.example-owner/deepagent-mcp",
  securityContact: "mailto:security@example.org",
};
const NEVER_COPIED = new Set(["node_modules", "dist", ".git", "coverage", "build"]);

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "release-"));
  const filter = (path: string) => !NEVER_COPIED.has(relative(ROOT, path).split(sep)[0] ?? "");
  cpSync(ROOT, folder, { recursive: true, filter });
  for (const name of ["node_modules", "dist"]) symlinkSync(join(ROOT, name), join(folder, name));
  git("init", "--quiet");
  // Folders are ignored by that file, links are not.
  writeFileSync(join(folder, ".git/info/exclude"), "node_modules\ndist\n");
  commit();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function git(...args: string[]): string {
  const user = ["-c", "user.name=test", "-c", "user.email=test@example.org"];
  return execFileSync("git", [...user, ...args], { cwd: folder, encoding: "utf8", stdio: "pipe" });
}

function commit(): void {
  git("add", "--all");
  git("commit", "--quiet", "--allow-empty", "--message", "all");
}

function script(name: string, ...args: string[]): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(process.execPath, [join(folder, `scripts/${name}.mjs`), ...args], { encoding: "utf8" });
}

const text = (name: string): string => readFileSync(join(folder, name), "utf8");
const manifest = () => z.record(z.string(), z.unknown()).parse(JSON.parse(text("package.json")));

function replace(name: string, from: string | RegExp, to: string): void {
  const before = text(name);
  writeFileSync(join(folder, name), before.replace(from, to));
  expect(text(name)).not.toBe(before);
}

const setFacts = (facts: object): void =>
  writeFileSync(join(folder, "project.json"), `${JSON.stringify(facts, null, 2)}\n`);

/** What the registry accepts (schema 2025-12-11), as far as an entry of ours has it: nothing else is written. */
const Input = {
  description: z.string().min(1),
  format: z.enum(["string", "number", "boolean", "filepath"]),
  isRequired: z.boolean(),
};
const ServerEntry = z.strictObject({
  $schema: z.literal("https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"),
  name: z
    .string()
    .max(200)
    .regex(/^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/),
  title: z.string().min(1).max(100),
  description: z.string().min(1).max(100),
  version: z.string().regex(/^\d+\.\d+\.\d+$/),
  repository: z.strictObject({ url: z.url(), source: z.literal("github") }),
  websiteUrl: z.url(),
  packages: z.array(
    z.strictObject({
      registryType: z.literal("npm"),
      registryBaseUrl: z.literal("https://registry.npmjs.org"),
      identifier: z.string(),
      version: z.string(),
      runtimeHint: z.literal("npx"),
      runtimeArguments: z.array(z.strictObject({ type: z.literal("positional"), value: z.string() })),
      transport: z.strictObject({ type: z.literal("stdio") }),
      packageArguments: z.array(
        z.strictObject({ type: z.literal("named"), name: z.string().startsWith("--"), ...Input }),
      ),
      environmentVariables: z.array(
        z.strictObject({ name: z.string(), isSecret: z.boolean().optional(), ...Input }),
      ),
    }),
  ),
});

describe("as it is", () => {
  it("has generated files that are current", () => {
    expect(script("generate", "--check")).toMatchObject({ status: 0, stderr: "" });
  });

  it("says that there is no contact for vulnerabilities until the facts have one", () => {
    setFacts({ ...JSON.parse(text("project.json")), securityContact: null });
    expect(script("generate")).toMatchObject({ status: 0, stderr: "" });
    expect(text("SECURITY.md")).toContain("contact is not set yet");
    git("checkout", "--quiet", ".");
  });

  it("restores a generated file that was edited, and deletes one that should not exist", () => {
    replace("docs/configuration.md", "# Configuration", "# Settings");
    const isPublished = manifest()["private"] !== true;
    if (!isPublished) writeFileSync(join(folder, "plugins/deepagent/.mcp.json"), "{}\n");
    const { status, stderr } = script("generate", "--check");
    expect(status).toBe(1);
    expect(stderr.trim().split("\n")).toEqual([
      "docs/configuration.md is stale. Run: node scripts/generate.mjs",
      ...(isPublished ? [] : ["plugins/deepagent/.mcp.json is stale. Run: node scripts/generate.mjs"]),
    ]);
    expect(script("generate")).toMatchObject({ status: 0, stderr: "" });
    expect(git("status", "--porcelain")).toBe("");
  });

  it("names each thing that is missing, and is not published", () => {
    const { status, stderr } = script("release-check");
    const unknown = Object.entries(z.record(z.string(), z.unknown()).parse(JSON.parse(text("project.json"))))
      .filter(([, value]) => value === null)
      .map(([name]) => `project.json has no ${name}: `);
    const isPrivate = manifest()["private"] === true;
    expect(status).toBe(unknown.length > 0 || isPrivate ? 1 : expect.any(Number));
    for (const line of unknown) expect(stderr).toContain(line);
    if (isPrivate) expect(stderr).toContain('still says "private": true');
  });

  it("asks before npm publishes", () => {
    expect(manifest()["scripts"]).toMatchObject({
      prepublishOnly: expect.stringContaining("npm run --silent release:check"),
    });
  });
});

describe("facts that are wrong", () => {
  it.each([
    [{ repository: "git@github.com:a/b.git" }, "repository is not the address"],
    [{ npmName: "Deep Agent" }, "npmName is not the name"],
    [{ securityContact: "somebody" }, "securityContact is not where"],
    [{ autor: "x" }, "unknown autor"],
    [
      { repository: FACTS.repository, registryName: "io.github.other/x" },
      "belongs to the account other, but repository to example-owner",
    ],
  ])("are refused: %j", (facts, why) => {
    const before = text("project.json");
    setFacts(facts);
    for (const name of ["generate", "release-check"])
      expect(script(name)).toMatchObject({ status: 1, stderr: expect.stringContaining(why) });
    writeFileSync(join(folder, "project.json"), before);
    expect(git("status", "--porcelain")).toBe("");
  });
});

describe("with every fact", () => {
  beforeAll(() => {
    setFacts(FACTS);
    if (manifest()["private"] === true) replace("package.json", /^ {2}"private": true,\n/m, "");
  });

  it("says which files are stale, and writes them", () => {
    const { stderr } = script("generate", "--check");
    const stale = ["package.json", "README.md", "server.json", "create/package.json", "docs/starter.md"];
    for (const name of [...stale, "docs/clients.md", "SECURITY.md"])
      expect(stderr).toContain(`${name} is stale`);
    expect(script("generate")).toMatchObject({ status: 0, stderr: "" });
    expect(script("generate", "--check")).toMatchObject({ status: 0, stderr: "" });
  });

  it("SECURITY.md has the contact", () => {
    expect(text("SECURITY.md")).toContain("Report it to <security@example.org>.");
    expect(text("SECURITY.md")).not.toContain("not set");
  });

  it("the plugins bring the server, which npx starts", () => {
    const server = { deepagent: { command: "npx", args: ["-y", "deepagent-mcp"] } };
    const json = (name: string): unknown => JSON.parse(text(`plugins/deepagent/${name}`));
    expect(json(".mcp.json")).toEqual(server);
    expect(json(".codex-plugin/plugin.json")).toMatchObject({ mcpServers: "./.mcp.json" });
    expect(json("gemini-extension.json")).toMatchObject({
      mcpServers: server,
      settings: [{ envVar: "ANTHROPIC_API_KEY", sensitive: true }, { envVar: "OPENAI_API_KEY" }],
    });
    expect(json(".claude-plugin/plugin.json")).toMatchObject({
      author: { name: "A. Maker" },
      repository: FACTS.repository,
    });
  });

  it("the page of clients has buttons with the entry that each client reads", () => {
    const links = [...text("docs/clients.md").matchAll(/\]\((https:[^)]*(?:install|extension\?)[^)]*)\)\n/g)]
      .map(([, link = ""]) => new URL(link))
      .map(({ host, pathname, searchParams }) => ({ at: host + pathname, query: searchParams }));
    const query = (at: string) => links.find((link) => link.at === at)?.query ?? new URLSearchParams();
    const entry = { command: "npx", args: ["-y", "deepagent-mcp"] };
    const decoded = (config: string | null): unknown =>
      JSON.parse(Buffer.from(config ?? "", "base64").toString());
    for (const at of ["cursor.com/install-mcp", "lmstudio.ai/install-mcp"]) {
      expect(query(at).get("name")).toBe("deepagent");
      expect(decoded(query(at).get("config"))).toEqual(entry);
    }
    const vscode = query("insiders.vscode.dev/redirect/mcp/install");
    expect(vscode.get("name")).toBe("deepagent");
    expect(JSON.parse(vscode.get("config") ?? "")).toEqual({
      type: "stdio",
      command: "npx",
      args: ["-y", "deepagent-mcp", "--workspace", "${workspaceFolder}"],
    });
    const goose = query("block.github.io/goose/extension");
    expect([goose.get("cmd"), ...goose.getAll("arg")]).toEqual([entry.command, ...entry.args]);
    for (const name of ["timeout", "id", "name", "description"]) expect(goose.get(name)).toBeTruthy();
    expect(text("docs/clients.md")).not.toContain("/path/to/deepagent-mcp");
  });

  it("package.json says where the project is, and npm finds nothing to correct in it", () => {
    expect(manifest()).toMatchObject({
      mcpName: FACTS.registryName,
      homepage: FACTS.homepage,
      author: FACTS.author,
      bugs: { url: `${FACTS.repository}/issues` },
      repository: { type: "git", url: `git+${FACTS.repository}.git` },
    });
    const before = text("package.json");
    execFileSync("npm", ["pkg", "fix"], { cwd: folder, stdio: "pipe" });
    expect(text("package.json")).toBe(before);
    const formatted = [join(ROOT, "node_modules/oxfmt/bin/oxfmt"), "--check", "package.json", "project.json"];
    expect(() => execFileSync(process.execPath, formatted, { cwd: folder, stdio: "pipe" })).not.toThrow();
  });

  it("server.json is an entry that the MCP registry accepts", () => {
    const entry = ServerEntry.parse(JSON.parse(text("server.json")));
    const { version } = z.object({ version: z.string() }).parse(manifest());
    // The registry looks for this name in the package on npm.
    expect(entry).toMatchObject({ name: manifest()["mcpName"], version });
    const [npm] = entry.packages;
    expect(npm).toMatchObject({ identifier: FACTS.npmName, version });
    const keys = npm?.environmentVariables.filter(({ name }) => name.endsWith("_KEY")) ?? [];
    expect(keys.length).toBeGreaterThan(1);
    expect(keys.every(({ isSecret }) => isSecret)).toBe(true);
  });

  it("server.json fits the registry's own schema", { tags: ["registry-schema"] }, () => {
    const schema = JSON.parse(readFileSync(process.env["REGISTRY_SCHEMA_FILE"] ?? "", "utf8"));
    const entry = z.looseObject({ $schema: z.string() }).parse(JSON.parse(text("server.json")));
    expect(schema).toMatchObject({ $id: entry.$schema });
    const check = new AjvJsonSchemaValidator().getValidator(z.looseObject({}).parse(schema));
    expect(check(entry).errorMessage).toBeUndefined();
    expect(check({ ...entry, name: "no name of the registry" }).valid).toBe(false);
  });

  it("the README begins with npx, badges and pictures that npm can show", () => {
    const readme = text("README.md");
    expect(readme).toMatch(
      /^# deepagent-mcp\n\[!\[npm\]\(https:\/\/img\.shields\.io\/npm\/v\/deepagent-mcp\)\]/,
    );
    expect(readme).toContain("npx -y deepagent-mcp install cursor");
    expect(readme).toContain("https://raw.githubusercontent.com/example-owner/example/HEAD/docs/pictures/");
    expect(readme).not.toMatch(/["(]docs\/pictures\//);
    expect(readme.split("\n").length).toBeLessThanOrEqual(151);
  });

  it("the starter goes out with the package, and is told of by npm's own command", () => {
    const { version, author, bugs } = manifest();
    const starter: unknown = JSON.parse(text("create/package.json"));
    expect(starter).toMatchObject({ name: "create-deepagent", version, author, bugs });
    expect(starter).toMatchObject({
      repository: { type: "git", url: `git+${FACTS.repository}.git`, directory: "create" },
      deepagent: { package: FACTS.npmName },
    });
    expect(starter).not.toHaveProperty("private");
    for (const name of ["create/README.md", "docs/starter.md"])
      expect(text(name)).toContain("\nnpm create deepagent my-agent -- --template server\n");
    const args = ["pack", "--dry-run", "--json", "./create"];
    const packed = execFileSync("npm", args, { cwd: folder, encoding: "utf8", stdio: "pipe" });
    for (const name of ["LICENSE", "README.md", "create-deepagent.mjs", "templates/shared/gitignore"])
      expect(packed).toContain(`"path": "${name}"`);
  });

  it("is not ready before it is described, committed and tagged, and then it is", () => {
    expect(script("release-check").stderr).toContain("changes that are not committed: ");
    replace("CHANGELOG.md", "\n## [0.1.0]\n", "");
    replace("CHANGELOG.md", "## [Unreleased]\n", "## [Unreleased]\n\n## [0.1.0] - 2026-11-23\n");
    commit();
    const { status, stderr } = script("release-check");
    expect({ status, problems: stderr.split("\n- ").slice(1) }).toEqual({
      status: 1,
      problems: [expect.stringContaining("has no tag v0.1.0")],
    });
    git("tag", "v0.1.0");
    expect(script("release-check")).toMatchObject({
      status: 0,
      stdout: "deepagent-mcp 0.1.0 is ready to be published.\n",
    });
    replace("CHANGELOG.md", "## [Unreleased]\n", "## [Unreleased]\n\n- One more thing.\n");
    expect(script("release-check").stderr).toContain("entries under [Unreleased]");
    git("checkout", "--quiet", "CHANGELOG.md");
  });

  it("a package that may not be given on is named", () => {
    const dist = join(folder, "dist");
    rmSync(dist);
    expect(script("release-check").stderr).toContain("dist is not built");
    cpSync(join(ROOT, "dist/THIRD-PARTY-LICENSES.txt"), join(dist, "THIRD-PARTY-LICENSES.txt"));
    replace("dist/THIRD-PARTY-LICENSES.txt", /^(zod \S+) \(MIT\)$/m, "$1 (GPL-3.0)");
    expect(script("release-check").stderr).toMatch(/The licence of zod \S+ is GPL-3.0/);
    rmSync(dist, { recursive: true });
    symlinkSync(join(ROOT, "dist"), dist);
  });

  it("npm refuses to publish what the check refuses", () => {
    // The build has run; here it is about what runs after it.
    replace("package.json", '"build": "node scripts/build.mjs"', '"build": "node --version"');
    const published = spawnSync("npm", ["publish", "--dry-run"], { cwd: folder, encoding: "utf8" });
    expect(published.status).toBe(1);
    expect(published.stderr).toContain("deepagent-mcp 0.1.0 cannot be published yet");
    expect(published.stderr).toContain("changes that are not committed: M package.json");
  });
});
