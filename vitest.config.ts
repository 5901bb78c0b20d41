import { defineConfig } from "vitest/config";
import { requirementTags } from "./test/support/programs.ts";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: "test/support/suite.ts",
    // A test that needs a program of the machine has its tag, and is skipped where that is missing.
    tags: await requirementTags(),
    pool: "forks",
    // Installed packages are loaded once for each core and not for each file; `setupFiles` keeps files apart.
    isolate: false,
    setupFiles: "test/support/fresh-modules.ts",
    // Many tests wait for processes they started: a core left free is time lost.
    maxWorkers: "100%",
    // To be met by a test that hangs, and by none on a machine that is slow or busy.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 60_000 } },
  },
});
