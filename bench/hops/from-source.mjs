// Loads the TypeScript of src file by file, so that coverage names the files and functions that were written.
import { readFile } from "node:fs/promises";
import { register } from "node:module";
import { fileURLToPath } from "node:url";
import { isMainThread } from "node:worker_threads";
import { transform } from "esbuild";

if (isMainThread) register(import.meta.url);

/** Files that the build takes in as texts; a plain run uses none of them. */
const TEXT = /\?text$|\/page\/assets\/|\.css$/;

export async function resolve(specifier, context, next) {
  if (specifier.startsWith(".") && TEXT.test(specifier))
    return { url: new URL(specifier, context.parentURL).href, shortCircuit: true, importAttributes: {} };
  return next(specifier, context);
}

export async function load(url, context, next) {
  if (/\.(?:sh|sql)$/.test(url)) {
    const text = await readFile(fileURLToPath(url), "utf8");
    return { format: "module", source: `export default ${JSON.stringify(text)};`, shortCircuit: true };
  }
  if (TEXT.test(url)) return { format: "module", source: 'export default "";', shortCircuit: true };
  if (url.endsWith(".json") && context.importAttributes?.type !== "json")
    return {
      format: "module",
      source: `export default ${await readFile(fileURLToPath(url), "utf8")};`,
      shortCircuit: true,
    };
  if (!url.endsWith(".ts")) return next(url, context);
  const text = await readFile(fileURLToPath(url), "utf8");
  const { code } = await transform(text, { loader: "ts", target: "node20" });
  return { format: "module", source: code, shortCircuit: true };
}
