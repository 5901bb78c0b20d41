import { existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { missingPrograms } from "./programs.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** A folder of this run of the tests, among the installed packages. */
    programs: string;
  }
}

/** Holds a folder for each run of the tests, named after its process. */
const CACHE = join(import.meta.dirname, "../../node_modules/.cache/deepagent-tests");

/** Before all tests: a place for the programs that test files bundle and others use again. */
export function setup(project: TestProject): () => void {
  removeOrphans();
  const folder = join(CACHE, String(process.pid));
  const remove = (): void => rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  mkdirSync(folder, { recursive: true });
  project.provide("programs", folder);
  // Between two runs of one process that watches, the sources have changed.
  project.onTestsRerun(() => {
    remove();
    mkdirSync(folder);
  });
  return () => {
    remove();
    tellWhatIsMissing(project);
  };
}

/** After all tests: which programs would have more of them run. */
function tellWhatIsMissing({ config, vitest }: TestProject): void {
  const modules = vitest.state.getTestModules();
  const skipped = modules.flatMap(({ children }) => [...children.allTests("skipped")]);
  for (const line of missingPrograms(config.tags, skipped)) console.log(line);
}

/** What was ended from outside could not clean up after itself. */
function removeOrphans(): void {
  for (const pid of existsSync(CACHE) ? readdirSync(CACHE) : []) {
    if (!isAlive(Number(pid))) rmSync(join(CACHE, pid), { recursive: true, force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
