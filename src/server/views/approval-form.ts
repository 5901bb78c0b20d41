/** Shows a call that waits for approval, as text and as a form, and reads what the form says. */
import type { ElicitRequestFormParams } from "@modelcontextprotocol/server";
import { z } from "zod";
import { shortTime } from "../../core/clock.ts";
import { canonicalJson } from "../../core/json.ts";
import { displayName, escapeHidden, oneLine } from "../../core/text.ts";
import { parsedJson } from "../../core/unknown.ts";
import { type AgentPath, type Approval, type PersonDecision, agentName } from "../../runs/run.ts";
import { asText, indented } from "./quoting.ts";
import { type ShownCall, decisionsFor, isApproval, isAsItStands, shownCall } from "./shown-call.ts";

/** Longest arguments that a form field can hold for editing. */
export const MAX_EDITABLE_CHARACTERS = 8000;
/** `shown`: dialogs of clients do not scroll far. `same`: longer than any path with the words around it. */
const MAX = { shown: 6000, problem: 300, same: 5000, message: 2000 };

export interface FormPlace {
  runId: string;
  /** Counts from 1. */
  position: number;
  /** Number of approvals asked for now. */
  total: number;
  /** Why the last answer to this approval could not be taken. */
  problem?: string;
  /** Tells a person to decide in another place about a call too long for the form, such as `open http://…`. */
  elsewhere?: string;
}

/** Decision in an answered form, or the problem with it that makes the server ask again. */
export type FormAnswer = { ok: true; decision: PersonDecision } | { ok: false; problem: string };

/** True if a form shows all of the call, and so may approve it. */
export const isWholeInForm = (approval: Approval): boolean => inForm(approval).isWhole;

const inForm = (approval: Approval): ShownCall => shownCall(approval, MAX.shown);

/**
 * The form for one approval: who wants to do what, the real diff or command, and a decision without a
 * default, so that a client which accepts defaults unseen approves nothing. A form that does not show the whole call
 * does not approve it.
 */
export function approvalForm(approval: Approval, place: FormPlace): ElicitRequestFormParams {
  const editable = editableArguments(approval);
  const call = inForm(approval);
  const decisions = formDecisions(approval, call);
  const properties: ElicitRequestFormParams["requestedSchema"]["properties"] = {};
  if (decisions.length > 0) {
    properties["decision"] = {
      type: "string",
      title: "Decision",
      enum: decisions,
      ...(decisions.includes("edit") ? { description: "edit: run it with the arguments changed below" } : {}),
    };
  }
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
    maxLength: MAX.message,
  };
  return {
    mode: "form",
    message: formMessage(approval, place, call),
    requestedSchema: { type: "object", required: decisions.length > 0 ? ["decision"] : [], properties },
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
  const call = inForm(approval);
  const offered = formDecisions(approval, call);
  if (!offered.includes(decision)) {
    if (!call.isWhole && isApproval(decision)) return { ok: false, problem: NOT_SHOWN };
    return { ok: false, problem: `"${decision}" is not possible here; choose ${offered.join(" or ")}.` };
  }
  if (decision === "reject")
    return { ok: true, decision: { type: "reject", ...(message.trim() === "" ? {} : { message }) } };
  if (decision === "edit") {
    const read = editOf(approval, edited);
    const isUnseen = read.ok && !call.isWhole && isAsItStands(read.decision, approval);
    return isUnseen ? { ok: false, problem: NOT_SHOWN } : read;
  }
  const args = parsedJson(edited);
  if (edited !== "" && (args === undefined || canonicalJson(args) !== canonicalJson(approval.args))) {
    return {
      ok: false,
      problem: "You changed the arguments but chose approve. Choose edit to run it with your changes.",
    };
  }
  return { ok: true, decision: { type: decision } };
}

/** The agents on the way to `agent` with their tasks, outermost first. */
export const agentLabel = (agent: AgentPath): string =>
  labelOf(agent, (segment) => displayName(agentName(segment)));

/** Their types alone. */
export const agentTypes = (agent: AgentPath): string =>
  labelOf(agent, ({ name }) => displayName(oneLine(name, 64)));

const labelOf = (agent: AgentPath, name: (segment: AgentPath[number]) => string): string =>
  agent.length === 0 ? "main agent" : agent.map(name).join(" › ");

/** Agents by their tasks, in quotes: a task is a text of a model. `shown`: how such a text is shown. */
export const whoAsks = (agent: AgentPath, shown: (text: string) => string = displayName): string =>
  agent.map((segment) => `"${shown(agentName(segment))}"`).join(" › ") || "The main agent";

/** Describes the deadline of an approval; empty if it waits indefinitely. */
export const deadlineText = ({ expiresAt }: Approval): string[] =>
  expiresAt === undefined ? [] : [`Denied unless somebody decides by ${shortTime(expiresAt)}.`];

const Answer = z.object({
  decision: z.enum(["approve", "approve_same", "edit", "reject"]),
  edited_args: z.string().max(MAX_EDITABLE_CHARACTERS).optional(),
  message: z.string().max(MAX.message).optional(),
});

const TOO_LONG = `The answer was too long: arguments have at most ${MAX_EDITABLE_CHARACTERS} characters, a message ${MAX.message}.`;

/** Approving is offered only for calls that the form shows whole, editing for arguments that fit into it. */
function formDecisions(approval: Approval, call: ShownCall): PersonDecision["type"][] {
  const isEditable = editableArguments(approval) !== undefined;
  return decisionsFor(approval, call).filter((decision) => decision !== "edit" || isEditable);
}

function formMessage(approval: Approval, place: FormPlace, call: ShownCall): string {
  const decisions = formDecisions(approval, call);
  const same = asText(approval.same?.text ?? "call like this", MAX.same);
  const sameText = `approve_same: also every further ${same}, in this run, without asking again.`;
  const tooLongToEdit = approval.allowedDecisions.includes("edit") && !decisions.includes("edit");
  return [
    ...(place.problem === undefined ? [] : [asText(place.problem, MAX.problem), ""]),
    `${whoAsks(approval.agent, (text) => asText(text))} wants to run ${asText(approval.tool, 64)} (${EFFECTS[approval.preview.kind]}):`,
    asText(call.summary),
    "",
    indented([...call.destination.flatMap((line) => [line, ""]), call.detail].join("\n")),
    "",
    ...(call.isWhole ? [] : [notWhole(place.elsewhere)]),
    `run ${place.runId} · approval ${place.position} of ${place.total}`,
    ...(decisions.includes("approve_same") ? [sameText] : []),
    ...deadlineText(approval),
    ...(tooLongToEdit ? ["The arguments are too long to be edited in this form."] : []),
  ].join("\n");
}

const notWhole = (elsewhere = "decide on the page of the server or in its terminal"): string =>
  `This form is too small to show the whole call, so it cannot approve it. To see all of it and decide, ${elsewhere}; the run waits.`;

const NOT_SHOWN =
  "This form did not show the whole call, so it cannot approve it: decide where all of it is shown.";

const EFFECTS: Record<Approval["preview"]["kind"], string> = {
  diff: "changes a file",
  command: "runs a command",
  arguments: "calls a tool",
};

function editOf(approval: Approval, edited: string): FormAnswer {
  if (edited.trim() === "")
    return { ok: false, problem: "To edit, write the changed arguments as a JSON object." };
  const args = parsedJson(edited);
  if (args === undefined)
    return { ok: false, problem: "The changed arguments are not valid JSON; nothing was run." };
  const read = Arguments.safeParse(args);
  if (!read.success)
    return { ok: false, problem: "The changed arguments must be a JSON object; nothing was run." };
  return { ok: true, decision: { type: "edit", editedAction: { name: approval.tool, args: read.data } } };
}

/** Arguments as a person wrote them. */
export const Arguments = z.record(z.string(), z.unknown());

/**
 * The arguments on one line, if they fit into the form; characters that it could hide are escaped, which leaves
 * them JSON.
 */
function editableArguments({ args }: Approval): string | undefined {
  const json = JSON.stringify(args);
  // Escaping takes long, and makes nothing shorter.
  const shown = json.length > MAX_EDITABLE_CHARACTERS ? json : escapeHidden(json);
  return shown.length > MAX_EDITABLE_CHARACTERS ? undefined : shown;
}
