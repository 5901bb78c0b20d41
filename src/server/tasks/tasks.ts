import {
  inputResponse,
  ProtocolError,
  ProtocolErrorCode,
  type CallToolResult,
  type McpServer,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { z } from "zod";
import { asksForClientModel } from "../../config/client-model.ts";
import { isFinal, type ModelCall, type Principal, type RunView } from "../../runs/run.ts";
import type { RunService } from "../../runs/service.ts";
import { approvalForm } from "../approval-form.ts";
import { takeAnswer, type Taken } from "../delivery/answers.ts";
import { clientFacts, type ClientFacts } from "../client.ts";
import { samplingParams, samplingReply } from "../delivery/sampling.ts";
import type { ServerDeps } from "../deps.ts";
import { guarded } from "../resources/guarded.ts";
import { runResult } from "../results.ts";
import { pageOf } from "../tools/tool.ts";
import { pendingApprovals } from "../run-report.ts";
import type { TaskPages } from "./pages.ts";
import type { TaskQuestions } from "./questions.ts";
import {
  decidedElsewhere,
  taskDetails,
  taskFields,
  TASKS_EXTENSION,
  withNote,
  type ElicitationRequest,
  type InputRequests,
} from "./view.ts";

export interface TasksScope {
  deps: ServerDeps;
  questions: TaskQuestions;
  pages: TaskPages;
}

interface TaskRequest {
  runs: RunService;
  principal: Principal;
  view: RunView;
  client: ClientFacts;
  context: ServerContext;
}

const MISSING_CLIENT_CAPABILITY = -32_021;
const Task = z.looseObject({ taskId: z.string().min(1).max(200) });

/**
 * `tasks/get`, `tasks/update` and `tasks/cancel` on one 2026-07-28 instance. The task of a run is the run
 * itself, so any process finds it, and tools and resources show the same.
 */
export function registerTasks(mcp: McpServer, scope: TasksScope): void {
  const serve = (method: string, answer: (request: TaskRequest) => Promise<object>): void => {
    mcp.server.setRequestHandler(method, { params: Task }, ({ taskId }, context) =>
      guarded(method, scope.deps, async () => {
        const client = clientFacts(mcp, context, { era: "modern", deps: scope.deps });
        if (!client.tasks) throw notDeclared();
        const principal = scope.deps.principalOf(context.http?.authInfo);
        const runs = await scope.deps.runs();
        const view = await runs.view(principal, taskId);
        if (view === undefined) throw unknownTask();
        return { ...(await answer({ runs, principal, view, client, context })) };
      }),
    );
  };
  serve("tasks/get", async (request) => getTask(request, scope));
  serve("tasks/update", async (request) => updateTask(request, scope));
  serve("tasks/cancel", async ({ runs, principal, view }) => {
    await runs.cancel(principal, view.run.id, "cancelled by the client");
    return {};
  });
}

async function getTask(request: TaskRequest, scope: TasksScope): Promise<object> {
  const { view, client } = request;
  const { deps } = scope;
  const lends = client.models && asksForClientModel(deps.config);
  const fields = taskFields(view, deps.keptAtLeastMs ?? null, { lends });
  if (isHandedOver(view, client)) {
    const waits =
      pendingApprovals(view).length > 0
        ? { statusMessage: decidedElsewhere(view, deps.openCommand(view.run)) }
        : {};
    return { ...fields, ...waits, status: "completed", result: await finalResult(request, deps) };
  }
  const people = client.forms ? openQuestions(view, scope.questions) : await pageQuestion(request, scope);
  const asked = { ...people.requests, ...(await modelRequests(request)) };
  return {
    ...fields,
    ...(people.note === undefined ? {} : { statusMessage: withNote(view, people.note) }),
    ...(await taskDetails(view, asked, () => finalResult(request, deps))),
  };
}

/**
 * Whether the task of a client that cannot be asked ends with a handle, as its call would have. Once the run has
 * needed a person it stays so, because a task that has ended does not go on.
 */
function isHandedOver({ run, approvals }: RunView, { forms, page, models }: ClientFacts): boolean {
  if (forms || page) return false;
  return approvals.length > 0 || (run.status === "input_required" && !models);
}

/** The questions people are asked now, and the status message for them. */
interface Asked {
  requests: Record<string, ElicitationRequest>;
  note?: string | undefined;
}

/** What the client's model is asked, by a client that lends it. */
async function modelRequests({ runs, principal, view, client }: TaskRequest): Promise<InputRequests> {
  if (!client.models || isFinal(view.run.status)) return {};
  const calls = await runs.modelCalls(principal, view.run.id);
  return Object.fromEntries(
    calls.map((call) => [
      modelKey(call),
      { method: "sampling/createMessage", params: samplingParams(call.request) },
    ]),
  );
}

/** A call is named by what is asked, and asked no more when it has its reply. */
const modelKey = ({ id }: Pick<ModelCall, "id">): string => `model-${id}`;

async function pageQuestion(
  { principal, view }: TaskRequest,
  { deps: { page, logger }, pages }: TasksScope,
): Promise<Asked> {
  const pending = pendingApprovals(view);
  if (pending.length === 0) return { requests: {} };
  const open = async (): Promise<string | undefined> =>
    page?.decide(principal, view.run.id).catch((error: unknown) => {
      logger.warn("page.not_opened", { error });
      return undefined;
    });
  const { requests, note } = await pages.ask(view.run.id, pending, open);
  const asked = Object.entries(requests);
  return {
    requests: Object.fromEntries(
      asked.map(([key, params]) => [key, { method: "elicitation/create", params }]),
    ),
    note,
  };
}

function openQuestions(view: RunView, questions: TaskQuestions): Asked {
  const pending = pendingApprovals(view);
  const requests: Asked["requests"] = {};
  let note: string | undefined;
  for (const [index, approval] of pending.entries()) {
    const { key, problem } = questions.show(approval);
    const place = { runId: view.run.id, position: index + 1, total: pending.length };
    const params = approvalForm(approval, problem === undefined ? place : { ...place, problem });
    requests[key] = { method: "elicitation/create", params };
    if (problem !== undefined) note = `Asked again: ${problem}`;
  }
  return { requests, note };
}

/** What the call would have returned had it waited. */
async function finalResult(
  { view, client, context }: TaskRequest,
  deps: ServerDeps,
): Promise<CallToolResult> {
  const ways = {
    forms: client.forms,
    opensPage: client.page,
    openCommand: deps.openCommand,
    page: client.forms || client.page ? undefined : await pageOf({ kind: "run", view }, context, deps),
    model: deps.config.approvals.allowModelAnswers,
    links: true,
  };
  return { isError: false, ...runResult(view, ways) };
}

/** Any part of the questions may be answered, in any order; answers to unknown or old keys are ignored. */
async function updateTask(request: TaskRequest, { deps, questions, pages }: TasksScope): Promise<object> {
  const { runs, principal, view, context } = request;
  const { monotonic, logger } = deps;
  const pending = pendingApprovals(view);
  await takeModelReplies(request, deps);
  for (const key of Object.keys(context.mcpReq.inputResponses ?? {})) {
    const response = inputResponse(context.mcpReq.inputResponses, key);
    pages.answered(view.run.id, key, response.kind === "elicit" && response.action === "accept");
    const found = questions.find(key, pending);
    if (found === undefined) continue;
    const { approval, question } = found;
    // A question this process has not shown was shown by an earlier one, long enough ago.
    const elapsed = question.shownAt === undefined ? Infinity : monotonic() - question.shownAt;
    const session = { runs, principal, runId: view.run.id, logger };
    const taken: Taken =
      response.kind === "elicit"
        ? await takeAnswer(session, approval, response, { elapsed, by: "tasks/update" })
        : { kind: "left" };
    // The client has answered this key and would wait for another for ever.
    if (taken.kind !== "decided") questions.askAgain(approval, "problem" in taken ? taken.problem : CLOSED);
  }
  return {};
}

const CLOSED = "the form came back without a decision, so the approval is still open.";

/** Stores what the client's model replied; the first reply to a call counts. */
async function takeModelReplies(
  { runs, principal, view, client, context }: TaskRequest,
  { logger }: ServerDeps,
): Promise<void> {
  if (!client.models) return;
  const runId = view.run.id;
  for (const call of await runs.modelCalls(principal, runId)) {
    const reply = samplingReply(context.mcpReq.inputResponses?.[modelKey(call)]);
    if (reply === undefined) continue;
    const outcome = await runs.replyToModel(principal, runId, call.id, reply);
    if (outcome.ok && outcome.repeated) logger.info("model.replied_before", { runId });
  }
}

const notDeclared = (): ProtocolError =>
  new ProtocolError(MISSING_CLIENT_CAPABILITY, "Missing required client capability", {
    requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } },
  });

/** The same for a task that does not exist and for one of another principal. */
const unknownTask = (): ProtocolError =>
  new ProtocolError(
    ProtocolErrorCode.InvalidParams,
    "Unknown task. Use a taskId that run_deep_agent returned.",
  );
