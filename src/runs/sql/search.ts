/**
 * Searches the texts of runs, newest first. An engine may have an index, which proposes runs; all others are read. Both
 * is done in windows, and the event loop turns between them.
 */
import { ownTurn } from "../../core/concurrency.ts";
import type { Principal, RunFilter, RunSummary } from "../run.ts";
import { SUMMARY_COLUMNS, type SummaryRow, toSummary } from "./rows.ts";
import { ownedRuns } from "./runs.ts";
import { type Engine, type Statement, type Steps, all, first } from "./steps.ts";

/** Runs that are looked at in one turn of the event loop. */
const WINDOW = 400;
const NEWEST = Number.MAX_SAFE_INTEGER;

/** A text to find, in the forms that an engine compares. */
export interface SearchedText {
  /** At least one of them is in a text that matches, when only the letters A to Z are compared without their case. */
  forms: readonly string[];
  /** Leaves answers out. */
  tasksOnly: boolean;
}

/** An index of ended runs' texts. */
export interface RunIndex {
  /** End of `FROM runs`, and a condition: the runs that are not in the index. */
  leftOut: { hint: string; condition: string };
  /**
   * Makes a statement for the `number` of runs that may have the text: at most `@limit` below `@before`, newest
   * first. `undefined`: so many have it, or the text is such, that reading the runs is better.
   */
  proposals(text: SearchedText): Steps<Statement | undefined>;
}

export interface RunSearch {
  principal: Principal;
  filter: RunFilter & { text: string };
  limit: number;
  /** Returns only older runs than this one; an unknown one counts as none. */
  before?: string | undefined;
}

type FoundRow = SummaryRow & { number: number };

interface Window {
  rows: FoundRow[];
  /** Number below which the next window begins; absent: this was the last one. */
  next: number | undefined;
}

export async function search(
  engine: Engine,
  index: RunIndex | undefined,
  { principal, filter, limit, before }: RunSearch,
): Promise<RunSummary[]> {
  const { owned, isFound, values, text } = searchConditions(principal, filter);
  const from = await engine.read(function* () {
    if (before === undefined) return NEWEST;
    const sql = "SELECT number FROM runs WHERE id = @id AND principal = @principal";
    return (yield* first<{ number: number }>(sql, { id: before, principal }))?.number ?? NEWEST;
  });
  const collect = async (next: (page: NumberPage) => Steps<Window>): Promise<FoundRow[]> => {
    const found: FoundRow[] = [];
    for (let below: number | undefined = from; below !== undefined && found.length < limit;) {
      const page: NumberPage = { before: below, limit: limit - found.length };
      const window: Window = await engine.read(() => next(page));
      found.push(...window.rows);
      below = window.next;
      if (below !== undefined) await ownTurn();
    }
    return found;
  };
  const read = (size: number, place: string) =>
    collect((page) => readNext(size, `${place} AND number < @before`, isFound, { ...values, ...page }));
  const proposals = index && (await engine.read(() => index.proposals(text)));
  if (index === undefined || proposals === undefined)
    return (await read(WINDOW, `runs WHERE ${owned}`)).map(toSummary);
  // A run that ends in between is found twice rather than never.
  const { hint, condition } = index.leftOut;
  // Window for runs that the index leaves out, some of which are long.
  const leftOut = await read(50, `runs ${hint} WHERE ${condition} AND ${owned}`);
  const isHit = `${owned} AND ${isFound}`;
  const indexed = await collect((page) => judgeNext(proposals, isHit, { ...values, ...page }));
  return [...new Map([...leftOut, ...indexed].map((row) => [row.number, row])).values()]
    .sort((one, other) => other.number - one.number)
    .slice(0, limit)
    .map(toSummary);
}

function searchConditions(principal: Principal, filter: RunSearch["filter"]) {
  const { text, tasksOnly = false } = filter;
  const { condition: owned, values } = ownedRuns(principal, filter);
  // The engines do not agree on which letters belong together, except in ASCII.
  const isPlain = /^[ -~]*$/.test(text);
  const lower = text.toLowerCase();
  const found = ["task", "name", ...(tasksOnly ? [] : ["answer"])].flatMap((column) => [
    `lower(${column}) LIKE @lower ESCAPE '\\'`,
    ...(isPlain ? [] : [`${column} LIKE @text ESCAPE '\\'`]),
  ]);
  return {
    owned,
    isFound: `(${found.join(" OR ")})`,
    values: { ...values, lower: containing(lower), ...(isPlain ? {} : { text: containing(text) }) },
    text: {
      forms: isPlain ? [lower] : [lower, text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())],
      tasksOnly,
    },
  };
}

const containing = (text: string): string => `%${text.replace(/[\\%_]/g, "\\$&")}%`;
type NumberPage = Readonly<Record<"before" | "limit", number>>;
type Values = Statement["values"];

/** Reads the texts of the next `size` runs of `place`, which is a table with a condition. */
function* readNext(size: number, place: string, isFound: string, values: Values): Steps<Window> {
  const end = `SELECT number FROM ${place} ORDER BY number DESC LIMIT 1 OFFSET ${size - 1}`;
  const last = yield* first<{ number: number }>(end, values);
  const rows = yield* all<FoundRow>(
    `SELECT number, ${SUMMARY_COLUMNS} FROM ${place} AND number >= @last AND ${isFound}
     ORDER BY number DESC LIMIT @limit`,
    { ...values, last: last?.number ?? 0 },
  );
  return { rows, next: last?.number };
}

/** Reads the texts of the next runs that the index proposes. */
function* judgeNext(proposals: Statement, isHit: string, values: Values): Steps<Window> {
  const proposed = yield* all<{ number: number }>(proposals.sql, {
    ...proposals.values,
    ...values,
    limit: WINDOW,
  });
  if (proposed.length === 0) return { rows: [], next: undefined };
  const numbers = proposed.map(({ number }) => number);
  const rows = yield* all<FoundRow>(
    `SELECT number, ${SUMMARY_COLUMNS} FROM runs WHERE number IN (SELECT value FROM json_each(@numbers))
       AND ${isHit} ORDER BY number DESC LIMIT @limit`,
    { ...values, numbers: JSON.stringify(numbers) },
  );
  return { rows, next: numbers.length < WINDOW ? undefined : numbers.at(-1) };
}
