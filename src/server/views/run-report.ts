/** Reports a run to a model. */
import { offeredDecisions } from "../../tools/call-request.ts";
import { dollars, totalCost } from "./cost-words.ts";
import { z } from "zod";
import { isoTime } from "../../core/clock.ts";
import { defined } from "../../core/unknown.ts";
import {
  beginningOf,
  cutMiddle,
  displayName,
  firstSentence,
  headOf,
  oneLine,
  tailOf,
} from "../../core/text.ts";
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
import { goalLines, goalReport } from "./goal-report.ts";
import { RunDocument, usageDocument } from "./run-document.ts";
import { asText, indented } from "./quoting.ts";
import { TO, shownCall } from "./shown-call.ts";

/** Sizes beyond which a report is cut; `truncated` names the cut parts. Bytes count as text and as JSON. */
const MAX = {
  /** Lines that an answer page may have: some clients cut at 2,000. */
  answerLines: 1000,
  /** Parts of the room for an answer and for requests, if others need it too. */
  answerShare: 0.4,
  requestsShare: 0.7,
  /** Bytes of the sentences about missing parts. */
  notices: 600,
  detail: 4000,
  detailBytes: 6000,
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
/** `more`: the call that returns the next page of the answer. Lists of tools do not name it, to stay short. */
export type RunReport = z.output<typeof RunReport> & {
  more?: { tool: string; run_id: string; offset: number };
};

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

/**
 * Reports a run in `room` bytes, and its answer from the character `offset`. `note`: the effect of the call, before the
 * state of the run.
 */
export function runReport(
  view: RunView,
  ways: AnswerWays,
  { note, room = 64_000, offset = 0 }: { note?: string; room?: number; offset?: number } = {},
): RunReport {
  const { run } = view;
  const { answer = "" } = run;
  const truncated = new Set<string>();
  const capped: Capped = (name, items, limit) => {
    if (items.length > limit) truncated.add(name);
    return items.slice(0, limit);
  };
  const message = [
    ...(note === undefined ? [] : [note]),
    statusMessage(view, ways),
    ...(run.schedule === undefined ? [] : [`Started by schedule ${asText(run.schedule.name)}.`]),
    ...proposedText(view),
    ...missedInTime(view),
  ].join(" ");
  const report: RunReport = {
    run_id: run.id,
    thread_id: run.threadId,
    status: run.status,
    message,
    activity: line(view.activity),
    last_event: run.lastSeq,
    ...defined({ answer: run.answer, structured: run.structured, stop_reason: run.stopReason }),
    ...defined({ failure_reason: run.failure?.reason }),
    todos: capped("todos", run.todos, MAX.todos).map(({ content, status }) => ({
      content: line(content),
      status,
    })),
    agents: reportAgents(view, capped),
    ...reportRequests(view, capped, room),
    ...defined({ goal: view.goal && goalReport(view.goal, isFinal(run.status)) }),
    files_changed: [...capped("files_changed", view.filesChanged, MAX.files)],
    usage: usageDocument(run.usage, totalCost(view.models)),
    ...defined({ page: ways.page }),
    ...nextStep(view, ways),
  };
  const left = (): number => {
    const rest = { ...report, answer: "" };
    return room - MAX.notices - Math.max(countBytes(rest), Buffer.byteLength(reportText(rest)));
  };
  const wanted = Math.min(Buffer.byteLength(answer), room * MAX.answerShare);
  // The least important first.
  for (const name of ["agents", "files_changed", "todos", "goal", "structured"] as const) {
    if (offset === 0 && left() >= wanted) break;
    if ((JSON.stringify(report[name]) ?? "[]") !== "[]") truncated.add(name);
    if (name === "goal" || name === "structured") delete report[name];
    else report[name] = [];
  }
  if (answer !== "") pageAnswer(report, answer, offset, Math.max(left(), 500));
  if (truncated.size > 0)
    report.message += ` Cut short here: ${[...truncated].join(", ")}. The resource ${runUri(run.id)} has all of it.`;
  const cut = [...(report.answer === run.answer ? [] : ["answer"]), ...truncated];
  return { ...report, ...(cut.length === 0 ? {} : { truncated: cut }) };
}

const countBytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));

/** Cuts the answer to a page of `limit` bytes that begins at a character, and names the call for the next one. */
function pageAnswer(report: RunReport, answer: string, offset: number, limit: number): void {
  const start = Math.min(offset, answer.length);
  let page = headOf(tailOf(answer, answer.length - start), limit);
  for (let size = countBytes(page); size > limit; size = countBytes(page))
    page = headOf(page, Math.floor((page.length * limit) / (size + 1)));
  const lines = page.split(/(?<=\n)/);
  page = lines.slice(0, MAX.answerLines).join("");
  const isLast = start + page.length >= answer.length;
  const lastLine = page.lastIndexOf("\n") + 1;
  if (!isLast && lastLine > page.length / 2) page = page.slice(0, lastLine);
  const end = start + page.length;
  report.answer = page;
  if (start === 0 && isLast) return;
  const part = `${isLast ? "End" : "Part"} of the answer: characters ${start} to ${end} of ${answer.length}.`;
  report.message = [part, ...(isLast ? [] : [readOn(report.run_id, end)]), report.message].join(" ");
  if (!isLast) report.more = { tool: "check_deep_agent", run_id: report.run_id, offset: end };
}

const readOn = (runId: string, offset: number): string =>
  `To read on, call check_deep_agent with run_id ${runId} and offset ${offset}.`;

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

/** Characters of a detail for which a report has room. */
function detailLimit(detail: string): number {
  const size = Math.max(countBytes(detail), Buffer.byteLength(indented(detail)));
  return size <= MAX.detailBytes ? MAX.detail : Math.floor((detail.length * MAX.detailBytes) / size);
}

const NOT_WHOLE = "[This is not the whole call: it is approved only where all of it is shown]";

function approvalReport(approval: Approval): RunReport["approvals"][number] {
  const { preview, expiresAt } = approval;
  const shown = shownCall(approval, detailLimit(shownCall(approval, MAX.detail).detail));
  const { detail, isWhole } = shown;
  return {
    id: approval.id,
    tool: approval.tool,
    agent: agentLabel(approval.agent),
    summary: line(preview.summary),
    ...defined({ destination: preview.destination }),
    detail: isWhole ? detail : `${detail}\n${NOT_WHOLE}`,
    // Approving further calls is for people alone.
    decisions: offeredDecisions(approval, shown).filter((decision) => !decision.startsWith("approve_")),
    ...defined({ expires_at: expiresAt === undefined ? undefined : isoTime(expiresAt) }),
  };
}

function questionReport(asked: OpenQuestion): RunReport["questions"][number] {
  const { id, agent, status, expiresAt } = asked;
  const shown = cutMiddle(shownText(asked), MAX.detail);
  const text = cutMiddle(shown, detailLimit(shown));
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

/** Reports as many approvals and questions as there is room for, and at least one. */
function reportRequests(view: RunView, capped: Capped, room: number) {
  let used = 0;
  const fitting = <Item>(name: string, items: readonly Item[], limit: number): Item[] => {
    const count = items.slice(0, limit).findIndex((item) => {
      const isFirst = used === 0;
      used += 1.2 * countBytes(item);
      return !isFirst && used > room * MAX.requestsShare;
    });
    return [...capped(name, items, count < 0 ? limit : count)];
  };
  const questions = view.requests.filter(isQuestion).toSorted(statusFirst("pending"));
  return {
    approvals: fitting("approvals", pendingApprovals(view).map(approvalReport), MAX.approvals),
    questions: fitting("questions", questions.map(questionReport), MAX.questions),
  };
}

/** True if the report of a run shows the whole call that waits for this approval. */
export const isWholeInReport = (view: RunView, approvalId: string, room: number): boolean =>
  reportRequests(view, (_name, items, limit) => items.slice(0, limit), room).approvals.some(
    ({ id, detail }) => id === approvalId && !detail.endsWith(NOT_WHOLE),
  );

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

/**
 * The report for clients that show text only; it leaves nothing out that the reader has to know. Many show it as
 * Markdown, so texts of models and names of files are quoted.
 */
export function reportText(report: RunReport): string {
  const { answer = "", todos, agents, goal, approvals, questions, files_changed: files, usage } = report;
  const isEnded = report.status === "completed" && report.stop_reason === undefined;
  const isWhole = isEnded && !report.truncated?.includes("answer");
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
    report.more && readOn(report.run_id, report.more.offset),
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

/** Names the newest approval and the newest question that nobody decided in time. */
function missedInTime({ requests }: RunView): string[] {
  const missed = requests.filter(({ decidedBy }) => decidedBy === DEADLINE);
  const denied = missed.filter(isApproval);
  const [last, question] = [denied.at(-1), missed.findLast(isQuestion)];
  const others = denied.length > 1 ? ` and ${denied.length - 1} before it` : "";
  const what = last && `${asText(last.tool, 64)}: ${asText(last.preview.summary)}${others}`;
  const text = question && asText(shownText(question));
  return [
    ...(what ? [`Nobody decided in time on ${what}; the deadline denied it.`] : []),
    ...(text ? [`Nobody answered in time: "${text}"; the agent continued without an answer.`] : []),
  ];
}

function howToAnswer(view: RunView, ways: AnswerWays): string {
  const { forms, opensPage, isUnread, model, openCommand, page, decidesOnPage } = ways;
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
  const command = openCommand?.(run);
  const onPage = page !== undefined && decidesOnPage === true;
  const terminal = onPage ? "in a terminal with" : "on the page of this run, which this command opens:";
  const places = [
    ...(onPage ? [`on the page of this run: ${page}`] : []),
    ...(command === undefined ? [] : [`${terminal} ${command}`]),
    "in a client that shows forms, by check_deep_agent with this run_id there",
  ];
  const [act, outcome] = hasQuestions ? ["answer", "answer"] : ["decide", "decision"];
  return `${why} Tell the user to ${act} ${places.slice(0, 2).join(", or ")}. check_deep_agent with after: ${run.lastSeq} waits for their ${outcome}.`;
}

function nextStep(view: RunView, ways: AnswerWays): Pick<RunReport, "next"> {
  const { status } = view.run;
  if (status !== "working" && status !== "input_required") return {};
  const isForModel = status === "input_required" && ways.model && pendingApprovals(view).length > 0;
  const tool = isForModel ? "answer_deep_agent" : "check_deep_agent";
  return { next: { tool, after_seconds: { working: 5, input_required: 15 }[status] } };
}

/** A text of others on one line. */
export const line = (text: string, limit = MAX.line): string =>
  oneLine(displayName(beginningOf(text)), limit);
