/** Shows the product: a real run of the built server on a sample workspace, over a real MCP connection. */
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { z } from "zod";
import { type FlagValues, loadConfig } from "../config/load.ts";
import { type HostFacts, packageRoot, packageVersion } from "../config/paths.ts";
import { commandLine, givenFlags } from "../config/program.ts";
import type { Config } from "../config/schema.ts";
import { errorMessage } from "../core/errors.ts";
import { showControl, tailOf } from "../core/text.ts";
import type { CommandArguments, ExitCode } from "./command.ts";
import { complain } from "./local-runs.ts";
import { type ApprovalAnswer, ApprovalForm, askQuestion, questionIn, questionTitle } from "./terminal/ask.ts";
import { terminalAsker } from "./terminal/asker.ts";
import { shownMarkdown } from "./terminal/markdown.ts";
import { callPerson } from "./terminal/notify.ts";
import { LiveScreen, type Screen, plainScreen } from "./terminal/screen.ts";
import { RunPicture } from "./terminal/tree.ts";
import { type Colors, colorsFor, wrapText } from "./terminal/text.ts";

export interface SessionOptions {
  /** Program and arguments of the server. */
  command: string;
  args: string[];
  env: Readonly<Record<string, string | undefined>>;
  version: string;
  /** Decides on an approval; `undefined` leaves it open. */
  approve(form: ApprovalForm): Promise<ApprovalAnswer | undefined>;
  /** The newest state of the run, while it is worked on. */
  show(picture: RunPicture): void;
}

export interface RunEnd {
  picture: RunPicture;
  toolCalls: number;
}

/** A server as a child process and a client connected to it, as any MCP client would be. */
export interface Session {
  /** Revision that client and server agreed on. */
  protocolVersion: string;
  serverName: string;
  /** Follows the run to its end. Rejects with what the server said when none could be started. */
  run(task: string, signal: AbortSignal): Promise<RunEnd>;
  readText(uri: string): Promise<string>;
  /** The run that was started last, as soon as it is known. */
  runId: string | undefined;
  cancel(runId: string): Promise<void>;
  close(): Promise<void>;
}

const CALL_TIMEOUT_MS = 10 * 60_000;
const MAX_ROUNDS = 1000;
const MAX_STDERR = 4000;
const CHECK_SECONDS = 60;

const Report = z.object({ run_id: z.string(), status: RunPicture.shape.status });
const Content = z.array(z.object({ text: z.string().optional() }));

export async function openSession(options: SessionOptions): Promise<Session> {
  const client = new Client(
    { name: "deepagent-demo", version: options.version },
    {
      capabilities: { elicitation: { form: {} } },
      versionNegotiation: { mode: "auto" },
      inputRequired: { maxRounds: MAX_ROUNDS },
    },
  );
  // One question at a time, however many the server asks at once.
  let questions: Promise<unknown> = Promise.resolve();
  client.setRequestHandler("elicitation/create", async ({ params }) => {
    const form = ApprovalForm.parse(params);
    const turn = questions.then(() => options.approve(form));
    questions = turn.catch(() => undefined);
    const answer = await turn;
    return answer === undefined ? { action: "cancel" } : { action: "accept", content: { ...answer } };
  });
  const transport = new OneProcess({
    command: options.command,
    args: options.args,
    env: definedOnly(options.env),
    stderr: "pipe",
  });
  let stderr = "";
  transport.stderr?.on("data", (chunk: Buffer) => (stderr = tailOf(stderr + chunk.toString(), MAX_STDERR)));
  try {
    await client.connect(transport);
  } catch (error) {
    throw new Error(`The server did not start. ${stderr}`.trim(), { cause: error });
  }
  return new DemoSession(client, (picture) => options.show(picture));
}

/** Keeps the client from starting a second process to ask for the protocol version, which it does for the base class. */
class OneProcess extends StdioClientTransport {}

class DemoSession implements Session {
  readonly #client: Client;
  readonly #show: (picture: RunPicture) => void;
  runId: string | undefined;
  #reading = false;

  constructor(client: Client, show: (picture: RunPicture) => void) {
    this.#client = client;
    this.#show = show;
  }

  get protocolVersion(): string {
    return this.#client.getNegotiatedProtocolVersion() ?? "unknown";
  }

  get serverName(): string {
    const { name = "server", version = "" } = this.#client.getServerVersion() ?? {};
    return `${name} ${version}`.trim();
  }

  async run(task: string, signal: AbortSignal): Promise<RunEnd> {
    let report = await this.#call("run_deep_agent", { task }, signal);
    while (report.status === "working" || report.status === "input_required") {
      signal.throwIfAborted();
      const args = { run_id: report.run_id, wait_seconds: CHECK_SECONDS };
      report = await this.#call("check_deep_agent", args, signal);
    }
    this.runId = report.run_id;
    const picture = await this.#picture(report.run_id);
    const events = await this.readText(`deepagent://runs/${report.run_id}/events`);
    return {
      picture,
      toolCalls: events.split("\n").filter((line) => line.includes('"tool_started"')).length,
    };
  }

  async readText(uri: string): Promise<string> {
    const { contents } = await this.#client.readResource({ uri });
    return contents.map((content) => ("text" in content ? content.text : "")).join("");
  }

  async cancel(runId: string): Promise<void> {
    await this.#client.callTool({ name: "cancel_deep_agent", arguments: { run_id: runId } });
  }

  close(): Promise<void> {
    return this.#client.close();
  }

  async #call(
    name: string,
    args: Record<string, unknown>,
    signal: AbortSignal,
  ): Promise<z.output<typeof Report>> {
    const result = await this.#client.callTool(
      { name, arguments: args },
      {
        signal,
        timeout: CALL_TIMEOUT_MS,
        resetTimeoutOnProgress: true,
        onprogress: () => void this.#refresh(),
      },
    );
    const report = Report.safeParse(result.structuredContent);
    if (report.success) return report.data;
    const text = Content.safeParse(result.content);
    throw new Error(text.success ? text.data.map((block) => block.text ?? "").join("\n") : `${name} failed`);
  }

  /** Shows the run as it is now. Only one reading is open at a time; the next progress message catches up. */
  async #refresh(): Promise<void> {
    if (this.#reading) return;
    this.#reading = true;
    try {
      this.runId ??= await this.#newestRun();
      if (this.runId !== undefined) this.#show(await this.#picture(this.runId));
    } catch {
      // The view is a convenience: the call itself reports what went wrong.
    } finally {
      this.#reading = false;
    }
  }

  async #newestRun(): Promise<string | undefined> {
    const { resources } = await this.#client.listResources();
    const prefix = "deepagent://runs/";
    return resources.find(({ uri }) => uri.startsWith(prefix))?.uri.slice(prefix.length);
  }

  async #picture(runId: string): Promise<RunPicture> {
    return RunPicture.parse(JSON.parse(await this.readText(`deepagent://runs/${runId}`)));
  }
}

function definedOnly(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])),
  );
}

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
  /** Whether a person decides on approvals. */
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
    screen = isLive ? new LiveScreen(process.stdout, colors) : plainScreen(process.stdout, now);
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

/** Asks the person about each approval, or approves it and says so. */
async function decide(
  form: ApprovalForm,
  { asking, colors, config, interrupt, workspace }: Stage,
  screen: Screen | undefined,
): Promise<ApprovalAnswer | undefined> {
  if (!asking) {
    const why = workspace.kind === "own" ? "--yes" : "it works on a copy";
    screen?.print(`${colors.yellow("✔ approved")} (${why}): ${questionTitle(questionIn(form))}`);
    return { decision: "approve" };
  }
  screen?.pause();
  callPerson(process.stdout, config.notify);
  try {
    return await askQuestion(
      questionIn(form),
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
  /** How the demo is called again. */
  demoCommand: string;
  /** Whether a real model is used, whose figures are worth showing. */
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
