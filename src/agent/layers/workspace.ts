/** Lists the agent's working folder once per thread, in the first message. */
import type { Backend, BackendSource } from "../../backends/backend.ts";
import { readText } from "../../backends/file-data.ts";
import { GitignoreRules } from "../../backends/filesystem/gitignore.ts";
import { baseName, joinPath } from "../../backends/paths.ts";
import type { Logger } from "../../core/logger.ts";
import { memberOf, parsedJson, recordOf } from "../../core/unknown.ts";
import type { Middleware } from "../contracts/middleware.ts";
import { isReply, isTask, withWorkspaceNote } from "../messages/messages.ts";
import { type WorkspaceFacts, workspaceNote } from "../messages/workspace-note.ts";
import facts from "./workspace-facts.json" with { type: "json" };

/** Adds a listing of the workspace to a thread's first message. A folder that cannot be read is left out. */
export const workspaceMiddleware = (backend: BackendSource, path: string, log: Logger): Middleware => ({
  name: "WorkspaceMiddleware",
  beforeAgent: async (state, runtime) => {
    const { step } = runtime;
    const task = state.messages.findLast(isTask);
    if (step.agent.length > 0 || task === undefined || state.messages.some(isReply)) return undefined;
    const resolved = await step.backend(backend, state, log);
    const facts = await lookAt(resolved, path);
    return facts && { messages: [withWorkspaceNote(task, workspaceNote(facts))] };
  },
});

async function lookAt(backend: Backend, path: string): Promise<WorkspaceFacts | undefined> {
  const { files, error } = await backend.ls(path);
  if (files === undefined || error !== undefined) return undefined;
  const entries = files.map((file) => ({ name: baseName(file.path), isFolder: file.is_dir === true }));
  const all = new Set(entries.map(({ name }) => name));
  // Files larger than this are not looked at.
  const textAt = async (name: string): Promise<string> =>
    all.has(name) ? ((await readText(backend, joinPath(path, name), 256 * 1024)).text ?? "") : "";
  const ignored = new GitignoreRules(await textAt(".gitignore"), "", undefined);
  const shown = entries.filter(
    ({ name, isFolder }) => !/^(\.|node_modules$)/.test(name) && !ignored.exclude(name, isFolder),
  );
  const manifests = MANIFESTS.filter(([name]) => entries.some((entry) => name.test(entry.name)));
  const found = manifests.map(([, language]) => language);
  return {
    path,
    names: shown
      .sort((one, other) => Number(other.isFolder) - Number(one.isFolder) || (one.name < other.name ? -1 : 1))
      .map(({ name, isFolder }) => (isFolder ? `${name}/` : name)),
    languages: found.includes("TypeScript") ? found.filter((language) => language !== "JavaScript") : found,
    commands: await findCommands(all, textAt),
    git: all.has(".git") ? await readGitState(backend, joinPath(path, ".git")) : undefined,
  };
}

/** Expressions for files at the top of a project, and its language. */
const MANIFESTS = facts.manifests.map(([name = "", language = ""]) => [new RegExp(name), language] as const);

/** Scripts and targets that check or build a project, the most useful first. */
const TASKS = ["test", "check", "lint", "typecheck", "build"] as const;

async function findCommands(
  all: ReadonlySet<string>,
  textAt: (name: string) => Promise<string>,
): Promise<string[]> {
  const scripts = recordOf(memberOf(parsedJson(await textAt("package.json")), "scripts"));
  const runner = all.has("pnpm-lock.yaml") ? "pnpm" : all.has("yarn.lock") ? "yarn" : "npm";
  const targets = await textAt("Makefile");
  const python = `${await textAt("pyproject.toml")}\n${(await textAt("pytest.ini")) && "[pytest]"}`;
  return [
    ...TASKS.filter((task) => Object.hasOwn(scripts, task)).map((task) =>
      task === "test" ? `${runner} test` : `${runner} run ${task}`,
    ),
    ...TASKS.filter((task) => `\n${targets}`.includes(`\n${task}:`)).map((task) => `make ${task}`),
    ...(all.has("Cargo.toml") ? ["cargo test"] : []),
    ...(all.has("go.mod") ? ["go test ./..."] : []),
    ...(/\bpytest\b/.test(python) ? ["pytest"] : []),
  ];
}

/** Entries of `.git` while something is under way. */
const UNDER_WAY: Readonly<Record<string, string>> = facts.underWay;

/** Read from files: to run Git here could start programs that the settings of the repository name. */
async function readGitState(backend: Backend, path: string): Promise<string | undefined> {
  const head = (await readText(backend, joinPath(path, "HEAD"), 1024)).text?.trim();
  if (head === undefined) return undefined;
  const branch = /^ref: refs\/heads\/(.+)$/.exec(head)?.[1];
  const { files = [] } = await backend.ls(path);
  const open = files.flatMap((file) => UNDER_WAY[baseName(file.path)] ?? []);
  return [branch === undefined ? `detached at ${head.slice(0, 12)}` : `branch ${branch}`, ...open].join(", ");
}
