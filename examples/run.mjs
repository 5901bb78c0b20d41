// Runs an example: node examples/run.mjs NAME [ARGUMENTS]
// A clone has esbuild, which turns the example into JavaScript. Elsewhere tsx runs it; npx fetches tsx on first use.
import { spawn } from "node:child_process";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const [name = "", ...rest] = process.argv.slice(2);
const file = join(here, name, `${name}.ts`);
if (!/^\w+$/.test(name) || !existsSync(file)) {
  const names = readdirSync(here).filter((folder) => existsSync(join(here, folder, `${folder}.ts`)));
  console.error(`Usage: node examples/run.mjs ${names.join("|")}`);
  process.exit(2);
}
const outfile = join(dirname(here), "build/examples", `${name}-${process.pid}.mjs`);
const esbuild = await import("esbuild").catch(() => undefined);
// The sources of a clone take the code of their threads in as text.
const threads = await import("../scripts/thread-texts.mjs").catch(() => undefined);
await esbuild?.build({
  entryPoints: [file],
  outfile,
  bundle: true,
  packages: "external",
  format: "esm",
  logLevel: "warning",
  plugins: threads === undefined ? [] : [threads.threadTexts],
});
const child =
  esbuild === undefined
    ? spawn("npx", ["--yes", "tsx", file, ...rest], { stdio: "inherit", shell: process.platform === "win32" })
    : spawn(process.execPath, [outfile, ...rest], { stdio: "inherit" });
child.once("exit", (code) => {
  rmSync(outfile, { force: true });
  process.exit(code ?? 1);
});
