/** Merges a subagent's files into the files of the agent that delegated. */
import { isDeepStrictEqual } from "node:util";
import type { FileData, FilesUpdate, ThreadFiles } from "../../backends/backend.ts";
import { mergeTexts } from "../../core/merge.ts";
import type { FilesState } from "../contracts/state.ts";
import type { StepFiles } from "./files.ts";

/** Two agents changed one file at the same places; both contents are kept. */
interface FileConflict {
  path: string;
  /** Path of the content that came second; undefined if it was a deletion. */
  copy: string | undefined;
  /** The call that changed the path first, if it is known. */
  first: string | undefined;
}

export interface MergedFiles {
  update: FilesUpdate;
  conflicts: FileConflict[];
}

/**
 * Merges a subagent's files. A path that others changed too is merged line by line; where both changed the same
 * lines, the path keeps the earlier content and the subagent's is written next to it.
 */
export function mergeFiles(
  changed: FilesState,
  started: ThreadFiles,
  now: StepFiles,
  callId: string,
): MergedFiles {
  const update: FilesUpdate = {};
  const conflicts: FileConflict[] = [];
  for (const [path, data] of Object.entries(changed)) {
    const [base, current, own] = [started.get(path), now.get(path), data ?? undefined];
    if (sameContent(current, own) || sameContent(own, base)) continue;
    const merged = sameContent(current, base) ? data : mergedFile(base, current, own);
    if (merged !== undefined) {
      update[path] = merged === null ? null : { ...merged };
      continue;
    }
    const copy = own && `${path}.conflict-${callId.replace(/[^A-Za-z0-9_-]/g, "_")}`;
    if (copy && own) update[copy] = { ...own };
    conflicts.push({ path, copy, first: now.changedBy(path) });
  }
  return { update, conflicts };
}

/** One sentence for both agents' reports. */
export const describeConflict = ({ path, copy }: FileConflict): string =>
  copy === undefined
    ? `[Two agents changed ${path} at the same time: one edited it, one deleted it. It was kept.]`
    : `[Two agents changed ${path} at the same time in ways that exclude each other. It has the version that was finished first; the other version is ${copy}.]`;

function mergedFile(base?: FileData, current?: FileData, own?: FileData): FileData | undefined {
  const [before, theirs, ours] = [textOf(base), textOf(current), textOf(own)];
  if (before === undefined || theirs === undefined || ours === undefined || !current || !own)
    return undefined;
  const text = mergeTexts(before, theirs, ours);
  if (text === undefined) return undefined;
  const { created_at } = current;
  const { modified_at } = own;
  return "mimeType" in current
    ? { content: text, mimeType: current.mimeType, created_at, modified_at }
    : { content: text.split("\n"), created_at, modified_at };
}

const textOf = (data: FileData | undefined): string | undefined => {
  if (Array.isArray(data?.content)) return data.content.join("\n");
  return typeof data?.content === "string" ? data.content : undefined;
};

const sameContent = (one: FileData | undefined, other: FileData | undefined): boolean =>
  one === other || (one && other ? isDeepStrictEqual(one.content, other.content) : false);
