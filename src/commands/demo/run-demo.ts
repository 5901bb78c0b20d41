import { loadConfig } from "../../config/load.ts";
import type { FlagValues } from "../../config/load.ts";
import { packageVersion } from "../../config/package-info.ts";
import type { Config } from "../../config/schema.ts";
import type { HostFacts } from "../../config/paths.ts";
import { commandLine, givenFlags } from "../../config/program.ts";
import { errorMessage } from "../../core/errors.ts";
import type { CommandArguments, ExitCode } from "../command.ts";
import { approvalTitle, askApproval } from "../terminal/approval.ts";
import type { ApprovalAnswer, ApprovalForm } from "../terminal/approval.ts";
import { colorsFor } from "../colors.ts";
import type { Colors } from "../colors.ts";
import { summary } from "./report.ts";
import { liveScreen, plainScreen } from "../terminal/screen.ts";
import type { Screen } from "../terminal/screen.ts";
import { openSession } from "./session.ts";
import type { Session } from "./session.ts";
import { terminalAsker } from "../terminal/terminal.ts";
import { wrapText } from "../terminal/text-width.ts";
import { chooseWorkspace } from "./workspace.ts";
import type { DemoWorkspace } from "./workspace.ts";

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
  const given = flags["workspace"] === undefined ? undefined : loaded.config.workspace;
  const chosen = await chooseWorkspace({
    interactive,
    approveAll,
    ...(given === undefined ? {} : { workspace: given }),
  });
  if (!chosen.ok) {
    process.stderr.write(`deepagent-mcp: ${chosen.problem}\n`);
    return 2;
  }
  const stage: Stage = {
    config: loaded.config,
    flags,
    host,
    workspace: chosen.workspace,
    task: positionals[0] ?? SAMPLE_TASK,
    asking: interactive && !approveAll,
    interactive,
    colors: colorsFor(process.stdout, process.env),
    interrupt: new AbortController(),
  };
  try {
    return await perform(stage);
  } finally {
    await chosen.workspace.dispose();
  }
}

/** Everything one performance needs. */
interface Stage {
  config: Config;
  flags: FlagValues;
  host: HostFacts;
  workspace: DemoWorkspace;
  task: string;
  /** A person decides on approvals. */
  asking: boolean;
  interactive: boolean;
  colors: Colors;
  interrupt: AbortController;
}

async function perform(stage: Stage): Promise<ExitCode> {
  const { colors, interrupt, workspace } = stage;
  const stop = (): void => interrupt.abort();
  process.once("SIGINT", stop);
  process.once("SIGTERM", stop);
  const now = () => performance.now();
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
    screen = isLive ? liveScreen(process.stdout, colors) : plainScreen(process.stdout, now);
    const end = await session.run(stage.task, interrupt.signal);
    screen.show(end.picture);
    screen.close();
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

/** Ctrl-C reaches the server too, which parks the run: it would go on when a server starts again. */
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

/** Asks the person, or says what is approved for them. */
async function decide(
  form: ApprovalForm,
  { asking, colors, interrupt, workspace }: Stage,
  screen: Screen | undefined,
): Promise<ApprovalAnswer | undefined> {
  if (!asking) {
    const why = workspace.kind === "own" ? "--yes" : "it works on a copy";
    screen?.print(`${colors.yellow("✔ approved")} (${why}): ${approvalTitle(form)}`);
    return { decision: "approve" };
  }
  screen?.pause();
  try {
    return await askApproval(
      form,
      terminalAsker(colors, () => interrupt.abort()),
    );
  } catch {
    return undefined;
  } finally {
    screen?.resume();
  }
}

function introduction(stage: Stage, session: Session): string {
  const { workspace, task, colors, asking } = stage;
  const model = modelOf(stage);
  const folder = {
    sample: "a copy of a small sample project",
    copy: "a copy of your folder",
    own: "your folder",
  };
  const width = Math.min(process.stdout.columns ?? 100, 100) - 2;
  const facts: [string, string][] = [
    ["server", `${session.serverName}, MCP ${session.protocolVersion} over stdio`],
    ["model", model === OFFLINE ? "offline: fixed rules, no language model, no key needed" : model],
    ["folder", `${workspace.folder} (${folder[workspace.kind]})`],
  ];
  const notes: string[] = [];
  if (workspace.kind === "copy")
    notes.push(
      "No terminal to ask in: your own folder stays as it is. --yes works on it and approves every change.",
    );
  else if (!asking) notes.push("Nobody is asked: every approval is given, and named below.");
  return [
    "",
    colors.bold("deepagent-mcp demo"),
    ...facts.map(([name, value]) => `${colors.dim(name.padEnd(8))}${value}`),
    ...notes.map((note) => colors.dim(note)),
    "",
    ...wrapText(task, width).map((line) => colors.cyan(line)),
  ].join("\n");
}

/** Offline unless another one was chosen: a demo neither needs a key nor spends what one pays for. */
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
