import { z } from "zod";
import type { Backend, BackendCapabilities, ExecuteResponse, SandboxBackend } from "../backends/backend.ts";
import { backendError, cancellable, checkPath } from "./call.ts";
import { displayName, displayText, wellFormed } from "./format.ts";
import type { FileToolSettings } from "./options.ts";
import { type ToolContext, type ToolResult, type ToolSpec, defineTool, toolError } from "./tool.ts";

const schema = z.strictObject({
  command: z.string().describe("Shell command line."),
  timeout: z.number().positive().optional().describe("Seconds after which the command is ended."),
  cwd: z.string().optional().describe("Directory to run in."),
});

/** Whether commands can run behind this backend, and so whether `execute` is worth offering. */
export function canExecute(backend: Backend): backend is SandboxBackend {
  return "execute" in backend && typeof backend.execute === "function";
}

/** Runs a shell command in the foreground. */
export function executeTool(settings: FileToolSettings): ToolSpec<typeof schema> {
  return defineTool({
    name: "execute",
    kind: "execute",
    description: [
      "Run a shell command and wait for it. Answers with its output, standard error included, and its exit code; a failing command is an answer, not an error.",
      "The command gets no input, so it must not ask for any.",
      "To read, search or change files, use the file tools. Quote paths that contain spaces.",
    ].join(" "),
    schema,
    handle: (args, context) =>
      cancellable("execute", context.signal, () => run(args, context, settings.allowedPrefixes)),
    async preview({ command, cwd }, { backend }) {
      const where = cwd === undefined ? "" : ` in ${displayName(cwd)}`;
      const summary = `Run a command${where}${confinement(backend.capabilities?.isolation)}`;
      return { kind: "command", summary, detail: displayText(command) };
    },
  });
}

/** What keeps a command from the rest of the machine; nothing is said when that is not known. */
function confinement(isolation: BackendCapabilities["isolation"] | undefined): string {
  if (isolation === undefined) return "";
  return isolation === "none" ? " on this machine, outside any sandbox" : " in a sandbox";
}

async function run(
  { command, timeout, cwd }: z.output<typeof schema>,
  { backend, signal }: ToolContext,
  allowedPrefixes: readonly string[] | undefined,
): Promise<ToolResult> {
  if (command.trim() === "") return toolError("Command must be a non-empty string.");
  if (!canExecute(backend)) {
    return toolError("Execution not available. The configured backend cannot run commands.", {
      code: "unsupported",
    });
  }
  const directory = cwd === undefined ? undefined : checkPath(cwd, backend, allowedPrefixes);
  if (directory && !directory.ok) return backendError(directory, cwd ?? "");
  const response = await backend.execute(command, {
    signal,
    ...(timeout === undefined ? {} : { timeout }),
    ...(directory ? { cwd: directory.path } : {}),
  });
  if (signal.aborted) return toolError("execute was cancelled.", { code: "aborted" });
  return {
    content: commandText(response, timeout),
    artifact: {
      exitCode: response.timedOut ? TIMEOUT_EXIT_CODE : response.exitCode,
      truncated: response.truncated,
      timedOut: response.timedOut === true,
    },
  };
}

/** Output, then what became of the command. A non-zero exit and a timeout are results, not errors. */
function commandText(response: ExecuteResponse, timeout: number | undefined): string {
  const output = wellFormed(response.output).replace(/\n$/, "");
  return [
    output === "" ? "<no output>" : output,
    ...(response.timedOut ? timeoutLines(output, timeout) : []),
    exitLine(response),
    ...(response.truncated ? ["[Output was truncated due to size limits]"] : []),
  ].join("\n");
}

/** A backend whose own limit ended the command has said so, as it alone knows that limit. */
function timeoutLines(output: string, timeout: number | undefined): string[] {
  if (/(^|\n)Error: Command timed out after \S+ seconds\.$/.test(output)) return [];
  return [`Error: Command timed out${timeout === undefined ? "" : ` after ${timeout} seconds`}.`];
}

function exitLine({ exitCode, timedOut }: ExecuteResponse): string {
  const code = timedOut ? TIMEOUT_EXIT_CODE : exitCode;
  if (code === null) return "[Command ended without an exit code]";
  return `[Command ${code === 0 ? "succeeded" : "failed"} with exit code ${code}]`;
}

const TIMEOUT_EXIT_CODE = 124;
