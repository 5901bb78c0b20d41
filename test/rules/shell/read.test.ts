import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readCommandLine, type ShellDialect } from "../../../src/rules/shell/read.ts";
import { corpus } from "./corpus.ts";
import { lineGenerator } from "./line-generator.ts";
import { readStrictly } from "./strict-reader.ts";

const read = (line: string, dialect: ShellDialect = "bash") => readCommandLine(line, dialect);

/** Commands as texts: a computed word is `?`, `*` if it may become several, and `…` stands for those that xargs adds. */
function found(line: string, dialect: ShellDialect = "bash"): string[] | string {
  const reading = read(line, dialect);
  if (!reading.ok) return reading.reason;
  return reading.commands.map(({ words, assignments, isOpen }) =>
    [
      ...assignments.map(({ name, value }) => `${name}=${value ?? "?"}`),
      ...words.map(({ value, splits }) => value ?? (splits ? "*" : "?")),
      ...(isOpen ? ["…"] : []),
    ].join(" "),
  );
}

describe("words", () => {
  test.for([
    ["a b", "a b"],
    ["a 'b c' \"d e\" f\\ g", "a b c d e f g"],
    ["a ''\"\" b''c", "a  bc"],
    ['a "\\$x \\` \\\\ \\n"', "a $x ` \\ \\n"],
    ["a it\\'s #c", "a it's"],
    ["a b#c {} [ ] ! =", "a b#c {} [ ] ! ="],
    ["'a' \\b", "a b"],
    ['a "one\ntwo"', "a one\ntwo"],
  ])("%s has literal words", ([line, expected]) => {
    expect(found(line!)).toEqual([expected]);
  });

  test.for([
    ["a $x", "a *"],
    ['a "$x"', "a ?"],
    ["a ${x} ${#x} ${x:-b} ${x%.ts} ${x##*/}", "a * * * * *"],
    ['a "${x:-a b}" "x $y z"', "a ? ?"],
    ['a "$@" "$*" $1 $?', "a * * * *"],
    ["a *.ts [ab] ? {a,b} {1..3}", "a * * * * *"],
    ["a ~ ~/x b=~ c:~", "a ? ? ? ?"],
    ["a b~ naïve 'naïve'", "a b~ * naïve"],
  ])("%s has computed arguments", ([line, expected]) => {
    expect(found(line!)).toEqual([expected]);
  });

  test.for([
    ["a $x", true],
    ['a "$x"', true],
    ['a "b$x"', false],
    ["a b$x", true],
    ["a src/*", false],
    ["a *.ts", true],
    ["a -*", true],
    ["a src/{a,b}", false],
    ["a ''$x", true],
    ["a b", false],
    ["a -b", true],
    ["a '-b'", true],
  ] as const)("an argument of %s may be an option: %s", ([line, expected]) => {
    const reading = read(line);
    expect(reading.ok && reading.commands[0]?.words[1]?.mayBeOption).toBe(expected);
  });
});

describe("a person has to look at", () => {
  const SUBSTITUTION = "it uses the output of another command";
  const FILE = "it redirects to or from a file";
  test.for([
    ["a $(b)", SUBSTITUTION],
    ['a "$(b)"', SUBSTITUTION],
    ["a `b`", SUBSTITUTION],
    ['a "`b`"', SUBSTITUTION],
    ["a $((1 + 1))", SUBSTITUTION],
    ["a $[1]", "it has an expansion that may run other commands"],
    ['a "$[x]"', "it has an expansion that may run other commands"],
    ["a ${x@P}", "it has an expansion that may run other commands"],
    ["a ${!x} ", "it has an expansion that may run other commands"],
    ["a ${x:=b}", "it has an expansion that may run other commands"],
    ["a ${x:1}", "it has an expansion that may run other commands"],
    ["a ${x[b]}", "it has an expansion that may run other commands"],
    ["a ${x:-$(b)}", "it has an expansion that may run other commands"],
    ["a <(b)", "it has an operator within a word"],
    ["a $'b'", "it has an expansion that may run other commands"],
    ['a $"b"', "it has an expansion that may run other commands"],
    ["a @(b|c)", "it has an operator within a word"],
    ["[[ -f a ]]", "it uses shell syntax that no rule covers"],
    ["((1))", "it uses shell syntax that no rule covers"],
    ["case a in b) c;; esac", "it uses shell syntax that no rule covers"],
    ["select x in a; do b; done", "it uses shell syntax that no rule covers"],
    ["f() { a; }", "it uses shell syntax that no rule covers"],
    ["function f { a; }", "it uses shell syntax that no rule covers"],
    ["coproc a", "it uses shell syntax that no rule covers"],
    ["for ((i=0;i<1;i++)); do a; done", "it uses shell syntax that no rule covers"],
    ["for x; do a; done", "it repeats commands for its parameters"],
    ["x=(a b)", "it assigns to an array, or appends to a variable"],
    ["x+=a", "it assigns to an array, or appends to a variable"],
    ["x[0]=a", "it assigns to an array, or appends to a variable"],
    ["a <<EOF\nb\nEOF", FILE],
    ["a <<< b", FILE],
    ["a\r\n", "it has control characters"],
    ["a \u0001", "it has control characters"],
    ["a \ud800", "it is not valid Unicode"],
    ["$x a", "it computes which program it starts"],
    ["a && $x", "it computes which program it starts"],
    ["PATH=.", "it sets a variable that may have an effect"],
    ["LANG=C", "it sets a variable that may have an effect"],
    ["for PATH in a; do b; done", "it sets a variable that may have an effect"],
    ["a\\\nb", "it joins two lines with a backslash within a word"],
    ['a "\\\n$x"', "it joins two lines with a backslash within a word"],
    ["a > b", FILE],
    ["a >> b", FILE],
    ["a < b", FILE],
    ["a >| b", FILE],
    ["a &> b", FILE],
    ["a 2>&-", FILE],
    ["a <> b", FILE],
    ["a 3>&1", FILE],
    ["a 10>&1", FILE],
    ["a > $x", FILE],
    ["{ a; } > b", FILE],
    ["cd a && ./b", "it changes the folder, and starts a program by a relative path"],
    ["for x in a b; do ./c; cd d; done", "it changes the folder, and starts a program by a relative path"],
    ["a (", "it has text that was not understood"],
    ["a ( b", "it has text that was not understood"],
    ["a (\nb", "it has text that was not understood"],
    ["a 'b", "it has a syntax error"],
    ["if a; then b", "it has a syntax error"],
    ["a && ", "it has a syntax error"],
    ["a ".repeat(5_001), "it is longer than 10000 characters"],
  ])("%j", ([line, reason]) => {
    expect(found(line!)).toBe(reason);
  });
});

describe("structure", () => {
  test.for<[string, string[]]>([
    ["", []],
    ["# nothing", []],
    ["a && b || c; d & e | f\ng", ["a", "b", "c", "d", "e", "f", "g"]],
    ["a |& b", ["a", "b"]],
    ["! a; time -p b", ["a", "b"]],
    ["(a; (b)) && { c; }", ["a", "b", "c"]],
    ["if a; then b; elif c; then d; else e; fi", ["a", "b", "c", "d", "e"]],
    ["while a; do b; done; until c; do d; done", ["a", "b", "c", "d"]],
    ["for x in 1 *.ts $y; do a $x; done", ["a *"]],
    ["a \\\n b # c\nd", ["a b", "d"]],
    ["x=1 y=; a", ["a"]],
    ["X=1 Y=$z a", ["X=1 Y=? a"]],
    ["export A=b c", ["export A=b c"]],
    ["a 2>&1 >/dev/null </dev/null 1>&2 >&2 2>>/dev/null", ["a"]],
    [">/dev/null a &>/dev/null", ["a"]],
    ["(a) 2>/dev/null | { b; } 2>&1", ["a", "b"]],
    ["'if' a; \\time b; a if", ["if a", "b", "a if"]],
  ])("%j", ([line, expected]) => {
    expect(found(line)).toEqual(expected);
  });

  test("the subset for sh refuses what sh reads differently", () => {
    expect(found("a &>/dev/null", "sh")).toBe("it redirects to or from a file");
    expect(found("a |& b", "sh")).toBe("it uses |&, which some shells do not have");
    const both = corpus.filter(({ line }) => read(line).ok).length;
    expect(both).toBeGreaterThan(415);
    expect(corpus.filter(({ line }) => read(line, "sh").ok).length).toBe(both - 2);
  });

  test("commands keep their text", () => {
    const reading = read("cd a &&  CI=1 timeout 5 npm test 2>&1 | tail -3");
    expect(reading.ok && reading.commands.map(({ text }) => text)).toEqual([
      "cd a",
      "CI=1 timeout 5 npm test 2>&1",
      "tail -3",
    ]);
  });
});

describe("wrappers", () => {
  test.for<[string, string[]]>([
    ["timeout 60 a", ["a"]],
    ["timeout -k 5 -s KILL --foreground --preserve-status -v 1.5m a -k", ["a -k"]],
    ["timeout --kill-after=5 --signal=TERM 60s a", ["a"]],
    ["nice a; nice -n 5 a; nice -n5 a; nice -5 a; nice --adjustment=-3 a", ["a", "a", "a", "a", "a"]],
    ["nohup a; command a; command -- a; stdbuf -oL -e 0 -i4K a", ["a", "a", "a", "a"]],
    ["env CI=1 X=2 a", ["CI=1 X=2 a"]],
    ["env; nice; xargs", ["env", "nice", "echo …"]],
    ["xargs -0 -r -t -n 1 -P4 -L 2 -d '\\n' a", ["a …"]],
    ["xargs -r0 a", ["a …"]],
    ["xargs -I{} a {} b{} c", ["a ? ? c …"]],
    ["xargs -I a -I b c a b", ["c a ? …"]],
    ["xargs -I % timeout 5 nice a %", ["a ? …"]],
    ["timeout 5 env CI=1 nice -n 3 xargs a b", ["CI=1 a b …"]],
    ["command -v a", ["command -v a"]],
    ["sudo a; sh -c b; npx c; find -exec d", ["sudo a", "sh -c b", "npx c", "find -exec d"]],
  ])("%s", ([line, expected]) => {
    expect(found(line)).toEqual(expected);
  });

  test.for([
    ["timeout --foo 5 a", "it uses timeout in an unusual way"],
    ["timeout a", "it uses timeout in an unusual way"],
    ["timeout 5", "timeout in it has no command of its own"],
    ["timeout $x a", "it uses timeout in an unusual way"],
    ["nice -n a b", "it uses nice with -n"],
    ["nohup -x a", "it uses nohup with -x"],
    ["command -p a", "it uses command with -p"],
    ["time -v a", "it has an option where a program should be"],
    ["env -- -v a", "it uses env with -v"],
    ["xargs -d $x a b", "it uses xargs with -d"],
    ['xargs -d "$x" a b', "it uses xargs with -d"],
    ["nice -n $x a b", "it uses nice with -n"],
    ["xargs -I $x a b", "it uses xargs with -I"],
    ["timeout -k $x 5 a", "it uses timeout in an unusual way"],
    ["env -i a", "it uses env with -i"],
    ["env -S 'a b'", "it uses env with -S"],
    ["env CI=1", "env in it has no command of its own"],
    ["env CI=$x a", "it computes which program it starts"],
    ["xargs -a x b", "it uses xargs with -a"],
    ["xargs -I", "it uses xargs with -I"],
    ["xargs -I a a b", "it computes which program it starts"],
    ["xargs -I x env x b", "it computes which program it starts"],
    ["xargs env", "env in it has no command of its own"],
    ["xargs xargs", "xargs in it has no command of its own"],
    ["xargs timeout 5", "timeout in it has no command of its own"],
    ["xargs nice -5", "nice in it has no command of its own"],
    ["nohup $x a", "it computes which program it starts"],
    ["nice ".repeat(9) + "a", "it has more than 8 programs that start each other"],
  ])("%s asks", ([line, reason]) => {
    expect(found(line!)).toBe(reason);
  });
});

describe("harmless commands", () => {
  const isHarmless = (line: string): boolean => {
    const reading = read(line);
    return reading.ok && reading.commands.every((command) => command.isHarmless);
  };

  test.for(
    [
      "true; false; :; echo $x *; pwd",
      "wait; exit; exit 1",
      "command -v npm",
      'test -f a; [ -d "$x" ]; [ ! -e a ]; [ "$x" = y ]; [ a != b ]; [ -z "$x" ]',
      "cd src; cd ./a/b",
      "xargs echo; timeout 5 echo a",
    ].map((line) => [line]),
  )("%s", ([line]) => {
    expect(isHarmless(line!)).toBe(true);
  });

  test.for(
    [
      "cd; cd ..; cd -; cd $x; cd a/../b; cd a b; env cd a; cd ~; CI=1 cd a",
      "exit $x; exit 1 2; wait -p x; break 2",
      "command -v $x; command -v a b",
      'test -v x; [ $x = y ]; [ "$x" -eq 1 ]; [ -f a -o -v b ]; test a; [ -f a; [ -f a $x; [ -f *.ts ]',
      "CI=1 echo a; xargs test -f; xargs command -v; xargs cd",
    ].flatMap((list) => list.split("; ").map((line) => [line])),
  )("%s is not", ([line]) => {
    expect(isHarmless(line!)).toBe(false);
  });

  test("the folders of cd are reported", () => {
    expect(read("cd a && (cd b/c; npm test) && cd .. && env cd d")).toMatchObject({
      changesFolder: ["a", "b/c"],
    });
  });
});

describe("hostile lines", () => {
  const WIDE = [
    "(",
    "{ ",
    "if ",
    "! ",
    "$(",
    "${x:-",
    '"',
    "a=",
    "nice ",
    "xargs -I a ",
    "[[ ",
    "a|",
    "<<a ",
    "case a in ",
    "\\\n",
    "for x in ",
    "`",
    "{a,",
  ];

  test.for(WIDE.map((part) => [part]))("many times %j", ([part]) => {
    for (const line of [part!.repeat(Math.floor(9_990 / part!.length)), `a ${part!.repeat(400)}`])
      expect(typeof readCommandLine(line, "bash").ok).toBe("boolean");
  });

  test("no text makes the reader throw", () => {
    const token = fc.constantFrom(
      ...WIDE,
      ")",
      "}",
      ";",
      "&&",
      "\n",
      " ",
      "'",
      "done",
      "fi",
      "~",
      "*",
      ">",
      "é",
      "\0",
      "\ud800",
    );
    const line = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.array(token, { maxLength: 60 }).map((parts) => parts.join("")),
    );
    fc.assert(
      fc.property(line, (text) => {
        const reading = read(text);
        if (!reading.ok) expect(reading.reason).toMatch(/^\S.*[^.]$/s);
      }),
      { numRuns: 2_000 },
    );
  });
});

test("both readers see the same structure", () => {
  const { line, mutate, chance, pick } = lineGenerator(5);
  let both = 0;
  const generated = Array.from({ length: 6_000 }, () => {
    const base = chance(0.4) ? pick(corpus).line : line();
    return chance(0.6) ? mutate(base) : base;
  });
  for (const source of [...corpus.map(({ line }) => line), ...generated]) {
    const reading = read(source);
    const strict = readStrictly(source);
    if (!reading.ok || !strict) continue;
    both++;
    const shown = (commands: typeof strict) => commands.map((command) => ({ ...command, text: "" }));
    expect(shown([...reading.commands]), source).toEqual(shown(strict));
  }
  expect(both).toBeGreaterThan(1_500);
});

/** Scripts of this machine, as many as there are. */
function scripts(): string[] {
  const folders = [
    "/etc/init.d",
    "/etc/cron.daily",
    "/usr/bin",
    "/usr/sbin",
    "/usr/lib/git-core",
    "/usr/share/doc",
  ];
  return folders.flatMap((folder) => {
    try {
      return readdirSync(folder).flatMap((name) => {
        try {
          const text = readFileSync(join(folder, name), "utf8").slice(0, 200_000);
          return /^#!.*\b(?:ba|da)?sh\b/.test(text) ? [text] : [];
        } catch {
          return [];
        }
      });
    } catch {
      return [];
    }
  });
}

test("lines of real scripts that bash refuses are refused", () => {
  const lines = [
    ...new Set([...scripts().flatMap((text) => text.split("\n")), ...corpus.map(({ line }) => line)]),
  ];
  const read = lines.filter((line) => line.length < 500 && readCommandLine(line, "bash").ok);
  expect(read.length).toBeGreaterThan(400);
  const isRefused = (some: readonly string[]): boolean => {
    const input = some.map((line, index) => `f${index}() { :\n${line}\n:\n}\n`).join("");
    return spawnSync("bash", ["-n"], { input }).status !== 0;
  };
  // If bash refuses them together, it is asked for each.
  expect(isRefused(read) ? read.filter((line) => isRefused([line])) : []).toEqual([]);
});

test("the parser is loaded by the first line, not with the program", () => {
  const folder = join(import.meta.dirname, "../../../src/rules/shell");
  const imports = readdirSync(folder)
    .filter((name) => name.endsWith(".ts"))
    .flatMap((name) => readFileSync(join(folder, name), "utf8").match(/^import .*"unbash";$/gm) ?? []);
  expect(imports).toEqual([expect.stringMatching(/^import type /)]);
});
