/** Shows the product: a run on a copy of a sample project. */
import { tokens } from "../server/views/cost-words.ts";
import { cp, mkdtemp, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig } from "../config/load.ts";
import { packageRoot } from "../config/paths.ts";
import { commandLine } from "../config/program.ts";
import { monotonicClock } from "../core/clock.ts";
import { type RunView, isFinal } from "../runs/run.ts";
import { counted } from "../tools/format.ts";
import type { CommandArguments, ExitCode } from "./command.ts";
import { type LocalRuns, withLocalRuns } from "./local-runs.ts";
import { complain, say } from "./output.ts";
import { type LiveOptions, followLive, isReady } from "./run.ts";
import { shownMarkdown } from "./terminal/markdown.ts";
import { type Colors, colorsFor, wrapText } from "./terminal/text.ts";

const SAMPLE_TASK =
  "How does an alarm get from `highWaters` to the pager, and where can it get lost? List every TODO as well. " +
  "Write a report with the places in the code, and remember what will be useful next time.";
const OFFLINE = "offline";

/** Works on one run and shows it, its report and its memories. Exit code 0: the run completed. */
export async function runDemo(args: CommandArguments): Promise<ExitCode> {
  const { flags, positionals, host } = args;
  const loaded = loadConfig({ flags, ...host });
  if (!loaded.ok) return complain(loaded.problems, 2);
  const { config } = loaded;
  const isInteractive = process.stdin.isTTY && process.stdout.isTTY;
  const own = flags["workspace"] === undefined ? undefined : config.workspace;
  if (own !== undefined && !isInteractive && flags["yes"] !== true)
    return complain(
      "There is no terminal to ask in. Use a terminal, or --yes to approve every change to the folder itself.",
      2,
    );
  const isSample = own === undefined;
  const { folder, dataDir } = isSample ? await copyOfSample() : { folder: own, dataDir: config.dataDir };
  // A demo should need no key and cost nothing.
  const model = config.model ?? OFFLINE;
  const stage: Stage = {
    folder,
    isSample,
    model,
    task: positionals[0] ?? SAMPLE_TASK,
    isAsking: isInteractive && flags["yes"] !== true,
    colors: colorsFor(process.stdout, process.env),
    demoCommand: commandLine(host, ["demo"]),
  };
  const given = { ...args, flags: { ...flags, workspace: folder, "data-dir": dataDir, model } };
  return withLocalRuns(given, true, (local) => perform(local, stage));
}

/** All that one run of the demo needs. */
interface Stage {
  folder: string;
  /** The folder is a copy of the sample, and not the person's own. */
  isSample: boolean;
  model: string;
  task: string;
  /** True if a person decides on approvals. */
  isAsking: boolean;
  colors: Colors;
  /** Command line that runs the demo again. */
  demoCommand: string;
}

async function perform(local: LocalRuns, stage: Stage): Promise<ExitCode> {
  const { runs, interrupt } = local;
  if (!(await isReady(local))) return 1;
  say(introduction(stage), "");
  const start = monotonicClock();
  const started = await runs.control.start({ task: stage.task, by: "terminal" });
  if (!started.ok) return complain(started.message);
  const reason = stage.isSample ? "it works on a copy" : "--yes";
  const how: LiveOptions = { output: "terminal", approvals: stage.isAsking ? "ask" : "approve", reason };
  const view = await followLive(local, started.run.id, how);
  if (view === undefined || !isFinal(view.run.status)) {
    // Nobody would look for it in this data directory.
    await runs.control.cancel(started.run.id, "The demo was interrupted.");
    return complain(
      interrupt.signal.aborted ? "Interrupted; the run was cancelled." : "The run was cancelled.",
    );
  }
  say(await summary(local, view, { ...stage, seconds: (monotonicClock() - start) / 1000 }));
  return view.run.status === "completed" ? 0 : 1;
}

function introduction({ folder, isSample, model, task, colors, isAsking }: Stage): string {
  const width = Math.min(process.stdout.columns ?? 100, 100) - 2;
  const facts: [string, string][] = [
    ["model", model === OFFLINE ? "offline: fixed rules, no language model, no key needed" : model],
    ["folder", `${folder} (${isSample ? "a copy of a small sample project" : "your folder"})`],
  ];
  const notes = isAsking ? [] : ["Nobody is asked: every approval is given, and named below."];
  return [
    "",
    colors.bold("deepagent-mcp demo"),
    ...facts.map(([name, value]) => `${colors.dim(name.padEnd(8))}${value}`),
    ...notes.map((note) => colors.dim(note)),
    "",
    ...wrapText(task, width).map((line) => colors.cyan(line)),
  ].join("\n");
}

type Ended = Stage & { seconds: number };

/** Shows the results of a run: report, memories, answer and figures. */
async function summary({ runs, runsCommand }: LocalRuns, view: RunView, ended: Ended): Promise<string> {
  const { colors, folder } = ended;
  const { run, filesChanged } = view;
  const heading = (title: string): string => colors.bold(colors.cyan(`── ${title}`));
  const shown = (text: string): string => shownMarkdown(text, process.stdout, colors);
  const report = filesChanged.find((path) => path.startsWith("/workspace/") && path.endsWith(".md"));
  const place = report && join(folder, ...report.split("/").slice(2));
  const parts: string[] = [];
  if (place !== undefined) parts.push(heading(`Report  ${place}`), shown(await readFile(place, "utf8")));
  const files = await runs.files.mounts();
  for (const path of filesChanged.filter((one) => one.startsWith("/memories/"))) {
    const { data } = await files.readRaw(path);
    if (typeof data?.content === "string") parts.push(heading(`Memory  ${path}`), shown(data.content));
  }
  if (run.answer !== undefined) parts.push(heading("Answer"), shown(run.answer));
  if (run.failure !== undefined)
    parts.push(heading("Failed"), colors.red(`${run.failure.reason}: ${run.failure.message}`));
  return `\n${[...parts, closing(view, ended, place, runsCommand("list"))].join("\n\n")}`;
}

/** Repeats the essentials below a long output. */
function closing(view: RunView, ended: Ended, report: string | undefined, runs: string): string {
  const { colors, isSample, model, demoCommand } = ended;
  const row = (name: string, text: string): string =>
    `  ${colors.dim(name)}${" ".repeat(8 - name.length)}${text}`;
  return [
    figures(view, ended),
    ...(report === undefined ? [] : [row("report", report)]),
    row("runs", runs),
    ...(isSample ? [row("yours", `${demoCommand} --workspace DIR "TASK"`)] : []),
    ...(model === OFFLINE
      ? [row("model", "--model anthropic:NAME or --model openai:NAME, with the key in the environment")]
      : []),
  ].join("\n");
}

function figures({ run, subagents, mainAgent, filesChanged }: RunView, ended: Ended): string {
  const { colors, model, seconds } = ended;
  const done = run.todos.filter(({ status }) => status === "completed").length;
  const calls = [mainAgent, ...subagents].reduce((sum, { toolCalls }) => sum + toolCalls, 0);
  const facts = [
    `${run.status} in ${seconds.toFixed(1)} s`,
    counted(subagents.length, "subagent"),
    counted(calls, "tool call"),
    ...(run.todos.length === 0 ? [] : [`${done} of ${run.todos.length} todos`]),
    `${counted(filesChanged.length, "file")} changed`,
    ...(model === OFFLINE
      ? []
      : [`${tokens(run.usage.inputTokens)} tokens in, ${tokens(run.usage.outputTokens)} out`]),
  ];
  const mark = run.status === "completed" ? colors.green("✔") : colors.red("✖");
  return `${mark} ${facts.join(" · ")}`;
}

/** In the temporary folder, with a data directory beside it. */
async function copyOfSample(): Promise<{ folder: string; dataDir: string }> {
  const base = await mkdtemp(join(tmpdir(), "deepagent-demo-"));
  const folder = join(base, "tidewatch");
  await cp(join(packageRoot(), "demo", "workspace"), folder, { recursive: true });
  return { folder, dataDir: join(base, "data") };
}
