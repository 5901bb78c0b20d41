import { z } from "zod";
import type { Approval, Decision } from "../../runs/run.ts";
import { canonical } from "../approval-form.ts";

/** What a person sent, read as a decision, or why it cannot be. */
export type PageDecision = { ok: true; decision: Decision } | { ok: false; problem: string };

const MAX_MESSAGE_CHARACTERS = 2000;
const Arguments = z.record(z.string(), z.unknown());

/** Only a pressed button decides. Approving with changed arguments is refused: they would be lost. */
export function pageDecision(approval: Approval, form: URLSearchParams): PageDecision {
  const decision = form.get("decision");
  const edited = form.get("edited_args");
  if (decision === "approve") {
    if (edited === null || isUnchanged(edited, approval)) return { ok: true, decision: { type: "approve" } };
    return {
      ok: false,
      problem: "You changed the arguments. Choose “Approve with changes”, or undo the changes.",
    };
  }
  if (decision === "reject") {
    const message = (form.get("message") ?? "").trim().slice(0, MAX_MESSAGE_CHARACTERS);
    return { ok: true, decision: { type: "reject", ...(message === "" ? {} : { message }) } };
  }
  if (decision === "edit" && edited !== null) return editOf(approval, edited);
  return { ok: false, problem: "No decision was sent. Press one of the buttons." };
}

function editOf(approval: Approval, edited: string): PageDecision {
  const args = Arguments.safeParse(parsed(edited));
  if (!args.success) {
    return { ok: false, problem: "The changed arguments are not a JSON object; nothing was run." };
  }
  return { ok: true, decision: { type: "edit", editedAction: { name: approval.tool, args: args.data } } };
}

function isUnchanged(edited: string, approval: Approval): boolean {
  return canonical(parsed(edited)) === canonical(approval.args);
}

/** `undefined` when it is not JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The arguments as a person edits them; characters that a browser does not show are escaped. */
export function editableArguments({ args }: Approval): string {
  return JSON.stringify(args, null, 2).replace(HIDDEN, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}

const HIDDEN = /[\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
