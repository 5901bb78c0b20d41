/** Opens the runs of the data directory for a command. */
import { type Check, factsFor } from "../app/checks/check.ts";
import { sendTraces } from "../app/lifecycle.ts";
import type { OpenedRuns } from "../app/open-runs.ts";
import { environmentFlags } from "../app/settings.ts";
import { loadConfig } from "../config/load.ts";
import { commandLine, dataDirFlag, givenFlags } from "../config/program.ts";
import type { Config } from "../config/schema.ts";
import { defined } from "../core/unknown.ts";
import { type Logger, createLogger } from "../core/logger.ts";
import { shownName } from "../core/text.ts";
import { LOCAL, type Run } from "../runs/run.ts";
import type { PrincipalRuns } from "../runs/service.ts";
import type { CommandArguments, ExitCode } from "./command.ts";
import { complain } from "./output.ts";

/** Ctrl-C, and an end from outside. The second one ends the process at once. */
const ENDS = ["SIGINT", "SIGTERM"] as const;
/** Signal of a closed terminal. The terminal and its shell both send it, and open runs are still parked. */
const HANG_UP = "SIGHUP";

export interface LocalRuns {
  /** Runs of all people on this machine, who need no token. */
  runs: PrincipalRuns;
  /** The runs of all principals. */
  operator: OpenedRuns;
  config: Config;
  logger: Logger;
  /** Aborts at Ctrl-C and when the process is asked to stop. */
  interrupt: AbortController;
  /** The checks that fail, of those that a run needs at its start. */
  obstacles: () => Promise<Check[]>;
  /** A line to paste that uses this data directory: `schedule list`. */
  dataCommand: (...words: readonly string[]) => string;
  /** A line to paste that uses these runs, such as `runs list`. */
  runsCommand: (...words: readonly string[]) => string;
  /** A line to paste that works on this run, or continues its conversation, with the settings of this process. */
  runCommand: (run: Run, ...words: readonly string[]) => string;
}

/**
 * Opens the runs of the data directory for `work`, and closes them after it, which parks what ran here.
 * `worksOn`: whether this process may work on runs; otherwise it only looks on and decides.
 */
export async function withLocalRuns(
  args: CommandArguments,
  worksOn: boolean,
  work: (local: LocalRuns) => Promise<ExitCode>,
): Promise<ExitCode> {
  const { flags, host } = args;
  const loaded = loadConfig({ flags, ...host });
  if (!loaded.ok) return complain(loaded.problems, 2);
  const { workspace, ...rest } = loaded.config;
  // Without a workspace the runs are left to others.
  const config: Config = worksOn && workspace !== undefined ? { ...rest, workspace } : rest;
  const facts = worksOn ? await factsFor({ ...loaded, config }, host, false) : undefined;
  // At the terminal only failures are logged; doctor reports problems of the setup.
  const logger = createLogger(config.logLevel === "info" ? "error" : config.logLevel);
  const interrupt = new AbortController();
  const stop = (): void => interrupt.abort();
  for (const signal of ENDS) process.once(signal, stop);
  process.on(HANG_UP, stop);
  const { openFolderRuns } = await import("../app/folders.ts");
  // Only a process that works cleans up: looking at runs changes nothing.
  const operator = await openFolderRuns({ config, env: facts?.env ?? host.env, logger, keepsHouse: worksOn });
  // Keeps the process alive while it waits for a run that another process works on.
  const hold = setInterval(() => undefined, 2 ** 30);
  let code: ExitCode;
  try {
    const obstacles = async (): Promise<Check[]> =>
      facts === undefined ? [] : (await import("../app/checks/list.ts")).startProblems(facts);
    const runs = operator.as({ principal: LOCAL });
    code = await work({ runs, operator, config, logger, interrupt, obstacles, ...commandsFor(config, args) });
  } finally {
    clearInterval(hold);
    for (const signal of ENDS) process.off(signal, stop);
    await operator.close();
    process.off(HANG_UP, stop);
  }
  // Leaves the exit code to `main`, and flushes the output first.
  if (worksOn && !(await sendTraces(host.env))) process.stdout.write("", () => process.exit());
  return code;
}

function commandsFor(
  config: Config,
  { flags, host }: CommandArguments,
): Pick<LocalRuns, "dataCommand" | "runsCommand" | "runCommand"> {
  const data = dataDirFlag(config, host);
  const given = givenFlags(flags, host, ["workspace", "dataDir"]);
  const dataCommand = (...words: readonly string[]): string => commandLine(host, [...words, ...data]);
  return {
    dataCommand,
    runsCommand: (...words) => dataCommand("runs", ...words),
    runCommand: ({ environment }, ...words) =>
      commandLine(host, [
        "run",
        ...words,
        ...environmentFlags(environment, flags["model"] !== undefined),
        ...data,
        ...given,
      ]),
  };
}

/** Beginnings of ids that are shorter name nothing: a typing error would soon be another run. */
const LEAST_OF_ID = 4;
const PAGE = 500;
/** Most runs of all principals that are listed at a time. */
export const MAX_ALL = 1000;
/** The flag with which an operator views the runs of all principals. */
export const ALL_PRINCIPALS = "all-principals";

/** Returns a check that an id begins with a word, with or without the prefix of such ids. */
export function beginsWith(word: string, prefix: "run_" | "sch_"): (id: string) => boolean {
  const beginning = word.startsWith(prefix) ? word : prefix + word;
  return (id) => beginning.length >= prefix.length + LEAST_OF_ID && id.startsWith(beginning);
}

/**
 * The id of the run that `word` names: the id itself, its beginning where no other run begins so, with or without
 * `run_`, or `last`. `undefined` where it names none; why was written.
 */
export async function namedRun(local: LocalRuns, word: string): Promise<string | undefined> {
  const { runs } = local;
  if (word === "last") {
    const [newest] = await runs.read.list({ limit: 1 });
    if (newest === undefined) complain("There are no runs in this data directory yet.");
    return newest?.id;
  }
  if ((await runs.read.view(word)) !== undefined) return word;
  const found: string[] = [];
  for (let before: string | undefined; ;) {
    const page = await runs.read.list({ limit: PAGE, ...defined({ before }) });
    found.push(...page.map(({ id }) => id).filter(beginsWith(word, "run_")));
    before = page.at(-1)?.id;
    if (page.length < PAGE) break;
  }
  const [only, ...others] = found;
  if (only !== undefined && others.length === 0) return only;
  if (only === undefined) await unknownRun(local, word);
  else complain(`${found.length} runs begin with ${JSON.stringify(word)}: ${found.slice(0, 5).join(", ")}.`);
  return undefined;
}

/** The newest run of anybody that `word` names, by its id, the beginning of one, or as the `last`. */
export async function runOfAnybody({ operator }: LocalRuns, word: string) {
  const all = await operator.listAll(MAX_ALL);
  const isNamed = beginsWith(word, "run_");
  return word === "last" ? all[0] : all.find(({ id }) => isNamed(id));
}

/** Reports that no run of this machine's people has the id; one of a person with a token is named. */
export async function unknownRun(local: LocalRuns, word: string): Promise<ExitCode> {
  const { runsCommand } = local;
  const theirs = await runOfAnybody(local, word);
  if (theirs === undefined)
    return complain(
      `No run has the id ${JSON.stringify(word.slice(0, 80))}. ${runsCommand("list")} shows them.`,
    );
  const { id } = theirs;
  const principal = shownName(theirs.principal);
  const show = runsCommand("show", id, `--${ALL_PRINCIPALS}`);
  return complain(
    `The run ${id} belongs to ${principal}, who uses a token. ${show} shows it; only ${principal} can answer or change it, ` +
      "with that token in a client or on the page.",
  );
}
