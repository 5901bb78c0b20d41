/** The first `limit` UTF-16 units of `text`, never ending inside a surrogate pair. */
export function headOf(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const cut = isHighSurrogate(text, limit - 1) ? limit - 1 : limit;
  return text.slice(0, Math.max(cut, 0));
}

/** The last `limit` UTF-16 units of `text`, never starting inside a surrogate pair. */
export function tailOf(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const start = text.length - limit;
  return text.slice(isHighSurrogate(text, start - 1) ? start + 1 : start);
}

/** `text` on one line, control characters as blanks, cut to `limit` with an ellipsis. */
export function oneLine(text: string, limit: number): string {
  const flat = text.replace(CONTROL_RUN, " ").trim();
  return flat.length <= limit ? flat : `${headOf(flat, limit - 1)}…`;
}

/** The first sentence of `text`, on one line of at most `limit` units. */
export const firstSentence = (text: string, limit: number): string =>
  oneLine(
    headOf(text, 4 * limit)
      .trim()
      .split(/(?<=[.!?])\s|\n/, 1)[0] ?? "",
    limit,
  );

/** `text` cut in the middle to about `limit` units; the cut names how much is missing. */
export function cutMiddle(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const half = Math.floor(limit / 2);
  const missing = text.length - 2 * half;
  return `${headOf(text, half)}\n[… ${missing} of ${text.length} characters not shown …]\n${tailOf(text, half)}`;
}

/** `text` without control characters other than tab and newline, and without bidirectional overrides. */
export function stripControl(text: string): string {
  return text.replace(UNSAFE, "");
}

// oxlint-disable-next-line no-control-regex -- control characters are what this is about
const CONTROL_RUN = /[\s\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g;
// oxlint-disable-next-line no-control-regex -- control characters are what this is about
const UNSAFE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

function isHighSurrogate(text: string, index: number): boolean {
  const unit = text.charCodeAt(index);
  return unit >= 0xd800 && unit <= 0xdbff;
}

/** `text` with a replacement character for each half of a surrogate pair: they cannot be sent as JSON. */
export const wellFormed = (text: string): string => text.replaceAll(/\p{Surrogate}/gu, "\uFFFD");

/** A name that a caller gave, as messages show it: one line, and no longer than any of ours. */
export const shownName = (name: string): string => oneLine(name, 80);

const ORDINALS = new Intl.PluralRules("en", { type: "ordinal" });
const SUFFIXES: Readonly<Partial<Record<Intl.LDMLPluralRule, string>>> = { one: "st", two: "nd", few: "rd" };

/** Such as `3rd`. */
export const ordinal = (count: number): string => `${count}${SUFFIXES[ORDINALS.select(count)] ?? "th"}`;
