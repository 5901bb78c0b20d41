/**
 * Runs the sandbox tests that deepagents has for its providers on the sandboxes of this project:
 *
 *   node scripts/sandbox-suite.mjs CHECKOUT [local] [bubblewrap] [docker]
 *
 * CHECKOUT is a folder with github.com/langchain-ai/deepagentsjs; the suite is in no registry. For docker,
 * DEEPAGENT_TEST_IMAGE names an image and DEEPAGENT_TEST_DOCKER the program with its arguments.
 */
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { startVitest } from "vitest/node";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const [checkout = "", ...asked] = process.argv.slice(2);
const suite = resolve(checkout, "libs/standard-tests/src/sandbox.ts");
const providers = asked.length > 0 ? asked : ["local", "bubblewrap"];

if (!existsSync(suite)) {
  console.error(`There is no ${suite}: give the folder of a checkout of deepagentsjs.`);
  process.exit(2);
}

const folder = join(root, "node_modules/.cache/sandbox-suite");
mkdirSync(folder, { recursive: true });
const adapter = join(root, "test/backends/sandbox/standard-suite.ts");
const call = `import { sandboxStandardTests } from ${JSON.stringify(suite)};
import { registerSuite } from ${JSON.stringify(adapter)};
for (const provider of ${JSON.stringify(providers)}) registerSuite(sandboxStandardTests, provider);
`;
try {
  // Bundled, because the settings of the checkout need packages that only its own installation has.
  await build({
    stdin: { contents: call, loader: "ts", resolveDir: root },
    outfile: join(folder, "suite.test.mjs"),
    tsconfigRaw: {},
    bundle: true,
    packages: "external",
    format: "esm",
    platform: "node",
    target: "node20",
    logLevel: "error",
  });
  const vitest = await startVitest("test", [], {
    root: folder,
    config: false,
    watch: false,
    include: ["suite.test.mjs"],
    testTimeout: 120_000,
  });
  await vitest?.close();
} finally {
  rmSync(folder, { recursive: true, force: true });
}
