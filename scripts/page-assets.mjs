/** Turns the page's styles, scripts and fonts, scripts of shells, and SQL into texts, for the build and the tests alike. */
import { readFile } from "node:fs/promises";
import { build } from "esbuild";

/** Files that are imported as texts. */
export const PAGE_ASSET = /\.(css|(browser|module)\.js|woff2|bash|zsh|fish|ps1|sh|sql)$/;

/** Styles and scripts bundled and minified, fonts in base64, scripts of shells and SQL as they are. Files of packages are added to `inputs`. */
export async function pageAsset(path, inputs = []) {
  if (path.endsWith(".woff2")) return (await readFile(path)).toString("base64");
  if (/\.(bash|zsh|fish|ps1|sh|sql)$/.test(path)) return readFile(path, "utf8");
  const { outputFiles, metafile } = await build({
    entryPoints: [path],
    bundle: true,
    minify: true,
    write: false,
    metafile: true,
    format: path.endsWith(".module.js") ? "esm" : "iife",
    target: "es2022",
    // Fonts are loaded from beside the styles.
    external: ["*.woff2"],
    legalComments: "none",
    logLevel: "warning",
  });
  inputs.push(...Object.keys(metafile.inputs));
  return outputFiles[0].text;
}
