import type { Backend } from "../../backends/backend.ts";
import { readText } from "../../backends/file-data.ts";
import { relativeTo } from "../../backends/paths.ts";
import type { Logger } from "../../core/logger.ts";
import { headOf, oneLine } from "../../core/text.ts";
import { recordOf } from "../../core/unknown.ts";
import { parseFrontMatter } from "../messages/front-matter.ts";
import { type Parsed, type SkillMetadata, loadTextFiles, withFolders } from "./skill-files.ts";

/** Reads commands: texts with places for arguments, which only a person starts. Nothing in them is run here. */

export interface PersonCommand {
  /** Letters, digits, `-`, `_`, `.`, and `:` between groups. */
  name: string;
  description: string;
  /** Arguments with names; if there are none, the command takes one text. */
  inputs: readonly string[];
  /** Describes its arguments. */
  hint?: string;
  /** The task, with the person's arguments in it. */
  fill(given: string | Readonly<Record<string, string>>): string;
}

/**
 * The commands in the files of places, and the skills that a person may start and the agent does not start by itself.
 * The later of two with one name counts. Unreadable ones are left out with a warning. Ordered for a menu.
 */
export async function loadCommands(
  places: ReadonlyArray<readonly [Backend, readonly string[]]>,
  files: Backend,
  skills: readonly SkillMetadata[],
  log: Logger,
): Promise<PersonCommand[]> {
  const commands = new Map<string, PersonCommand>();
  for (const [backend, folders] of places)
    for (const command of await loadTextFiles(backend, folders, "command", parseFile, log))
      commands.set(command.name, command);
  const offered = skills.filter(({ invokedBy }) => invokedBy === "person").slice(0, MOST_COMMANDS);
  for (const { name, path, description } of offered) {
    const { text } = await readText(files, path, 1024 * 1024);
    const command = text === undefined ? undefined : parseCommand({ name, path }, text);
    if (command !== undefined) commands.set(command.name, { ...command, description });
  }
  return [...commands.values()].sort((a, b) => (a.name < b.name ? -1 : 1)).slice(0, MOST_COMMANDS);
}

const MOST_COMMANDS = 200;

function parseFile(path: string, text: string, folder: string): Parsed<PersonCommand> {
  const name = relativeTo(folder, path)
    .replace(/(?:\.prompt)?\.\w+$/, "")
    .replaceAll("/", ":");
  const described = parseCommand({ name, path }, text);
  if (described !== undefined) return { ok: true, described, warnings: [] };
  return { ok: false, problem: "it has no text, or its front matter cannot be read" };
}

/** Returns undefined for a file without a text. */
export function parseCommand(
  { name, path }: { name: string; path: string },
  text: string,
): PersonCommand | undefined {
  const found = parseFrontMatter(text, path);
  const body = (found?.body ?? text).replaceAll("\r\n", "\n").trim();
  const fields = recordOf(found?.fields);
  const plainName = name
    .normalize("NFC")
    .replaceAll(/[^\p{L}\p{M}\p{N}:._-]+/gu, "-")
    .replaceAll(/\.{2,}/g, ".");
  if (body === "" || !/[\p{L}\p{N}]/u.test(plainName)) return undefined;
  const [, first = ""] = /^[#\s]*(.*)/.exec(body) ?? [];
  const description = typeof fields["description"] === "string" ? fields["description"] : first;
  const texts = (value: unknown): string[] => [value].flat().filter((one) => typeof one === "string");
  const words = texts(fields["arguments"]).flatMap((one) => one.split(/[\s,]+/));
  const named = words.filter((one) => /^\w{1,64}$/.test(one));
  const asked = [...body.matchAll(/\$\{input:(\w{1,64})(?::[^}$]*)?\}/g)].map(([, one = ""]) => one);
  const inputs = [...new Set([...named, ...asked])].slice(0, 20);
  const hint = texts(fields["argument-hint"] ?? fields["argument_hint"]).join(" ");
  return {
    name: headOf(plainName, 64),
    description: oneLine(description, 200),
    inputs,
    ...(hint === "" ? {} : { hint: oneLine(hint, 100) }),
    fill: (args) => fillIn(withFolders(body, path), inputs, args),
  };
}

/** Fills each place once, so that arguments cannot add further places. */
function fillIn(
  body: string,
  inputs: readonly string[],
  given: string | Readonly<Record<string, string>>,
): string {
  const isText = typeof given === "string";
  const own = isText ? [given] : inputs.map((name) => given[name] ?? "");
  const all = own.join(" ").trim();
  const words = isText
    ? [...all.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, a, b, c]) => a ?? b ?? c ?? "")
    : own;
  const isWhole = isText && inputs.length === 1;
  const values = new Map(inputs.map((name, at) => [name, isWhole ? all : (words[at] ?? "")]));
  // Some programs count arguments from 0, others from 1.
  const start = /\$0(?!\d)/.test(body) ? 0 : 1;
  let isUsed = false;
  const filled = body.replaceAll(
    /\$ARGUMENTS\[(\d{1,3})\]|\$ARGUMENTS\b|\{\{\s{0,9}args\s{0,9}\}\}|\$(\d{1,2})(?!\d)|\$\{input:(\w{1,64})(?::[^}$]*)?\}|\$([A-Za-z_]\w{0,63})/g,
    (place, index?: string, number?: string, input?: string, name?: string) => {
      const at = index === undefined ? Number(number) - start : Number(index);
      const word = input ?? name;
      const value = Number.isNaN(at) ? (word === undefined ? all : values.get(word)) : words[at];
      // Any other `$name` belongs to the text.
      if (name !== undefined && value === undefined) return place;
      isUsed = true;
      return value ?? "";
    },
  );
  return isUsed || all === "" ? filled : `${filled}\n\nArguments: ${all}`;
}
