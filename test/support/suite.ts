import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, statfsSync } from "node:fs";
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

/** Linux keeps what is in it in memory; `PREFIX` and a process stand for a run of the tests, as in `CACHE`. */
const MEMORY = "/dev/shm";
const PREFIX = "deepagent-tests-";

/** What the files of tests that run at once may take, in bytes. */
const ROOM = 4 * 1024 ** 3;

/** Before all tests: a place for the programs that test files bundle and others use again, and one in memory. */
export function setup(project: TestProject): () => void {
  removeOrphans(CACHE);
  removeOrphans(MEMORY, PREFIX);
  const removeFiles = keepFilesInMemory();
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
    removeFiles();
    tellWhatIsMissing(project);
  };
}

/**
 * Has temporary folders made in memory, where Linux has the room for it: databases and backends wait for the disk
 * after each change, which takes a third of the time of their tests. Gives what removes them.
 */
function keepFilesInMemory(): () => void {
  if (process.env["TMPDIR"] !== undefined || !hasRoom(MEMORY)) return () => {};
  const folder = join(MEMORY, `${PREFIX}${process.pid}`);
  const remove = (): void => rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  // An earlier process may have had this number.
  remove();
  mkdirSync(folder);
  // As the system's own: some tests have servers of other users.
  chmodSync(folder, 0o1777);
  process.env["TMPDIR"] = folder;
  return remove;
}

function hasRoom(folder: string): boolean {
  if (!existsSync(folder)) return false;
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize >= ROOM;
}

/** After all tests: which programs would have more of them run. */
function tellWhatIsMissing({ config, vitest }: TestProject): void {
  const modules = vitest.state.getTestModules();
  const skipped = modules.flatMap(({ children }) => [...children.allTests("skipped")]);
  for (const line of missingPrograms(config.tags, skipped)) console.log(line);
}

/** What was ended from outside could not clean up after itself. */
function removeOrphans(folder: string, prefix = ""): void {
  for (const name of existsSync(folder) ? readdirSync(folder) : []) {
    const pid = Number(name.startsWith(prefix) ? name.slice(prefix.length) : undefined);
    if (Number.isInteger(pid) && !isAlive(pid)) rmSync(join(folder, name), { recursive: true, force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
