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
/** Between two runs, so that no phrase goes over their border. */
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
