/** Shows a call that waits for approval, as text and as a form, and reads what the form says. */
import type { ElicitRequestFormParams } from "@modelcontextprotocol/server";
import { z } from "zod";
import { shortTime } from "../../core/clock.ts";
import { canonicalJson } from "../../core/json.ts";
import { cutDiff } from "../../core/diff.ts";
import { beginningOf, cutMiddle, displayName, displayText, oneLine } from "../../core/text.ts";
import {
  type AgentPath,
  type Approval,
  type PersonDecision,
  agentName,
  offeredDecisions,
} from "../../runs/run.ts";

/** Longest arguments that a form field can hold for editing. */
export const MAX_EDITABLE_CHARACTERS = 8000;
const MAX_DETAIL_CHARACTERS = 6000;
const MAX_SUMMARY_CHARACTERS = 300;
const MAX_MESSAGE_CHARACTERS = 2000;

export interface FormPlace {
  runId: string;
  /** Counts from 1. */
  position: number;
  /** How many approvals are asked for now. */
  total: number;
  /** Why the last answer to this approval could not be taken. */
  problem?: string;
}

/** What a person answered, or why the answer cannot be taken and they are asked again. */
export type FormAnswer = { ok: true; decision: PersonDecision } | { ok: false; problem: string };

/**
 * The form for one approval: who wants to do what, the real diff or command, and a decision without a
 * default, so that a client which accepts defaults unseen approves nothing.
 */
export function approvalForm(approval: Approval, place: FormPlace): ElicitRequestFormParams {
  const editable = editableArguments(approval);
  const decisions = formDecisions(approval);
  const properties: ElicitRequestFormParams["requestedSchema"]["properties"] = {
    decision: {
      type: "string",
      title: "Decision",
      enum: decisions,
      ...(decisions.includes("edit") ? { description: "edit: run it with the arguments changed below" } : {}),
    },
  };
  if (editable !== undefined && decisions.includes("edit")) {
    properties["edited_args"] = {
      type: "string",
      title: "Arguments (JSON)",
      description: "Only for edit",
      maxLength: MAX_EDITABLE_CHARACTERS,
      default: editable,
    };
  }
  properties["message"] = {
    type: "string",
    title: "Message to the agent",
    description: "Only for reject: why, and what to do instead",
    maxLength: MAX_MESSAGE_CHARACTERS,
  };
  return {
    mode: "form",
    message: formMessage(approval, place, decisions),
    requestedSchema: { type: "object", required: ["decision"], properties },
  };
}

/** Reads the accepted content of a form. Nothing but a well-formed answer becomes a decision. */
export function decisionOf(approval: Approval, content: unknown): FormAnswer {
  const parsed = Answer.safeParse(content);
  if (!parsed.success) {
    const isTooLong = parsed.error.issues.some(({ code }) => code === "too_big");
    return { ok: false, problem: isTooLong ? TOO_LONG : "The answer was incomplete: choose a decision." };
  }
  const { decision, edited_args: edited = "", message = "" } = parsed.data;
  const offered = formDecisions(approval);
  if (!offered.includes(decision)) {
    return { ok: false, problem: `"${decision}" is not possible here; choose ${offered.join(" or ")}.` };
  }
  if (decision === "reject") {
    return { ok: true, decision: { type: "reject", ...(message.trim() === "" ? {} : { message }) } };
  }
  if (decision === "edit") return editOf(approval, edited);
  if (edited !== "" && !sameArguments(edited, approval)) {
    return {
      ok: false,
      problem: "You changed the arguments but chose approve. Choose edit to run it with your changes.",
    };
  }
  return { ok: true, decision: { type: decision } };
}

/** The agents on the way to `agent` with their tasks, outermost first. */
export const agentLabel = (agent: AgentPath): string => labelOf(agent, agentName);

/** Their types alone. */
export const agentTypes = (agent: AgentPath): string => labelOf(agent, ({ name }) => oneLine(name, 64));

const labelOf = (agent: AgentPath, name: (segment: AgentPath[number]) => string): string =>
  agent.length === 0 ? "main agent" : agent.map(name).join(" › ");

/** Agents by their tasks, in quotes: a task is a text of a model. */
export const whoAsks = (agent: AgentPath): string =>
  agent.map((segment) => `"${oneLine(displayName(agentName(segment)), 130)}"`).join(" › ") ||
  "The main agent";

/** What `approve_same` allows beyond the call itself. */
const sameText = ({ same }: Approval): string =>
  `approve_same: also every further ${same?.text ?? "call like this"}, in this run, without asking again.`;

/** What happens when nobody decides; nothing for an approval that waits for as long as it takes. */
export const deadlineText = ({ expiresAt }: Approval): string[] =>
  expiresAt === undefined ? [] : [`Denied unless somebody decides by ${shortTime(expiresAt)}.`];

const Answer = z.object({
  decision: z.enum(["approve", "approve_same", "edit", "reject"]),
  edited_args: z.string().max(MAX_EDITABLE_CHARACTERS).optional(),
  message: z.string().max(MAX_MESSAGE_CHARACTERS).optional(),
});

const TOO_LONG = `The answer was too long: arguments have at most ${MAX_EDITABLE_CHARACTERS} characters, a message ${MAX_MESSAGE_CHARACTERS}.`;

/** Editing is offered only for arguments that fit into the form. */
function formDecisions(approval: Approval): PersonDecision["type"][] {
  const isEditable = editableArguments(approval) !== undefined;
  return offeredDecisions(approval).filter((decision) => decision !== "edit" || isEditable);
}

function formMessage(approval: Approval, place: FormPlace, decisions: readonly string[]): string {
  const { kind, summary, detail } = approval.preview;
  const tooLongToEdit = approval.allowedDecisions.includes("edit") && !decisions.includes("edit");
  return [
    ...(place.problem === undefined ? [] : [oneLine(place.problem, MAX_SUMMARY_CHARACTERS), ""]),
    `${whoAsks(approval.agent)} wants to run ${oneLine(displayName(approval.tool), 64)} (${EFFECTS[kind]}):`,
    plainText(oneLine(displayText(beginningOf(summary)), MAX_SUMMARY_CHARACTERS)),
    "",
    indented(detailInForm(detail, kind === "diff")),
    "",
    `run ${place.runId} · approval ${place.position} of ${place.total}`,
    ...(decisions.includes("approve_same") ? [sameText(approval)] : []),
    ...deadlineText(approval),
    ...(tooLongToEdit ? ["The arguments are too long to be edited in this form."] : []),
  ].join("\n");
}

/** What a call would do, as far as a form shows it. */
export const detailInForm = (detail: string, isDiff: boolean): string =>
  displayText((isDiff ? cutDiff : cutMiddle)(detail, MAX_DETAIL_CHARACTERS));

const EFFECTS: Record<Approval["preview"]["kind"], string> = {
  diff: "changes a file",
  command: "runs a command",
  arguments: "calls a tool",
};

/** Indented as a Markdown code block, out of which no content can break. */
function indented(text: string): string {
  return text.replace(/^/gm, "    ");
}

/** Without Markdown links: what follows a `]` could otherwise hide behind harmless words. */
function plainText(text: string): string {
  return text.replaceAll("](", "] (");
}

function editOf(approval: Approval, edited: string): FormAnswer {
  if (edited.trim() === "") {
    return { ok: false, problem: "To edit, write the changed arguments as a JSON object." };
  }
  let value: unknown;
  try {
    value = JSON.parse(edited);
  } catch {
    return { ok: false, problem: "The changed arguments are not valid JSON; nothing was run." };
  }
  const args = Arguments.safeParse(value);
  if (!args.success) {
    return { ok: false, problem: "The changed arguments must be a JSON object; nothing was run." };
  }
  return { ok: true, decision: { type: "edit", editedAction: { name: approval.tool, args: args.data } } };
}

const Arguments = z.record(z.string(), z.unknown());

/**
 * The arguments on one line, if they fit into the form; characters that it could hide are escaped, which leaves
 * them JSON.
 */
function editableArguments({ args }: Approval): string | undefined {
  const json = JSON.stringify(args);
  // Escaping takes long, and makes nothing shorter.
  const shown = json.length > MAX_EDITABLE_CHARACTERS ? json : displayName(json);
  return shown.length > MAX_EDITABLE_CHARACTERS ? undefined : shown;
}

function sameArguments(edited: string, approval: Approval): boolean {
  try {
    return canonicalJson(JSON.parse(edited)) === canonicalJson(approval.args);
  } catch {
    return false;
  }
}
