/** Completes the words after the program's name, alike for every shell. */
import { existsSync } from "node:fs";
import { loadConfig } from "../config/load.ts";
import type { HostFacts } from "../config/paths.ts";
import { settingInfo } from "../config/schema.ts";
import { oneLine, showControl } from "../core/text.ts";
import type { Action, Command, CommandArguments, ExitCode, Flag } from "./command.ts";
import { flagsOf, parseArguments } from "./command.ts";
import bash from "./completion-scripts/deepagent-mcp.bash" with { type: "text" };
import fish from "./completion-scripts/deepagent-mcp.fish" with { type: "text" };
import powershell from "./completion-scripts/deepagent-mcp.ps1" with { type: "text" };
import zsh from "./completion-scripts/deepagent-mcp.zsh" with { type: "text" };
import { CLIENT_NAMES } from "./clients/catalogue.ts";
import { complain, say } from "./output.ts";

/**
 * Scripts by shell. Each passes the words typed so far to `completions words` of the program being completed, and
 * shows the candidates that it prints. `=` is a word of its own in bash, and Bash 3.2 of macOS has neither mapfile nor
 * compopt. Older PowerShells leave out an argument without text.
 */
export const COMPLETION_SCRIPTS: Readonly<Record<string, string>> = { bash, zsh, fish, powershell };

/** A word that could come next, with its meaning. */
export interface Candidate {
  word: string;
  text?: string | undefined;
}

/** Words, or paths, which the shell itself finds. */
export type Completion = readonly Candidate[] | "files" | "folders";

/** Finds the runs, or the schedules, on this machine that the words typed so far apply to. */
export type FindRuns = (
  command: Command,
  before: readonly string[],
  kind: "RUN" | "SCHEDULE",
) => Promise<readonly Candidate[]>;

/** Prints the script for a shell, or answers one of these scripts. */
export async function runCompletions(
  { positionals: [shell = "", ...words], host }: CommandArguments,
  commands: readonly Command[],
): Promise<ExitCode> {
  if (shell === "words") {
    const found = await complete(words, commands, (command, before, kind) =>
      findRuns(command, before, { host, kind }),
    );
    if (typeof found === "string") return say(`:${found}`);
    return say(...found.map(({ word, text }) => (text === undefined ? word : `${word}\t${text}`)));
  }
  const script = Object.hasOwn(COMPLETION_SCRIPTS, shell) ? COMPLETION_SCRIPTS[shell] : undefined;
  if (script === undefined) {
    const known = Object.keys(COMPLETION_SCRIPTS).join(", ");
    return complain(`Name the shell: deepagent-mcp completions SHELL, one of ${known}.`, 2);
  }
  return say(script.trimEnd());
}

/** Candidates for the last of `words`. The first word is the one after the program's name. */
export async function complete(words: readonly string[], commands: readonly Command[], runs: FindRuns) {
  // PowerShell passes a space for an empty word.
  const current = (words.at(-1) ?? "").trim();
  const found = await completeAfter(words.slice(0, -1), current, commands, runs);
  return typeof found === "string" ? found : found.filter(({ word }) => word.startsWith(current));
}

async function completeAfter(
  before: readonly string[],
  current: string,
  commands: readonly Command[],
  runs: FindRuns,
): Promise<Completion> {
  const [first, ...rest] = before;
  if (first === undefined && !current.startsWith("-")) return named(commands);
  if (first === "help") return rest.length === 0 ? named(commands) : [];
  const isNamed = first !== undefined && !first.startsWith("-");
  const command = commands.find(({ name }) => name === (isNamed ? first : "serve"));
  return command === undefined ? [] : completeWord(command, isNamed ? rest : before, current, runs);
}

const named = (list: readonly (Command | Action)[]): Candidate[] =>
  list.map(({ name, summary }) => ({ word: name, text: summary }));

const plain = (words: readonly string[]): Candidate[] => words.map((word) => ({ word }));

async function completeWord(command: Command, before: readonly string[], current: string, runs: FindRuns) {
  if (before.includes("--")) return [];
  const flags = flagsOf(command);
  const flagAt = (word: string | undefined): Flag | undefined =>
    flags.find(({ name, short }) => word === `--${name}` || (short !== undefined && word === `-${short}`));
  const placed = (hint: string): Promise<Completion> =>
    completePlace(hint, (kind) => runs(command, before, kind));

  const open = flagAt(before.at(-1));
  if (open !== undefined && open.kind !== "boolean") return completeValues(open, placed);
  const [, name, start] = /^(--[^=]+=)(.*)$/.exec(current) ?? [];
  if (name !== undefined && start !== undefined) {
    const flag = flagAt(name.slice(0, -1));
    const values = flag === undefined ? [] : await completeValues(flag, placed);
    // Shells complete paths that stand alone.
    return typeof values === "string" ? [] : values.map(({ word, text }) => ({ word: name + word, text }));
  }
  const given = before.filter((word, at) => {
    const open = flagAt(before[at - 1] ?? "");
    return !word.startsWith("-") && (open === undefined || open.kind === "boolean");
  });
  const action = command.actions?.find(({ name }) => name === given[0]);
  if (current.startsWith("-")) return flagsFor(command, flags, { action, before });
  if (command.actions !== undefined && given.length === 0) return named(command.actions);
  const places = action === undefined ? parsePlaces(command.usage).slice(1) : parsePlaces(action.words);
  const place = places[given.length - (action === undefined ? 0 : 1)];
  return place === undefined ? [] : placed(place);
}

/** `["TASK" | -]` is a text, `RUN [REQUEST]` two places, `copy` a word that stands for itself. */
const parsePlaces = (usage: string): string[] =>
  usage
    .replaceAll(/[[\]]/g, "")
    .split(" ")
    .filter((word) => word !== "|" && word !== "-" && word !== "");

/** Returns the flags that are not used yet: those of the action, and the settings. */
function flagsFor(
  { actions = [] }: Command,
  flags: readonly Flag[],
  { action, before }: { action: Action | undefined; before: readonly string[] },
): Candidate[] {
  const ofActions = new Set(actions.flatMap(({ flags }) => flags));
  return flags
    .filter(({ name }) => action === undefined || !ofActions.has(name) || action.flags.includes(name))
    .filter(({ name, kind }) => kind === "list" || !before.includes(`--${name}`))
    .map(({ name, help, setting }) => ({
      word: `--${name}`,
      text: (setting === undefined ? help : settingInfo(setting).description)?.replaceAll("\n", " "),
    }));
}

async function completeValues({ hint = "", setting }: Flag, placed: (hint: string) => Promise<Completion>) {
  const choices = setting === undefined ? undefined : settingInfo(setting).choices;
  return choices === undefined ? placed(hint) : plain(choices);
}

const PLACES: Readonly<Record<string, () => Completion | Promise<Completion>>> = {
  DIR: () => "folders",
  FILE: () => "files",
  CLIENT: () => plain(CLIENT_NAMES),
  SHELL: () => plain(Object.keys(COMPLETION_SCRIPTS)),
  PROVIDER: async () => plain(Object.keys((await import("../agent/models/choose.ts")).PROVIDERS)),
  KEY: async () => {
    const { KEY_NAMES } = await import("../agent/models/choose.ts");
    const { SEARCH_KEYS } = await import("../web/search/choose.ts");
    return plain([...KEY_NAMES, ...SEARCH_KEYS]);
  },
};

/** Candidates for a placeholder in a usage line, or for the value of a flag. */
async function completePlace(
  hint: string,
  runs: (kind: "RUN" | "SCHEDULE") => Promise<readonly Candidate[]>,
): Promise<Completion> {
  if (hint === "RUN" || hint === "SCHEDULE") return runs(hint);
  const find = Object.hasOwn(PLACES, hint) ? PLACES[hint] : undefined;
  return find?.() ?? (/^[a-z|]+$/.test(hint) ? plain(hint.split("|")) : []);
}

/**
 * The newest runs of the data folder that the words name, or its schedules. A Postgres is not asked: a key press has not
 * that time.
 */
async function findRuns(
  command: Command,
  before: readonly string[],
  { host, kind }: { host: HostFacts; kind: "RUN" | "SCHEDULE" },
): Promise<Candidate[]> {
  const parsed = parseArguments(before, command);
  if (!parsed.ok) return [];
  const { flags } = parsed;
  const loaded = loadConfig({ flags, ...host });
  if (!loaded.ok || loaded.config.storage !== undefined || !existsSync(loaded.config.dataDir)) return [];
  const { withLocalRuns } = await import("./local-runs.ts");
  const { SHORT_ID } = await import("./runs.ts");
  const candidate = (id: string, name: string, state = ""): Candidate => ({
    word: id.slice(0, SHORT_ID),
    text: state + oneLine(showControl(name), 60),
  });
  let found: Candidate[] = [];
  await withLocalRuns({ flags, positionals: [], host }, false, async ({ runs }) => {
    if (kind === "SCHEDULE") {
      found = (await runs.schedules.list()).map(({ id, name }) => candidate(id, name));
      return 0;
    }
    const newest = await runs.read.list({ limit: 20 });
    found = newest.map(({ id, status, task }) => candidate(id, task, `${status}: `));
    found.unshift({ word: "last", text: "The newest run." });
    return 0;
  });
  return found;
}
