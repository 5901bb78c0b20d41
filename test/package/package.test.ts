import { execFileSync } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { z } from "zod";
import { INITIALIZE, ROOT, cleanEnv } from "../commands/built-bin.ts";

/**
 * The package as npm would install it: the tarball is unpacked into an empty folder, and of what is
 * installed here only its declared dependencies are linked beside it. So a file that is not packed and a
 * dependency that is not declared both show, without the minute that compiling better-sqlite3 takes.
 */
const Packed = z.array(z.object({ filename: z.string(), files: z.array(z.object({ path: z.string() })) }));
const Manifest = z.object({
  bin: z.object({ "deepagent-mcp": z.string() }),
  dependencies: z.record(z.string(), z.string()),
});

let folder: string;
let installed: string;
let files: string[];

beforeAll(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "package-")));
  // The build has run already; running it again would pull dist away from tests beside this one.
  const args = ["pack", "--json", "--ignore-scripts", "--pack-destination", folder];
  const [packed] = Packed.parse(JSON.parse(execFileSync("npm", args, { cwd: ROOT, encoding: "utf8" })));
  files = packed?.files.map(({ path }) => path) ?? [];
  installed = join(folder, "node_modules/deepagent-mcp");
  mkdirSync(installed, { recursive: true });
  execFileSync("tar", [
    "-xzf",
    join(folder, packed?.filename ?? ""),
    "--strip-components=1",
    "-C",
    installed,
  ]);
  for (const name of Object.keys(manifest().dependencies)) {
    const link = join(folder, "node_modules", name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(ROOT, "node_modules", name), link);
  }
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const manifest = () => Manifest.parse(JSON.parse(readFileSync(join(installed, "package.json"), "utf8")));

/** Runs Node in the empty folder, without anything that points at this checkout. */
function node(args: string[], input = ""): string {
  const env = { ...cleanEnv(), HOME: folder, TMPDIR: folder, XDG_DATA_HOME: join(folder, "data") };
  return execFileSync(process.execPath, args, { cwd: folder, env, input, encoding: "utf8", stdio: "pipe" });
}

const bin = () => join(installed, manifest().bin["deepagent-mcp"]);

it("holds what runs and what a reader needs, and no sources or tests", () => {
  const top = new Set(files.map((path) => path.split("/")[0]));
  for (const name of ["dist", "demo", "README.md", "LICENSE", "package.json"]) expect(top).toContain(name);
  for (const name of ["src", "test", "bench", "scripts"]) expect(top).not.toContain(name);
  expect(files).toEqual(
    expect.arrayContaining(["dist/index.js", "dist/index.d.ts", "demo/workspace/src/server.js"]),
  );
});

it("answers initialize in the folder it was installed into", () => {
  const answer = node([bin(), "--workspace", folder, "--log-level", "silent"], INITIALIZE);
  expect(JSON.parse(answer)).toMatchObject({ id: 1, result: { serverInfo: { name: "deepagent-mcp" } } });
});

it("has everything a run needs", () => {
  expect(node([bin(), "doctor", "--model", "offline", "--workspace", folder])).toContain(
    "Everything a run needs",
  );
});

it("runs the demo", () => {
  expect(node([bin(), "demo"])).toMatch(/✔ completed in/);
});

it("can be imported as a library", () => {
  const script = join(folder, "library.mjs");
  writeFileSync(
    script,
    `import { createDeepAgent, StateBackend } from "deepagent-mcp";
     console.log(typeof createDeepAgent, typeof StateBackend);`,
  );
  expect(node([script])).toBe("function function\n");
});
