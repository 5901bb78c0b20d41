import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readCommandLine } from "../../../src/rules/shell/read.ts";
import { parseShellRule, ruleCovers, ruleTouches, type ShellRule } from "../../../src/rules/shell/rule.ts";
import { corpus } from "./corpus.ts";

const parse = (text: string): ShellRule => {
  const rule = parseShellRule(text);
  if ("problem" in rule) throw new Error(rule.problem);
  return rule;
};
const commands = (line: string) => {
  const reading = readCommandLine(line, "bash");
  if (!reading.ok) throw new Error(`${line}: ${reading.reason}`);
  return reading.commands;
};
const covers = (rule: string, line: string): boolean =>
  commands(line).every((command) => ruleCovers(parse(rule), command));
const touches = (rule: string, line: string): boolean =>
  commands(line).some((command) => ruleTouches(parse(rule), command));

describe("a rule", () => {
  test.for<[string, string[], boolean]>([
    ["npm run test", ["npm", "run", "test"], false],
    ["npm run test *", ["npm", "run", "test"], true],
    ["npm run test:*", ["npm", "run", "test"], true],
    ["npm run test:unit", ["npm", "run", "test:unit"], false],
    [" npm  run 'a b' ", ["npm", "run", "a b"], false],
    ["grep '*' *", ["grep", "*"], true],
    ["*", [], true],
    ["timeout 60 npm test", ["npm", "test"], false],
  ])("%s has words", ([text, words, isWide]) => {
    const rule = parse(text);
    expect(rule).toMatchObject({ text, isWide, neverAllows: undefined });
    expect(rule.words.map(({ value }) => value)).toEqual(words);
  });

  test("has assignments", () => {
    expect(parse("X=1 Y='a b' npm test").assignments).toEqual([
      { name: "X", value: "1" },
      { name: "Y", value: "a b" },
    ]);
  });

  test.for([
    ["", "is not one command. Write a rule for each command."],
    [" *", undefined],
    ["a && b", "is not one command. Write a rule for each command."],
    ["a; b *", "is not one command. Write a rule for each command."],
    ["(a)", "is not one command. Write a rule for each command."],
    ["! a", "is not one command. Write a rule for each command."],
    ["time a", "is not one command. Write a rule for each command."],
    ["a # b", "is not one command. Write a rule for each command."],
    ["x=1", "is not one command. Write a rule for each command."],
    ["a | b *", "is not one command. Write a rule for each command."],
    ["a * b", 'has words that the shell computes. Quote them; "*" can only be the last word.'],
    ["a b* *", 'has words that the shell computes. Quote them; "*" can only be the last word.'],
    ["a $x", "has words that the shell computes."],
    ["X=$y a", "has words that the shell computes."],
    ["*.sh", "is not one command: it computes which program it starts."],
    ["a $(b)", "is not one command: it uses the output of another command."],
    ["a 'b *", "is not one command: it has a syntax error."],
    ["a\\ *", "is not one command: it"],
    ["a > b", "is not one command: it redirects to or from a file."],
    ["xargs wc *", "Write the rule for the command after xargs"],
    ["a".repeat(10_001), "longer than 10000 characters"],
  ])("%j is refused", ([text, problem]) => {
    const rule = parseShellRule(text!);
    if (problem === undefined) expect(rule).not.toHaveProperty("problem");
    else expect(rule).toEqual({ problem: expect.stringContaining(problem) });
  });

  test.for([
    ["eval *", "eval can change what other commands do, so no rule allows it."],
    ["cd ..", "cd can change what other commands do, so no rule allows it."],
    ["timeout *", "Write what timeout runs directly after it: the rule covers nothing else."],
    ["sed *", "Write what sed runs directly after it: the rule covers nothing else."],
    ["sed -n *", "Write what sed runs directly after it: the rule covers nothing else."],
    ["sudo *", "Write what sudo runs directly after it: the rule covers nothing else."],
    ["docker exec *", "Write what docker exec runs directly after it: the rule covers nothing else."],
    ["git -C a log *", "Write what git runs directly after it: the rule covers nothing else."],
  ])("%s can deny and ask only", ([text, reason]) => {
    expect(parse(text!).neverAllows).toBe(reason);
    expect(covers(text!, "sed -n 1p a")).toBe(false);
  });

  test("no text makes it throw", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        for (const rule of [text, `${text} *`, `${text}:*`, `a ${text}`]) parseShellRule(rule);
      }),
      { numRuns: 1_000 },
    );
  });
});

describe("a rule that allows", () => {
  test.for([
    ["npm run test", "npm run test"],
    ["npm run test", "'npm' run te\\st"],
    ["npm run test", "CI=1 timeout -k 5 60 nice npm run test 2>&1 >/dev/null"],
    ["npm run test", "if npm run test; then npm run test; fi"],
    ["npm run test *", "npm run test"],
    ["npm run test:*", "npm run test -- --watch $x *.ts"],
    ["X=1 npm run test *", "X=1 CI=2 npm run test a"],
    ["X=1 npm run test *", "npm run test a"],
    ["wc *", "xargs -0 wc -l"],
    ["head *", 'for f in *; do head -5 "$f"; done'],
    ["*", "anything goes $x; npm run a"],
    ["./gradlew test", "./gradlew test"],
    ["env", "env"],
  ])("%s covers %s", ([rule, line]) => {
    expect(covers(rule!, line!)).toBe(true);
  });

  test.for([
    ["npm run test", "npm run test a"],
    ["npm run test", "npm run"],
    ["npm run test", "npm run $x"],
    ["npm run test", "npm run test $x"],
    ["npm run test", "xargs npm run test"],
    ["npm run test", "sudo npm run test"],
    ["npm run test", "/usr/bin/npm run test"],
    ["npm run test", "./npm run test"],
    ["npm run test *", "npm run test:unit"],
    ["npm run test *", "npm run tests"],
    ["npm run test *", "npm run 't*'"],
    ["npm run test", "PATH=. npm run test"],
    ["npm run test *", "NODE_OPTIONS=-r\\ ./a npm run test"],
    ["X=1 npm run test", "X=2 npm run test"],
    ["X=1 npm run test", "X=$y npm run test"],
    ["X=1 npm run test", "X=1 LD_PRELOAD=a npm run test"],
    ["*", "eval ls"],
    ["*", "test -v a"],
    ["*", "wait -p a"],
    ["*", "export A=b"],
    ["*", "X=1 npm test"],
    ["* ", "sed p a"],
    ["*", "git -c a=b log"],
    ["*", "bash -c ls"],
    ["env *", "env X=1 npm test"],
  ])("%s does not cover %s", ([rule, line]) => {
    expect(covers(rule!, line!)).toBe(false);
  });
});

describe("a rule that denies or asks", () => {
  test.for([
    ["rm *", "rm -rf a"],
    ["rm *", "rm"],
    ["rm *", "CI=1 PATH=. timeout 5 nice rm a"],
    ["rm *", "/bin/rm a"],
    ["rm *", "../rm a"],
    ["rm *", "ls && (xargs -0 'r'm)"],
    ["rm -rf *", "rm $x"],
    ["rm -rf *", 'rm "$x" a'],
    ["rm -rf *", "xargs rm"],
    ["git push", "git push"],
    ["git push", "git $x"],
    ["git push", 'git "$x"'],
    ["git push", "git push $x"],
    ["git push", "xargs git"],
    ["git push *", "git push origin main"],
    ["eval *", "eval ls"],
    ["echo *", "echo a"],
    ["*", "true"],
    ["X=1 a *", "X=1 a"],
    ["X=1 a *", "X=$y a"],
    ["sed -i *", "sed -i s/a/b/ c"],
  ])("%s is about %s", ([rule, line]) => {
    expect(touches(rule!, line!)).toBe(true);
  });

  test.for([
    ["rm *", "ls rm"],
    ["rm *", "rmdir a"],
    ["/bin/rm *", "rm a"],
    ["rm -rf *", "rm -r a"],
    ["git push", "git push origin"],
    ["git push *", "git status $x"],
    ["git push", 'git "$x" origin a'],
    ["X=1 a *", "a"],
    ["X=1 a *", "X=2 a"],
    ["rm -rf *", "rm"],
  ])("%s is not about %s", ([rule, line]) => {
    expect(touches(rule!, line!)).toBe(false);
  });

  test("is about all that it would cover", () => {
    const rules = [
      "*",
      "npm *",
      "npm run test *",
      "npm test",
      "git status *",
      "git log *",
      "ls *",
      "cat *",
    ].map(parse);
    for (const { line } of corpus) {
      const reading = readCommandLine(line, "bash");
      for (const command of reading.ok ? reading.commands : [])
        for (const rule of rules)
          if (ruleCovers(rule, command)) expect(ruleTouches(rule, command), line).toBe(true);
    }
  });
});
