import { expect, test } from "vitest";
import { proposeShellRules } from "../../../src/rules/shell/propose.ts";
import { readCommandLine } from "../../../src/rules/shell/read.ts";
import { parseShellRule, ruleCovers, type ShellRule } from "../../../src/rules/shell/rule.ts";
import { corpus } from "./corpus.ts";

const propose = (line: string, existing: readonly ShellRule[] = []) =>
  proposeShellRules(readCommandLine(line, "bash"), existing);

const parse = (text: string): ShellRule => {
  const rule = parseShellRule(text);
  if ("problem" in rule) throw new Error(rule.problem);
  return rule;
};

test.for<[string, string[]]>([
  ["npm run test", ["npm run test < npm run test * < npm run *"]],
  [
    "npm run test:unit -- --watch=false",
    ["npm run test:unit -- --watch=false < npm run test:unit * < npm run *"],
  ],
  [
    "cd api && CI=1 timeout 60 npm run test 2>&1 | tail -20",
    ["npm run test < npm run test * < npm run *", "tail -20 < tail *"],
  ],
  ["npm ci && npm run build", ["npm ci < npm ci *", "npm run build < npm run build * < npm run *"]],
  ["npx tsc --noEmit", ["npx tsc --noEmit"]],
  ["git status --short", ["git status --short < git status *"]],
  ["git log --oneline -10 | head", ["git log --oneline -10 < git log *", "head < head *"]],
  ["git diff main...HEAD -- src/", ["git diff main...HEAD -- src/ < git diff *"]],
  [
    'git add -A && git commit -m "feat: x"',
    ["git add -A < git add *", "git commit -m 'feat: x' < git commit *"],
  ],
  ["git push -u origin HEAD", ["git push -u origin HEAD"]],
  ["git commit -m \"$(cat <<'EOF'\nx\nEOF\n)\"", []],
  ["ls -la src", ["ls -la src < ls *"]],
  ["cat package.json | jq '.scripts'", ["cat package.json < cat *", "jq .scripts < jq *"]],
  ['grep -rn "createServer" src', ["grep -rn createServer src < grep *"]],
  ["rg -l foo | xargs sed -i 's/foo/bar/'", ["rg -l foo < rg *", ""]],
  ["find . -name '*.ts' -print0 | xargs -0 wc -l", ["find . -name '*.ts' -print0", "wc -l * < wc *"]],
  ['for f in src/*.ts; do head -5 "$f"; done', ["head -5 * < head *"]],
  ["python3 -m pytest -x -q", ["python3 -m pytest -x -q"]],
  ["python3 script.py --input data.csv", ["python3 script.py --input data.csv < python3 script.py *"]],
  ["node -e 'console.log(1)'", ["node -e 'console.log(1)'"]],
  [
    "NODE_OPTIONS=--max-old-space-size=4096 npm run build",
    [
      ["npm run build", "npm run build *", "npm run *"]
        .map((rule) => `NODE_OPTIONS=--max-old-space-size=4096 ${rule}`)
        .join(" < "),
    ],
  ],
  ["cargo test --workspace", ["cargo test --workspace < cargo test *"]],
  ["make -j4 test", ["make -j4 test"]],
  ["docker compose up -d", ["docker compose up -d < docker compose up *"]],
  ["gh pr view 123 --json title", ["gh pr view 123 --json title < gh pr view *"]],
  ["rm -rf dist && npm run build", ["rm -rf dist", "npm run build < npm run build * < npm run *"]],
  ["curl -s localhost:3000/health", ["curl -s localhost:3000/health"]],
  ["./gradlew test", ["./gradlew test"]],
  ["npm test > test.log 2>&1", []],
  ["bash -c 'npm test'", ["bash -c 'npm test'"]],
  ["cat 'a[1].ts' 'b c' it\\'s", ["cat 'a[1].ts' 'b c' 'it'\\''s' < cat *"]],
  // What comes from standard input is code.
  ["cat a.py | python3", ["cat a.py < cat *", ""]],
  ["echo ls | bash -s", [""]],
  ["cat a.sql | sqlite3 app.db", ["cat a.sql < cat *", ""]],
  ["echo x | ssh host", [""]],
  ["cd .. && eval ls && set -e", ["", "", ""]],
])("%s", ([line, expected]) => {
  expect(propose(line).map(({ rules }) => rules.map(({ rule }) => rule).join(" < "))).toEqual(expected);
});

test("commands that an existing rule covers, and harmless ones, get no proposals", () => {
  const line = "cd src && npm ci && npm run build && echo done";
  expect(propose(line).map(({ command }) => command)).toEqual(["npm ci", "npm run build"]);
  expect(propose(line, [parse("npm run *")]).map(({ command }) => command)).toEqual(["npm ci"]);
  expect(propose(line, [parse("*")])).toEqual([]);
});

test("a proposal names its command as it was written", () => {
  expect(propose("CI=1 timeout 60 npm test 2>&1").map(({ command }) => command)).toEqual([
    "CI=1 timeout 60 npm test 2>&1",
  ]);
});

test("rules, sentences and examples of all proposals hold", () => {
  for (const { line } of corpus)
    for (const { command, rules } of propose(line)) {
      expect(rules.length).toBeLessThanOrEqual(3);
      for (const { rule: text, sentence, examples } of rules) {
        const rule = parse(text);
        expect(sentence).toMatch(/^Allow [^]+\.$/);
        expect(new Set(examples).size, `${command}: ${text}`).toBe(3);
        for (const example of examples) {
          const reading = readCommandLine(example, "sh");
          expect(reading.ok && reading.commands.every((one) => ruleCovers(rule, one)), example).toBe(true);
        }
      }
      // Each rule is wider than the one before it.
      const texts = rules.map(({ rule }) => rule.replace(/ \*$/, ""));
      for (const [index, text] of texts.entries()) expect(texts[0]!.startsWith(text), `${index}`).toBe(true);
    }
});

test("rules that run code of the project say so", () => {
  const [proposal] = propose("npm run build");
  for (const { sentence } of proposal!.rules) expect(sentence).toContain("code of the project");
  expect(propose("git status")[0]?.rules[0]?.sentence).toBe("Allow exactly git status.");
});
