/** The request of a call that waits for approval: its fields, and the decision in their values. */
import { canonicalJson } from "../core/json.ts";
import { displayName, escapeHidden, fill } from "../core/text.ts";
import { isRecord, parsedJson } from "../core/unknown.ts";
import type { RuleOffer, RuledRequest } from "../rules/call.ts";
import type { CallRequest, CheckedAnswer, Field, PersonAnswer, PersonDecision, Value } from "./request.ts";
import texts from "./texts.json" with { type: "json" };

/** Longest arguments that a form field can hold for editing, in characters. */
export const MAX_EDITABLE = 8000;
const MAX_MESSAGE = 2000;

/** The decisions that a person may make about a call. `isWhole`: all of the call is shown; else it is not approved. */
export const offeredDecisions = (
  { allowedDecisions, same, ruled }: Pick<CallRequest, "allowedDecisions" | "same" | "ruled">,
  { isWhole } = { isWhole: true },
): PersonDecision["type"][] =>
  allowedDecisions
    .flatMap((decision): PersonDecision["type"][] =>
      decision === "approve"
        ? [
            decision,
            ...(same === undefined ? [] : ["approve_same" as const]),
            ...(offeredRules({ ruled }).length > 0 ? ["approve_always" as const] : []),
          ]
        : [decision],
    )
    .filter((decision) => isWhole || !isApproving(decision));

/** The fields of a form that decides on a call. None has a default that decides. */
export function callFields(call: CallRequest, offered = offeredDecisions(call)): Field[] {
  // The arguments on one line, if they fit into a form. Characters that it could hide are escaped: it stays JSON.
  const json = JSON.stringify(call.args);
  // Escaping takes long, and makes nothing shorter.
  const shown = json.length > MAX_EDITABLE ? json : escapeHidden(json);
  const args = shown.length > MAX_EDITABLE ? undefined : shown;
  const decisions = offered.filter((decision) => decision !== "edit" || args !== undefined);
  const isEditable = args !== undefined && decisions.includes("edit");
  const fields: Field[] = [];
  if (decisions.length > 0) {
    const description = isEditable ? { description: "edit: run it with the arguments changed below" } : {};
    const choice = { type: "choice" as const, options: decisions, required: true as const };
    fields.push({ name: "decision", title: "Decision", ...description, ...choice });
  }
  if (decisions.includes("approve_always")) {
    const options = offeredRules(call).map(ruleName);
    const labels = offeredRules(call).map((offer) => `${ruleName(offer)}: ${offer.sentence}`);
    const description = texts.ruleToSave;
    fields.push({ name: "rule", title: "Rule", description, type: "choice", options, labels });
  }
  if (isEditable) {
    const text = { type: "text" as const, maxLength: MAX_EDITABLE, initial: args };
    fields.push({ name: "edited_args", title: "Arguments (JSON)", description: "Only for edit", ...text });
  }
  const description = "Only for reject: why, and what to do instead";
  const text = { type: "text" as const, maxLength: MAX_MESSAGE };
  return [...fields, { name: "message", title: "Message to the agent", description, ...text }];
}

/** Reads a decision from the values of the fields. Nothing but a well-formed answer becomes one. */
export function readDecision(
  call: CallRequest,
  values: Readonly<Record<string, Value>>,
): CheckedAnswer<PersonDecision> {
  const { decision, edited_args: edited = "", message = "", rule } = values;
  const offered = offeredDecisions(call);
  const isKnown = ["approve", "approve_same", "approve_always", "edit", "reject"].some(
    (type) => type === decision,
  );
  if (!isKnown || typeof edited !== "string" || typeof message !== "string")
    return wrong("The answer was incomplete: choose a decision.");
  if (edited.length > MAX_EDITABLE || message.length > MAX_MESSAGE)
    return wrong(fill(texts.answerTooLong, MAX_EDITABLE, MAX_MESSAGE));
  if (decision === "reject")
    return checkDecision(call, { type: "reject", ...(message.trim() === "" ? {} : { message }) });
  const args = parsedJson(edited);
  if (decision === "edit") {
    if (edited.trim() === "") return wrong("To edit, write the changed arguments as a JSON object.");
    if (args === undefined) return wrong("The changed arguments are not valid JSON; nothing was run.");
    if (!isRecord(args)) return wrong("The changed arguments must be a JSON object; nothing was run.");
    return checkDecision(call, { type: "edit", editedAction: { name: call.tool, args } });
  }
  const chosen = offered.find((type) => type === decision);
  if (chosen !== "approve" && chosen !== "approve_same" && chosen !== "approve_always")
    return notOffered(call, String(decision));
  if (edited !== "" && (args === undefined || canonicalJson(args) !== canonicalJson(call.args)))
    return wrong("You changed the arguments but chose approve. Choose edit to run it with your changes.");
  if (chosen !== "approve_always") return { ok: true, answer: { type: chosen } };
  const [first] = offeredRules(call).map(ruleName);
  return checkDecision(call, { type: chosen, rules: [String(rule || first)] });
}

/** The rules that a person can save with the approval, the narrowest first. Each is shown as it is saved. */
export const offeredRules = ({ ruled }: { ruled?: RuledRequest | undefined }): RuleOffer[] =>
  (ruled?.offers ?? []).filter(
    // Every surface shows an offer of this length whole.
    (offer) => ruleName(offer) === displayName(ruleName(offer)) && JSON.stringify(offer).length <= 2000,
  );

/** Names an offer, for people and programs: its rules. */
export const ruleName = ({ rules }: Pick<RuleOffer, "rules">): string => rules.join(", ");

/** Checks that a decision is one of those that the call allows. The arguments of an edit are not checked. */
export function checkDecision(call: CallRequest, answer: PersonAnswer): CheckedAnswer<PersonDecision> {
  const chosen = offeredDecisions(call).find((type) => type === answer.type);
  if (chosen === undefined) return notOffered(call, answer.type);
  if (answer.type !== "approve_always") return { ok: true, answer: answer as PersonDecision }; // its type is one of theirs
  // A rule allows only calls that the person was shown.
  const offer = offeredRules(call).find((one) => ruleName(one) === ruleName(answer));
  return offer === undefined
    ? wrong(`This rule is not offered. Possible: ${offeredRules(call).map(ruleName).join("; ")}.`)
    : { ok: true, answer: { type: answer.type, rules: offer.rules } };
}

const notOffered = (call: CallRequest, type: string): CheckedAnswer<PersonDecision> =>
  wrong(fill(texts.impossibleDecision, type, call.tool, offeredDecisions(call).join(", ")));

const wrong = (message: string): CheckedAnswer<PersonDecision> => ({ ok: false, message });

/** Decisions that let the call run as it stands. */
const isApproving = (decision: PersonAnswer["type"]): boolean =>
  decision === "approve" || decision === "approve_same" || decision === "approve_always";

/** True if a decision lets the call run as it stands. An edit that changes nothing does, too. */
export const isAsItStands = (decision: PersonAnswer, { args }: Pick<CallRequest, "args">): boolean =>
  decision.type === "edit"
    ? canonicalJson(decision.editedAction.args) === canonicalJson(args)
    : isApproving(decision.type);
