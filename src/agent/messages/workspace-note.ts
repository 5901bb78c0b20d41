/** A short listing of the folder that an agent works in, for the first message of a thread. */
import { displayName } from "../../core/text.ts";

export interface WorkspaceFacts {
  path: string;
  /** Names at its top, folders with a slash at their end. */
  names: readonly string[];
  languages: readonly string[];
  /** Commands that its files name, such as `npm test`. */
  commands: readonly string[];
  /** Branch and unfinished operation, such as `branch main, a merge is under way`. */
  git?: string | undefined;
}

/** Characters of the names: the whole note is about 300 tokens at most. */
const NAMES_CHARS = 600;
const MOST_LINE = 200;

/** Matches the note in the text of a task. */
export const WORKSPACE_NOTE = /\n\n<workspace path="[^"\n]*">\n[^<]*<\/workspace>/;

/** The note is quoted: no name in it can end it. */
export function workspaceNote({ path, names, languages, commands, git }: WorkspaceFacts): string {
  const shown: string[] = [];
  let length = 0;
  for (const name of names.slice(0, 40).map(displayName)) {
    if (length + name.length > NAMES_CHARS) break;
    shown.push(name);
    length += name.length + 2;
  }
  const more = names.length - shown.length;
  if (more > 0) shown.push(`and ${more} more`);
  const top = names.length === 0 ? "The folder is empty." : `Top level: ${shown.join(", ")}`;
  const others = [
    ...(languages.length === 0 ? [] : [`Languages: ${languages.join(", ")}`]),
    ...(commands.length === 0 ? [] : [`Commands: ${commands.slice(0, 8).join(", ")}`]),
    ...(git === undefined ? [] : [`Git: ${git}`]),
  ];
  const body = [safeName(top, NAMES_CHARS * 2), ...others.map((line) => safeName(line, MOST_LINE))];
  return `<workspace path="${safeName(path, MOST_LINE).replaceAll('"', "'")}">\n${body.join("\n")}\n</workspace>`;
}

const safeName = (text: string, most: number): string =>
  displayName(text.slice(0, most)).replaceAll(/[<>]/g, "?");
