/** Asks a person in the terminal to decide on a call. */
import { displayName, displayText, oneLine } from "../../core/text.ts";
import { isRecord, parsedJson } from "../../core/unknown.ts";
import { askedCall } from "../../runs/asked-words.ts";
import type { Approval } from "../../runs/run.ts";
import { deadlineText, heldBackText, whoAsks } from "../../server/views/request-words.ts";
import { restOf, shownCall } from "../../server/views/shown-call.ts";
import { offeredDecisions, offeredRules, ruleName } from "../../tools/call-request.ts";
import type { PersonDecision } from "../../tools/request.ts";
import type { Asker } from "./asker.ts";
import { type BodyStyle, type RequestLines, diffBody, textBody, wrapped } from "./body.ts";
import { unbroken, wrapText } from "./text.ts";
import words from "./words.json" with { type: "json" };

type DecisionName = PersonDecision["type"];

const CHOICES: Readonly<Record<DecisionName, { key: string; label: string }>> = words.decisions;

/** The agent, the whole call, and further facts such as the deadline. */
export function approvalLines(approval: Approval, style: BodyStyle): RequestLines {
  const { agent, tool, preview, same } = approval;
  const { summary, destination, detail } = shownCall(approval, Infinity);
  const isSaid = askedCall(approval).kind === "file";
  const title = [
    ...(isSaid
      ? [`${whoAsks(agent)} wants to ${summary.charAt(0).toLowerCase()}${summary.slice(1)}`]
      : [`${whoAsks(agent)} wants to run ${oneLine(displayName(tool), 64)}:`, summary]),
    ...destination,
  ];
  const rest = restOf(approval);
  const notes = [
    ...(offeredDecisions(approval).includes("approve_same")
      ? [`approve for this run: also approves ${displayName(same?.text ?? "calls like this")}`]
      : []),
    ...heldBackText(approval),
    ...deadlineText(approval),
  ];
  return {
    title: title.flatMap((line) => wrapped(line, style)),
    body: [
      ...(preview.kind === "diff" ? diffBody(detail, style) : textBody(preview.lost ?? detail, style)),
      ...(rest === "" ? [] : ["", ...textBody(rest, style)]),
    ],
    notes: notes.flatMap((note) => wrapped(note, style)).map((line) => style.colors.dim(line)),
  };
}

/** The rules that can be saved with an approval, by their numbers; empty if there are none. */
export function offerLines(approval: Approval, style: BodyStyle): string[] {
  const lines = offeredRules(approval).flatMap((offer, at) => {
    const examples = offer.examples.map((example) => `such as ${displayName(example)}`);
    return [
      ...wrapped(`${at + 1}  ${ruleName(offer)}`, style).map(style.colors.bold),
      ...textBody([displayName(offer.sentence), ...examples].join("\n"), style),
    ];
  });
  return lines.length === 0 ? [] : ["", ...wrapped("Always allow with one of these rules:", style), ...lines];
}

/**
 * Asks until there is a decision. A key decides; content that exceeds the screen is shown in pages. `place`: such as
 * `2 of 3 waiting`.
 */
export async function askDecision(approval: Approval, place: string, asker: Asker, signal?: AbortSignal) {
  const { colors } = asker;
  const style = { colors, width: asker.size().columns };
  const decisions = offeredDecisions(approval);
  const { title, body: rest, notes } = approvalLines(approval, style);
  const head = ["", colors.yellow(`? Approval ${place}`), ...title, ""];
  const prompt = (): string => {
    const choices = [
      ...decisions.map((name) => CHOICES[name]),
      { key: "d", label: "details" },
      ...(rest.length > 0 ? [{ key: "space", label: `${rest.length} more lines` }] : []),
    ];
    const shown = choices.map(({ key, label }) => unbroken(`${colors.bold(colors.cyan(key))} ${label}`));
    return `${shown.join("  ")} › `;
  };
  const page = (): string[] => {
    const { rows, columns } = asker.size();
    const others = head.length + notes.length + wrapText(prompt(), columns - 1).length + 2;
    return rest.splice(0, Math.max(rows - others, 5));
  };
  asker.print([...head, ...page(), ...(notes.length > 0 ? ["", ...notes] : []), ""].join("\n"));
  for (let isFirst = true, isUnseenTold = false; ; isFirst = false) {
    const key = (await asker.key(prompt(), isFirst, signal)).toLowerCase();
    const choice = decisions.find((name) => CHOICES[name].key === key);
    if (key === " " && rest.length > 0) asker.print(page().join("\n"));
    if (key === "d") {
      const call = `${displayName(approval.tool)} ${displayText(JSON.stringify(approval.args, null, 2))}`;
      // The lines that were still to come follow, so that all of the call has been shown.
      asker.print([...textBody(`approval ${approval.id}\n${call}`, style), ...rest.splice(0)].join("\n"));
    }
    if (choice?.startsWith("approve") && rest.length > 0 && !isUnseenTold) {
      isUnseenTold = true;
      const warning = `${rest.length} lines not shown. Press ${key} again to approve without viewing them.`;
      asker.print(colors.yellow(wrapText(warning, style.width - 1).join("\n")));
      continue;
    }
    const decision =
      choice === undefined ? undefined : await completeDecision(choice, approval, asker, signal);
    if (decision === undefined) continue;
    asker.print(colors.dim(`› ${CHOICES[decision.type].label}`));
    return decision;
  }
}

/** Returns undefined if the person changed nothing, or wrote something other than a JSON object. */
async function completeDecision(
  type: DecisionName,
  approval: Approval,
  asker: Asker,
  signal: AbortSignal | undefined,
): Promise<PersonDecision | undefined> {
  const { tool, args } = approval;
  if (type === "reject") {
    const message = (await asker.line("Reason (optional) › ")).trim();
    return { type, ...(message === "" ? {} : { message }) };
  }
  if (type === "approve_always") {
    const style = { colors: asker.colors, width: asker.size().columns };
    asker.print(offerLines(approval, style).join("\n"));
    const number = await asker.key("Number of the rule (any other key goes back) › ", true, signal);
    const offer = offeredRules(approval)[Number(number) - 1];
    return offer && { type, rules: offer.rules };
  }
  if (type !== "edit") return { type };
  const name = TEXT_ARGUMENTS.find((key) => typeof args[key] === "string");
  const before = name === undefined ? JSON.stringify(args, null, 2) : String(args[name]);
  const after = await asker.edit(before, name === undefined ? "arguments.json" : `${name}.txt`);
  const edited: unknown = name === undefined ? parsedJson(after ?? "") : { ...args, [name]: after };
  if (after === undefined || after === before) asker.print("Nothing was changed.");
  else if (isRecord(edited)) return { type, editedAction: { name: tool, args: edited } };
  else asker.print(asker.colors.yellow("The edited arguments are not a JSON object. Nothing was run."));
  return undefined;
}

/** The argument a person wants to see as text rather than as an escaped JSON string. */
const TEXT_ARGUMENTS = ["content", "new_string", "command"];
