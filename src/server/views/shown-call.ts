/**
 * Describes the part of a call that a surface shows for approval, and whether that is all of it: only a surface that
 * shows the whole call may approve it.
 */
import { cutDiff, displayDiff } from "../../core/diff.ts";
import {
  beginningOf,
  cutMiddle,
  displayBlock,
  displayMarked,
  displayName,
  oneLine,
} from "../../core/text.ts";
import type { CallRequest } from "../../tools/request.ts";

export interface ShownCall {
  /** One line: what would happen. */
  summary: string;
  /** The file or folder that is touched, in full on a line of its own; empty for a call that names none. */
  destination: readonly string[];
  detail: string;
  /** All of these leave out nothing of the call. */
  isWhole: boolean;
}

/** The call as a surface shows it that has room for `limit` characters of its detail. */
export function shownCall({ preview }: Pick<CallRequest, "preview">, limit: number): ShownCall {
  const isDiff = preview.kind === "diff";
  const whole = isDiff ? displayDiff(preview.detail) : displayMarked(preview.detail);
  const detail = (isDiff ? cutDiff : cutMiddle)(whole, limit);
  // Notes of earlier versions that a part is missing. Unchanged lines of a diff may be cut.
  const isCut = /^(?! ).*not shown(?: …)?\]$/m.test(whole);
  return {
    summary: oneLine(displayName(beginningOf(preview.summary)), 400),
    destination: preview.destination === undefined ? [] : [`${TO}${displayName(preview.destination)}`],
    detail,
    isWhole: preview.isPart !== true && detail === whole && !isCut,
  };
}

/** Begins the line that names the destination. */
export const TO = "Destination: ";

/** Every argument of the call in full: texts as they are, anything else as JSON. */
export const callParts = ({ args }: Pick<CallRequest, "args">): { name: string; text: string }[] =>
  Object.entries(args).map(([name, value]) => ({
    name: displayName(name),
    text: typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? ""),
  }));

/** All arguments, one below the other, for a surface that shows text; empty where the detail is the whole call. */
export function restOf(call: CallRequest): string {
  if (shownCall(call, Infinity).isWhole) return "";
  const parts = callParts(call).map(({ name, text }) => `${name}:\n${displayBlock(text)}`);
  return ["The whole call, argument by argument:", ...parts].join("\n\n");
}
