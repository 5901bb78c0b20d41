// What `npm create deepagent` asks, refuses and writes; test/package/starter-projects.test.ts uses what it wrote.
import { execFileSync } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { type Outcome, ROOT, runBin } from "../commands/built-bin.ts";

const Manifest = z.looseObject({
  name: z.string(),
  version: z.string(),
  private: z.boolean().optional(),
  scripts: z.record(z.string(), z.string()).optional(),
  dependencies: z.record(z.string(), z.string()).optional(),
  devDependencies: z.record(z.string(), z.string()).optional(),
  deepagent: z.object({ package: z.string(), versions: z.record(z.string(), z.string()) }).optional(),
});
const manifestAt = (path: string) => Manifest.parse(JSON.parse(readFileSync(path, "utf8")));

let root: string;
let cwd: string;
/** The starter as npm has it once it is published: outside of a checkout. */
let published: string;
const own = manifestAt(join(ROOT, "create/package.json"));

/** A copy of the starter with other words in its package.json. */
function copyOf(name: string, changes: object): string {
  const folder = join(root, name);
  cpSync(join(ROOT, "create"), folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), JSON.stringify({ ...own, ...changes }));
  return join(folder, "create-deepagent.mjs");
}

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "starter-"));
  published = copyOf("published", { private: false });
});
afterAll(() => rmSync(root, { recursive: true, force: true }));
beforeEach(() => {
  cwd = mkdtempSync(join(root, "here-"));
});

const create = (args: string[], program = published): Promise<Outcome> => runBin(args, { cwd, program });

describe("refuses, with one line and nothing written:", () => {
  it.each([
    [[], "Name the new folder: npm create deepagent my-agent"],
    [["../outside"], '"../outside" is a path'],
    [["/tmp/outside"], "is a path"],
    [["a\\b"], "is a path"],
    [[".."], '".." is a path'],
    [["Big Agent"], "cannot be the name of a package"],
    [[""], "cannot be the name of a package"],
    [["--", "-rf"], "cannot be the name of a package"],
    [["a\u001b[2Jb"], '"a\\u001b[2Jb" cannot be the name of a package'],
    [["x".repeat(5000)], "cannot be the name of a package"],
    [["node_modules"], "is taken"],
    [["con.txt"], "is taken"],
    [["deepagent-mcp"], "is taken"],
    [["zod"], "is taken"],
    [["one", "two"], "Give one name, not 2"],
    [["agent", "--template", "python"], 'no template "python". Take one of: server, library, langgraph'],
    [["agent", "--template"], "--template"],
    [["agent", "--force"], "Unknown option '--force'"],
  ])("%j", async (args, why) => {
    const { code, stdout, stderr } = await create(args);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toContain(why);
    expect(stderr).toMatch(/^create-deepagent: [^\n]{1,400}\n$/);
    expect(readdirSync(cwd)).toEqual([]);
  });

  it("a folder that is not empty, a file, and a link that leads elsewhere", async () => {
    mkdirSync(join(cwd, "full"));
    writeFileSync(join(cwd, "full/mine.txt"), "mine");
    writeFileSync(join(cwd, "file"), "mine");
    const elsewhere = mkdtempSync(join(root, "elsewhere-"));
    symlinkSync(elsewhere, join(cwd, "link"));
    symlinkSync(join(root, "nowhere"), join(cwd, "broken"));
    expect((await create(["full"])).stderr).toContain("The folder full is not empty");
    for (const name of ["file", "link", "broken"])
      expect((await create([name])).stderr).toContain(`${name} is there already, and is no folder`);
    expect(readdirSync(elsewhere)).toEqual([]);
    expect(readdirSync(join(cwd, "full"))).toEqual(["mine.txt"]);
  });

  it("to be used outside of a checkout before it is published", async () => {
    const unpublished = copyOf("unpublished", { private: true });
    const { code, stderr } = await create(["agent"], unpublished);
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: "create-deepagent: deepagent-mcp is not on npm yet: start this program in a checkout of it.\n",
    });
    expect(readdirSync(cwd)).toEqual([]);
  });
});

it("tells what it does, and its version", async () => {
  const { code, stdout } = await create(["--help"]);
  expect(code).toBe(0);
  for (const word of ["npm create deepagent", "server", "library", "langgraph", "--template"])
    expect(stdout).toContain(word);
  expect(await create(["-v"])).toMatchObject({ code: 0, stdout: `${own.version}\n` });
});

describe.each(["server", "library", "langgraph"])("the template %s", (template) => {
  it("is a project with exact versions and no key, in which nothing is left to fill in", async () => {
    mkdirSync(join(cwd, "my.agent-1"));
    const { code, stdout, stderr } = await create(["my.agent-1", "-t", template]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain("cd my.agent-1\n  npm install\n  npm test\n  npm start\n");

    const folder = join(cwd, "my.agent-1");
    const { name, scripts, dependencies, devDependencies } = manifestAt(join(folder, "package.json"));
    expect(name).toBe("my.agent-1");
    expect(scripts).toMatchObject({ test: "node --test", start: expect.any(String) });
    expect(dependencies?.["deepagent-mcp"]).toBe(own.version);
    for (const version of Object.values({ ...dependencies, ...devDependencies }))
      expect(version).toMatch(/^\d+\.\d+\.\d+$/);

    const files = readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name));
    for (const path of files) expect(readFileSync(path, "utf8"), path).not.toMatch(/\{\{|sk-|_KEY=./);
    expect(readFileSync(join(folder, ".gitignore"), "utf8")).toContain("\n.env\n");
    expect(readFileSync(join(folder, "README.md"), "utf8")).toContain("# my.agent-1\n");
  });
});

it("imports a package of another name under its own", async () => {
  const versions = own.deepagent?.versions;
  const scoped = copyOf("scoped", { private: false, deepagent: { package: "@example/agent", versions } });
  expect(await create(["agent"], scoped)).toMatchObject({ code: 0 });
  const { dependencies } = manifestAt(join(cwd, "agent/package.json"));
  expect(dependencies?.["deepagent-mcp"]).toBe(`npm:@example/agent@${own.version}`);
});

it("asks for what is not given, until an answer is possible", { tags: "python3" }, () => {
  const answers = JSON.stringify(["../x", "agent", "cobol", "library"]);
  const screen = execFileSync("python3", ["-c", TYPED, answers, process.execPath, published], {
    cwd,
    encoding: "utf8",
  });
  expect(screen).toContain("is a path");
  expect(screen).toContain('no template "cobol"');
  expect(screen).toContain("Made agent with the template library");
  expect(readdirSync(join(cwd, "agent"))).toContain("main.js");
});

/** Types each answer when the program has asked one question more. */
const TYPED = `
import json, os, pty, sys
answers = json.loads(sys.argv[1])
child, terminal = pty.fork()
if child == 0:
    os.execv(sys.argv[2], sys.argv[2:])
seen, asked = b"", 0
while True:
    try:
        piece = os.read(terminal, 4096)
    except OSError:
        break
    if not piece:
        break
    seen += piece
    count = seen.count(b"(my-agent): ") + seen.count(b"Template (server): ")
    if count > asked and answers:
        asked = count
        os.write(terminal, answers.pop(0).encode() + b"\\r")
sys.stdout.write(seen.decode())
os.waitpid(child, 0)
`;
