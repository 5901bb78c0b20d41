/** Text that is cut, put on a line or shown. The page's script uses it too, so it needs nothing of Node. */
import { byValue } from "./by-identity.ts";

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

/** `text` without any `unit` at its end; an expression for that would take quadratic time. */
export function trimEndOf(text: string, unit: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === unit) end -= 1;
  return text.slice(0, end);
}

/**
 * Beginning of a text from outside, as far as quotes need it, whatever its length. Cuts between words. If the last word
 * is too long for that, drops its last characters: half a key would not be recognized as one.
 */
export function beginningOf(text: string): string {
  if (text.length <= MAX_LOOKED_AT) return text;
  const head = text.slice(0, MAX_LOOKED_AT);
  return headOf(head, Math.max(head.lastIndexOf(" "), head.lastIndexOf("\n"), MAX_LOOKED_AT - 2048));
}

const MAX_LOOKED_AT = 16_384;

/** The beginning of `text` on one line, control characters as blanks, cut to `limit` with an ellipsis. */
export function oneLine(text: string, limit: number): string {
  const beginning = beginningOf(text);
  const flat = beginning.replace(CONTROL_RUN, " ").trim();
  const isWhole = flat.length <= limit && beginning.length === text.length;
  return isWhole ? flat : `${headOf(flat, limit - 1)}…`;
}

/** The value of an environment variable, without blanks, line ends and quotes around it, which `docker --env-file` keeps. */
export const variableText = (text: string): string => text.trim().replace(/^(["'])([^]*)\1$/, "$2");

export const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** True if `names` has the name; one with `*` at its end stands for all names that begin so. */
export const hasName = (names: readonly string[], name: string): boolean =>
  names.some((known) => (known.endsWith("*") ? name.startsWith(known.slice(0, -1)) : known === name));

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
export const stripControl = (text: string): string => text.replace(UNSAFE, "");

/** `text` for a terminal: what `stripControl` takes away is shown as an escape, and every line ends with `\n`. */
export const showControl = (text: string): string => text.replace(/\r\n/g, "\n").replace(UNSAFE, escaped);

// oxlint-disable-next-line no-control-regex -- it matches control characters
const CONTROL_RUN = /[\s\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g;
// oxlint-disable-next-line no-control-regex -- it matches control characters
const UNSAFE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

function isHighSurrogate(text: string, index: number): boolean {
  const unit = text.charCodeAt(index);
  return unit >= 0xd800 && unit <= 0xdbff;
}

/** `text` with a replacement character for each half of a surrogate pair: they cannot be sent as JSON. */
export const wellFormed = (text: string): string => text.toWellFormed();

/** A name from a caller, as messages show it: one line, and no longer than any of ours. */
export const shownName = (name: string): string => oneLine(name, 80);

/** Escapes hidden characters the way JSON does. JSON stays the same JSON, and blanks stay as they are. */
export const escapeHidden = (text: string): string => text.replace(HIDDEN, escaped);

/**
 * A name on one line, with nothing in it that a person could overlook: hidden characters and blanks at its ends or in a
 * row are escaped. Typed into a JSON string, the shown form names the same file.
 */
export const displayName = (name: string): string =>
  escapeHidden(name)
    .replace(/[\t\n]/g, escaped)
    .replace(/ {2,}|^ | $/g, (blanks) => "\\u0020".repeat(blanks.length));

/** Escapes hidden characters, but no flag of England, Scotland or Wales: its letters are visible in it. */
const escapeProse = (text: string, regions: readonly string[] = ["gbeng", "gbsct", "gbwls"]): string => {
  const [region, ...others] = regions;
  if (region === undefined || !text.includes("\u{1f3f4}")) return escapeHidden(text);
  const letters = Array.from(region, (letter) => 0xe0000 + letter.charCodeAt(0));
  const flag = String.fromCodePoint(0x1f3f4, ...letters, 0xe007f);
  return text
    .split(flag)
    .map((part) => escapeProse(part, others))
    .join(flag);
};

/** Escapes hidden characters and counts long runs of blanks. Lines stay, and showing it again changes nothing. */
export const displayText = (text: string): string =>
  // Code is usually indented less. A shorter run pushes nothing out of sight.
  escapeProse(text).replace(/[ \t]{41,}/g, (run) => {
    const [blanks, tabs] = [run.includes(" "), run.includes("\t")];
    return `[${run.length} ${blanks && tabs ? "blanks and tabs" : blanks ? "blanks" : "tabs"}]`;
  });

/** `displayText` with marks for blanks and tabs at the end of a line, for people who approve a change. */
export const displayMarked = (text: string): string =>
  displayText(text).replace(/(?<![ \t])[ \t]{1,40}$/gm, (blanks) =>
    blanks.replaceAll(" ", "·").replaceAll("\t", "→"),
  );

/** `displayMarked` with long runs of empty lines counted, for texts whose lines have no numbers. */
export const displayBlock = (text: string): string =>
  displayMarked(text).replace(/\n{22,}/g, (lines) => `\n[${lines.length - 1} empty lines]\n`);

/** A joiner between two pictographs and the mark for colour behind one are visible, and not matched. */
const HIDDEN =
  /(?![ \t\n]|(?<=\p{Extended_Pictographic})\ufe0f|(?<=[\p{Extended_Pictographic}\ufe0f])\u200d(?=\p{Extended_Pictographic}))[\p{Default_Ignorable_Code_Point}\p{Separator}\p{Control}\u2800\ufff9-\ufffb\u{1d159}\p{Surrogate}]/gu;

/** The shown form of a hidden character, made once: a text may have millions of the same. */
const escaped = byValue((character: string): string => {
  const shown = JSON.stringify(character).slice(1, -1);
  if (shown !== character) return shown;
  return character.replace(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
});

/** Text from outside that can neither end nor begin a block of these names, which are plain words of ours. */
export const quotedIn = (names: readonly string[], text: string): string =>
  text.replaceAll(new RegExp(`<(?=\\s*(?:/\\s*)?(?:${names.join("|")})\\b)`, "gi"), () => "&lt;");

/** Puts values into the gaps `{}` of a text, in their order. */
export const fill = (text: string, ...values: readonly (string | number | undefined)[]): string =>
  text.split("{}").reduce((begin, rest, at) => `${begin}${values[at - 1]}${rest}`);

/** `12m 40s`, `3h 05m`, `42s`. */
export function duration(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  const days = Math.floor(hours / 24);
  const two = (value: number): string => String(value).padStart(2, "0");
  if (days > 0) return `${days}d ${two(hours % 24)}h`;
  if (hours > 0) return `${hours}h ${two(minutes % 60)}m`;
  return minutes > 0 ? `${minutes}m ${two(seconds % 60)}s` : `${seconds}s`;
}
