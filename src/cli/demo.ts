/** Shows the product: a real run of the built server on a sample workspace, over a real MCP connection. */
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type FlagValues, loadConfig } from "../config/load.ts";
import { type HostFacts, packageRoot, packageVersion } from "../config/paths.ts";
import { commandLine, givenFlags } from "../config/program.ts";
import type { Config } from "../config/schema.ts";
import { monotonicClock } from "../core/clock.ts";
import { errorMessage } from "../core/errors.ts";
import { createLogger } from "../core/logger.ts";
import { showControl } from "../core/text.ts";
import type { Approval } from "../runs/run.ts";
import type { RunService } from "../runs/service.ts";
import { pendingApprovals } from "../server/views/run-report.ts";
import type { CommandArguments, ExitCode } from "./command.ts";
import { type RunEnd, type Session, openSession } from "./demo-session.ts";
import { LOCAL, complain } from "./local-runs.ts";
import {
  type ApprovalAnswer,
  type ApprovalForm,
  askOpenRequests,
  askQuestion,
  questionIn,
  questionTitle,
  runIn,
} from "./terminal/ask.ts";
import { terminalAsker } from "./terminal/asker.ts";
import { shownMarkdown } from "./terminal/markdown.ts";
import { Keyboard } from "./terminal/keyboard.ts";
import { Caller } from "./terminal/notify.ts";
import { LiveScreen, type Screen, plainScreen } from "./terminal/screen.ts";
import { type Colors, colorsFor, wrapText } from "./terminal/text.ts";

const SAMPLE_TASK =
  "How does an alarm get from `highWaters` to the pager, and where can it get lost? List every TODO as well. " +
  "Write a report with the places in the code, and remember what will be useful next time.";
const OFFLINE = "offline";

/** Runs the built server as a child process and shows one run of it. Exit code 0: the run completed. */
export async function runDemo({ flags, positionals, host }: CommandArguments): Promise<ExitCode> {
  const loaded = loadConfig({ flags, ...host });
  if (!loaded.ok) {
    process.stderr.write(loaded.problems.map((problem) => `deepagent-mcp: ${problem}\n`).join(""));
    return 2;
  }
  const interactive = process.stdin.isTTY && process.stdout.isTTY;
  const approveAll = flags["yes"] === true;
  const own = flags["workspace"] === undefined ? undefined : loaded.config.workspace;
  if (own !== undefined && !interactive && !approveAll) {
    return complain(
      "There is no terminal to ask in. Use a terminal, or --yes to approve every change to the folder itself.",
      2,
    );
  }
  const workspace = own === undefined ? await copyOfSample() : ownFolder(own);
  const stage: Stage = {
    config: loaded.config,
    flags,
    host,
    workspace,
    task: positionals[0] ?? SAMPLE_TASK,
    asking: interactive && !approveAll,
    interactive,
    colors: colorsFor(process.stdout, process.env),
    interrupt: new AbortController(),
    keyboard: new Keyboard(),
    caller: new Caller({
      output: process.stdout,
      how: loaded.config.notify,
      env: process.env,
      clock: monotonicClock,
    }),
  };
  try {
    return await perform(stage);
  } finally {
    await workspace.dispose();
  }
}

/** All that one run of the demo needs. */
interface Stage {
  config: Config;
  flags: FlagValues;
  host: HostFacts;
  workspace: DemoWorkspace;
  task: string;
  /** True if a person decides on approvals. */
  asking: boolean;
  interactive: boolean;
  colors: Colors;
  interrupt: AbortController;
  keyboard: Keyboard;
  caller: Caller;
}

async function perform(stage: Stage): Promise<ExitCode> {
  const { colors, interrupt, workspace } = stage;
  const stop = (): void => interrupt.abort();
  process.once("SIGINT", stop);
  process.once("SIGTERM", stop);
  const now = monotonicClock;
  const start = now();
  let screen: Screen | undefined;
  let session: Session | undefined;
  const open = () =>
    openSession({
      command: process.execPath,
      args: serverArguments(stage),
      env: process.env,
      version: packageVersion(),
      approve: (form) => decide(form, stage, screen),
      show: (picture) => screen?.show(picture),
    });
  try {
    session = await open();
    process.stdout.write(`${introduction(stage, session)}\n\n`);
    const isLive = stage.interactive && process.env["TERM"] !== "dumb";
    screen = isLive
      ? new LiveScreen(process.stdout, colors, stage.keyboard)
      : plainScreen(process.stdout, now);
    const end = await session.run(stage.task, interrupt.signal);
    screen.show(end.picture);
    screen.close();
    stage.caller.ended(`${end.picture.status}: ${stage.task}`);
    const seconds = (now() - start) / 1000;
    const countsTokens = modelOf(stage) !== OFFLINE;
    const demoCommand = commandLine(stage.host, ["demo"]);
    const facts = { ...end, seconds, session, workspace, colors, demoCommand, countsTokens };
    process.stdout.write(await summary(facts));
    return end.picture.status === "completed" ? 0 : 1;
  } catch (error) {
    screen?.close();
    if (interrupt.signal.aborted) await cancelRun(session, open);
    const reason = interrupt.signal.aborted ? "Interrupted; the run was cancelled." : errorMessage(error);
    process.stderr.write(`${colors.red("✖")} ${reason}\n`);
    return 1;
  } finally {
    process.off("SIGINT", stop);
    process.off("SIGTERM", stop);
    await session?.close();
  }
}

/** Cancels the run. Ctrl-C also stops the server, which only parks the run: the next server would resume it. */
async function cancelRun(session: Session | undefined, open: () => Promise<Session>): Promise<void> {
  const runId = session?.runId;
  if (session === undefined || runId === undefined) return;
  try {
    await session.cancel(runId);
  } catch {
    const another = await open();
    try {
      await another.cancel(runId);
    } finally {
      await another.close();
    }
  }
}

/** Asks the person about each approval, or approves it and says so. */
async function decide(
  form: ApprovalForm,
  stage: Stage,
  screen: Screen | undefined,
): Promise<ApprovalAnswer | undefined> {
  const { asking, caller, colors, interrupt, keyboard, workspace } = stage;
  const question = questionIn(form);
  const isWhole = question.decisions.includes("approve");
  if (!asking) {
    const why = workspace.kind === "own" ? "--yes" : "it works on a copy";
    screen?.print(`${colors.yellow("✔ approved")} (${why}): ${questionTitle(question)}`);
    if (isWhole) return { decision: "approve" };
    return decideHere(form, stage, async (runs, runId) => {
      for (const { id } of await openApprovals(runs, runId)) {
        await runs.decide(LOCAL, runId, id, { type: "approve" }, "terminal --yes");
      }
    });
  }
  screen?.pause();
  caller.call(questionTitle(question));
  const asker = terminalAsker(colors, keyboard, () => interrupt.abort());
  try {
    if (isWhole) return await askQuestion(question, asker);
    return await decideHere(form, stage, (runs, runId) =>
      askOpenRequests(runId, { runs, principal: LOCAL, asker }),
    );
  } catch {
    return undefined;
  } finally {
    caller.seen();
    screen?.resume();
  }
}

async function openApprovals(runs: RunService, runId: string): Promise<Approval[]> {
  const view = await runs.view(LOCAL, runId);
  return view === undefined ? [] : pendingApprovals(view);
}

/** Decides in the data directory about a call that the form is too small for. */
async function decideHere(
  form: ApprovalForm,
  { config: { workspace: _left, ...config }, workspace, host }: Stage,
  work: (runs: RunService, runId: string) => Promise<void>,
): Promise<undefined> {
  const dataDir = workspace.dataDir ?? config.dataDir;
  const { openRuns } = await import("../app/open-runs.ts");
  const logger = createLogger("error");
  const runs = await openRuns({ config: { ...config, dataDir }, env: host.env, logger, keepsHouse: false });
  try {
    await work(runs, runIn(form));
  } finally {
    await runs.close();
  }
}

function introduction(stage: Stage, session: Session): string {
  const { workspace, task, colors, asking } = stage;
  const model = modelOf(stage);
  const folder = { sample: "a copy of a small sample project", own: "your folder" };
  const width = Math.min(process.stdout.columns ?? 100, 100) - 2;
  const facts: [string, string][] = [
    ["server", `${session.serverName}, MCP ${session.protocolVersion} over stdio`],
    ["model", model === OFFLINE ? "offline: fixed rules, no language model, no key needed" : model],
    ["folder", `${workspace.folder} (${folder[workspace.kind]})`],
  ];
  const notes = asking ? [] : ["Nobody is asked: every approval is given, and named below."];
  return [
    "",
    colors.bold("deepagent-mcp demo"),
    ...facts.map(([name, value]) => `${colors.dim(name.padEnd(8))}${value}`),
    ...notes.map((note) => colors.dim(note)),
    "",
    ...wrapText(task, width).map((line) => colors.cyan(line)),
  ].join("\n");
}

/** Returns the chosen model, or the offline one: a demo should need no key and cost nothing. */
const modelOf = ({ config }: Stage): string => config.model ?? OFFLINE;

/** `serve` with the settings the demo was given. */
function serverArguments(stage: Stage): string[] {
  const { flags, host, config, workspace } = stage;
  return [
    process.argv[1] ?? "",
    "serve",
    "--workspace",
    workspace.folder,
    "--model",
    modelOf(stage),
    "--data-dir",
    workspace.dataDir ?? config.dataDir,
    ...givenFlags(flags, host, ["workspace", "model", "dataDir"]),
  ];
}

interface SummaryFacts extends RunEnd {
  seconds: number;
  session: Session;
  workspace: DemoWorkspace;
  colors: Colors;
  /** Command line that runs the demo again. */
  demoCommand: string;
  /** True if a real model is used, so token counts and costs are worth showing. */
  countsTokens: boolean;
}

/** Shows the results of a run: report, memories, answer and figures. */
export async function summary(facts: SummaryFacts): Promise<string> {
  const { picture, session, colors } = facts;
  const changed = picture.files_changed;
  const report = changed.find((path) => path.startsWith("/workspace/") && path.endsWith(".md"));
  const memories = changed.filter((path) => path.startsWith("/memories/"));
  const parts: string[] = [];
  if (report !== undefined) {
    parts.push(
      heading(`Report  ${hostPath(report, facts.workspace)}`, colors),
      await text(session, report, colors),
    );
  }
  for (const path of memories) {
    parts.push(heading(`Memory  ${path}`, colors), await text(session, path, colors));
  }
  if (picture.answer !== undefined)
    parts.push(heading("Answer", colors), shownMarkdown(picture.answer, process.stdout, colors));
  if (picture.failure_reason !== undefined) {
    const why = showControl(picture.failure_message ?? "no details");
    parts.push(heading("Failed", colors), colors.red(`${picture.failure_reason}: ${why}`));
  }
  return `\n${[...parts, closing(facts, report)].join("\n\n")}\n`;
}

async function text(session: Session, path: string, colors: Colors): Promise<string> {
  const uri = `deepagent://files${path.split("/").map(encodeURIComponent).join("/")}`;
  return shownMarkdown(await session.readText(uri), process.stdout, colors);
}

/** The host's name of a file below `/workspace/`. */
function hostPath(path: string, workspace: DemoWorkspace): string {
  return join(workspace.folder, ...path.split("/").slice(2));
}

const heading = (title: string, colors: Colors): string => colors.bold(colors.cyan(`── ${title}`));

/** Repeats the essentials below a long output. */
function closing(facts: SummaryFacts, report: string | undefined): string {
  const { colors, workspace } = facts;
  const lines = [figures(facts)];
  if (report !== undefined) lines.push(`  ${colors.dim("report")}  ${hostPath(report, workspace)}`);
  if (workspace.kind === "sample") {
    lines.push(`  ${colors.dim("yours")}   ${facts.demoCommand} --workspace DIR "TASK"`);
  }
  if (!facts.countsTokens) {
    lines.push(
      `  ${colors.dim("model")}   --model anthropic:NAME or --model openai:NAME, with the key in the environment`,
    );
  }
  return lines.join("\n");
}

function figures({ picture, toolCalls, seconds, colors, countsTokens }: SummaryFacts): string {
  const { input_tokens: input, output_tokens: output } = picture.usage;
  const done = picture.todos.filter(({ status }) => status === "completed").length;
  const facts = [
    `${picture.status} in ${seconds.toFixed(1)} s`,
    counted(picture.agents.length, "subagent"),
    counted(toolCalls, "tool call"),
    ...(picture.todos.length === 0 ? [] : [`${done} of ${picture.todos.length} todos`]),
    `${counted(picture.files_changed.length, "file")} changed`,
    ...(!countsTokens ? [] : [`${input} tokens in, ${output} out`]),
  ];
  const mark = picture.status === "completed" ? colors.green("✔") : colors.red("✖");
  return `${mark} ${facts.join(" · ")}`;
}

const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;

export interface DemoWorkspace {
  /** Folder the agent works in. */
  folder: string;
  /** The person's own folder, or a copy of the sample in the temporary folder. */
  kind: "sample" | "own";
  /** Absent: the configured one. */
  dataDir?: string;
  /** Removes what the demo does not leave to the person. */
  dispose(): Promise<void>;
}

const ownFolder = (folder: string): DemoWorkspace => ({ folder, kind: "own", dispose: async () => {} });

async function copyOfSample(): Promise<DemoWorkspace> {
  const base = await mkdtemp(join(tmpdir(), "deepagent-demo-"));
  const folder = join(base, "tidewatch");
  const dataDir = join(base, "data");
  await cp(join(packageRoot(), "demo", "workspace"), folder, { recursive: true });
  return { folder, kind: "sample", dataDir, dispose: () => rm(dataDir, { recursive: true, force: true }) };
}
