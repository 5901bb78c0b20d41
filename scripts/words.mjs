/**
 * Finds habits of foreign English in comments, strings and documents: file:line, the words, a suggestion.
 * Fails when there are any. Of the habits in comments that `words.json` counts, there may be no more than it says:
 * `--list HABIT` prints the lines of one, `--write` stores smaller counts.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";

const starter = /^(?:How|What|Where|Whether|Which|As|Of|Whose|Who)\b/;
const habits = [
  [/(?<!\bthere )\b(?:is|are|was|were) no (?!longer|more|less|fewer|later|such)\w+/i, "negate the verb"],
  [/\b(?:gets?|got|goes|go) into no\b/, '"is never written to …"'],
  [/\b(?:is|are|was|were) over\b(?! \d)/, '"has finished", "has ended"'],
  [/\banew\b/i, '"again"'],
  [/\b(?:[Gg]o|[Gg]oes|went|going|gone) on\b(?! to\b)/, '"continue"'],
  [/\(\d+(?:st|nd|rd|th) time\)/, '"(attempt 4)"'],
  [/\bways out\b/i, '"To fix this, do one of the following:"'],
  [/\bhand(?:s|ed|ing)?(?: (?:it|them|this|that))? on\b/i, '"pass"'],
  [/\b(?:is|are|was|were) (?:not )?there(?=[.,;:)])/, '"was found", "exists", "is missing"'],
  [/\bmeanwhile\b/i, 'say when: "while …"'],
  [/(?:^|[.:;] )Of an? /, "put the subject first"],
];

/** Habits in comments that are still found, by the name of their count. */
const counted = {
  "undefined telegram": [/^`undefined`: /, '"Returns undefined if …"'],
  "the same": [/^The same\b/, "say what it is, then what differs"],
  riddle: [/^(?:The way (?:to|of|in)|Parts around|Stands for|Takes care)\b/, '"Sends …", "Buffers …"'],
  "of chain": [
    /\bof (?:an?|the|its|their) [\w-]+ of (?:an?|the|its|their)?\b/i,
    'a compound: "URI of a directory entry"',
  ],
  "everyday verb": [
    /\b(?:tell|tells|told|gives?|gave|given|brings?|brought|says?|said|thinks?|forgets?|forgotten)\b/i,
    "report, return, load, print, pass, delete",
  ],
  "clause as noun": [
    /\b(?:what|who) (?:(?:is|are|was|were|has|have|had|can|may|must|does|did|comes?|came)\b|(?:an?|the|it|they|others?|people|\w+s) \w+)/i,
    'the noun: "the missing item"',
  ],
};
const COUNTS = new URL("words.json", import.meta.url);
const option = (name) => process.argv[process.argv.indexOf(name) + 1];
const listed = process.argv.includes("--list") ? option("--list") : undefined;
const found = Object.fromEntries(Object.keys(counted).map((name) => [name, 0]));

const tokens =
  /\/\*[^]*?\*\/|\/\/[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`|\/(?![*/ ])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\//g;

/** Lines of the comments and strings of a program. */
function* spoken(source) {
  for (const { 0: token, index } of source.matchAll(tokens)) {
    const comment = /^\/[*/]/.test(token);
    if (token.startsWith("/") && !comment) continue;
    const first = source.slice(0, index).split("\n").length;
    const marks = comment ? /^\s*(?:\/\*\*?|\/\/|\*\/?)\s*|\s*\*\/$/g : /^['"`]|['"`]$/g;
    for (const [at, text] of token.split("\n").entries()) {
      yield { line: first + at, comment, text: text.replaceAll(marks, "") };
    }
  }
}

/** Lines of a Markdown file outside code. */
function* written(source) {
  const prose = source.replaceAll(/^(```|~~~)[^]*?^\1|`[^`\n]*`/gm, (code) => code.replaceAll(/[^\n]/g, "."));
  for (const [at, text] of prose.split("\n").entries()) yield { line: at + 1, comment: false, text };
}

const inside = (folder) =>
  readdirSync(folder, { recursive: true, encoding: "utf8" }).map((name) => `${folder}/${name}`);
for (const file of [...readdirSync("."), ...inside("docs"), ...inside("src")]) {
  const page = /^(?:(?:ARCHITECTURE|CONTRIBUTING|README|SECURITY)|docs\/[^/]+|src\/.*README)\.md$/.test(file);
  if (!page && !/^src\/(?:.*\.(?:ts|js|css)|config\/descriptions\.json|cli\/commands\.json)$/.test(file))
    continue;
  const source = readFileSync(file, "utf8");
  for (const { line, comment, text } of page ? written(source) : spoken(source)) {
    const rules = comment
      ? [[starter, 'begin with the subject: "True if …", "Lifetime of …"'], ...habits]
      : habits;
    for (const [name, [pattern, advice]] of comment ? Object.entries(counted) : []) {
      const words = pattern.exec(text)?.[0];
      if (words === undefined) continue;
      found[name] += 1;
      if (name === listed) console.log(`${file}:${line}: ${text}  (${advice})`);
    }
    for (const [pattern, advice] of rules) {
      const words = pattern.exec(text)?.[0].trim();
      if (words === undefined) continue;
      console.error(`${file}:${line}: ${words}  (${advice})`);
      process.exitCode = 1;
    }
  }
}

if (process.argv.includes("--write")) writeFileSync(COUNTS, `${JSON.stringify(found, null, 2)}\n`);
for (const [name, allowed] of Object.entries(JSON.parse(readFileSync(COUNTS, "utf8")))) {
  if (found[name] <= allowed) continue;
  console.error(
    `Comments have the habit "${name}" ${found[name]} times, at most ${allowed}; --list "${name}" prints them.`,
  );
  process.exitCode = 1;
}
