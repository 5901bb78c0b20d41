import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { build } from "esbuild";
import { rolldown } from "rolldown";
import { expect, test } from "vitest";
import { ROOT } from "../commands/built-bin.ts";
import { filesIn } from "../support/files-in.ts";

type Bundle = (entry: string, file: string, format: "esm" | "cjs") => Promise<unknown>;

const esbuild: Bundle = (entry, outfile, format) =>
  build({
    entryPoints: [entry],
    outfile,
    format,
    bundle: true,
    platform: "node",
    logLevel: "silent",
    nodePaths: [join(ROOT, "node_modules")],
  });

const rolldownIn: Bundle = async (entry, file, format) => {
  const made = await rolldown({ input: entry, platform: "node", logLevel: "silent" });
  await made.write({ file, format, codeSplitting: false });
};

const TITLE = "a program that %s bundles into one file as %s runs an agent";
test.for([["esbuild", "cjs", esbuild]] as const)(TITLE, runsBundled);
test.for([
  ["rolldown", "cjs", rolldownIn],
  ["esbuild", "esm", esbuild],
  ["rolldown", "esm", rolldownIn],
] as const)(TITLE, { tags: ["long"] }, runsBundled);

async function runsBundled([, format, bundle]: readonly [string, "esm" | "cjs", Bundle]): Promise<void> {
  const folder = filesIn();
  const entry = join(folder, "program.mjs");
  const library = JSON.stringify(join(ROOT, "dist/index.js"));
  writeFileSync(
    entry,
    `import { createDeepAgent } from ${library};
     const messages = [{ role: "user", content: "hi" }];
     createDeepAgent({ model: "offline" }).invoke({ messages }).then(({ messages }) => console.log(messages.length));`,
  );
  const file = join(folder, format === "cjs" ? "bundle.cjs" : "bundle.mjs");
  await bundle(entry, file, format);
  const { stdout } = await promisify(execFile)(process.execPath, [file], { cwd: folder });
  expect(Number(stdout)).toBeGreaterThan(1);
}
