import { z } from "zod";
import { oneLine } from "../../../core/text.ts";
import type { Area, AreaFolder } from "./areas.ts";
import { searchWords } from "./search-words.ts";

/** What a subagent is to do, as it stands in the description of its `task` call. */
export interface Assignment {
  goal: string;
  folders: AreaFolder[];
  words: string[];
}

const GOAL_LIMIT = 1000;

export function writeAssignment(area: Area, goal: string, words: readonly string[]): string {
  return [
    `Examine ${area.title} and report what is there.`,
    "",
    ...area.folders.map(({ path, deep }) =>
      deep ? `Folder: ${path}` : `Folder, without subfolders: ${path}`,
    ),
    `Goal: ${oneLine(goal, GOAL_LIMIT)}`,
    `Search words: ${words.length === 0 ? "(none)" : words.map((word) => JSON.stringify(word)).join(", ")}`,
    "",
    "List the files, search for the words, for definitions and for open marks (TODO, FIXME), read the files that matter most, and report findings with path:line and counts. Do not change anything.",
  ].join("\n");
}

/** Reads an assignment; any other text is taken as a goal, with the folders it names. */
export function readAssignment(description: string, fallbackFolder: string): Assignment {
  const folders = [...description.matchAll(/^Folder(, without subfolders)?: (\/.*)$/gm)].map(
    ([, flat, path]): AreaFolder => ({ path: withSlash(path ?? "/"), deep: flat === undefined }),
  );
  const goal = /^Goal: (.*)$/m.exec(description)?.[1] ?? description;
  if (folders.length > 0) return { goal, folders, words: listedWords(description) ?? searchWords(goal) };
  const named = [...description.matchAll(/(?<![\w:/.])\/(?:[\w.@+-]+\/)+/g)].map(([path]) => path);
  const paths = named.length > 0 ? [...new Set(named)].slice(0, 3) : [fallbackFolder];
  return {
    goal,
    folders: paths.map((path) => ({ path, deep: true })),
    words: searchWords(withoutPaths(goal)),
  };
}

function listedWords(description: string): string[] | undefined {
  const line = /^Search words: (.*)$/m.exec(description)?.[1];
  if (line === undefined) return undefined;
  try {
    return z.array(z.string()).parse(JSON.parse(`[${line}]`));
  } catch {
    return [];
  }
}

function withoutPaths(text: string): string {
  return text.replace(/(?<![\w:/.])\/(?:[\w.@+-]+\/)+/g, " ");
}

function withSlash(path: string): string {
  const trimmed = path.trim();
  return trimmed.endsWith("/") ? trimmed : `${trimmed}/`;
}
