/** Actions on the runs of the data directory, one function for each. */
import { askedAgainText } from "../server/views/request-words.ts";
import type { ChildRun } from "../agent/agent.ts";
import { retentionOf } from "../app/lifecycle.ts";
import { folderName, workspaceOf } from "../app/settings.ts";
import type { FlagValues } from "../config/load.ts";
import { isoTime } from "../core/clock.ts";
import { capital, displayName, oneLine, showControl } from "../core/text.ts";
import { askedCall, decidedText } from "../runs/asked-words.ts";
import type { PrunePlan, Retention } from "../runs/retention.ts";
import type { Approval, Principal, RunHead, RunView } from "../runs/run.ts";
import { LOCAL, STATUS_WORDS, endedEarly, isQuestion, nameOf, waitingIn } from "../runs/run.ts";
import { pointDocument, runDocument } from "../server/views/run-document.ts";
import { counted } from "../tools/format.ts";
import { answerRun } from "./answer-run.ts";
import { type CommandArguments, type ExitCode, textOf } from "./command.ts";
import commands from "./commands.json" with { type: "json" };
import type { LocalRuns } from "./local-runs.ts";
import { ALL_PRINCIPALS, MAX_ALL, runOfAnybody, namedRun, unknownRun, withLocalRuns } from "./local-runs.ts";
import { complain, say, sayJson, unknownAction } from "./output.ts";
import { applyRun, discardRun, reviewRun } from "./review.ts";
import { WAITING, outputOf, runEnd, showLive, whereToWork } from "./run.ts";
import { requestLines } from "./terminal/ask.ts";
import { offerLines } from "./terminal/ask-approval.ts";
import { answeredLine, fieldLines } from "./terminal/ask-question.ts";
import { print } from "./terminal/printer.ts";
import { renderTree } from "./terminal/tree.ts";
import { fit, localTime, outputStyle } from "./terminal/text.ts";

/** One action on the runs of the data directory; `words` follow its name. */
type Action = (local: LocalRuns, words: readonly string[], args: CommandArguments) => Promise<ExitCode>;

const ACTIONS: Readonly<Record<string, Action | "page">> = {
  list: (local, _words, { flags }) => listRuns(local, flags),
  show: (local, [run = ""], { flags }) => showRun(local, run, flags),
  watch: (local, [run = ""], { flags }) =>
    showLive(local, run, { output: outputOf(flags), approvals: "wait" }),
  answer: (local, [run = "", id], { flags }) => answerRun(local, run, id, flags),
  review: (local, [run = ""], { flags }) => reviewRun(local, run, flags),
  apply: (local, [run = ""], { flags, positionals }) => applyRun(local, run, flags, positionals[1]),
  discard: (local, [run = ""]) => discardRun(local, run),
  cancel: (local, [run = ""], { flags }) => cancelRun(local, run, flags),
  tell: (local, [run = "", text = ""]) => tellRun(local, run, text),
  prune: (local, _words, { flags }) => pruneRuns(local, flags),
  open: "page",
  points: (local, [run = ""], { flags }) => listPoints(local, run, flags),
};

/** Works on the data directory alone: whether a server runs, and which, makes no difference. */
export async function runRuns(args: CommandArguments): Promise<ExitCode> {
  const [name = "", ...words] = args.positionals;
  const act = Object.hasOwn(ACTIONS, name) ? ACTIONS[name] : undefined;
  if (act === undefined) return unknownAction("runs", name, Object.keys(ACTIONS));
  const usage = Object.keys(commands.runs.actions).map((action) => action.split(" "));
  const [, ...required] = usage.find(([action]) => action === name) ?? [];
  const [least, most] = [required.filter((word) => !word.startsWith("[")).length, required.length];
  if (words.length < least)
    return complain(`runs ${name} needs the id of a run${least > 1 ? " and a text" : ""}.`, 2);
  if (words.length > most) return complain(`Unexpected argument "${words[most]}" for runs ${name}.`, 2);
  const isOfAll = args.flags[ALL_PRINCIPALS] === true;
  if (isOfAll && name !== "list" && name !== "show")
    return complain(`--${ALL_PRINCIPALS} is for runs list and runs show.`, 2);
  if (act === "page") {
    let runId: string | undefined;
    const found = await withLocalRuns(args, false, async (local) => {
      runId = await namedRun(local, words[0] ?? "");
      return runId === undefined ? 1 : 0;
    });
    return found === 0 ? (await import("./open.ts")).runOpen(args, runId) : found;
  }
  return withLocalRuns(args, false, async (local) => {
    const [word, ...others] = words;
    if (word === undefined) return act(local, [], args);
    if (isOfAll) {
      const run = await runOfAnybody(local, word);
      return run === undefined ? unknownRun(local, word) : showRun(local, run.id, args.flags, run.principal);
    }
    const runId = await namedRun(local, word);
    return runId === undefined ? 1 : act(local, [runId, ...others], args);
  });
}

/** The newest runs, one a line. */
export async function listRuns(local: LocalRuns, flags: FlagValues): Promise<ExitCode> {
  const limit = flags["limit"] === undefined ? 20 : Number(flags["limit"]);
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_ALL)
    return complain(`--limit must be a whole number from 1 to ${MAX_ALL}.`, 2);
  const isOfAll = flags[ALL_PRINCIPALS] === true;
  const folder = typeof flags["folder"] === "string" ? flags["folder"] : undefined;
  const page = { limit: MAX_ALL };
  const ofFolder =
    folder === undefined ? undefined : local.runs.read.summaries({ folder, tasksOnly: true }, page);
  const all: RunHead[] = await (ofFolder ??
    (isOfAll ? local.operator.listAll(page.limit) : local.runs.read.list(page)));
  const found = all.slice(0, limit);
  const tasks = new Map<string, ChildRun[]>();
  for (const { id, principal } of flags["tree"] === true ? found : [])
    tasks.set(id, await local.operator.as({ principal }).read.children(id));
  if (flags["json"] === true)
    return say(...found.map((run) => JSON.stringify(runRow(run, tasks.get(run.id)))));
  const others = isOfAll ? "" : await othersText(local);
  if (found.length === 0)
    return say(
      others === "" ? "There are no runs in this data directory yet." : `You have no runs here. ${others}`,
    );
  const { colors, rowWidth: width } = outputStyle();
  const isOfMany = new Set(found.map(({ environment }) => environment)).size > 1;
  const widest = found.some(({ stopReason }) => stopReason !== undefined) ? 18 : 9;
  for (const run of found) {
    const id = width === Infinity ? run.id : run.id.slice(0, SHORT_ID);
    const when = width < 60 ? "" : `${localTime(run.createdAt)}  `;
    const owner = isOfAll ? `  ${oneLine(showControl(run.principal), 24).padEnd(12)}` : "";
    const shown = shownStatus(run);
    const stopped = run.stopReason && endedEarly(run.stopReason).replace(/ \(.*/, "");
    const status = (stopped ?? (shown === WAITING ? shown : STATUS_WORDS[shown])).padEnd(widest) + owner;
    const task = run.schedule ? `schedule ${run.schedule.name}: ${nameOf(run)}` : nameOf(run);
    const place = (isOfMany && folderName(run.environment)) || "";
    const named = place === "" ? "" : `${oneLine(showControl(place), 16)}: `;
    const room = Math.max(width - id.length - when.length - status.length - 5, 8);
    say(`${id}  ${colors.dim(when)}${status}  ${fit(named + oneLine(showControl(task), 200), room)}`);
    for (const child of tasks.get(run.id) ?? []) {
      // The whole id works for messages and cancelling.
      const { id, status, name, description } = child;
      const text = oneLine(showControl(`${name}: ${description}`), 200);
      say(fit(`  └ ${id}  ${STATUS_WORDS[status].padEnd(9)}  ${text}`, width));
    }
  }
  if (all.length > limit)
    say(`\n${counted(all.length - limit, "more run")}: --limit N lists up to ${MAX_ALL}`);
  if (others !== "") say(`\n${others}`);
  const stuck = found.find((run) => shownStatus(run) === WAITING);
  if (process.stdout.isTTY && stuck !== undefined)
    say(
      "\nwaiting: no server is working on it. For the reason and the next step:",
      `  ${local.runsCommand("show", stuck.id)}`,
    );
  return 0;
}

/** Counts the runs of other principals, who reach the server with a token; empty if there are none. */
async function othersText({ runs: ownRuns, operator, runsCommand }: LocalRuns): Promise<string> {
  const [statistics, own] = await Promise.all([operator.statistics(), ownRuns.read.counts()]);
  const sum = (counts: Readonly<Record<string, number>>): number =>
    Object.values(counts).reduce((total, count) => total + count, 0);
  const others = sum(statistics.runs) - sum(own);
  if (others <= 0) return "";
  const waiting = statistics.runs.input_required - own.input_required;
  const which = waiting > 0 ? ` (${waiting} waiting for an answer)` : "";
  return `${counted(others, "more run")} ${others === 1 ? "belongs" : "belong"} to other users${which}:\n  ${runsCommand("list", `--${ALL_PRINCIPALS}`)}`;
}

/** Enough of an id to name a run by. */
export const SHORT_ID = "run_".length + 8;

/** Shows a run as waiting if no process works on it, because its process ended or others come first. */
const shownStatus = (run: RunHead): RunHead["status"] | typeof WAITING => {
  const { status, leasedUntil = 0, waitsForChildren = false } = run;
  return status === "working" && leasedUntil < Date.now() && !waitsForChildren ? WAITING : status;
};

const runRow = (run: RunHead, children?: readonly ChildRun[]): object => ({
  run_id: run.id,
  thread_id: run.threadId,
  principal: run.principal,
  status: shownStatus(run),
  created_at: isoTime(run.createdAt),
  updated_at: isoTime(run.updatedAt),
  schedule: run.schedule?.name,
  folder: workspaceOf(run.environment),
  task: run.task,
  background_tasks: children?.map(({ id, name, description, status, startedAt, endedAt }) => ({
    run_id: id,
    subagent_type: name,
    task: description,
    status,
    created_at: isoTime(startedAt),
    ended_at: endedAt === undefined ? undefined : isoTime(endedAt),
  })),
});

/** Prints the state of a run: task, todos, agents, open approvals with their effects, open questions, answer. */
export async function showRun(
  local: LocalRuns,
  runId: string,
  flags: FlagValues,
  principal: Principal = LOCAL,
): Promise<ExitCode> {
  const view = await local.operator.as({ principal }).read.view(runId);
  if (view === undefined) return unknownRun(local, runId);
  if (flags["json"] === true) return sayJson(runDocument(view));
  const { task, threadId, parent, schedule } = view.run;
  const style = outputStyle();
  const { colors } = style;
  const facts = [
    `thread ${threadId}`,
    ...(parent === undefined ? [] : [`background task of run ${parent.runId}, which shows its steps`]),
    ...(schedule === undefined ? [] : [oneLine(`Started by schedule ${showControl(schedule.name)}`, 150)]),
  ];
  const lines = [
    colors.cyan(task.trim()),
    ...facts.map(colors.dim),
    "",
    ...renderTree(runDocument(view), { ...style, frame: 0, now: Date.now() }),
  ];
  for (const asked of waitingIn(view)) {
    const { title, body, notes } = requestLines(asked, style);
    const kind = isQuestion(asked) ? "Question" : "Approval";
    const fields = isQuestion(asked)
      ? asked.kind === "review"
        ? ["", `To see and apply it: ${local.runsCommand("review", asked.runId)}`]
        : fieldLines(asked, style)
      : offerLines(asked, style);
    lines.push("", colors.yellow(`? ${kind} ${asked.id}`), ...title, "", ...body, ...fields, "", ...notes);
  }
  for (const { text, grantedBy } of view.grants) {
    lines.push("", `${colors.green("✔")} Approved for this run (${grantedBy}): ${text}`);
  }
  const decided = view.requests
    .filter(({ status }) => status !== "pending")
    .map((asked) => (isQuestion(asked) ? answeredLine(asked) : decidedLine(asked, view)));
  if (decided.length > 0) lines.push("", ...decided);
  print(`${lines.join("\n")}\n${runEnd(view, colors)}`);
  if (view.place?.atWork === 0) print(`\n${whereToWork(view.run, local)}`);
  return 0;
}

/** Describes a decision: `Approved creating a.md (page)`. */
function decidedLine(approval: Approval, view: RunView): string {
  const { status: decision, decidedBy: by = "", tool } = approval;
  const decided = decidedText({ tool: displayName(tool), call: askedCall(approval), decision, by });
  return `  ${capital(oneLine(decided, 300))}${askedAgainText(approval, view)}`;
}

/** Sends a message to a run at work; its agent reads it before its next model call. */
export async function tellRun(local: LocalRuns, runId: string, text: string): Promise<ExitCode> {
  if (text.trim() === "") return complain("The message is empty.", 2);
  const outcome = await local.runs.control.tell(runId, { text });
  if (!outcome.ok) return outcome.code === "not_found" ? unknownRun(local, runId) : complain(outcome.message);
  return say(`Run ${runId} reads it at its next step.`);
}

/** Ends a run for good, whoever works on it. */
export async function cancelRun(local: LocalRuns, runId: string, flags: FlagValues): Promise<ExitCode> {
  const reason = textOf(flags["message"]) ?? "cancelled in the terminal";
  const outcome = await local.runs.control.cancel(runId, reason);
  if (!outcome.ok) return unknownRun(local, runId);
  const status = STATUS_WORDS[outcome.run.status];
  return say(
    outcome.alreadyEnded
      ? `Run ${runId} has already ended (${status}); nothing to cancel.`
      : `Run ${runId} is ${status}.`,
  );
}

/** The points of the run's thread that a new thread can begin from, oldest first. */
export async function listPoints(local: LocalRuns, runId: string, flags: FlagValues): Promise<ExitCode> {
  const points = await local.runs.read.points(runId);
  if (points === undefined) return unknownRun(local, runId);
  if (flags["json"] === true) return say(...points.map((point) => JSON.stringify(pointDocument(point))));
  const { colors, width } = outputStyle();
  for (const { id, time, summary } of points) {
    const when = localTime(time);
    const text = fit(showControl(summary), Math.max(width - id.length - when.length - 4, 20));
    say(`${id}  ${colors.dim(when)}  ${text}`);
  }
  const newest = points.at(-1);
  const view = newest && (await local.runs.read.view(runId));
  if (!newest || !view) return 0;
  return say(`To start from the newest:\n  ${local.runCommand(view.run, "--thread", newest.id)} "TASK"`);
}

/** Deletes finished runs that exceed the configured retention; a server does the same every hour. */
export async function pruneRuns({ operator, config }: LocalRuns, flags: FlagValues): Promise<ExitCode> {
  const deletesOrphans = flags["orphans"] === true;
  const retention = retentionOf(config);
  if (Object.keys(retention).length === 0 && !deletesOrphans)
    return complain("Set --retention-days or --retention-megabytes to say which runs to delete.", 2);
  if (flags["dry-run"] === true)
    return say(...planLines(retention, await operator.planPrune(retention), deletesOrphans));
  const report = await operator.prune(retention, deletesOrphans ? "delete" : "count");
  const { orphans = 0, memories, freedBytes } = report;
  return say(
    `Deleted ${runs(report.runs)} and ${threads(report.threads)}.`,
    ...(memories === 0 ? [] : [`Deleted ${counted(memories, "expired memory", "expired memories")}.`]),
    ...(orphans === 0 ? [] : [orphansLine(orphans, deletesOrphans ? "Deleted" : undefined)]),
    ...(freedBytes === 0 ? [] : [`The files are ${megabytes(freedBytes)} smaller.`]),
  );
}

const planLines = ({ maxAgeMs, maxBytes }: Retention, plan: PrunePlan, deletesOrphans: boolean): string[] => [
  ...(maxAgeMs === undefined
    ? []
    : [`Would delete ${runs(plan.runs)} that ended more than ${counted(maxAgeMs / 86_400_000, "day")} ago.`]),
  ...(maxBytes === undefined ? [] : [bySize(maxBytes, plan)]),
  ...(plan.orphans === 0 ? [] : [orphansLine(plan.orphans, deletesOrphans ? "Would delete" : undefined)]),
  `Unfinished runs (${plan.unfinished}) and memories are kept. Nothing was changed.`,
];

function bySize(maxBytes: number, { storedBytes, runs, runsForSize }: PrunePlan): string {
  const stored = `${megabytes(storedBytes)} stored, including memories`;
  if (storedBytes <= maxBytes) return `${stored}, within the limit of ${megabytes(maxBytes)}.`;
  const others = `${runsForSize}${runs > 0 ? " other" : ""} runs that ended more than a day ago`;
  return `${stored}; the limit is ${megabytes(maxBytes)}. Would delete up to ${others}, the oldest first, until the limit is met.`;
}

/** `act`: the action on them. Absent: they are kept. */
const orphansLine = (count: number, act: "Deleted" | "Would delete" | undefined): string =>
  act === undefined
    ? `Threads without a run: ${count}. --orphans deletes them.`
    : `${act} ${threads(count)} without a run.`;

const runs = (count: number): string => counted(count, "run");
const threads = (count: number): string => counted(count, "thread");
const megabytes = (bytes: number): string => `${(bytes / 1_000_000).toFixed(1)} MB`;
