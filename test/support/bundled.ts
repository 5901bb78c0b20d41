import { randomUUID } from "node:crypto";
import { existsSync, renameSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { build } from "esbuild";
import { inject } from "vitest";
import { threadTexts } from "../../scripts/thread-texts.mjs";
import { filesIn } from "./files-in.ts";

const ROOT = join(import.meta.dirname, "../..");

/**
 * The program of `entry`, a path from the package's folder, as a bundle of the sources as they are now; a build in
 * `dist` may be older, or be replaced while a test runs. Made once for all test files of a run, with the agent's
 * libraries in it: it starts in three quarters of the time that it takes to find them file by file.
 */
export async function bundled(entry: string): Promise<string> {
  const programs = inject("programs");
  const name = basename(entry, ".ts");
  const folder = join(programs, entry.replaceAll("/", "-"));
  const program = join(folder, `${name}.mjs`);
  if (existsSync(program)) return program;
  const draft = join(programs, randomUUID());
  await build({
    absWorkingDir: ROOT,
    entryPoints: { [name]: entry },
    outdir: draft,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node20",
    logLevel: "warning",
    banner: {
      js: 'import { createRequire as nodeRequire } from "node:module"; const require = nodeRequire(import.meta.url);',
    },
    external: ["better-sqlite3", "@vscode/ripgrep"],
    // As in scripts/build.mjs.
    alias: { "jsonc-parser": "jsonc-parser/lib/esm/main.js" },
    plugins: [threadTexts],
  });
  try {
    renameSync(draft, folder);
  } catch (error) {
    // Another test process was first, with the same sources.
    rmSync(draft, { recursive: true });
    if (!existsSync(program)) throw error;
  }
  return program;
}

/** A program of this text, whose imports are found from here; it is gone after the test. */
export async function programOf(source: string): Promise<string> {
  const outfile = join(filesIn(), "program.mjs");
  await build({
    stdin: { contents: source, resolveDir: ROOT, loader: "ts" },
    outfile,
    bundle: true,
    format: "esm",
    platform: "node",
    target: "node20",
    logLevel: "warning",
    banner: {
      js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);',
    },
  });
  return outfile;
}
