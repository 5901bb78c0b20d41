/**
 * Finds habits of foreign English in comments, strings and documents: file:line, the words, a suggestion.
 * Fails when a room has more findings than `allowed`. `node scripts/words.mjs src/cli` lists one room.
 */
import { readdirSync, readFileSync } from "node:fs";

/** Findings that a room may still have. These numbers only fall; a room without a number must have none. */
const allowed = { "src/server": 81 };

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
const found = Object.fromEntries(Object.keys(allowed).map((room) => [room, []]));
for (const file of [...readdirSync("."), ...inside("docs"), ...inside("src")]) {
  const page = /^(?:(?:ARCHITECTURE|CONTRIBUTING|README|SECURITY)|docs\/[^/]+)\.md$/.test(file);
  if (!page && !/^src\/.*\.(?:ts|js|css)$/.test(file)) continue;
  const room = /^src\/[^/]+(?=\/)|^src|^docs/.exec(file)?.[0] ?? file;
  const source = readFileSync(file, "utf8");
  for (const { line, comment, text } of page ? written(source) : spoken(source)) {
    const rules = comment
      ? [[starter, 'begin with the subject: "True if …", "Lifetime of …"'], ...habits]
      : habits;
    for (const [pattern, advice] of rules) {
      const words = pattern.exec(text)?.[0].trim();
      if (words !== undefined) (found[room] ??= []).push(`${file}:${line}: ${words}  (${advice})`);
    }
  }
}

const asked = process.argv[2];
for (const [room, list] of Object.entries(found)) {
  const limit = allowed[room] ?? 0;
  if (room === asked || list.length > limit) console.log(list.join("\n"));
  if (list.length < limit)
    console.log(`${room}: ${list.length} left; lower its number in scripts/words.mjs from ${limit}`);
  if (list.length > limit) console.error(`${room}: ${list.length} findings, at most ${limit} allowed`);
  if (list.length > limit) process.exitCode = 1;
}
