/** The index of three letters each in which SQLite finds the texts of ended runs. */
import type { RunIndex, SearchedText } from "../../../runs/sql/search.ts";
import { LEFT_OUT_OF_TEXTS } from "../../../runs/sql/schema.ts";
import { type Statement, type Steps, first } from "../../../runs/sql/steps.ts";

/** Groups of letters that are looked up for one text; the others are seen when the text is read. */
const MAX_GROUPS = 12;
/** Entries of a short text that are looked through; one with more is in so many runs that reading them finds it soon. */
const MAX_ENTRIES = 2000;

export const textIndex: RunIndex = {
  leftOut: { hint: "INDEXED BY runs_left_out_of_texts", condition: LEFT_OUT_OF_TEXTS },
  *proposals(text) {
    // SQLite compares a text as far as its first NUL.
    if (text.forms.some((form) => form === "" || form.includes("\0"))) return undefined;
    const forms = [...new Set(text.forms)].map((form) => Array.from(form));
    if (forms.every(({ length }) => length >= 3)) {
      const expressions = forms.map(
        (letters) =>
          `(${trigrams(letters)
            .map((group) => `"${group.replaceAll('"', '""')}"`)
            .join(" AND ")})`,
      );
      const match = `{task name${text.tasksOnly ? "" : " answer"}} : (${expressions.join(" OR ")})`;
      return {
        sql: `SELECT rowid AS number FROM run_texts WHERE run_texts MATCH @match AND rowid < @before
      ORDER BY rowid DESC LIMIT @limit`,
        values: { match },
      };
    }
    return forms.every(({ length }) => length < 3) ? yield* beginning(forms, text) : undefined;
  },
};

/** Groups of three letters from all over the text. */
function trigrams(letters: readonly string[]): string[] {
  const all = [...new Set(letters.slice(2).map((last, at) => `${letters[at]}${letters[at + 1]}${last}`))];
  const step = Math.max(1, all.length / MAX_GROUPS);
  return Array.from(
    { length: Math.min(all.length, MAX_GROUPS) },
    (_, at) => all[Math.floor(at * step)] ?? "",
  );
}

/** For a text of one or two letters, which begins some of the groups. */
function* beginning(forms: readonly string[][], { tasksOnly }: SearchedText): Steps<Statement | undefined> {
  const columns = tasksOnly ? " AND col IN ('task', 'name')" : "";
  const entries = forms
    .map((_, at) => `SELECT doc FROM run_text_terms WHERE term >= @from${at} AND term <= @to${at}${columns}`)
    .join(" UNION ALL ");
  const ranges = forms.flatMap((letters, at) => {
    const begin = letters.join("");
    return [
      [`from${at}`, begin],
      [`to${at}`, begin + "\u{10FFFF}"],
    ];
  });
  const values: Statement["values"] = Object.fromEntries(ranges);
  const sql = `SELECT count(*) AS count FROM (SELECT 1 FROM (${entries}) LIMIT ${MAX_ENTRIES})`;
  const found = yield* first<{ count: number }>(sql, values);
  if (found?.count === MAX_ENTRIES) return undefined;
  return {
    sql: `SELECT DISTINCT doc AS number FROM (${entries}) WHERE doc < @before ORDER BY doc DESC LIMIT @limit`,
    values,
  };
}
