import { setImmediate as nextTurn } from "node:timers/promises";
import { oneLine, tailOf } from "../../../core/text.ts";
import type { ItemPosition, ItemRow, MatchRow, NamespaceRange, StoreStatements, TextIndex } from "./items.ts";

/**
 * Scripts written without spaces, or whose words end in particles, are found by pairs of characters: the
 * usual way, as the index cuts such text into sentences. Pictures are treated alike.
 */
const UNSPACED =
  /(?:(?=[\p{L}\p{M}])[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Hangul}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmer}\p{scx=Myanmar}]|\p{Extended_Pictographic})+/gu;

/** Characters of one text whose pairs are kept. */
const MAX_CHARACTERS = 100_000;
/** Longer runs of a query are mostly sentences, of which any part counts. */
const LONGEST_WORD = 3;
/** Pairs of one query. */
const MAX_PAIRS = 32;
/** Separates two runs, so that no phrase matches across both. */
const BORDER = "0";

/** The pairs of characters of `text`, in their order and separated by spaces; most often there are none. */
export function gramsOf(text: string): string {
  let left = MAX_CHARACTERS;
  const grams: string[] = [];
  for (const run of runsOf(text)) {
    if (left <= 0) break;
    const pairs = pairsOf(run.slice(0, left));
    left -= run.length;
    // The last character begins no pair, and is found by itself.
    grams.push(pairs.join(" "), run.at(-1) ?? "", BORDER);
  }
  return grams.join(" ");
}

/** FTS5 expressions, any of which may match, of what `words` have in these scripts. */
export function gramTerms(words: readonly string[]): string[] {
  const runs = runsOf(words.join(" "));
  const terms = runs.flatMap((run) => {
    if (run.length === 1) return [`"${run[0]}"*`];
    const pairs = pairsOf(run);
    return [`"${pairs.join(" ")}"`, ...(run.length > LONGEST_WORD ? pairs.map((pair) => `"${pair}"`) : [])];
  });
  return [...new Set(terms)].slice(0, MAX_PAIRS);
}

/** The runs of such characters. Keyboards and file systems write the same ones in several ways. */
function runsOf(text: string): string[][] {
  if (text.search(UNSPACED) < 0) return [];
  return (text.normalize("NFKC").match(UNSPACED) ?? []).map((run) => Array.from(run));
}

const pairsOf = (run: readonly string[]): string[] =>
  run.slice(1).map((next, index) => `${run[index]}${next}`);

/** What a full-text search looks for. */
export interface TextQuery {
  /** FTS5 expressions for the index of words, any of which may match. */
  terms: string[];
  /** Likewise for the index of scripts without spaces. */
  grams: string[];
  /** All words of the query, folded. */
  words: string[];
}

/** The most words of a query; more would cost time and find nothing better. */
const MAX_WORDS = 32;
/** Shorter words match whole words only, not the beginning of longer ones. */
const MIN_PREFIX = 3;
const SNIPPET_LENGTH = 240;

/** Reads the text of a person or a model; nothing in it counts as syntax. */
export function parseQuery(query: string): TextQuery {
  const written = [...new Set(query.split(/[\s\p{C}]+/u))].filter(Boolean).slice(0, MAX_WORDS);
  // The index folds in its own way, so it gets the words as they were written.
  const terms = [
    ...new Set(
      written
        .filter((word) => /[\p{L}\p{N}]/u.test(word))
        .flatMap(spellings)
        .map(toTerm),
    ),
  ];
  return { terms, grams: gramTerms(written), words: written.map(fold) };
}

/** A letter with its accent is one character or two, as keyboards and systems write it; the index tells them apart. */
const spellings = (word: string): string[] => [word, word.normalize("NFC"), word.normalize("NFD")];

function toTerm(word: string): string {
  const quoted = `"${word.replaceAll('"', '""')}"`;
  const lastToken = tokensOf(word).at(-1) ?? "";
  return lastToken.length >= MIN_PREFIX ? `${quoted}*` : quoted;
}

const tokensOf = (word: string): string[] => word.match(/[\p{L}\p{N}\p{M}]+/gu) ?? [];

/** Small letters, and without accents in alphabets that have them; every character keeps its place. */
export function fold(text: string): string {
  return text.replace(/[A-Z\u0080-\u1fff]/g, (unit) =>
    unit.normalize("NFD").charAt(0).toLowerCase().charAt(0),
  );
}

/** The beginning of a text, on one line. */
export const snippetOf = (text: string): string => oneLine(text, SNIPPET_LENGTH);

/** The text around the first occurrence of the longest word found, on one line. */
export function excerpt(text: string, { words }: TextQuery): string {
  const folded = fold(text);
  const byLength = words.flatMap((word) => [word, ...tokensOf(word)]).sort((a, b) => b.length - a.length);
  const at = byLength.map((word) => firstWord(folded, word)).find((index) => index >= 0) ?? 0;
  const start = Math.max(0, at - Math.floor(SNIPPET_LENGTH / 3));
  const rest = tailOf(text, text.length - start).trimStart();
  return snippetOf(`${start > 0 ? "…" : ""}${rest}`);
}

/** Where `word` stands by itself, else where it begins a word, else where it is a part of one, else -1. */
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
 * What a full-text search finds of a stored value: `null` when it is the text in `content`, which the
 * index reads itself. Bytes have no text. `fields` are paths such as `title` or `parts[*].text`.
 */
export function textToIndex(value: Record<string, unknown>, fields?: readonly string[]): string | null {
  if (fields !== undefined) return fields.flatMap((field) => textsAt(value, field)).join("\n");
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

const textsAt = (value: unknown, path: string): string[] => valuesAt(value, path).flatMap(strings);

/** What is at a path such as `title`, `parts[*].text`, `list[-1]`, `any.*`, `{title,by.name}`, or with `$` all of it. */
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

/** Rows looked at between two turns of the event loop. */
const ROWS_PER_TURN = 128;
/** Matches ranked between two turns. */
const MATCHES_PER_TURN = 500;
/** Matches that are compared with each other. A word with more matches says little about any of them. */
const COMPARED = 500;
/** Frequent words that count in the order of matches: each takes a look at all that have it. */
const FREQUENT_WORDS = 2;
/** The constant of reciprocal rank fusion; the higher, the less the first places of a list differ. */
const FUSION = 60;

/** An item found by its words; higher scores are better, 0 is a match inside a word. */
export interface RankedItem {
  id: number;
  score: number;
}

/** Every item of the range in order, read in pieces so that a long range does not hold up other work. */
export async function* itemsOf(
  sql: StoreStatements,
  range: NamespaceRange,
  now: number,
): AsyncGenerator<ItemRow> {
  const readAfter = (after: ItemPosition) =>
    sql.itemsAfter.all({ ...after, to: range.to, limit: ROWS_PER_TURN, now });
  yield* inPieces(readAfter, range);
}

/**
 * The items of the range that contain any word of the query, best first. When there is none, those with all
 * of its words as parts of others.
 */
export async function rankItems(
  sql: StoreStatements,
  range: NamespaceRange,
  { terms, grams, words }: TextQuery,
  { limit, now }: { limit: number; now: number },
): Promise<RankedItem[]> {
  const wanted = Math.max(limit, COMPARED);
  const byWords = await first(wanted, bestFirst(sql.words, terms, range, now));
  const byGrams = await first(wanted, bestFirst(sql.grams, grams, range, now));
  const ranked = byGrams.length === 0 ? byWords : fuse([byWords, byGrams]);
  if (ranked.length > 0 || words.length === 0) return ranked.slice(0, limit);
  const readAfter = (after: ItemPosition) =>
    sql.textsAfter.all({ ...after, to: range.to, limit: ROWS_PER_TURN, now });
  for await (const { id, text } of inPieces(readAfter, range)) {
    if (ranked.length >= limit) break;
    const folded = fold(text);
    if (words.every((word) => folded.includes(word))) ranked.push({ id, score: 0 });
  }
  return ranked;
}

/** Several orders of items as one, by their places: who stands before others in more of them comes first. */
export function fuse(lists: readonly (readonly { id: number }[])[]): RankedItem[] {
  const scores = new Map<number, number>();
  for (const list of lists) {
    for (const [place, { id }] of list.entries()) {
      scores.set(id, (scores.get(id) ?? 0) + 1 / (FUSION + place + 1));
    }
  }
  return [...scores].map(([id, score]) => ({ id, score })).sort((a, b) => b.score - a.score);
}

/**
 * The items that match any of the terms: first those with one that is not frequent, then the others; of very
 * many matches the newest first. They are compared `COMPARED` at a time, so that a word of every item costs
 * no more than a rare one. Scores follow the order.
 */
async function* bestFirst(
  index: TextIndex,
  terms: readonly string[],
  range: NamespaceRange,
  now: number,
): AsyncGenerator<RankedItem> {
  const known = new Set<number>();
  let lowest = Infinity;
  for (const match of await expressions(index, terms)) {
    for await (const rows of compared(index, match, range, now)) {
      for (const { id, rank } of rows.sort(byRank)) {
        if (known.has(id)) continue;
        known.add(id);
        lowest = Math.min(lowest, -rank);
        yield { id, score: lowest };
      }
    }
  }
}

async function expressions(index: TextIndex, terms: readonly string[]): Promise<string[]> {
  const rare: string[] = [];
  const frequent: string[] = [];
  for (const term of terms) {
    const count = index.count.get({ match: term, limit: COMPARED }) ?? 0;
    (count < COMPARED ? rare : frequent).push(term);
    if (terms.length > 1) await nextTurn();
  }
  const counting = frequent.slice(0, FREQUENT_WORDS);
  if (rare.length === 0) return counting.length === 0 ? [] : [anyOf(counting)];
  if (counting.length === 0) return [anyOf(rare)];
  return [`(${anyOf(rare)}) AND (${anyOf([...rare, ...counting])})`, anyOf(counting)];
}

const anyOf = (terms: readonly string[]): string => terms.join(" OR ");

/** The matches of the range, newest first, in groups that are compared with each other. */
async function* compared(
  index: TextIndex,
  match: string,
  range: NamespaceRange,
  now: number,
): AsyncGenerator<MatchRow[]> {
  let group: MatchRow[] = [];
  let before = Number.MAX_SAFE_INTEGER;
  for (;;) {
    const rows = index.newest.all({ ...range, match, before, limit: MATCHES_PER_TURN, now });
    group.push(...rows.filter(({ isThere }) => isThere));
    const last = rows.at(-1);
    if (last === undefined || group.length >= COMPARED) {
      if (group.length > 0) yield group;
      if (last === undefined) return;
      group = [];
    }
    before = last.id;
    await nextTurn();
  }
}

function byRank(a: MatchRow, b: MatchRow): number {
  if (a.rank !== b.rank) return a.rank - b.rank;
  return a.namespace < b.namespace || (a.namespace === b.namespace && a.key < b.key) ? -1 : 1;
}

async function first<T>(count: number, items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) {
    found.push(item);
    if (found.length >= count) break;
  }
  return found;
}

async function* inPieces<Row extends ItemPosition>(
  read: (after: ItemPosition) => Row[],
  range: NamespaceRange,
): AsyncGenerator<Row> {
  // The range starts with a comma-terminated part; without the comma the text comes before all of it.
  let after: ItemPosition = { namespace: range.from.slice(0, -1), key: "" };
  for (;;) {
    const rows = read(after);
    yield* rows;
    const last = rows.at(-1);
    if (last === undefined) return;
    after = { namespace: last.namespace, key: last.key };
    await nextTurn();
  }
}
