/** Parses searches for words, and picks the text of a value that they look at. */
import { oneLine, tailOf } from "../../core/text.ts";

/**
 * Scripts written without spaces, or whose words end in particles, are found by pairs of characters: the
 * usual way, as the index cuts such text into sentences. Pictures are treated alike.
 */
const UNSPACED =
  /(?:(?=[\p{L}\p{M}])[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Hangul}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmer}\p{scx=Myanmar}]|\p{Extended_Pictographic})+/gu;

/** The runs of such characters in a text, each as its pairs and its last character. */
export function gramRuns(text: string): { pairs: string[]; last: string }[] {
  let left = 100_000;
  const runs: { pairs: string[]; last: string }[] = [];
  for (const run of unspacedRuns(text)) {
    if (left <= 0) break;
    runs.push({ pairs: neighbors(run.slice(0, left)), last: run.at(-1) ?? "" });
    left -= run.length;
  }
  return runs;
}

/** The pairs of characters of `text`, in their order and separated by spaces; most often there are none. */
export const characterPairs = (text: string): string =>
  gramRuns(text)
    // A "0" between two runs, so that no phrase matches across both.
    .flatMap(({ pairs, last }) => [pairs.join(" "), last, "0"])
    .join(" ");

/** FTS5 expressions, any of which may match, of what `words` have in these scripts. */
function gramTerms(words: readonly string[]): string[] {
  const runs = unspacedRuns(words.join(" "));
  const terms = runs.flatMap((run) => {
    if (run.length === 1) return [`"${run[0]}"*`];
    const pairs = neighbors(run);
    // Longer runs of a query are mostly sentences, of which any part counts.
    return [`"${pairs.join(" ")}"`, ...(run.length > 3 ? pairs.map((pair) => `"${pair}"`) : [])];
  });
  return [...new Set(terms)].slice(0, 32);
}

/** The runs of such characters. Keyboards and file systems write the same ones in several ways. */
function unspacedRuns(text: string): string[][] {
  if (text.search(UNSPACED) < 0) return [];
  return (text.normalize("NFKC").match(UNSPACED) ?? []).map((run) => Array.from(run));
}

const neighbors = (run: readonly string[]): string[] =>
  run.slice(1).map((next, index) => `${run[index]}${next}`);

/** The words and phrases of a full-text search. */
export interface TextQuery {
  /** FTS5 expressions for the index of words, any of which may match. */
  terms: string[];
  /** Likewise for the index of scripts without spaces. */
  grams: string[];
  words: string[];
}

const SNIPPET_LENGTH = 240;

/** Reads the text of a person or a model; nothing in it counts as syntax. */
export function parseQuery(query: string): TextQuery {
  const written = [...new Set(query.split(/[\s\p{C}]+/u))].filter(Boolean).slice(0, 32);
  // The index folds in its own way, so it gets the words as they were written.
  // A letter with its accent is one character or two, depending on the keyboard; the index treats these as different.
  const terms = [
    ...new Set(
      written
        .filter((word) => /[\p{L}\p{N}]/u.test(word))
        .flatMap((word) => [word, word.normalize("NFC"), word.normalize("NFD")])
        .map((word) => {
          const quoted = `"${word.replaceAll('"', '""')}"`;
          const lastToken = tokenize(word).at(-1) ?? "";
          // Shorter words match whole words only, not the beginning of longer ones.
          return lastToken.length >= 3 ? `${quoted}*` : quoted;
        }),
    ),
  ];
  return { terms, grams: gramTerms(written), words: written.map(fold) };
}

/** The words of a text, as they stand. */
export const tokenize = (word: string): string[] => word.match(/[\p{L}\p{N}\p{M}]+/gu) ?? [];

/** Small letters, and without accents in alphabets that have them; every character keeps its place. */
export const fold = (text: string): string =>
  text.replace(/[A-Z\u0080-\u1fff]/g, (unit) => unit.normalize("NFD").charAt(0).toLowerCase().charAt(0));

export const snippet = (text: string): string => oneLine(text, SNIPPET_LENGTH);

/** The text around the first occurrence of the longest word found, on one line. */
export function excerpt(text: string, { words }: TextQuery): string {
  const folded = fold(text);
  const byLength = words.flatMap((word) => [word, ...tokenize(word)]).sort((a, b) => b.length - a.length);
  const at = byLength.map((word) => firstWord(folded, word)).find((index) => index >= 0) ?? 0;
  const start = Math.max(0, at - Math.floor(SNIPPET_LENGTH / 3));
  const rest = tailOf(text, text.length - start).trimStart();
  return snippet(`${start > 0 ? "…" : ""}${rest}`);
}

/** First position of `word` by itself, else at the beginning of a word, else inside a word, else -1. */
function firstWord(text: string, word: string): number {
  let beginning = -1;
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
    if (at > 0 && isOfWord(text.charAt(at - 1))) continue;
    if (!isOfWord(text.charAt(at + word.length))) return at;
    if (beginning < 0) beginning = at;
  }
  return beginning >= 0 ? beginning : text.indexOf(word);
}

const isOfWord = (unit: string): boolean => /[\p{L}\p{N}]/u.test(unit);

/**
 * Text of a stored value for the full-text search: `null` for the text in `content`, which the index reads itself.
 * Bytes have no text. `fields` are paths such as `title` or `parts[*].text`.
 */
export function textToIndex(value: Record<string, unknown>, fields?: readonly string[]): string | null {
  if (fields !== undefined)
    return fields.flatMap((field) => valuesAt(value, field).flatMap(strings)).join("\n");
  const { content, encoding } = value;
  if (encoding === "base64") return "";
  if (typeof content === "string") return null;
  return strings(content === undefined ? value : content).join("\n");
}

/** The part of a text that is searched, in characters: more would hold up whoever writes it. */
export const SEARCHED_LENGTH = 200_000;

/** All that a full-text search finds of a stored value. */
export function searchedText(value: Record<string, unknown>, fields?: readonly string[]): string {
  const text = textToIndex(value, fields) ?? value["content"];
  return typeof text === "string" ? text.slice(0, SEARCHED_LENGTH) : "";
}

function strings(value: unknown): string[] {
  if (typeof value === "string") return [value];
  if (typeof value === "number") return [String(value)];
  if (Array.isArray(value)) return value.flatMap(strings);
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(strings) : [];
}

/**
 * Values at a path such as `title`, `parts[*].text`, `list[-1]`, `any.*`, `{title,by.name}`; `$` is the whole value.
 */
export function valuesAt(value: unknown, path: string): unknown[] {
  const steps = path === "$" ? [] : (path.match(/\{[^{}]*\}|[^.[\]{}]+|\[[^[\]]*\]/g) ?? []);
  let reached = [value];
  for (const step of steps) reached = reached.flatMap((one) => childrenAt(one, step));
  return reached;
}

function childrenAt(value: unknown, step: string): unknown[] {
  if (step.startsWith("{")) {
    const fields = step.slice(1, -1).split(",");
    return fields.flatMap((field) => valuesAt(value, field.trim()));
  }
  if (step.startsWith("[")) {
    if (!Array.isArray(value)) return [];
    const list: unknown[] = value;
    return step === "[*]" ? list : [list.at(Number(step.slice(1, -1)))];
  }
  if (step === "*") return typeof value === "object" && value !== null ? Object.values(value) : [];
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, step)) return [];
  return [Object.entries(value).find(([key]) => key === step)?.[1]];
}
