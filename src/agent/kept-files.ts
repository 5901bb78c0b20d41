import { createHash } from "node:crypto";
import type {
  Backend,
  Failure,
  FileInfo,
  FilesUpdate,
  GlobResult,
  GrepResult,
  LsResult,
  ThreadFiles,
} from "../backends/backend.ts";
import { contentOf } from "../backends/file-data.ts";
import { isAtOrBelow, validatePath } from "../backends/paths.ts";
import { sortByPath } from "../backends/search.ts";
import { StateBackend } from "../backends/stores/state.ts";
import { wellFormed } from "../core/text.ts";

/** Where results that are too large for the conversation are kept. */
export const RESULTS_FOLDER = "/large_tool_results";
/** Where messages of persons that are too large are kept, and what was summarized. */
export const HISTORY_FOLDER = "/conversation_history";

/** What one call may use to keep a text: the agent's files, and those of its thread. */
export interface KeepingPlace {
  readonly backend: Backend;
  readonly files: ThreadFiles;
}

/** Where a text is, and the change of the thread's files, if it is one of them. */
export interface Kept {
  path: string;
  update: FilesUpdate;
}

/**
 * Writes a text that leaves the conversation. Where the agent's backend does not take it (read-only, ruled
 * out, no such path), it stays with the thread under the same path; `withKeptFiles` shows it there.
 *
 * Keeping the same text again is no change; another text never takes its place.
 *
 * @returns `undefined` when the text could be written nowhere.
 */
export async function keepText(
  wanted: string,
  given: string,
  place: KeepingPlace,
): Promise<Kept | undefined> {
  const text = wellFormed(given);
  for (const backend of placesFor(wanted, place)) {
    const before = await textAt(wanted, backend);
    const path = before === undefined || before === text ? wanted : anotherPath(wanted, text);
    const written = await backend.write(path, text, { mode: "overwrite" });
    if (written.error === undefined) return { path, update: written.filesUpdate ?? {} };
  }
  return undefined;
}

/** Part of a file that grows, with a line that ends it and no other. */
export interface MarkedPart {
  text: string;
  mark: string;
}

/**
 * As `keepText`, at the end of a file that grows: the parts that are not in it yet. A crash takes back what the
 * thread knows of the file, but not the file.
 */
export async function appendParts(
  path: string,
  parts: readonly MarkedPart[],
  place: KeepingPlace,
): Promise<Kept | undefined> {
  for (const backend of placesFor(path, place)) {
    const before = await textAt(path, backend);
    const known = new Set(before?.split("\n"));
    const missing = parts.filter(({ mark }) => !known.has(mark));
    if (missing.length === 0 && before !== undefined) return { path, update: {} };
    const texts = missing.map(({ text, mark }) => `${wellFormed(text)}\n${mark}\n`);
    const whole = [...(before === undefined ? [] : [before]), ...texts].join("\n");
    const written = await backend.write(path, whole, { mode: "overwrite" });
    if (written.error === undefined) return { path, update: written.filesUpdate ?? {} };
  }
  return undefined;
}

/** What the thread keeps itself stays with it, also when the backend takes files again. */
const placesFor = (path: string, { backend, files }: KeepingPlace): Backend[] =>
  files.get(path) ? [ownFiles(files)] : [backend, ownFiles(files)];

const ownFiles = (files: ThreadFiles): Backend => new StateBackend({ files });

async function textAt(path: string, backend: Backend): Promise<string | undefined> {
  const { data } = await backend.readRaw(path);
  if (!data) return undefined;
  const known = contentOf(path, data);
  // What cannot be read as text is another content all the same.
  return known.ok && known.content.kind === "text" ? known.content.text : "";
}

/** Two calls or messages may go by one id; each content has a file of its own. */
function anotherPath(path: string, text: string): string {
  const mark = createHash("sha256").update(text).digest("hex").slice(0, 12);
  return path.endsWith(".md") ? `${path.slice(0, -3)}-${mark}.md` : `${path}-${mark}`;
}

/**
 * `backend` with the texts that its thread had to keep, under the paths by which the conversation names
 * them. The same object where there are none.
 *
 * @param folders the folders such texts are in; everywhere else the backend alone answers.
 */
export function withKeptFiles(backend: Backend, files: ThreadFiles, folders: readonly string[]): Backend {
  const kept = keptIn(files, folders);
  if (kept.length === 0) return backend;
  const own = ownFiles(files);
  const keeps = (path: string): boolean => kept.includes(normal(path));
  const hasBelow = (path: string): boolean => kept.some((known) => isAtOrBelow(known, normal(path)));
  const isInside = (path: string): boolean =>
    folders.some((folder) => isAtOrBelow(normal(path), folder)) && hasBelow(path);
  const shown: Partial<Backend> = {
    read: (path, ...rest) => (keeps(path) ? own : backend).read(path, ...rest),
    readRaw: (path, ...rest) => (keeps(path) ? own : backend).readRaw(path, ...rest),
    edit: (path, ...rest) => (keeps(path) ? own : backend).edit(path, ...rest),
    write: (path, ...rest) => (keeps(path) ? own : backend).write(path, ...rest),
    ls: async (path, ...rest) => {
      const lower = await backend.ls(path, ...rest);
      return isInside(path) ? mergedFiles<LsResult>(lower, await own.ls(path)) : lower;
    },
    glob: async (pattern, path = "/", ...rest) => {
      const lower = await backend.glob(pattern, path, ...rest);
      return isInside(path) ? mergedFiles<GlobResult>(lower, await own.glob(pattern, path)) : lower;
    },
    grep: async (pattern, path, ...rest) => {
      if (typeof path !== "string" || !isInside(path)) return backend.grep(pattern, path, ...rest);
      const found = await own.grep(pattern, path, ...rest);
      return keeps(path) ? found : mergedMatches(await backend.grep(pattern, path, ...rest), found);
    },
  };
  // Everything else, commands included, is the backend's, which may keep private fields: `this` stays its own.
  return new Proxy(backend, {
    get(target, name) {
      if (Object.hasOwn(shown, name)) return Reflect.get(shown, name);
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

function keptIn(files: ThreadFiles, folders: readonly string[]): string[] {
  const kept: string[] = [];
  for (const [path] of files.entries()) {
    if (folders.some((folder) => isAtOrBelow(path, folder))) kept.push(path);
  }
  return kept;
}

function normal(path: string): string {
  const valid = validatePath(path);
  return valid.ok ? valid.path : path;
}

/** A folder that the backend does not have, or may not show, may hold kept files all the same. */
function mergedFiles<Result extends Failure & { files?: FileInfo[] }>(lower: Result, own: Result): Result {
  if (lower.error !== undefined) return own;
  const known = new Map((lower.files ?? []).map((file) => [file.path, file]));
  for (const file of own.files ?? []) known.set(file.path, file);
  return { ...lower, files: sortByPath([...known.values()]) };
}

function mergedMatches(lower: GrepResult, own: GrepResult): GrepResult {
  if (lower.error !== undefined) return own;
  const shown = new Set((own.matches ?? []).map(({ path }) => path));
  const others = (lower.matches ?? []).filter(({ path }) => !shown.has(path));
  return { ...lower, matches: sortByPath([...others, ...(own.matches ?? [])]) };
}
