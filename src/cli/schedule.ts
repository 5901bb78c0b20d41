/** Actions on the schedules of the data directory, one function for each. */
import { OFFLINE, modelChoice } from "../agent/models/choose.ts";
import { environmentFlags, environmentOf } from "../app/settings.ts";
import { withStoredKeys } from "../app/stored-keys.ts";
import { type FlagValues, loadConfig } from "../config/load.ts";
import { defined } from "../core/unknown.ts";
import { oneLine, showControl } from "../core/text.ts";
import { zoneWords } from "../core/time-zone.ts";
import { nextTimes } from "../runs/cron.ts";
import { STATUS_WORDS } from "../runs/run.ts";
import { type Schedule, type ScheduleChanges, type ScheduleView, CATCH_UP } from "../runs/schedule.ts";
import {
  CATCH_UP_WORDS,
  choiceWords,
  expressionWords,
  nextText,
  scheduleDocument,
  skipText,
  timeIn,
} from "../server/views/schedule-words.ts";
import { type CommandArguments, type ExitCode, textOf, textsOf } from "./command.ts";
import { type LocalRuns, beginsWith, withLocalRuns, ALL_PRINCIPALS } from "./local-runs.ts";
import { complain, readAction, say, sayJson } from "./output.ts";
import { SHORT_ID } from "./runs.ts";
import { fit, localTime, outputStyle } from "./terminal/text.ts";
import type { Changes, RunChoices, RunLimits } from "../runs/choices.ts";

const ACTS: Readonly<
  Record<string, (local: LocalRuns, schedule: ScheduleView, args: CommandArguments) => Promise<ExitCode>>
> = {
  show: async (_local, schedule, { flags }) => {
    if (flags["json"] === true) return sayJson(scheduleDocument(schedule, Date.now()));
    return say(...shownLines(schedule));
  },
  edit,
  pause: async ({ operator }, { principal, id, name }) => {
    const paused = await operator.as({ principal }).schedules.pause(id);
    return paused.ok ? say(`Schedule ${shown(name)} is paused.`) : complain(paused.message);
  },
  resume: async ({ operator }, { principal, id, name }) => {
    const resumed = await operator.as({ principal }).schedules.resume(id);
    if (!resumed.ok) return complain(resumed.message);
    return say(`Schedule ${shown(name)} continues. Next: ${nextText(resumed.schedule, Date.now())}.`);
  },
  remove: async ({ operator }, { principal, id, name }) => {
    await operator.as({ principal }).schedules.remove(id);
    return say(`Schedule ${shown(name)} is removed. Its runs are kept.`);
  },
  run: async ({ operator, runsCommand }, { principal, id, name }, { flags }) => {
    const started = await operator.as({ principal }).schedules.runNow(id);
    if (!started.ok) return complain(started.message);
    if (flags["json"] === true) return say(JSON.stringify({ run_id: started.run.id }));
    return say(
      `Started run ${started.run.id} of schedule ${shown(name)}. A server of its folder works on it.`,
      `To watch it:\n  ${runsCommand("watch", started.run.id.slice(0, SHORT_ID))}`,
    );
  },
};

/** Works on the data directory alone: servers that use it see the change. */
export async function runSchedule(args: CommandArguments): Promise<ExitCode> {
  const action = readAction("schedule", args.positionals);
  if (typeof action === "number") return action;
  const { name, words } = action;
  const isOfAll = args.flags[ALL_PRINCIPALS] === true;
  if (isOfAll && (name === "add" || name === "run"))
    return complain(`--${ALL_PRINCIPALS} is not for schedule ${name}.`, 2);
  const ofEdit = ["cron", "task", "no-overlap", "no-model", "no-limits", "no-goal"];
  const foreign = name === "edit" ? undefined : ofEdit.find((flag) => args.flags[flag] !== undefined);
  if (foreign !== undefined) return complain(`--${foreign} is for schedule edit only.`, 2);
  const given = name === "add" || name === "edit" || name === "run" ? await asServer(args) : args;
  return withLocalRuns(given, false, async (local) => {
    if (name === "add") return add(local, words, args, given);
    const schedules = await (isOfAll ? local.operator.allSchedules() : local.runs.schedules.list());
    if (name === "list") return list(schedules, args, local);
    const found = namedSchedule(schedules, words[0] ?? "");
    if (typeof found !== "string") return (await ACTS[name]?.(local, found, args)) ?? 0;
    return complain(`${found} ${local.dataCommand("schedule", "list")} shows them.`);
  });
}

/**
 * Returns arguments that match a server's settings: without the choices in flags, with the keys in the keychain.
 * `offline` stays a setting: only servers without a language model have such runs.
 */
async function asServer(args: CommandArguments): Promise<CommandArguments> {
  const { host } = args;
  const isChoice = (name: string): boolean =>
    ["model", ...LIMITS.map(([name]) => name), "goal", "changes"].includes(name) &&
    args.flags[name] !== OFFLINE;
  const flags = Object.fromEntries(Object.entries(args.flags).filter(([name]) => !isChoice(name)));
  const loaded = loadConfig({ flags, ...host });
  if (!loaded.ok) return { ...args, flags };
  const { env } = await withStoredKeys(loaded.config, host.env);
  return { ...args, flags, host: { ...host, env } };
}

/** The schedule that a word names: by its name, its id, or the beginning of that. Otherwise the reason why none. */
function namedSchedule(schedules: readonly ScheduleView[], word: string): ScheduleView | string {
  const shownWord = JSON.stringify(oneLine(word, 80));
  const named = schedules.filter(({ id, name }) => id === word || name === word);
  const isNamed = beginsWith(word, "sch_");
  const found = named.length > 0 ? named : schedules.filter(({ id }) => isNamed(id));
  const [only, ...others] = found;
  if (only === undefined) return `No schedule is called ${shownWord}.`;
  if (others.length === 0) return only;
  return `${found.length} schedules are called ${shownWord}. Give the id of one: ${found.map(({ id }) => id).join(", ")}.`;
}

async function add(
  local: LocalRuns,
  [expression = "", task = ""]: readonly string[],
  { flags }: CommandArguments,
  { flags: settings, host }: CommandArguments,
): Promise<ExitCode> {
  const loaded = loadConfig({ flags: settings, ...host });
  if (!loaded.ok) return complain(loaded.problems.join("; "), 2);
  const { config } = loaded;
  if (config.workspace === undefined)
    return complain("Choose the folder that its runs work in with --workspace DIR.", 2);
  const given = parseChanges(flags);
  if (typeof given === "string") return complain(given, 2);
  const { model, models } = config;
  const environment = environmentOf(config, modelChoice({ model, models, env: host.env, lendable: true }));
  const request = { ...given, task, expression, environment };
  const added = await local.runs.schedules.add({ ...request, isOperators: true });
  if (!added.ok) return complain(added.message, added.code === "invalid" ? 2 : 1);
  const { schedule } = added;
  if (flags["json"] === true) return sayNew(schedule);
  const server = local.dataCommand("serve", "--http", ...environmentFlags(schedule.environment, false));
  return say(
    `Added schedule ${shown(schedule.name)} (${schedule.id.slice(0, SHORT_ID)}): ${whenText(schedule)}.`,
    ...nextLines(schedule),
    ...choiceLines(schedule),
    `Runs start while a server works in this folder, such as\n  ${server}`,
  );
}

async function edit({ operator }: LocalRuns, before: ScheduleView, { flags }: CommandArguments) {
  const { principal, id } = before;
  const changes = parseChanges(flags, before);
  if (typeof changes === "string") return complain(changes, 2);
  if (Object.keys(changes).length === 0)
    return complain('Say what to change, such as --cron "0 8 * * *", --task TEXT or --name NAME.', 2);
  const edited = await operator.as({ principal }).schedules.edit(id, { ...changes, isOperators: true });
  if (!edited.ok) return complain(edited.message, edited.code === "invalid" ? 2 : 1);
  const { schedule } = edited;
  if (flags["json"] === true) return sayNew(schedule);
  const next = schedule.pausedAt === undefined ? nextLines(schedule) : ["It is paused."];
  const changed = `Changed schedule ${shown(schedule.name)}: ${whenText(schedule)}.`;
  return say(changed, ...next, ...choiceLines(schedule));
}

const sayNew = (schedule: Schedule): ExitCode =>
  sayJson(scheduleDocument({ ...schedule, runs: [], skips: [] }, Date.now()));

/** Reads the fields from flags. Returns the problem with one as text. `before`: the schedule that they change. */
function parseChanges(flags: FlagValues, before?: Schedule): ScheduleChanges | string {
  const text = (name: string): string | undefined => textOf(flags[name]);
  const limit = text("catch-up-limit");
  const catchUp = CATCH_UP.find((one) => one === text("catch-up"));
  if (catchUp === undefined && text("catch-up") !== undefined)
    return `--catch-up must be one of ${CATCH_UP.join(", ")}.`;
  if (flags["overlap"] === true && flags["no-overlap"] === true)
    return "Give --overlap or --no-overlap, not both.";
  const choices = readChoices(flags, before);
  if (typeof choices === "string") return choices;
  return defined({
    ...choices,
    task: text("task"),
    expression: text("cron"),
    name: text("name"),
    timeZone: text("time-zone"),
    catchUp,
    catchUpLimit: limit === undefined ? undefined : /^\d+$/.test(limit) ? Number(limit) : Number.NaN,
    overlap: flags["overlap"] === true ? true : flags["no-overlap"] === true ? false : undefined,
  });
}

const whenText = ({ expression, timeZone }: Schedule): string =>
  `${expressionWords(expression)} (${zoneWords(timeZone)})`;

const nextLines = (schedule: Schedule): string[] => [
  "Next times:",
  ...[schedule.dueAt, ...nextTimes(schedule, schedule.dueAt, 2)].map(
    (time) => `  ${timeIn(schedule.timeZone, time)}`,
  ),
];

/** Model, limits and goal of its runs, where they have any of their own. */
function choiceLines(schedule: Schedule): string[] {
  const words = choiceWords(schedule);
  return [
    ...(words === "" ? [] : [`For each run: ${oneLine(showControl(words), 200)}.`]),
    ...(schedule.goal === undefined ? [] : ["A judge checks:"]),
    ...(schedule.goal ?? []).map((criterion) => `  ${oneLine(showControl(criterion), 200)}`),
  ];
}

function list(schedules: readonly ScheduleView[], { flags }: CommandArguments, { dataCommand }: LocalRuns) {
  const now = Date.now();
  if (flags["json"] === true)
    return say(...schedules.map((one) => JSON.stringify(scheduleDocument(one, now))));
  if (schedules.length === 0)
    return say(
      `There are no schedules here. ${dataCommand("schedule", "add", "--help")} shows how to add one.`,
    );
  const { colors, rowWidth: width } = outputStyle();
  for (const one of schedules) {
    const id = width === Infinity ? one.id : one.id.slice(0, SHORT_ID);
    const of =
      flags[ALL_PRINCIPALS] === true ? `${oneLine(showControl(one.principal), 24).padEnd(12)}  ` : "";
    const [newest] = one.runs;
    const last = newest === undefined ? "no run yet" : STATUS_WORDS[newest.status];
    const next = nextText(one, now);
    const line = `${of}${next.padEnd(22)}  ${last.padEnd(10)}`;
    const room = Math.max(width - id.length - line.length - 4, 8);
    say(`${id}  ${line}  ${fit(`${shown(one.name)}: ${whenText(one)}`, room)}`.trimEnd());
  }
  if (process.stdout.isTTY) say(colors.dim("id, next time, last run, name"));
  return 0;
}

function shownLines(schedule: ScheduleView): string[] {
  const { name, task, timeZone, catchUp, catchUpLimit, overlap, runs, skips, id } = schedule;
  const { colors } = outputStyle();
  const limit = catchUp === "all" ? ` At most ${catchUpLimit}.` : "";
  const isPaused = schedule.pausedAt !== undefined;
  return [
    colors.cyan(shown(name)),
    colors.dim(`${id}  ${schedule.expression}`),
    "",
    task,
    "",
    `Starts ${whenText(schedule)}.`,
    `${CATCH_UP_WORDS[catchUp]}${limit} Runs ${overlap ? "may overlap" : "do not overlap"}.`,
    ...choiceLines(schedule),
    ...(isPaused ? ["It is paused."] : nextLines(schedule)),
    ...(runs.length === 0 ? ["No run yet."] : ["Newest runs:"]),
    ...runs.map((run) => {
      const at = run.schedule?.dueAt;
      const when = at === undefined ? `${localTime(run.createdAt)}, by a person` : timeIn(timeZone, at);
      return `  ${run.id}  ${when}  ${STATUS_WORDS[run.status]}`;
    }),
    ...(skips.length === 0 ? [] : ["Newest skips:"]),
    ...skips.map((skip) => `  ${skipText(timeZone, skip)}`),
  ];
}

const shown = (name: string): string => oneLine(showControl(name), 80);

/** Flags of the limits, which the configuration has too. Here they are for the runs of one schedule. */
const LIMITS: readonly (readonly [flag: string, limit: keyof RunLimits])[] = [
  ["limits-cost-usd", "costUsd"],
  ["limits-tokens", "tokens"],
  ["limits-model-calls", "modelCalls"],
  ["limits-tool-calls", "toolCalls"],
  ["limits-work-time", "workTime"],
];

const CHANGES: readonly Changes[] = ["direct", "propose"];

/** Reads the choices from flags, besides the limits that a schedule has. Returns the problem with one as text. */
function readChoices(flags: FlagValues, { limits: before }: RunChoices = {}): RunChoices | string {
  const { model, goal } = flags;
  const changes = CHANGES.find((way) => way === flags["changes"]);
  if (changes === undefined && flags["changes"] !== undefined)
    return `--changes must be ${CHANGES.join(" or ")}.`;
  const given = LIMITS.filter(([flag]) => flags[flag] !== undefined);
  const limits = Object.fromEntries(
    given.map(([flag, limit]) => [limit, Number(textOf(flags[flag])?.trim() || Number.NaN)]),
  );
  const isGiven = { model: model !== undefined, limits: given.length > 0, goal: goal !== undefined };
  for (const name of ["model", "limits", "goal"] as const) {
    if (isGiven[name] && flags[`no-${name}`] === true)
      return `Give ${name === "limits" ? `--${given[0]?.[0]}` : `--${name}`} or --no-${name}, not both.`;
  }
  return defined({
    model: flags["no-model"] === true ? "" : textOf(model),
    limits: flags["no-limits"] === true ? {} : isGiven.limits ? { ...before, ...limits } : undefined,
    changes,
    goal: flags["no-goal"] === true ? [] : textsOf(goal),
  });
}
