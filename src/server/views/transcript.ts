/** A run as text: its transcript in Markdown, and its answer. */
import { findingText } from "./goal-report.ts";
import { isoTime } from "../../core/clock.ts";
import { fill } from "../../core/text.ts";
import { type AskedCall, objectText } from "../../runs/asked-words.ts";
import { type RunEvent, stepOf } from "../../runs/events.ts";
import { type RunView, endedEarly } from "../../runs/run.ts";
import { reviewedLine } from "../../runs/review-events.ts";
import { agentLabel } from "./request-words.ts";
import { limitWords } from "./limit-words.ts";
import { asText, code, fenced, quote } from "./quoting.ts";
import words from "./words.json" with { type: "json" };

/**
 * A run as Markdown: the task, what happened in order, the answer. Texts of people, models and files are
 * quoted, fenced or put in code, so that none of them can look like a line of the transcript.
 */
export function transcriptOf({ run, activity }: RunView, events: readonly RunEvent[]): string {
  const { endedAt, answer } = run;
  const end = endedAt === undefined ? `now ${code(activity)}` : `ended ${isoTime(endedAt)}`;
  const missing = (events[0]?.seq ?? 1) - 1;
  const blocks = [
    `# Run ${run.id}`,
    [`${run.status} · started ${isoTime(run.createdAt)} · ${end}`, ...chosenFor(run)].join(" · "),
    "## Task",
    quote(run.task),
    ...(run.goal === undefined ? [] : ["## Goal", quote(run.goal.join("\n"))]),
    "## What happened",
    ...(missing > 0 ? [`_${missing} earlier events are not shown._`] : []),
    ...events.flatMap(eventBlocks),
    ...(answer === undefined ? [] : ["## Answer", quote(answer)]),
  ];
  return `${blocks.join("\n\n")}\n`;
}

/** Names the choices for this run alone, and the schedule that started it. */
function chosenFor({ model, limits, schedule }: RunView["run"]): string[] {
  const words = limitWords(limits ?? {});
  return [
    ...(schedule === undefined ? [] : [`started by schedule ${code(schedule.name)}`]),
    ...(model === undefined ? [] : [`model ${code(model)}`]),
    ...(words.length === 0 ? [] : [`limit ${words.join(", ")}`]),
  ];
}

/** Returns the line of an event and the blocks below it; empty for events that only close another. */
function eventBlocks(event: RunEvent): string[] {
  const [line, ...details] = eventProse(event);
  if (line === undefined) return [];
  const agent = event.agent.length === 0 ? "" : ` ${code(agentLabel(event.agent))}`;
  return [`**${isoTime(event.time).slice(11, 19)}**${agent} ${line}`, ...details];
}

/** Describes an event for the transcript: its line, then the quotes below it. */
function eventProse(event: RunEvent): string[] {
  const { kind, data } = event;
  switch (kind) {
    case "run_completed":
      return [`The run ${data.stopReason === undefined ? "is complete" : endedEarly(data.stopReason)}.`];
    case "run_failed":
      return ["The run failed.", ...quoted(data.message)];
    case "run_cancelled":
      return ["The run was cancelled.", ...quoted(data.reason)];
    case "changes_reviewed":
      return [`${reviewedLine(data).replace(/^review: /, "After a review: ")}.`];
    case "subagent_started":
      return ["A subagent began.", ...quoted(data.description)];
    case "subagent_finished":
      return [`The subagent ${data.status === "error" ? "failed" : "reported"}.`, ...quoted(data.report)];
    case "tool_started":
      return [
        `called ${code(data.tool)}${data.within === undefined ? "" : " in its program"}: ${code(data.summary)}`,
      ];
    case "tool_finished":
      return data.status === "error" ? [`${code(data.tool)} failed.`] : [];
    case "model_called":
      return data.text === "" ? [] : ["said:", quote(data.text)];
    case "file_changed":
      return [`changed ${code(data.path)}.`, ...(data.diff ? [fenced(data.diff, "diff")] : [])];
    case "message_received":
      return ["got a message:", quote(data.text)];
    case "approval_requested":
      return [`requested approval of ${code(data.tool)}: ${asked(data.call) ?? code(data.summary)}`];
    case "approval_decided":
      return [`${asked(data.call) ?? code(data.tool)}: ${code(data.decision)}, decided by ${code(data.by)}.`];
    case "question_asked":
      return [fill(words.askedBy[data.kind], code(data.server ?? "")), quote(data.text)];
    case "question_answered":
      return [`was ${data.outcome}, by ${code(data.by)}.`, ...quoted(data.answer ?? "")];
    case "answer_refused":
      return [`A client's signed answer was not used: ${code(data.reason)}.`];
    case "compacted":
      return [
        `${data.how} ${data.messages} older messages${data.path ? `; they are kept in ${code(data.path)}` : ""}.`,
      ];
    case "goal_judged":
      return [`${stepOf(event)}.`, ...data.verdicts.map((finding) => quote(findingText(finding)))];
    case "model_retry":
    case "goal_ended":
      return [`${stepOf(event)}.`];
    case "warning":
      return ["Warning:", quote(data.message)];
    default:
      return words.plainEvents[kind];
  }
}

/** Returns undefined for requests of an older version. */
const asked = (call: AskedCall | undefined): string | undefined =>
  call && `${asText(call.act)} ${code(objectText(call))}`;

const quoted = (text: string): string[] => (text === "" ? [] : [quote(text)]);

/** The answer of a run as text; while there is none, where the run stands. */
export function reportOf({ run, activity }: RunView): string {
  if (run.status === "completed") return run.answer ?? "";
  return [`Run ${run.id} ${standing(run, activity)}`, run.answer ?? ""].join("\n\n").trim();
}

function standing({ status, failure, cancelReason }: RunView["run"], activity: string): string {
  if (status === "failed") return `failed: ${failure?.message ?? "no details"}`;
  if (status === "cancelled") return `was cancelled: ${cancelReason ?? "no reason given"}`;
  return `has not ended (${status}): ${activity}`;
}
