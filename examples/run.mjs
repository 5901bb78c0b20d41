// Runs an example: node examples/run.mjs NAME [ARGUMENTS]
// Node 20 runs no TypeScript by itself; esbuild, which builds this project, turns the example into JavaScript first.
import { spawn } from "node:child_process";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const [name = "", ...rest] = process.argv.slice(2);
const file = join(here, name, `${name}.ts`);
if (!/^\w+$/.test(name) || !existsSync(file)) {
  const names = readdirSync(here).filter((folder) => existsSync(join(here, folder, `${folder}.ts`)));
  console.error(`Usage: node examples/run.mjs ${names.join("|")}`);
  process.exit(2);
}
const root = dirname(here);
const outfile = join(root, "node_modules/.cache/examples", `${name}-${process.pid}.mjs`);
/** The package by its name is the one that was built here. */
const built = {
  name: "built",
  setup: ({ onResolve }) =>
    onResolve({ filter: /^deepagent-mcp$/ }, () => ({ path: join(root, "dist/index.js"), external: true })),
};
await build({
  entryPoints: [file],
  outfile,
  plugins: [built],
  bundle: true,
  packages: "external",
  format: "esm",
  logLevel: "warning",
});
const child = spawn(process.execPath, [outfile, ...rest], { stdio: "inherit" });
child.once("exit", (code) => {
  rmSync(outfile, { force: true });
  process.exit(code ?? 1);
});
