import { z } from "zod";
import type { JobInfo, JobResult } from "../backends/sandbox/background-jobs.ts";
import { oneLine, wellFormed } from "../core/text.ts";
import { cancellable } from "./call.ts";
import { jobsOf } from "./execute.ts";
import { type ToolContext, type ToolResult, type ToolSpec, defineTool, toolError } from "./tool.ts";

const schema = z.strictObject({
  action: z.enum(["list", "read", "stop"]),
  id: z.string().optional().describe("The job to read or stop."),
});

const MAX_COMMAND_CHARACTERS = 200;

/** Lists, reads and stops what `execute` started in the background. */
export function jobTool(): ToolSpec<typeof schema> {
  return defineTool({
    name: "job",
    kind: "read",
    description:
      "Look after commands that execute started in the background: list them, read the output of one so far, or stop one with everything it started. Jobs end with this run.",
    schema,
    handle: (args, context) => cancellable("job", context.signal, () => handle(args, context)),
  });
}

async function handle(
  { action, id }: z.output<typeof schema>,
  { backend }: ToolContext,
): Promise<ToolResult> {
  const jobs = jobsOf(backend);
  if (jobs === undefined)
    return toolError("Background jobs are not available here.", { code: "unsupported" });
  if (action === "list") return listed(await jobs.list());
  if (id === undefined)
    return toolError(`job needs the id of the job to ${action}; list them to see which there are.`);
  return shown(await (action === "read" ? jobs.read(id) : jobs.stop(id)));
}

function listed(jobs: readonly JobInfo[]): ToolResult {
  const lines = jobs.map(
    (job) => `${job.id}: ${stateOf(job)}: ${oneLine(job.command, MAX_COMMAND_CHARACTERS)}`,
  );
  return { content: lines.join("\n") || "No background jobs", artifact: { jobs } };
}

function shown({ job, output = "", truncated = false, error, code }: JobResult): ToolResult {
  if (job === undefined)
    return toolError(
      `${error ?? "The job could not be looked up"}.`,
      code === undefined ? undefined : { code },
    );
  const text = wellFormed(output).replace(/\n$/, "");
  const lines = [
    text === "" ? "<no output>" : text,
    `[Job ${job.id} ${stateOf(job)}]`,
    ...(truncated ? ["[Later output is not kept; redirect it into a file of the workspace to keep it]"] : []),
  ];
  return { content: lines.join("\n"), artifact: { job, truncated } };
}

function stateOf({ exitCode }: JobInfo): string {
  if (exitCode === undefined) return "is running";
  return exitCode === null ? "could not be started" : `ended with exit code ${exitCode}`;
}
