import { type ProgramOptions, runProgram } from "./child-process.ts";

/** Variables that name another repository than that of a folder: Git sets them for hooks, and for what these start. */
const ELSEWHERE =
  /^GIT_(?:DIR|WORK_TREE|INDEX_FILE|COMMON_DIR|PREFIX|NAMESPACE|OBJECT_DIRECTORY|ALTERNATE_OBJECT_DIRECTORIES)$/;

/** Runs Git in a folder, and for no other repository than that of the folder. `env` is added. */
export const runGit = (
  folder: string,
  args: readonly string[],
  { env, ...options }: Pick<ProgramOptions, "timeout" | "env" | "input">,
): Promise<string> => {
  const own = Object.entries(process.env).filter(([name]) => !ELSEWHERE.test(name));
  return runProgram("git", args, { ...options, cwd: folder, env: { ...Object.fromEntries(own), ...env } });
};
