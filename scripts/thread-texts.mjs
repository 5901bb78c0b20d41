/** What the code of threads becomes: texts with all packages in them, for the build and for the tests alike. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/** Files that are imported as texts. */
export const THREAD_TEXT = /\.thread\.ts\?text$/;

const root = fileURLToPath(new URL("..", import.meta.url));

/** The code of a thread, bundled, without blanks. Files of packages are added to `inputs`. */
export async function threadText(id, inputs = []) {
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    entryPoints: [id.replace(/\?text$/, "")],
    bundle: true,
    // Shorter names would take ten times as long and save nothing of the PDF reader, which has them already.
    minifyWhitespace: true,
    write: false,
    metafile: true,
    platform: "node",
    // Code that a thread is given as text is CommonJS.
    format: "cjs",
    target: "node20",
    mainFields: ["module", "main"],
    // Code for another engine than Node stays a text.
    loader: { ".wasm": "binary", ".vm.js": "text" },
    alias: Object.fromEntries(
      ["hast-util-is-element", "@ungap/structured-clone"].map((name) => [
        name,
        join(root, "src/web/html/fast-packages.ts"),
      ]),
    ),
    legalComments: "none",
    logLevel: "warning",
  });
  inputs.push(...Object.keys(metafile.inputs));
  return outputFiles[0].text;
}

/** Takes the code of threads in as text, where esbuild makes a bundle. */
export const threadTexts = {
  name: "thread-texts",
  setup({ onResolve, onLoad }) {
    const namespace = "thread";
    onResolve({ filter: THREAD_TEXT }, ({ path, resolveDir }) => ({
      path: join(resolveDir, path),
      namespace,
    }));
    onLoad({ filter: THREAD_TEXT, namespace }, async ({ path }) => ({
      contents: await threadText(path),
      loader: "text",
    }));
  },
};
