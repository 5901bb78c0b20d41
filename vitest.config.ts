import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { PAGE_ASSET, pageAsset } from "./scripts/page-assets.mjs";
import { THREAD_TEXT, threadText } from "./scripts/thread-texts.mjs";
import { LONG_FILES } from "./test/support/long-files.ts";
import { requirementTags } from "./test/support/programs.ts";

/** Folders whose tests start processes and wait for them. */
const LONG = /[\\/]test[\\/](crash|e2e|commands|oracle|package|backends[\\/](contract|sandbox))[\\/]/;

/** Begins with the long files, so that none of them runs at the end while other cores are idle. */
class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLong = ({ moduleId }: TestSpecification): boolean => LONG.test(moduleId);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

const AS_TEXT = "\0page-asset:";

/** Takes styles, scripts and fonts of pages in as texts, as the build does by the attribute of their imports. */
const pageTexts = {
  name: "page-texts",
  enforce: "pre",
  resolveId: (source: string, importer = "") =>
    PAGE_ASSET.test(source) ? `${AS_TEXT}${join(dirname(importer), source)}.text` : undefined,
  load: async (id: string) =>
    id.startsWith(AS_TEXT)
      ? `export default ${JSON.stringify(await pageAsset(id.slice(AS_TEXT.length, -".text".length)))};`
      : undefined,
} as const;

/** Takes the code of threads in as text, as the build does. */
const threadTexts = {
  name: "thread-texts",
  enforce: "pre",
  resolveId: (source: string, importer = "") =>
    THREAD_TEXT.test(source) ? `\0${join(dirname(importer), source)}` : undefined,
  load: async (id: string) => {
    if (!THREAD_TEXT.test(id)) return undefined;
    // The code is too long to be parsed as part of a module.
    const code = await threadText(id.slice(1));
    const folder = fileURLToPath(new URL("node_modules/.cache/threads", import.meta.url));
    const file = join(folder, `${createHash("sha256").update(code).digest("hex")}.js`);
    await mkdir(folder, { recursive: true });
    if (!existsSync(file)) await writeFile(file, code);
    return `import { readFileSync } from "node:fs"; export default readFileSync(${JSON.stringify(file)}, "utf8");`;
  },
} as const;

export default defineConfig(async ({ mode }) => ({
  plugins: [pageTexts, threadTexts],
  test: {
    // Leaves styles as they are; otherwise they would be empty here.
    css: true,
    include: ["test/**/*.test.ts"],
    exclude: ["**/node_modules/**", ...(mode === "daily" ? LONG_FILES : [])],
    globalSetup: "test/support/suite.ts",
    // A test that needs a program of the machine, or minutes, has its tag, and is skipped where that is missing.
    tags: await requirementTags(mode),
    pool: "forks",
    // Installed packages are loaded once for each core and not for each file; `setupFiles` keeps files apart.
    isolate: false,
    setupFiles: "test/support/fresh-modules.ts",
    sequence: { sequencer: LongFirst },
    // Many tests wait for processes they started. With one more, what each has in the caches of a core is lost too often.
    maxWorkers: availableParallelism() + 1,
    // To be met by a test that hangs, and by none on a machine that is slow or busy.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 60_000 } },
    // A list that is not empty says what it holds.
    chaiConfig: { truncateThreshold: 500 },
  },
}));
