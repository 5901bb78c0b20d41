/** What the page's styles, scripts and fonts become: texts, for the build and for the tests alike. */
import { readFile } from "node:fs/promises";
import { build } from "esbuild";

/** Files that are imported as texts. */
export const PAGE_ASSET = /\.(css|browser\.js|woff2)$/;

/** Styles and scripts bundled and minified, fonts in base64. */
export async function pageAsset(path) {
  if (path.endsWith(".woff2")) return (await readFile(path)).toString("base64");
  const { outputFiles } = await build({
    entryPoints: [path],
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    target: "es2022",
    // Addresses of fonts are those of the page's server.
    external: ["/assets/*"],
    legalComments: "none",
    logLevel: "warning",
  });
  return outputFiles[0].text;
}
