/**
 * Builds `dist`: the library with its declarations by tsc, and the program as a bundle by esbuild.
 *
 * The bundle inlines what the MCP handshake needs and splits the rest off at dynamic imports. Agent
 * libraries and native modules stay in node_modules, so that the process holds one copy of each.
 */
import { spawn } from "node:child_process";
import { chmod, mkdir, readFile, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { PAGE_ASSET, pageAsset } from "./page-assets.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const dist = join(root, "dist");
/** Built aside and then put in place, so that a program that is running hardly ever finds nothing. */
const draft = join(root, "node_modules/.cache", `deepagent-build-${process.pid}`);

/**
 * Of a namespace import the bundler keeps what is used; the object `z` would bring all of zod, every
 * language included: 550 kB more to read before the handshake can be answered.
 */
const zodNamespace = {
  name: "zod-namespace",
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]src[\\/].*\.ts$/ }, async ({ path }) => {
      const source = await readFile(path, "utf8");
      return {
        loader: "ts",
        contents: source.replace('import { z } from "zod"', 'import * as z from "zod"'),
      };
    });
  },
};

const pageAssets = {
  name: "page-assets",
  setup({ onLoad }) {
    onLoad({ filter: PAGE_ASSET }, async ({ path }) => ({ loader: "text", contents: await pageAsset(path) }));
  },
};

const REQUIRE =
  'import { createRequire as nodeRequire } from "node:module"; const require = nodeRequire(import.meta.url);';

try {
  await mkdir(draft, { recursive: true });
  await Promise.all([compileLibrary(), bundleProgram()]);
  await chmod(join(draft, "bin/deepagent-mcp.js"), 0o755);
  await rm(dist, { recursive: true, force: true });
  await rename(draft, dist);
} catch (error) {
  await rm(draft, { recursive: true, force: true });
  console.error(`Build failed: ${error.message}`);
  process.exitCode = 1;
}

function compileLibrary() {
  const compiler = join(root, "node_modules/typescript/bin/tsc");
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [compiler, "-p", "tsconfig.build.json", "--outDir", draft], {
      cwd: root,
      stdio: "inherit",
    });
    child.once("error", reject);
    child.once("exit", (code) => (code === 0 ? resolve() : reject(new Error("the compiler found errors"))));
  });
}

function bundleProgram() {
  return build({
    absWorkingDir: root,
    entryPoints: { "deepagent-mcp": "src/main.ts" },
    outdir: join(draft, "bin"),
    chunkNames: "chunks/[name]-[hash]",
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node20",
    // Identifiers stay: stack traces are read, and errors are named after their classes.
    minifyWhitespace: true,
    minifySyntax: true,
    legalComments: "none",
    // For bundled CommonJS packages, which load Node's modules with require.
    banner: { js: REQUIRE },
    logLevel: "warning",
    external: ["@langchain/*", "langchain", "better-sqlite3", "@vscode/ripgrep"],
    // Its CommonJS form loads its parts in a way that no bundler sees.
    alias: { "jsonc-parser": "jsonc-parser/lib/esm/main.js" },
    plugins: [zodNamespace, pageAssets],
  });
}
