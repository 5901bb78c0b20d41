/** Reports a run to a model. */
import { offeredDecisions } from "../../tools/call-request.ts";
import { dollars, totalCost } from "./cost-words.ts";
import { z } from "zod";
import { isoTime } from "../../core/clock.ts";
import { defined } from "../../core/defined.ts";
import { beginningOf, cutMiddle, displayName, firstSentence, oneLine } from "../../core/text.ts";
import {
  type Approval,
  DEADLINE,
  STATUS_WORDS,
  type OpenQuestion,
  type Run,
  type RunView,
  isFinal,
  isApproval,
  isQuestion,
  endedEarly,
  waitingIn,
} from "../../runs/run.ts";
import { counted } from "../../tools/format.ts";
import { GENERAL_PURPOSE } from "../../tools/tool.ts";
import { runUri } from "../contracts/uris.ts";
import { addressLines, shownText } from "./request-form.ts";
import { agentLabel, agentTypes, askedBy, continuesAfter } from "./request-words.ts";
import { type GoalReport, goalLines, goalReport } from "./goal-report.ts";
import { RunDocument, usageDocument } from "./run-document.ts";
import { asText, indented } from "./quoting.ts";
import { type ShownCall, TO, shownCall } from "./shown-call.ts";

/** Sizes beyond which a report is cut; `truncated` names the cut parts. */
const MAX = {
  answer: 40_000,
  detail: 4000,
  failure: 2000,
  line: 300,
  todos: 100,
  agents: 50,
  approvals: 20,
  questions: 20,
  files: 100,
};
/** In a finished run, its subagents matter less than the answer: failed ones come first. */
const MAX_ENDED = { agents: 10, line: 100 };
/** When it pays to look again. */
const POLL_SECONDS = { working: 5, input_required: 15 };

const {
  agents: { element: Agent },
  approvals: { element: ApprovalDocument },
  questions: { element: QuestionDocument },
  usage: Usage,
  ...Fields
} = RunDocument.shape;

/** Report on a run for a client: a part of its document, cut short. Every delivery returns the same object. */
export const RunReport = z.object({
  run_id: Fields.run_id,
  thread_id: Fields.thread_id,
  status: Fields.status,
  message: z.string(),
  activity: Fields.activity,
  last_event: Fields.last_event,
  answer: Fields.answer,
  structured: Fields.structured,
  stop_reason: Fields.stop_reason,
  failure_reason: Fields.failure_reason,
  todos: Fields.todos,
  agents: z.array(Agent.pick({ agent: true, description: true, status: true, step: true, tool_calls: true })),
  approvals: z.array(
    ApprovalDocument.pick({
      id: true,
      tool: true,
      agent: true,
      summary: true,
      destination: true,
      detail: true,
      /** Without those that approve where `detail` leaves something out. */
      decisions: true,
      expires_at: true,
    }),
  ),
  /** First those that wait. */
  questions: z.array(
    QuestionDocument.pick({
      id: true,
      kind: true,
      agent: true,
      asked_by: true,
      text: true,
      status: true,
      expires_at: true,
    }),
  ),
  goal: Fields.goal,
  files_changed: Fields.files_changed,
  page: z.string().optional(),
  usage: Usage.omit({ models: true }),
  next: z.object({ tool: z.string(), after_seconds: z.number() }).optional(),
  truncated: z.array(z.string()).optional(),
});
export type RunReport = z.output<typeof RunReport>;

/** The part of a report that matters after a run was changed. */
export const RunChange = RunReport.pick({ run_id: true, status: true, message: true, next: true });

/** Ways to decide on approvals and to answer questions of this client's runs. */
export interface AnswerWays {
  /** Command with which a person decides in a terminal. Absent: a terminal does not show the run. */
  openCommand?: (run: Run) => string | undefined;
  forms: boolean;
  /** The client opens the page, which takes decisions and answers. */
  opensPage?: boolean;
  /** The client closed such a question before anyone could read it. */
  isUnread?: boolean;
  /** `answer_deep_agent` is allowed, which decides on approvals. */
  model: boolean;
  /** Link to the page of this run, where people see it; by itself it decides nothing. */
  page?: string | undefined;
  /** True if people log in to that page, and then decide there. */
  decidesOnPage?: boolean;
}

/** `note`: the effect of the call, before the state of the run. */
export function runReport(view: RunView, ways: AnswerWays, note?: string): RunReport {
  const { run } = view;
  const truncated: string[] = [];
  const capped: Capped = (name, items, limit) => {
    if (items.length > limit) truncated.push(name);
    return items.slice(0, limit);
  };
  const pending = pendingApprovals(view);
  const answer = run.answer === undefined ? undefined : cutToBytes(run.answer, MAX.answer);
  if (answer !== run.answer) truncated.push("answer");
  const structured = (JSON.stringify(run.structured)?.length ?? 0) <= MAX.answer ? run.structured : undefined;
  if (structured === undefined && run.structured !== undefined) truncated.push("structured");
  const whole = view.goal && goalReport(view.goal, isFinal(run.status));
  const goal = whole && shortGoal(whole);
  if (JSON.stringify(goal) !== JSON.stringify(whole)) truncated.push("goal");
  const report: Omit<RunReport, "message"> = {
    run_id: run.id,
    thread_id: run.threadId,
    status: run.status,
    activity: line(view.activity),
    last_event: run.lastSeq,
    ...defined({ answer, structured, stop_reason: run.stopReason, failure_reason: run.failure?.reason }),
    todos: capped("todos", run.todos, MAX.todos).map(({ content, status }) => ({
      content: line(content),
      status,
    })),
    agents: reportAgents(view, capped),
    approvals: capped("approvals", pending, MAX.approvals).map(approvalReport),
    questions: capped(
      "questions",
      view.requests.filter(isQuestion).toSorted(statusFirst("pending")),
      MAX.questions,
    ).map(questionReport),
    ...(goal && { goal }),
    files_changed: [...capped("files_changed", view.filesChanged, MAX.files)],
    usage: usageDocument(run.usage, totalCost(view.models)),
    ...defined({ page: ways.page }),
    ...nextStep(view, ways),
  };
  const message = [
    ...(note === undefined ? [] : [note]),
    statusMessage(view, ways),
    ...(run.schedule === undefined ? [] : [`Started by schedule ${asText(run.schedule.name)}.`]),
    ...proposedText(view),
    ...deniedInTime(view),
    ...unansweredInTime(view),
    ...(truncated.length === 0
      ? []
      : [`Cut short here: ${truncated.join(", ")}. The resource ${runUri(run.id)} has all of it.`]),
  ].join(" ");
  return { ...report, message, ...(truncated.length === 0 ? {} : { truncated }) };
}

/** Reports how many changes of a run on a copy the folder has. */
function proposedText({ run: { changes, status, unapplied } }: RunView): string[] {
  if (changes !== "propose") return [];
  if (!isFinal(status))
    return ["It works on a copy of the folder, where a person applies what they want of it at the end."];
  if (unapplied === 0) return ["Nothing that it proposed is left to apply."];
  const files =
    unapplied === undefined
      ? "The folder has only what a person applied of its changes."
      : `Changes of ${counted(unapplied, "file")} are proposed and not applied.`;
  return [`${files} A person can still apply them on the page or with "runs review" in a terminal.`];
}

/** A goal with its long texts cut. */
const shortGoal = ({ criteria, ...goal }: GoalReport): GoalReport => ({
  ...goal,
  criteria: criteria.map(({ criterion, evidence, missing, ...finding }) => ({
    ...finding,
    criterion: cutMiddle(criterion, MAX.line),
    ...defined({
      evidence: evidence && cutMiddle(evidence, MAX.line),
      missing: missing && cutMiddle(missing, MAX.line),
    }),
  })),
});

const inReport = (approval: Approval): ShownCall => shownCall(approval, MAX.detail);

function approvalReport(approval: Approval): RunReport["approvals"][number] {
  const { preview, expiresAt } = approval;
  const { detail, isWhole } = inReport(approval);
  return {
    id: approval.id,
    tool: approval.tool,
    agent: agentLabel(approval.agent),
    summary: line(preview.summary),
    ...defined({ destination: preview.destination }),
    detail: isWhole
      ? detail
      : `${detail}\n[This is not the whole call: it is approved only where all of it is shown]`,
    // Approving the same further calls is for people alone.
    decisions: offeredDecisions(approval, inReport(approval)).filter(
      (decision) => decision !== "approve_same",
    ),
    ...defined({ expires_at: expiresAt === undefined ? undefined : isoTime(expiresAt) }),
  };
}

function questionReport(asked: OpenQuestion): RunReport["questions"][number] {
  const { id, agent, status, expiresAt } = asked;
  const text = cutMiddle(shownText(asked), MAX.detail);
  return {
    id,
    kind: asked.kind,
    agent: agentLabel(agent),
    asked_by: askedBy(asked),
    text: [text, ...addressLines(asked)].join("\n"),
    status,
    ...defined({ expires_at: expiresAt === undefined ? undefined : isoTime(expiresAt) }),
  };
}

/** Compares such that those with this status come first. */
const statusFirst =
  (status: string) =>
  (one: { status: string }, other: { status: string }): number =>
    Number(other.status === status) - Number(one.status === status);

export const isWholeInReport = (view: RunView, approvalId: string): boolean =>
  pendingApprovals(view)
    .slice(0, MAX.approvals)
    .some((approval) => approval.id === approvalId && inReport(approval).isWhole);

type Capped = <Item>(name: string, items: readonly Item[], limit: number) => readonly Item[];

function reportAgents({ run, subagents }: RunView, capped: Capped): RunReport["agents"] {
  const ended = isFinal(run.status);
  const max = ended ? MAX_ENDED : MAX;
  return capped("agents", ended ? subagents.toSorted(statusFirst("failed")) : subagents, max.agents).map(
    ({ agent, description, status, step, toolCalls }) => ({
      agent: agentTypes(agent),
      description: line(description, max.line),
      status,
      step: line(step, max.line),
      tool_calls: toolCalls,
    }),
  );
}

/** `text` cut in the middle to about `limit` bytes of UTF-8. */
function cutToBytes(text: string, limit: number): string {
  const bytes = Buffer.byteLength(text);
  return bytes <= limit ? text : cutMiddle(text, Math.floor((text.length * limit) / bytes));
}

/**
 * The report for clients that show text only; it leaves nothing out that the reader has to know. Many show it as
 * Markdown, so texts of models and names of files are quoted.
 */
export function reportText(report: RunReport): string {
  const { answer = "", todos, agents, goal, approvals, questions, files_changed: files, usage } = report;
  const isWhole = report.status === "completed" && report.stop_reason === undefined;
  const todoLines = todos.map(({ status, content }) => `${TODO_MARKS[status] ?? "[ ]"} ${asText(content)}`);
  const { input_tokens: read, output_tokens: written, cost_usd: usd } = usage;
  const cost = usd === "unknown" || usd === 0 ? "" : ` · ${dollars(usd)}`;
  const fileLines = files.map((file) => `- ${asText(file)}`);
  const agentLines = agents.map(({ agent, description, status, step }) => {
    const type = agent.endsWith(GENERAL_PURPOSE) ? "" : `${asText(agent)}, `;
    return `- ${type}"${asText(firstSentence(description, MAX_ENDED.line))}" (${status}): ${asText(step)}`;
  });
  const sections = [
    ...(isWhole ? [answer, report.message] : [report.message, answer]),
    section("Todos", todoLines),
    section("Agents", agentLines),
    goal && section(goal.outcome, goalLines(goal)),
    ...approvals.map(approvalText),
    ...questions
      .filter(({ status }) => status === "pending")
      .map(({ id, asked_by: by, text, expires_at: at }) => {
        const expiry = at === undefined ? [] : [continuesAfter(at)];
        return [`Question ${id}: ${by}`, ...expiry, "", indented(text)].join("\n");
      }),
    section("Files changed", fileLines),
    report.structured !== undefined && `Structured answer:\n\n${indented(JSON.stringify(report.structured))}`,
    // A message that sends the user there to decide has the link already.
    report.page !== undefined &&
      !report.message.includes(report.page) &&
      `For the user, to see the run in a browser: ${report.page}`,
    `run_id ${report.run_id} · thread_id ${report.thread_id} · tokens ${read} in, ${written} out${cost}`,
  ];
  return sections.filter(Boolean).join("\n\n");
}

export const pendingApprovals = (view: RunView): Approval[] =>
  view.requests.filter(isApproval).filter(({ status }) => status === "pending");

const TODO_MARKS: Record<string, string> = { pending: "[ ]", in_progress: "[>]", completed: "[x]" };

const section = (title: string, lines: readonly string[]): string =>
  lines.length === 0 ? "" : [`${title}:`, ...lines].join("\n");

function approvalText(approval: RunReport["approvals"][number]): string {
  const { destination } = approval;
  return [
    `Approval ${approval.id}: ${asText(approval.agent)} wants to run ${asText(approval.tool)}: ${asText(approval.summary)}`,
    `Possible decisions: ${approval.decisions.join(", ")}`,
    ...(approval.expires_at === undefined ? [] : [`Denied unless decided by ${approval.expires_at}`]),
    "",
    indented([...(destination === undefined ? [] : [TO + destination, ""]), approval.detail].join("\n")),
  ].join("\n");
}

function statusMessage(view: RunView, ways: AnswerWays): string {
  const { run } = view;
  if (run.parent !== undefined) {
    const { runId: parent } = run.parent;
    return `Run ${run.id} is a background task of run ${parent}: ${STATUS_WORDS[run.status]}. Its steps, questions and report are in that run: call check_deep_agent with run_id: ${parent}.`;
  }
  switch (run.status) {
    case "working":
      return `Run ${run.id} ${view.place === undefined ? "is working: " : ""}${line(view.activity)}. Call check_deep_agent with this run_id and after: ${run.lastSeq} to wait for it.`;
    case "input_required":
      if (waitingIn(view).length === 0)
        return `Run ${run.id} waits for a client that lends its model (MCP sampling with tools). It continues when such a client calls check_deep_agent with this run_id.`;
      return `Run ${run.id} waits for a person to ${wanted(view)}. ${howToAnswer(view, ways)}`;
    case "completed":
      return run.stopReason === undefined
        ? `Run ${run.id} completed.`
        : `Run ${run.id} ${endedEarly(run.stopReason)}. Its answer says what is done. ${CONTINUE}`;
    case "failed":
      return `Run ${run.id} failed (${run.failure?.reason ?? "internal"}): ${sentence(asText(run.failure?.message ?? "no details", MAX.failure))} ${CONTINUE}`;
    case "cancelled":
      return `Run ${run.id} was cancelled: ${sentence(asText(run.cancelReason ?? "no reason given"))} ${CONTINUE}`;
  }
}

function wanted(view: RunView): string {
  const waiting = waitingIn(view);
  return [
    !waiting.every(isQuestion) && "decide on what is listed under approvals",
    waiting.some(isQuestion) && "answer what is listed under questions",
  ]
    .filter(Boolean)
    .join(" and to ");
}

const CONTINUE = "To continue its conversation, call run_deep_agent with its thread_id.";

const sentence = (text: string): string => (/[.!?…]$/.test(text) ? text : `${text}.`);

/** Names the newest of the approvals that nobody decided in time. */
function deniedInTime({ requests }: RunView): string[] {
  const denied = requests.filter(isApproval).filter(({ decidedBy }) => decidedBy === DEADLINE);
  const last = denied.at(-1);
  if (last === undefined) return [];
  const others = denied.length === 1 ? "" : ` and ${denied.length - 1} before it`;
  const what = `${asText(last.tool, 64)}: ${asText(last.preview.summary)}`;
  return [`Nobody decided in time on ${what}${others}; the deadline denied it.`];
}

/** Names the newest of the questions that nobody answered in time. */
function unansweredInTime({ requests }: RunView): string[] {
  const last = requests.filter(isQuestion).findLast(({ decidedBy }) => decidedBy === DEADLINE);
  if (last === undefined) return [];
  const text = asText(shownText(last));
  return [`Nobody answered in time: "${text}"; the agent continued without an answer.`];
}

function howToAnswer(view: RunView, ways: AnswerWays): string {
  const { forms, opensPage, isUnread, model, openCommand } = ways;
  const { run } = view;
  const waiting = waitingIn(view);
  const hasQuestions = waiting.some(isQuestion);
  const decided = "Ask the user, then call answer_deep_agent with their decision.";
  if (model && !hasQuestions) return decided;
  if (model && !waiting.every(isQuestion)) {
    const questions = { ...view, requests: view.requests.filter(isQuestion) };
    return `${decided} The user answers the questions. ${howToAnswer(questions, ways)}`;
  }
  if (forms && !isUnread)
    return "Tell the user, then call check_deep_agent with this run_id: it shows them the form.";
  if (opensPage === true && !isUnread)
    return "Tell the user, then call check_deep_agent: it opens the page for them.";
  const why = isUnread
    ? "This client closed the question before anyone could read it."
    : `This client cannot show ${hasQuestions ? "the form of a question" : "an approval form"}.`;
  const places = [...deciding(ways, openCommand?.(run)), IN_ANOTHER_CLIENT];
  const [act, outcome] = hasQuestions ? ["answer", "answer"] : ["decide", "decision"];
  return `${why} Tell the user to ${act} ${places.slice(0, 2).join(", or ")}. check_deep_agent with after: ${run.lastSeq} waits for their ${outcome}.`;
}

const IN_ANOTHER_CLIENT = "in a client that shows forms, by check_deep_agent with this run_id there";

/** The places where a person decides, the page first. */
function deciding({ page, decidesOnPage }: AnswerWays, command: string | undefined): string[] {
  if (page === undefined || decidesOnPage !== true)
    return command === undefined ? [] : [`on the page of this run, which this command opens: ${command}`];
  return [
    `on the page of this run: ${page}`,
    ...(command === undefined ? [] : [`in a terminal with ${command}`]),
  ];
}

function nextStep(view: RunView, ways: AnswerWays): Pick<RunReport, "next"> {
  const { status } = view.run;
  if (status !== "working" && status !== "input_required") return {};
  const isForModel = status === "input_required" && ways.model && pendingApprovals(view).length > 0;
  const tool = isForModel ? "answer_deep_agent" : "check_deep_agent";
  return { next: { tool, after_seconds: POLL_SECONDS[status] } };
}

/** A text of others on one line. */
export const line = (text: string, limit = MAX.line): string =>
  oneLine(displayName(beginningOf(text)), limit);
