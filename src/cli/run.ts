/** Works on one run in the terminal, and shows its progress. */
import { setTimeout as delay } from "node:timers/promises";
import { costGap, costText, tokens } from "../server/views/cost-words.ts";
import { anyText } from "../backends/encoding.ts";
import type { FlagValues } from "../config/load.ts";
import { commandLine } from "../config/program.ts";
import { monotonicClock } from "../core/clock.ts";
import { defined } from "../core/unknown.ts";
import { capital, displayName, displayText, oneLine } from "../core/text.ts";
import type { StartRequest } from "../runs/ports.ts";
import type { Run, RunView } from "../runs/run.ts";
import {
  MAX_TASK,
  STATUS_WORDS,
  isApproval,
  isFinal,
  isQuestion,
  endedEarly,
  waitingIn,
} from "../runs/run.ts";
import { requestText } from "../tools/check-answer.ts";
import { eventDocument, runDocument } from "../server/views/run-document.ts";
import { goalReport } from "../server/views/goal-report.ts";
import { whoAsks } from "../server/views/request-words.ts";
import { type CommandArguments, type ExitCode, textOf, textsOf } from "./command.ts";
import { type LocalRuns, namedRun, unknownRun, withLocalRuns } from "./local-runs.ts";
import { complain } from "./output.ts";
import { askOpenRequests } from "./terminal/ask.ts";
import { lineTyped, terminalAsker } from "./terminal/asker.ts";
import { shownMarkdown } from "./terminal/markdown.ts";
import { Keyboard } from "./terminal/keyboard.ts";
import { Caller } from "./terminal/notify.ts";
import { print } from "./terminal/printer.ts";
import { LiveScreen, type Screen, plainScreen } from "./terminal/screen.ts";
import { type Colors, checkLines, colorsFor } from "./terminal/text.ts";
import { stateMark } from "./terminal/tree.ts";

/**
 * Starts or resumes a run, and works on it in this process. An interrupt parks the run: a later call, or any server
 * of the same workspace, resumes it. A person at a terminal is asked for the next task.
 */
export async function runTask(args: CommandArguments): Promise<ExitCode> {
  const { flags, positionals } = args;
  const resume = textOf(flags["resume"]);
  const [given] = positionals;
  const task = resume === undefined ? await taskFrom(given) : given;
  if ((task === undefined || task.trim() === "") === (resume === undefined))
    return complain(
      `Give a task: ${commandLine(args.host, ["run"])} "TASK", - to read it from standard input, or --resume RUN.`,
      2,
    );
  if (task !== undefined && task.length > MAX_TASK) {
    const problem = `The task has more than ${MAX_TASK} characters.`;
    return complain(`${problem} Put long texts into a file of the folder and name it.`, 2);
  }
  return withLocalRuns(args, true, async (local) => {
    if (resume === undefined && !(await isReady(local))) return 1;
    const runId = await (resume === undefined
      ? start(local, {
          task: task ?? "",
          ...defined({ threadId: textOf(flags["thread"]), goal: textsOf(flags["goal"]) }),
        })
      : namedRun(local, resume));
    if (runId === undefined) return 1;
    const view = await local.runs.read.view(runId);
    if (view === undefined) return unknownRun(local, runId);
    if (resume !== undefined) {
      const isEnded = isFinal(view.run.status);
      if (!isEnded && !(await isReady(local))) return 1;
      print(isEnded ? isOver(view.run, local) : ELSEWHERE, process.stderr);
    }
    const options: LiveOptions = {
      output: outputOf(flags),
      // Without a terminal, the run stops for a decision and can be resumed later.
      approvals: args.flags["yes"] === true ? "approve" : canAsk(outputOf(args.flags)) ? "ask" : "stop",
    };
    const code = await showLive(local, runId, options);
    return options.approvals === "ask" && options.output === "terminal"
      ? goOn(local, view.run.threadId, options, code)
      : code;
  });
}

/** True if a run can start here; otherwise prints the failed checks. */
export async function isReady({ obstacles }: LocalRuns): Promise<boolean> {
  const failed = await obstacles();
  if (failed.length === 0) return true;
  const lines = checkLines(failed, colorsFor(process.stderr, process.env));
  print(`${lines.join("\n")}\n`, process.stderr);
  complain("The run cannot start. Fix the above, then try again.");
  return false;
}

/** Works on a person's next tasks, in the same conversation, until an empty one. */
async function goOn(local: LocalRuns, threadId: string, options: LiveOptions, first: ExitCode) {
  const { interrupt } = local;
  for (let code = first; ;) {
    if (interrupt.signal.aborted) return code;
    print("\n");
    const task = await lineTyped("Next task (Enter to end) › ").catch(() => "");
    const runId = task.trim() === "" ? undefined : await start(local, { task, threadId });
    if (runId === undefined) return code;
    code = await showLive(local, runId, options);
  }
}

/** Reads the task from the argument or from standard input: `-`, a pipe, or a prompt. */
async function taskFrom(given: string | undefined): Promise<string | undefined> {
  const { stdin, stdout } = process;
  if (given !== undefined && given !== "-") return given;
  if (given === undefined && stdin.isTTY)
    return stdout.isTTY ? lineTyped("Task › ").catch(() => undefined) : undefined;
  const chunks: Buffer[] = [];
  for await (const chunk of stdin) {
    chunks.push(chunk as Buffer); // no encoding is set
    if (chunks.reduce((size, { length }) => size + length, 0) > 4 * MAX_TASK) break;
  }
  return anyText(Buffer.concat(chunks));
}

const ELSEWHERE = "A run continues in the workspace that it was started in; elsewhere it is only shown.\n";
const isOver = (run: Run, { runCommand }: LocalRuns): string =>
  `Run ${run.id} has ended (${STATUS_WORDS[run.status]}). To continue its conversation:\n  ${runCommand(run, "--thread", run.threadId)} "TASK"\n`;

async function start({ runs }: LocalRuns, request: StartRequest): Promise<string | undefined> {
  const started = await runs.control.start({ ...request, by: "terminal" });
  if (started.ok) {
    const unused = request.goal && "--goal was not used: it counts only for a run that begins.\n";
    const told = `Run ${started.run.id} is working in this thread and reads this at its next step.\n${unused ?? ""}`;
    if (started.how === "told") print(told, process.stderr);
    return started.run.id;
  }
  complain(started.message);
  return undefined;
}

const canAsk = (output: LiveOptions["output"]): boolean =>
  process.stdin.isTTY && process.stdout.isTTY && output !== "json";

export interface LiveOptions {
  /**
   * `terminal`: a live picture, then all of the end. `pipe`: the answer alone on standard output, everything else on
   * standard error. `quiet`: the same without progress. `json`: every event, then the run, a line each.
   */
  output: "terminal" | "pipe" | "quiet" | "json";
  /**
   * Handling of approvals: ask the person, approve, stop the run, or wait for someone else. Questions are answered by a
   * person only: `approve` asks at a terminal, and stops the run elsewhere.
   */
  approvals: "ask" | "approve" | "stop" | "wait";
  /** Names why everything is approved. Default: `--yes`. */
  reason?: string;
}

export function outputOf({ json, quiet }: FlagValues): LiveOptions["output"] {
  if (json === true) return "json";
  if (quiet === true) return "quiet";
  return process.stdout.isTTY ? "terminal" : "pipe";
}

/** Shows a run until it ends, stops for a decision nobody here takes, or is interrupted; then shows how it stands. */
export async function showLive(local: LocalRuns, runId: string, options: LiveOptions): Promise<ExitCode> {
  const view = await followLive(local, runId, options);
  if (view === undefined) return unknownRun(local, runId);
  if (options.output === "json") writeLine({ type: "run", ...runDocument(view) });
  else writeEnd(view, options);
  if (view.run.status === "completed") return view.run.stopReason === undefined ? 0 : 3;
  return isFinal(view.run.status) ? 1 : complain(howToGoOn(view, local));
}

const writeLine = (value: object): void => print(`${JSON.stringify(value)}\n`);

/** Shows the work on a run, and returns its newest view, or undefined if the run is unknown. */
export async function followLive(local: LocalRuns, runId: string, options: LiveOptions) {
  const { runs, interrupt } = local;
  let view = await runs.read.view(runId);
  if (view === undefined) return undefined;
  const person = personAt(local, options);
  const screen = openScreen(options, person.keyboard);
  if (options.approvals === "wait" && view.place?.atWork === 0)
    print(whereToWork(view.run, local), process.stderr);
  const asked = new Set<string>();
  try {
    for await (const event of runs.watch.live(runId, { after: 0, signal: interrupt.signal })) {
      if (event.kind === "live_text") {
        screen?.write?.(event.text);
        continue;
      }
      if (options.output === "json") writeLine({ type: "event", ...eventDocument(event) });
      // Skips the steps that the first view contains already.
      if (event.seq < view.run.lastSeq) continue;
      view = (await runs.read.view(runId)) ?? view;
      screen?.show(runDocument(view));
      person.follow(view);
      const open = waitingIn(view).filter(({ id }) => !asked.has(id));
      if (isFinal(view.run.status) || open.length === 0) continue;
      for (const { id } of open) asked.add(id);
      if ((await decide(view, local, options, { ...person, screen })) === "stop") break;
    }
    return (await runs.read.view(runId)) ?? view;
  } finally {
    screen?.close?.();
  }
}

function writeEnd(view: RunView, { output, approvals }: LiveOptions): void {
  const { stdout, stderr, env } = process;
  const isElsewhere = approvals === "wait";
  if (output === "terminal") {
    print(runEnd(view, colorsFor(stdout, env), isElsewhere));
    return;
  }
  const { answer = "", status, stopReason } = view.run;
  const isAnswered = status === "completed" && answer.trim() !== "";
  const rest = isAnswered ? { ...view, run: { ...view.run, answer: "" } } : view;
  if (output === "pipe" || status !== "completed" || stopReason !== undefined)
    print(runEnd(rest, colorsFor(stderr, env), isElsewhere), stderr);
  if (isAnswered) print(answer.endsWith("\n") ? answer : `${answer}\n`);
}

export const whereToWork = (run: Run, { runCommand }: LocalRuns): string =>
  `No server of its workspace is running. Start one, or work on it here:\n  ${runCommand(run, "--resume", run.id)}\n`;

/** Ways to reach a person and to read their answers. */
interface Person {
  keyboard: Keyboard;
  caller: Caller;
  /** Calls them when the run waits for a client, and when it has ended after a long time. */
  follow: (view: RunView) => void;
}

function personAt({ config }: LocalRuns, { output }: LiveOptions): Person {
  const { stdout, env } = process;
  const how = output === "json" ? "off" : config.notify;
  const caller = new Caller({ output: stdout, how, env, clock: monotonicClock });
  let wasAwaited = false;
  let isOver = false;
  const follow = ({ run, modelCalls, activity }: RunView): void => {
    const isAwaited = modelCalls.some(({ waiting }) => waiting);
    if (isAwaited && !wasAwaited) caller.call(activity);
    wasAwaited = isAwaited;
    if (isFinal(run.status) && !isOver) caller.ended(`${run.status}: ${run.task}`);
    isOver = isFinal(run.status);
  };
  return { keyboard: new Keyboard(), caller, follow };
}

function openScreen({ output }: LiveOptions, keyboard: Keyboard): Screen | undefined {
  const { stdout, stderr, env } = process;
  if (output === "json" || output === "quiet") return undefined;
  if (output === "pipe") return plainScreen(stderr, monotonicClock);
  return env["TERM"] === "dumb" || !stdout.isTTY
    ? plainScreen(stdout, monotonicClock)
    : new LiveScreen(stdout, colorsFor(stdout, env), keyboard);
}

async function decide(
  view: RunView,
  { runs, interrupt }: LocalRuns,
  { approvals, output, reason = "--yes" }: LiveOptions,
  { screen, keyboard, caller }: Person & { screen: Screen | undefined },
): Promise<"continue" | "stop"> {
  if (approvals !== "approve") caller.call(whatWaits(view));
  if (approvals === "wait") return "continue";
  if (approvals === "stop") return "stop";
  const colors = colorsFor(process.stdout, process.env);
  if (approvals === "approve") {
    for (const { id, status, preview } of view.requests.filter(isApproval)) {
      if (status !== "pending") continue;
      screen?.print(`${colors.yellow("✔ approved")} (${reason}): ${displayText(preview.summary)}`);
      const answer = { requestId: id, answer: { type: "approve" as const } };
      await runs.requests.answer(view.run.id, answer, "terminal --yes");
    }
    if (!waitingIn(view).some(isQuestion)) return "continue";
    caller.call(whatWaits(view));
    if (!canAsk(output)) return "stop";
  }
  screen?.pause?.();
  try {
    const asker = terminalAsker(colors, keyboard, () => interrupt.abort());
    // Calls of one reply are there by then, and are counted.
    await delay(100);
    await askOpenRequests(view.run.id, { runs, asker });
    return "continue";
  } catch (error) {
    if (interrupt.signal.aborted) return "stop";
    throw error;
  } finally {
    caller.seen();
    screen?.resume?.();
  }
}

/** Names the first request and its agent, and counts the others. */
function whatWaits(view: RunView): string {
  const [first, ...others] = waitingIn(view);
  if (first === undefined) return "waits for you";
  const what = isQuestion(first)
    ? `asks: ${oneLine(displayText(requestText(first)), 200)}`
    : `wants to run ${displayName(first.tool)}`;
  const more = others.length === 0 ? "" : `, and ${others.length} more`;
  return `${whoAsks(first.agent)} ${what}${more}`;
}

function howToGoOn(view: RunView, { runsCommand, runCommand }: LocalRuns): string {
  const { run } = view;
  if (run.status !== "input_required")
    return `Run ${run.id} has not ended. To continue it:\n  ${runCommand(run, "--resume", run.id)}`;
  const isAnswer = waitingIn(view).some(isQuestion);
  const what = isAnswer ? "an answer. Answer" : "approval. Decide";
  return `Run ${run.id} is waiting for ${what} here, or in a browser:\n  ${runsCommand("answer", run.id)}\n  ${runsCommand("open", run.id)}`;
}

/**
 * Shows the end of a run, below its tree: answer or failure, changed files, figures. `isElsewhere`: a process other
 * than this one, which is about to end, may work on it.
 */
export function runEnd(view: RunView, colors: Colors, isElsewhere = true): string {
  const { run, filesChanged, models, place, goal } = view;
  const { inputTokens, outputTokens, cachedInputTokens: cached } = run.usage;
  const cost = costText(models);
  const heading = (title: string): string => colors.bold(colors.cyan(`── ${title}`));
  const parts: string[] = [];
  if (run.stopReason !== undefined) parts.push(heading(capital(endedEarly(run.stopReason))));
  if (filesChanged.length > 0) parts.push(heading("Files changed"), filesChanged.join("\n"));
  if (goal !== undefined) {
    const { outcome, criteria } = goalReport(goal, isFinal(run.status));
    parts.push(heading(outcome), criteria.map((finding) => findingLine(finding, colors)).join("\n"));
  }
  const { answer = "" } = run;
  const title = run.status === "completed" ? "Answer" : "Last message (incomplete)";
  if (answer.trim() !== "") parts.push(heading(title), shownMarkdown(answer, process.stdout, colors));
  if (run.failure !== undefined)
    parts.push(heading("Failed"), colors.red(`${run.failure.reason}: ${run.failure.message}`));
  if (run.cancelReason !== undefined) parts.push(heading("Cancelled"), run.cancelReason);
  const status = run.stopReason === undefined ? STATUS_WORDS[run.status] : endedEarly(run.stopReason);
  const isWaiting = run.status === "working" && (place !== undefined || !isElsewhere);
  const ended = run.stopReason === undefined ? stateMark(run.status, colors) : colors.yellow("■");
  const mark = isWaiting ? colors.yellow("◌") : ended;
  const share = cached > 0 ? ` (${Math.round((100 * cached) / inputTokens)}% from the cache)` : "";
  const figures = `${tokens(inputTokens)} tokens in${share}, ${tokens(outputTokens)} out${cost === undefined ? "" : ` · ${cost}`}`;
  parts.push(`${mark} ${run.id} ${isWaiting ? WAITING : status} · ${figures}`);
  const gap = costGap(models);
  if (gap !== undefined) parts.push(colors.dim(gap));
  return `\n${parts.join("\n\n")}\n`;
}

/** A criterion with its mark, and below it why it is not met. */
function findingLine(
  { criterion, verdict, evidence = "", missing }: ReturnType<typeof goalReport>["criteria"][number],
  colors: Colors,
): string {
  const mark = stateMark(verdict ?? "open", colors);
  const word = verdict === "impossible" || verdict === "uncertain" ? `${verdict}: ` : "";
  const details = verdict === "met" ? [] : [evidence, missing && `Missing: ${missing}`];
  const below = details.flatMap((text) => (text ? [`\n  ${colors.dim(text)}`] : []));
  return `${mark} ${word}${criterion}${below.join("")}`;
}

/** The status that people see for a working run while no process works on it. */
export const WAITING = "waiting";
