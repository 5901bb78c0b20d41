import { z } from "zod";
import { CLIENT_MODEL } from "../../config/schema.ts";
import { ownTurn } from "../../core/concurrency.ts";
import { wellFormed } from "../../core/text.ts";
import { isFinal } from "../../runs/run.ts";
import type { Started } from "../../runs/service.ts";
import { deliver } from "../delivery/deliver.ts";
import type { CarriedAnswers } from "../delivery/session.ts";
import { carriedAnswers } from "../delivery/signed-answers.ts";
import type { ToolCall } from "../protocol/call.ts";
import { type Outcome, refused, unknownRun } from "../protocol/outcome.ts";
import { defineTool, waitSeconds } from "../protocol/tool.ts";
import { RUN_APP_URI } from "../resources/run-app.ts";
import { RunReport } from "../views/run-report.ts";

/** Longest task in characters: about 25,000 tokens, which leave any model room to work. */
const MAX_TASK = 100_000;

const input = z.strictObject({
  task: z
    .string()
    .max(MAX_TASK, { error: `at most ${MAX_TASK} characters; put long texts into a file and name it` })
    .refine((task) => task.trim() !== "", { error: "describe the task in words" })
    // Every later step writes the task as JSON, where each half of a surrogate pair costs a hundred times a character.
    .overwrite(wellFormed)
    .describe("Goal, facts the agent cannot see, form of the result"),
  thread_id: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe("Conversation to continue, even while it works; ID@N from its point N"),
  idempotency_key: z.string().min(1).max(200).optional().describe("The same key and task give the same run"),
  wait_seconds: waitSeconds,
});
type Input = z.output<typeof input>;

export const runDeepAgent = defineTool({
  name: "run_deep_agent",
  title: "Run a deep agent",
  kind: "delegate",
  scopes: ["run"],
  description:
    "Delegates a task of many steps to an agent that plans, reads, searches and edits files in /workspace/, " +
    "sends out subagents in parallel and keeps memories. A person approves its changes. Returns the answer, " +
    "or a run_id when the task takes longer; the run goes on and check_deep_agent gets its result.",
  input,
  output: RunReport,
  app: RUN_APP_URI,
  handle: async (args, call) => {
    const carried = await carriedAnswers(call);
    if (!carried.ok) return carried.outcome;
    return carried.answers === undefined ? start(args, call) : resume(args, carried.answers, call);
  },
});

async function start(args: Input, call: ToolCall): Promise<Outcome> {
  const { runs, principal, deps, client } = call;
  if (deps.config.model === CLIENT_MODEL && !client.models) return refused(CANNOT_LEND);
  const started = await runs.start(principal, {
    task: args.task,
    askedAt: call.begunAt,
    ...(args.thread_id === undefined ? {} : { threadId: args.thread_id }),
    ...(args.idempotency_key === undefined ? {} : { idempotencyKey: args.idempotency_key }),
  });
  if (!started.ok) return refused(started.message);
  if (started.how === "started") deps.changes.runStarted(principal, started.run.id);
  // Storing a long task takes a turn of the event loop, and so does reading it.
  await ownTurn();
  const view = await runs.view(principal, started.run.id);
  if (view === undefined) return unknownRun(started.run.id);
  // A run that was not started by this call may have ended long ago; then a task would be pointless.
  const asTask = started.how === "started" || !isFinal(view.run.status);
  const note = NOTES[started.how];
  return deliver(call, view, { waitSeconds: args.wait_seconds, untilChange: false, asTask, note });
}

const NOTES: Readonly<Record<Started, string | undefined>> = {
  started: undefined,
  told: "A run of this thread is not over, so this went to it as a message; its agent reads it at its next step.",
  joined:
    "The same task came before, in a call that was not answered, so this call joined its run and nothing was started again. To have it done once more, give a new idempotency_key.",
  existing: "A call with this idempotency key came before: nothing was started again.",
};

const CANNOT_LEND =
  'No run was started: this server works with the model of its client, and this client does not lend it (it does not declare MCP sampling with tools). Configure a model of the server: --model provider:model, DEEPAGENT_MODEL or "model" in its config file.';

/** Continues the run of an earlier call that comes again with answers. Starts nothing. */
async function resume(args: Input, answers: CarriedAnswers, call: ToolCall): Promise<Outcome> {
  const { run } = answers.state;
  const view = await call.runs.view(call.principal, run);
  if (view === undefined) return unknownRun(run);
  return deliver(call, view, { waitSeconds: args.wait_seconds, untilChange: false, answers });
}
