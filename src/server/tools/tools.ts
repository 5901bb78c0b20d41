/** The six tools that clients see. */
import { z } from "zod";
import type { Backend } from "../../backends/backend.ts";
import type { Config } from "../../config/schema.ts";
import { memberOf, defined } from "../../core/unknown.ts";
import { alreadyAnswered, isQuestion } from "../../runs/run.ts";
import type { Decision } from "../../tools/request.ts";
import type { ContentBlock } from "../../tools/tool.ts";
import { deliver } from "../delivery/deliver.ts";
import { carriedAnswers } from "../delivery/signed-answers.ts";
import type { ToolCall } from "../calls/call.ts";
import { type Media, type Outcome, refused, unknownRun, withNotes } from "../calls/outcome.ts";
import { type ServerTool, defineTool, runId, taskText, waitSeconds } from "../calls/tool.ts";
import { RUN_APP_URI } from "../contracts/extensions.ts";
import { CODEX_TOOLS } from "./codex.ts";
import { continueRunOr, startRun } from "./start-run.ts";
import { RunList, recentRuns } from "../views/run-list.ts";
import { RunChange, RunReport, isWholeInReport, pendingApprovals } from "../views/run-report.ts";
import { isAsItStands } from "../../tools/call-request.ts";
import words from "./words.json" with { type: "json" };

const answerInput = z.strictObject({
  run_id: runId,
  approval_id: z.string().min(1).max(200),
  decision: z.enum(["approve", "edit", "reject"]),
  edited_args: z.record(z.string(), z.unknown()).optional().describe("All arguments; only for edit"),
  message: z.string().max(2000).optional().describe("To the agent; only for reject"),
});

const fileInput = z.strictObject({
  path: z.string().min(1).max(4096).describe("Such as /workspace/report.md"),
  run_id: z.string().min(1).max(200).optional().describe("For files outside the mounts"),
  offset: z.int().optional().describe("First line, from 0"),
  limit: z.int().min(1).optional(),
  piece: z.int().min(0).optional(),
});

/** Every tool of the server, in the order clients list them. */
export const SERVER_TOOLS: readonly ServerTool[] = [
  defineTool({
    name: "run_deep_agent",
    ...words.tools.run_deep_agent,
    kind: "delegate",
    scopes: ["run"],
    input: z.strictObject({
      task: taskText.describe("Goal, facts the agent cannot see, form of result"),
      thread_id: z
        .string()
        .min(1)
        .max(200)
        .optional()
        .describe("Conversation to continue, also at work; ID@N from its point N"),
      goal: z.array(z.string()).optional().describe("Criteria that a judge checks"),
      changes: z.enum(["direct", "propose"]).optional().describe("propose: a person reviews first"),
      folder: z.string().optional().describe("Project to work in"),
      idempotency_key: z.string().min(1).max(200).optional().describe("Same key and task: same run"),
      wait_seconds: waitSeconds,
    }),
    output: RunReport,
    app: RUN_APP_URI,
    alwaysLoaded: true,
    handle: async (args, call) => {
      const { task, goal, changes, folder, thread_id: threadId, wait_seconds: seconds } = args;
      const { idempotency_key: idempotencyKey } = args;
      const order = { task, ...defined({ goal, changes, folder, threadId, idempotencyKey }) };
      return continueRunOr(() => startRun(order, seconds, call), call, seconds);
    },
  }),
  defineTool({
    name: "check_deep_agent",
    ...words.tools.check_deep_agent,
    kind: "read",
    scopes: [],
    input: z.strictObject({
      run_id: runId.optional(),
      after: z.int().min(0).optional().describe("last_event of its last report"),
      wait_seconds: waitSeconds,
      offset: z.int().min(0).optional().describe("To read on in an answer"),
    }),
    alwaysLoaded: true,
    // A report of one run, or a list of runs.
    output: RunReport.partial().extend(RunList.partial().shape),
    handle: async (args, call) => {
      const { runs } = call;
      if (args.run_id === undefined)
        return { kind: "runs", list: await recentRuns(runs, call.client.form.room) };
      const carried = await carriedAnswers(call);
      if (!carried.ok) return carried.outcome;
      const view = await runs.read.view(args.run_id);
      if (view === undefined) return unknownRun(args.run_id);
      const { answers } = carried;
      const { after, wait_seconds: seconds, offset } = args;
      const outcome = await deliver(call, view, { waitSeconds: seconds, untilChange: true, after, answers });
      return outcome.kind === "run" ? { ...outcome, ...defined({ offset }) } : outcome;
    },
  }),
  defineTool({
    name: "answer_deep_agent",
    ...words.tools.answer_deep_agent,
    kind: "decide",
    scopes: ["approve"],
    input: answerInput,
    output: RunChange,
    handle: async (args, { runs, deps, client: { form } }) => {
      const { run_id: id, approval_id: approvalId } = args;
      const before = await runs.read.view(id);
      const request = before?.requests.find((one) => one.id === approvalId);
      if (request !== undefined && isQuestion(request))
        return refused(
          "This is a question to a person, which no tool can answer: tell the user to answer it where check_deep_agent says.",
        );
      const decision = readDecision(args, request?.tool ?? "");
      if (typeof decision === "string") return refused(decision);
      const approval = before && pendingApprovals(before).find((one) => one.id === approvalId);
      // It would let a call run that the report of its run does not show whole.
      const isShown = before !== undefined && isWholeInReport(before, approvalId, form.room);
      if (before && approval && isAsItStands(decision, approval) && !isShown) {
        const openCommand = deps.openCommand(before.run);
        return refused(
          "The report of this run does not show the whole call, so it cannot be approved here; the run waits. " +
            `Tell the user to decide where all of it is shown: ${openCommand === undefined ? "on the page of the server" : `in a terminal with ${openCommand}`}.`,
        );
      }
      const given = { requestId: approvalId, answer: decision };
      const outcome = await runs.requests.answer(id, given, "answer_deep_agent");
      const view = await runs.read.view(id);
      if (view === undefined) return unknownRun(id);
      const isLate = !outcome.ok && outcome.code === "already_answered";
      const late = isLate ? " Your decision was not used; check_deep_agent tells how the run stands." : "";
      if (!outcome.ok) return refused(outcome.message + late);
      const isRepeated = outcome.how === "repeated";
      return withNotes({ kind: "run", view }, isRepeated ? [alreadyAnswered(outcome.request)] : []);
    },
  }),
  defineTool({
    name: "cancel_deep_agent",
    ...words.tools.cancel_deep_agent,
    kind: "cancel",
    scopes: ["run"],
    input: z.strictObject({ run_id: runId, reason: z.string().max(500).optional() }),
    output: RunChange,
    handle: async ({ run_id, reason = "cancelled by the client" }, { runs }) => {
      const outcome = await runs.control.cancel(run_id, reason);
      if (!outcome.ok) return outcome.code === "not_found" ? unknownRun(run_id) : refused(outcome.message);
      const view = await runs.read.view(run_id);
      if (view === undefined) return unknownRun(run_id);
      return withNotes({ kind: "run", view }, outcome.alreadyEnded ? ["It had ended before."] : []);
    },
  }),
  defineTool({
    name: "read_agent_file",
    ...words.tools.read_agent_file,
    kind: "read",
    scopes: ["read"],
    input: fileInput,
    output: z.object({ path: z.string(), content: z.string() }),
    handle: async (args, call) => {
      const { run_id: id } = args;
      const { runs } = call;
      const backend = await (id === undefined ? runs.files.mounts() : runs.files.ofRun(id));
      return backend === undefined ? unknownRun(id ?? "") : read(args, backend, call);
    },
  }),
  defineTool({
    name: "search_memories",
    ...words.tools.search_memories,
    kind: "read",
    scopes: ["read"],
    input: z.strictObject({ query: z.string().min(1).max(500), limit: z.int().min(1).max(50).default(10) }),
    output: z.object({
      memories: z.array(z.object({ path: z.string(), snippet: z.string(), score: z.number() })),
    }),
    handle: async ({ query, limit }, { runs }) => ({
      kind: "memories",
      query,
      ...(await runs.files.searchMemories(query, limit)),
    }),
  }),
];

/** Returns the decision about a call of `tool`, or the problem of the arguments. */
function readDecision(args: z.output<typeof answerInput>, tool: string): Decision | string {
  const { decision, edited_args: editedArgs, message } = args;
  if (decision !== "edit" && editedArgs !== undefined)
    return `edited_args is for the decision edit, not ${decision}; nothing was decided.`;
  if (decision === "approve") return { type: "approve" };
  if (decision === "reject") return { type: "reject", ...defined({ message }) };
  if (editedArgs === undefined) return "The decision edit needs edited_args with all arguments of the call.";
  return { type: "edit", editedAction: { name: tool, args: editedArgs } };
}

/** The agent's own tool reads, so that limits and errors are the same. A page begins and ends with how to continue. */
async function read(
  { path, offset, limit = Infinity, piece }: z.output<typeof fileInput>,
  backend: Backend,
  { client, context }: ToolCall,
): Promise<Outcome> {
  const [{ readFileTool }, { resolveOptions }, { parseArguments }] = await Promise.all([
    import("../../tools/read-file.ts"),
    import("../../tools/options.ts"),
    import("../../tools/call.ts"),
  ]);
  const { id, signal } = context.mcpReq;
  // Some clients cut at 2,000 lines.
  const asked = { file_path: path, limit: Math.min(limit, 1500), ...defined({ offset, piece }) };
  // A token is four characters. A page whose characters or escapes take too many bytes is read again with fewer.
  for (let evictTokens = 2200; ; evictTokens = Math.floor(evictTokens / 1.5)) {
    const tool = readFileTool(resolveOptions({ evictTokens }));
    const parsed = parseArguments(tool, asked);
    if (!parsed.ok) return refused(parsed.message);
    const { status, content, artifact } = await tool.handle(parsed.args, {
      callId: String(id),
      signal,
      backend,
    });
    if (typeof content === "string") {
      if (status === "error") return refused(content);
      const goesOn = memberOf(artifact, "nextOffset") !== undefined;
      const page = goesOn ? `${content.slice(content.lastIndexOf("\n") + 1)}\n\n${content}` : content;
      if (Buffer.byteLength(JSON.stringify(page)) > client.form.room && evictTokens > 300) continue;
      return { kind: "file", path, content: page, media: [] };
    }
    const media = content.flatMap(({ type, mimeType, data }: ContentBlock): Media[] => {
      if (typeof mimeType !== "string" || typeof data !== "string") return [];
      return [{ type: type === "image" || type === "audio" ? type : "resource", mimeType, data }];
    });
    const types = media.map(({ mimeType }) => mimeType).join(", ");
    return { kind: "file", path, content: `${path}: ${types}`, media };
  }
}

export const toolsFor = (config: Pick<Config, "approvals" | "codexTools">): readonly ServerTool[] => [
  ...SERVER_TOOLS.filter(({ kind }) => kind !== "decide" || config.approvals.allowModelAnswers),
  ...(config.codexTools ? CODEX_TOOLS : []),
];

export const toolNamed = (name: unknown): ServerTool | undefined =>
  [...SERVER_TOOLS, ...CODEX_TOOLS].find((tool) => tool.name === name);
