// The parts of the server that the library does not export.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";
import { threadTexts } from "./thread-texts.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** What `exports`, lines of `export … from "./src/…"`, names, bundled from the sources. */
export async function loadSources(exports, plugins = []) {
  const cache = join(ROOT, "node_modules/.cache");
  mkdirSync(cache, { recursive: true });
  const outdir = mkdtempSync(join(cache, "sources-"));
  const outfile = join(outdir, "sources.mjs");
  try {
    await build({
      absWorkingDir: ROOT,
      stdin: { resolveDir: ROOT, contents: exports },
      plugins: [threadTexts, ...plugins],
      outfile,
      bundle: true,
      format: "esm",
      platform: "node",
      target: "node20",
      packages: "external",
      logLevel: "warning",
    });
    return await import(pathToFileURL(outfile).href);
  } finally {
    rmSync(outdir, { recursive: true, force: true });
  }
}
