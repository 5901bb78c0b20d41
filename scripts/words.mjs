/**
 * Finds habits of foreign English in comments, strings and documents: file:line, the words, a suggestion.
 * Fails when there are any.
 */
import { readdirSync, readFileSync } from "node:fs";

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
for (const file of [...readdirSync("."), ...inside("docs"), ...inside("src")]) {
  const page = /^(?:(?:ARCHITECTURE|CONTRIBUTING|README|SECURITY)|docs\/[^/]+)\.md$/.test(file);
  if (!page && !/^src\/.*\.(?:ts|js|css)$/.test(file)) continue;
  const source = readFileSync(file, "utf8");
  for (const { line, comment, text } of page ? written(source) : spoken(source)) {
    const rules = comment
      ? [[starter, 'begin with the subject: "True if …", "Lifetime of …"'], ...habits]
      : habits;
    for (const [pattern, advice] of rules) {
      const words = pattern.exec(text)?.[0].trim();
      if (words === undefined) continue;
      console.error(`${file}:${line}: ${words}  (${advice})`);
      process.exitCode = 1;
    }
  }
}
