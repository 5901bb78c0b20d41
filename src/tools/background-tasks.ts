/** Tools for subagents that work in the background. */
import { z } from "zod";
import { displayName, oneLine } from "../core/text.ts";
import { cancellable } from "./call.ts";
import { failing } from "./call-preview.ts";
import { taskPreview } from "./task.ts";
import type { BackgroundTask, ToolContext, ToolResult, ToolSpec } from "./tool.ts";
import { defineTool, isOpenTask, toolError } from "./tool.ts";
import texts from "./texts.json" with { type: "json" };

const ofTask = z.strictObject({ task_id: z.string().min(1).max(200) });

/** Longest line about the step or the description of a task, in characters. */
const MAX_LINE = 160;

/** In the order in which they are listed. */
export const backgroundTaskTools: readonly ToolSpec[] = [
  defineTool({
    name: "start_async_task",
    kind: "plan",
    description: texts.startTask,
    schema: z.strictObject({
      description: z.string().min(1).describe("As for `task`."),
      subagent_type: z.string().describe("A type of `task`."),
    }),
    preview: async ({ description, subagent_type: type }, { background }) => {
      const problem = background?.problem(type);
      const shown = taskPreview(type, description);
      return problem === undefined ? shown : { ...shown, failure: toolError(problem) };
    },
    handle: ({ description, subagent_type: subagentType }, context) =>
      withTasks(context, "start_async_task", async (tasks) => {
        const started = await tasks.start({ subagentType, description });
        if (!started.ok) return toolError(started.problem);
        return { content: `Started background task ${started.id}.`, artifact: { taskId: started.id } };
      }),
  }),
  defineTool({
    name: "check_async_task",
    kind: "read",
    description: "Wait for a background task to end, or for any message to you.",
    schema: ofTask,
    preview: previewTask,
    handle: async ({ task_id: id }, context) =>
      context.isProgram
        ? toolError("a program cannot wait for background tasks; return their ids, and check them after it.")
        : withTasks(context, "check_async_task", async (tasks) => report(id, await tasks.wait(id))),
  }),
  defineTool({
    name: "update_async_task",
    kind: "plan",
    description: "Tell a background task more; it reads that at its next step.",
    schema: ofTask.extend({ message: z.string().min(1).max(100_000) }),
    preview: previewTask,
    handle: ({ task_id: id, message }, context) =>
      withTasks(context, "update_async_task", async (tasks) => {
        const task = await tasks.tell(id, message);
        if (task === undefined || isOpenTask(task)) return report(id, task, "It was told.");
        return toolError(`${describeTask(task)} Start another task for what is left.`);
      }),
  }),
  defineTool({
    name: "cancel_async_task",
    kind: "plan",
    description: "Stop a background task. What it has done stays.",
    schema: ofTask,
    preview: previewTask,
    handle: ({ task_id: id }, context) =>
      withTasks(context, "cancel_async_task", async (tasks) => {
        const before = await tasks.cancel(id);
        if (before === undefined || !isOpenTask(before)) return report(id, before);
        return { content: `Background task ${before.id} is cancelled.` };
      }),
  }),
  defineTool({
    name: "list_async_tasks",
    kind: "read",
    description: "List background tasks with their state and newest step.",
    schema: z.strictObject({}),
    handle: (_args, context) =>
      withTasks(context, "list_async_tasks", async (tasks) => {
        const lines = (await tasks.list()).map(
          (task) => `- ${describeTask(task)} Task: ${oneLine(task.description, MAX_LINE)}`,
        );
        return { content: lines.join("\n") || "There are no background tasks." };
      }),
  }),
];

/** Shows a call about a task that does not exist with its error. */
async function previewTask(args: z.output<typeof ofTask>, { background }: ToolContext) {
  const tasks = await background?.list();
  if (tasks?.every(({ id }) => id !== args.task_id) !== true) return undefined;
  return failing("Background task", args, { failure: report(args.task_id, undefined) });
}

const withTasks = (
  { background, signal }: ToolContext,
  name: string,
  work: (tasks: NonNullable<ToolContext["background"]>) => Promise<ToolResult>,
): Promise<ToolResult> =>
  cancellable(name, signal, async () =>
    background === undefined
      ? toolError("background tasks are not available here; use `task`, or do the work yourself.")
      : work(background),
  );

/** `Background task run_x (researcher) is at work: reads notes.md.` */
function describeTask(task: BackgroundTask): string {
  const step = isOpenTask(task) && task.step !== "" ? `: ${oneLine(task.step, MAX_LINE)}` : ".";
  return `Background task ${task.id} (${displayName(task.name)}) ${texts.taskStates[task.status]}${step}`;
}

function report(id: string, task: BackgroundTask | undefined, more?: string): ToolResult {
  if (task === undefined) {
    return toolError(`there is no background task ${displayName(id)}; list_async_tasks lists them.`);
  }
  const rest = more ?? (isOpenTask(task) ? "You were sent a message." : "Its report is a message to you.");
  return { content: `${describeTask(task)} ${rest}` };
}
