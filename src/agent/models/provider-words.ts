/** Words of providers: with which they refuse a request, and with which they end an answer. */

import type { ModelFailureReason } from "../contracts/state.ts";
import words from "./profiles/words.json" with { type: "json" };

/** The cause that a refusal names; the file describes each. */
export type RefusalKind = keyof typeof words.causes;

/**
 * The causes in the order in which they are looked for; the first match decides. Exact words come before vague ones. In
 * a row, `text` is looked for in the message of a refusal, and `code` in each of its codes and types.
 */
const REFUSALS = words.refusals.flatMap(({ kind, rows }) =>
  rows.map(({ text, code }: { text?: string; code?: string }) => ({
    kind: kind as RefusalKind, // `provider-words.test.ts` checks the file
    text: text === undefined ? undefined : new RegExp(text, "i"),
    code: code === undefined ? undefined : new RegExp(code, "i"),
  })),
);

/**
 * The cause that a refusal names; `undefined` if its words are not known. Two statuses take precedence: 402 is about
 * money, and after 413 the request must become smaller, even if the message names a limit of tokens per minute. Only a
 * picture can be too large by itself.
 */
export function refusalKind(codes: readonly string[], text: string, status?: number) {
  const found = REFUSALS.find((row) => row.text?.test(text) || codes.some((code) => row.code?.test(code)));
  const said = found?.kind;
  if (status === 402) return "quota";
  return status === 413 && said !== "media" ? "overflow" : said;
}

/** The run failure's reason for each cause, and its HTTP status where a refusal comes without one. */
export const CAUSES = words.causes as Record<RefusalKind, { reason: ModelFailureReason; status?: number }>; // as above

/**
 * Patterns for the token counts in messages of refusals: of the request, of the window, and of the answer if it counts
 * too. Patterns of one list follow each other in the text.
 */
export const TOLD_COUNTS = words.counts.map(({ patterns }) => patterns.map((form) => new RegExp(form, "i")));

/**
 * True if an answer that ended for this reason is whole, cut at a limit, or refused. Any other one means that the answer
 * broke off: `error`, DeepSeek's `insufficient_system_resource`, Zhipu's `network_error`, `abort` of vLLM. LangChain joins
 * repeated reasons.
 */
export function isEnd(reason: string): boolean {
  const said = reason.toLowerCase();
  return words.ends.some((end) => end.repeat(said.length / end.length) === said);
}
