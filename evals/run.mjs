// Measures a model on the tasks: npm run evals -- --model provider:model. `main-job` as the first argument runs the main
// job instead: npm run main-job; `approvals` counts answers. README.md says more. The sources are bundled once.
import { rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";
import { threadTexts } from "../scripts/thread-texts.mjs";

const [first, ...rest] = process.argv.slice(2);
const other = ["main-job", "approvals"].find((name) => name === first);
const root = fileURLToPath(new URL("..", import.meta.url));
const folder = join(root, "build", `evals-${process.pid}`);
process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
await build({
  absWorkingDir: root,
  entryPoints: { main: `evals/${other ?? "main"}.ts` },
  outdir: folder,
  outExtension: { ".js": ".mjs" },
  bundle: true,
  splitting: true,
  format: "esm",
  platform: "node",
  target: "node20",
  packages: "external",
  logLevel: "warning",
  plugins: [threadTexts],
});
const { main } = await import(pathToFileURL(join(folder, "main.mjs")));
process.exitCode = await main({
  args: other === undefined ? process.argv.slice(2) : rest,
  env: process.env,
  print: (text) => console.log(text),
  note: (text) => console.error(text),
});
