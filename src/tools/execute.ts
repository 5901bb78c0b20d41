import { z } from "zod";
import type { Backend } from "../backends/backend.ts";
import { errors } from "../backends/errors.ts";
import type { BackgroundJobs, ExecuteResponse, JobInfo, SandboxBackend } from "../backends/executor.ts";
import { isAtOrBelow, withSlash } from "../backends/paths.ts";
import { defined } from "../core/unknown.ts";
import { displayBlock, oneLine, wellFormed } from "../core/text.ts";
import { backendError, cancellable, checkPath, pathText } from "./call.ts";
import { resolveDestination, failing, preview } from "./call-preview.ts";
import { counted } from "./format.ts";
import type { FileToolSettings } from "./options.ts";
import { type ToolContext, type ToolResult, type ToolSpec, toolError } from "./tool.ts";
import texts from "./texts.json" with { type: "json" };

/** Longest command, in characters: Linux takes no argument of more than 128 KiB. */
const MAX_COMMAND = 100_000;

const foreground = z.strictObject({
  command: z
    .string()
    .max(MAX_COMMAND, `Longer than ${MAX_COMMAND} characters: write a script with write_file and run that`)
    .refine((command) => command.trim() !== "", "Command must be a non-empty string.")
    .refine((command) => !command.includes("\0"), "Command contains a NUL character.")
    .describe("Shell command line."),
  timeout: z.number().positive().optional().describe("Seconds after which the command is stopped."),
  cwd: pathText().optional().describe("Directory to run in."),
});
const withJobs = foreground.extend({
  background: z
    .boolean()
    .optional()
    .describe("Start the command without waiting or a time limit; the job tool reads and stops it."),
});
type Arguments = z.output<typeof withJobs>;

/** True if commands can run behind this backend, so `execute` is worth offering. */
export const canExecute = (backend: Backend): backend is SandboxBackend =>
  "execute" in backend && typeof backend.execute === "function";

/** The background jobs of this backend, if it has any, so `job` is worth offering. */
export const backgroundJobs = (backend: Backend): BackgroundJobs | undefined =>
  canExecute(backend) ? backend.jobs : undefined;

/** Runs a shell command and waits for it, or starts it in the background. */
export function executeTool(settings: FileToolSettings): ToolSpec {
  const spec = {
    name: "execute",
    kind: "execute",
    description: texts.execute,
    handle: (args: Arguments, context: ToolContext) =>
      cancellable("execute", context.signal, () => runCommand(args, context, settings)),
    // Bound to the command's directory and its isolation.
    async preview(given: Arguments, context: ToolContext) {
      const { command, cwd, background, timeout } = given;
      const { backend } = context;
      const what = background === true ? "Start a command in the background" : "Run a command";
      const args = { command, cwd, background, timeout };
      const checked = cwd === undefined ? undefined : checkPath(cwd, backend, settings.allowedPrefixes);
      const hasNoJobs = background === true && canExecute(backend) && backend.jobs === undefined;
      // Here `runCommand` runs nothing and returns the reason.
      if (!canExecute(backend) || hasNoJobs || checked?.ok === false)
        return failing(what, args, { failure: await runCommand(given, context, settings) });
      const to = checked && (await resolveDestination(checked.path, backend));
      const refused = checked && (await directoryRefusal(checked.path, backend, context.signal));
      if (refused) {
        // The answer of backends to a command that they do not start.
        const output: ToolResult = {
          content: `Error: ${refused.error}\n${exitLine({ output: "", exitCode: 1, truncated: false })}`,
          artifact: { exitCode: 1, truncated: false, timedOut: false },
        };
        const failure = background === true ? backendError(refused, cwd ?? "") : output;
        return failing(what, args, { failure, ...defined({ to }) });
      }
      const where = to === undefined ? "" : ` in ${to.name}`;
      const limit = timeout === undefined ? "" : `, for at most ${counted(timeout, "second")}`;
      const isolation = backend.capabilities?.isolation;
      const known = isolation === "none" ? " on this machine, outside any sandbox" : " in a sandbox";
      const summary = `${what}${where}${isolation === undefined ? "" : known}${limit}`;
      return preview("command", { summary, to, detail: displayBlock(command), isWhole: true, effect: null });
    },
  } as const;
  return { ...spec, schema: settings.jobs ? withJobs : foreground };
}

/** The failure of each command in a directory. A link out of the tree may lead to one that only commands reach. */
async function directoryRefusal(path: string, backend: SandboxBackend, signal: AbortSignal) {
  const { folder = "/" } = backend.commands ?? {};
  if (path.startsWith("/") && !isAtOrBelow(path, folder))
    return errors.outsideCommandFolder(withSlash(folder), path);
  const { files: [first] = [], error, code } = await backend.ls(path, { signal });
  if (code === "not_found") return { error, code };
  return first?.path === path ? errors.notDirectory(path) : undefined;
}

async function runCommand(
  { command, timeout, cwd, background }: Arguments,
  { backend, signal, approved = false }: ToolContext,
  { allowedPrefixes, maxChars, jobs }: FileToolSettings,
): Promise<ToolResult> {
  if (!canExecute(backend))
    return unsupported("Execution not available. The configured backend cannot run commands.");
  const directory = cwd === undefined ? undefined : checkPath(cwd, backend, allowedPrefixes);
  if (directory && !directory.ok) return backendError(directory, cwd ?? "");
  const options = { ...(approved ? { approved } : {}), ...(directory ? { cwd: directory.path } : {}) };
  if (background === true) {
    if (backend.jobs === undefined)
      return unsupported("Background jobs are not available here; run the command without background.");
    const { job, error = "The job could not be started", code } = await backend.jobs.start(command, options);
    if (job === undefined) return toolError(error, code === undefined ? undefined : { code });
    const text = `Started background job ${job.id}\n[${JOB_HINT}]`;
    return { content: text, artifact: { job } };
  }
  const response = await backend.execute(command, {
    signal,
    ...(jobs ? { keepPrograms: true } : {}),
    ...defined({ timeout, keepBytes: maxChars === undefined ? undefined : 10 * 1024 * 1024 }),
    ...options,
  });
  if (signal.aborted) return toolError("execute was cancelled.", { code: "aborted" });
  const { output, whole = output, timedOut = false, truncated, job } = response;
  // It starts a program with `&` and does not wait for it.
  const bare = command.replace(/\\.|'[^']*'|"(?:\\.|[^"\\])*"|(?<=^|\s)#.*$/gms, "");
  const leavesPrograms = /(?<![&<>|])&(?![&>])/.test(bare) && !/\bwait\b/.test(bare);
  const isTold = jobs && backend.commands?.endsLeftovers === true && leavesPrograms;
  // A backend whose own limit ended the command has reported it, as it alone knows that limit.
  const isReported = /(^|\n)Error: Command timed out after \S+ seconds\.$/.test(output.replace(/\n$/, ""));
  const after = timeout === undefined ? "" : ` after ${timeout} seconds`;
  const end = [
    ...(timedOut && !isReported ? [`Error: Command timed out${after}.`] : []),
    exitLine(response),
    ...(isTold ? [texts.leftoversStopped] : []),
    ...(job === undefined
      ? []
      : [`[Programs that this command started are still running, as background job ${job.id}. ${JOB_HINT}]`]),
  ].join("\n");
  const isShown = !truncated && output.length <= (maxChars ?? Infinity);
  const cut = truncated ? ["[Output was truncated due to size limits]"] : [];
  return {
    // A non-zero exit and a timeout are results, not errors.
    content: [outputText(output), end, ...cut].join("\n"),
    ...(isShown || maxChars === undefined ? {} : { whole: { text: wellFormed(whole), end } }),
    artifact: {
      exitCode: timedOut ? TIMEOUT_EXIT_CODE : response.exitCode,
      truncated,
      timedOut,
      ...defined({ job }),
    },
  };
}

const unsupported = (text: string): ToolResult => toolError(text, { code: "unsupported" });

const outputText = (output: string): string => wellFormed(output).replace(/\n$/, "") || "<no output>";

const JOB_HINT = "Read its output or stop it with the job tool";

function exitLine({ exitCode, timedOut }: ExecuteResponse): string {
  const code = timedOut ? TIMEOUT_EXIT_CODE : exitCode;
  if (code === null) return "[Command ended without an exit code]";
  return `[Command ${code === 0 ? "succeeded" : "failed"} with exit code ${code}]`;
}

const TIMEOUT_EXIT_CODE = 124;

const jobSchema = z.strictObject({
  action: z.enum(["list", "read", "stop"]),
  id: z.string().optional().describe("The job to read or stop."),
});

/** Lists, reads and stops what `execute` started in the background. */
export const jobTool = (): ToolSpec<typeof jobSchema> => ({
  name: "job",
  kind: "read",
  description: texts.job,
  schema: jobSchema,
  handle: (args, context) => cancellable("job", context.signal, () => handle(args, context)),
  preview: async ({ action, id = "" }, context) => {
    if (action === "list" || (await backgroundJobs(context.backend)?.list())?.some((job) => job.id === id))
      return undefined;
    // Nothing is stopped: the job does not exist.
    const failure = await handle({ action, ...(id !== "" && { id }) }, context);
    return failing(`job ${action}`, { action, id }, { failure });
  },
});

async function handle(
  { action, id }: z.output<typeof jobSchema>,
  { backend }: ToolContext,
): Promise<ToolResult> {
  const jobs = backgroundJobs(backend);
  if (jobs === undefined) return unsupported("Background jobs are not available here.");
  if (action === "list") {
    const listed = await jobs.list();
    const lines = listed.map((job) => `${job.id}: ${jobState(job)}: ${oneLine(job.command, 200)}`);
    return { content: lines.join("\n") || "No background jobs", artifact: { jobs: listed } };
  }
  if (id === undefined)
    return toolError(`job needs the id of the job to ${action}; list the jobs to see their ids.`);
  const result = await (action === "read" ? jobs.read(id) : jobs.stop(id));
  const { job, output = "", truncated = false, error = "The job could not be looked up", code } = result;
  if (job === undefined) return toolError(`${error}.`, code === undefined ? undefined : { code });
  const lines = [
    outputText(output),
    `[Job ${job.id} ${jobState(job)}]`,
    ...(truncated ? ["[Later output is not kept; redirect it to a file in the workspace to keep it]"] : []),
  ];
  return { content: lines.join("\n"), artifact: { job, truncated } };
}

function jobState({ exitCode }: JobInfo): string {
  if (exitCode === undefined) return "is running";
  return exitCode === null ? "could not be started" : `ended with exit code ${exitCode}`;
}
