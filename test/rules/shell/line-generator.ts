import { seeded } from "../../support/random.ts";

/** Makes command lines from a grammar, and mutations of them. Lines of the same seed are the same. */
export function lineGenerator(seed: number) {
  const random = seeded(seed);
  const pick = <Item>(list: readonly Item[]): Item => list[Math.floor(random() * list.length)]!;
  const chance = (probability: number): boolean => random() < probability;
  const many = <Item>(low: number, high: number, make: () => Item): Item[] =>
    Array.from({ length: low + Math.floor(random() * (high - low + 1)) }, make);

  const COMMANDS = [
    "npm run test",
    "npm ci",
    "git status",
    "git log",
    "ls",
    "cat",
    "grep",
    "wc",
    "head",
    "fails",
    "node build.mjs",
    "git commit",
    "npm run lint",
  ];
  const OTHERS = [
    "evil",
    "rm",
    "sh",
    "git push",
    "npm",
    "git",
    "eval",
    "export",
    "source",
    "printf",
    "read",
    "./run",
    "test",
    "exec",
    "alias",
  ];
  const PLAIN = [
    "a",
    "-l",
    "--all",
    "src/x.ts",
    "x=1",
    "a,b",
    "-n",
    "5",
    "if",
    "then",
    "done",
    "time",
    "{}",
    "!",
    "[",
    "]",
    "a#b",
    "@x",
    "%y",
    "-",
    "--",
    "a:b",
    "1",
    "2",
    "in",
    "do",
    "case",
    "}",
    "HEAD~1",
    "key=~/x",
    "é",
  ];
  const INSIDE = [
    "a b",
    "; evil",
    "| evil",
    "&& evil",
    "# evil",
    "it",
    "\nevil\n",
    "$(evil)",
    "`evil`",
    "(evil)",
    "<evil",
    ">x",
    "\\",
    "\\\\",
    "*",
    "!x",
    "EOF",
    "}",
    "esac",
    "é ß",
    "\t",
    "a[$(evil)]",
    "-v",
  ];
  const OPEN = [
    "$X",
    "$Y",
    "${X}",
    "$Z",
    "*",
    "*.ts",
    "~",
    "{a,b}",
    "[ab]",
    "?",
    "$(evil)",
    "`evil`",
    "$((1))",
    "$'a\\'b'",
    '$"a"',
    "<(evil)",
    "${X:-a}",
    "${X:-$(evil)}",
    "$@",
    "${#X}",
    "@(a|b)",
    "{1..3}",
    "$",
    "$[1]",
    '"$[x]"',
    "$x",
    '"$x"',
    "$A",
    '"$A"',
    "$D",
    '"$D"',
    "a$D",
    '"a$D"',
    "src/*",
    "a{$D,b}",
  ];

  function word(): string {
    if (chance(0.45)) return pick(PLAIN);
    if (chance(0.2)) return pick(OPEN);
    return many(1, 3, () => {
      const text = pick([...INSIDE, ...PLAIN]);
      if (chance(0.35)) return `'${text.replaceAll("'", "")}'`;
      if (chance(0.5))
        return `"${chance(0.7) ? text.replace(/["$`\\]/g, "\\$&") : text.replaceAll('"', "")}"`;
      return text.replace(/[^\w.\-/]/g, (c) => (c === "\n" ? "\\\n" : `\\${c}`));
    }).join("");
  }
  const quoteName = (text: string): string =>
    text
      .split(" ")
      .map((w) =>
        chance(0.1)
          ? pick([`'${w}'`, `"${w}"`, `\\${w}`, `${w[0]}''${w.slice(1)}`, `${w[0]}\\\n${w.slice(1)}`])
          : w,
      )
      .join(pick([" ", " ", " ", "  ", "\t", " \\\n "]));
  const assign = (): string =>
    pick([
      "CI=1",
      "NODE_ENV=test",
      "CI='a b'",
      'CI="$X"',
      "X=1",
      "PATH=.",
      "CI=",
      "CI=$(evil)",
      "CI=*",
      "TZ=a\\ b",
    ]);
  const redirect = (): string =>
    pick([
      "2>&1",
      ">/dev/null",
      "2>/dev/null",
      "</dev/null",
      "&>/dev/null",
      ">&2",
      "1>&2",
      "2>&1 >/dev/null",
      "> /dev/null",
      ">'/dev/null'",
      '2> "/dev/null"',
      ">x",
      ">>x",
      "<x",
      "3>&1",
      ">|x",
      "2>&-",
      "<<<evil",
      "{f}>/dev/null",
      ">&x",
      "<>x",
    ]);
  const wrapper = (): string =>
    pick([
      "timeout 5",
      "timeout -k 1 5",
      "timeout -s KILL 2s",
      "timeout --foreground 5",
      "nice",
      "nice -n 10",
      "nice -5",
      "nohup",
      "env",
      "env CI=1",
      "env -i",
      "env -u X",
      "env X=1",
      "time",
      "time -p",
      "command",
      "command -p",
      "stdbuf -oL",
      "stdbuf -o L",
      "xargs",
      "xargs -0",
      "xargs -n 1",
      "xargs -n1 -r",
      "xargs -I{}",
      "xargs -I %",
      "xargs -d '\\n'",
      "xargs -a x",
      "xargs sh -c",
      "timeout 1 2",
      "nice -n",
      "env --",
      "env -S",
      "timeout --",
      "exec",
      "builtin",
      "xargs env",
      "xargs xargs",
      "xargs nice",
      "xargs timeout 5",
      "xargs -I x env CI=x",
    ]);
  function simple(): string {
    const parts = [
      ...(chance(0.12) ? many(1, 2, assign) : []),
      ...(chance(0.05) ? [redirect()] : []),
      ...(chance(0.2) ? many(1, 2, wrapper) : []),
    ];
    parts.push(quoteName(chance(0.9) ? pick(COMMANDS) : pick(OTHERS)), ...many(0, 3, word));
    if (chance(0.15)) parts.splice(1 + Math.floor(random() * parts.length), 0, redirect());
    return parts.join(pick([" ", " ", " ", "  "]));
  }
  const end = (): string => pick(["; ", "\n", ";\n", "\n\n", " # evil\n", ";# c'\n", " & "]);
  function list(depth: number): string {
    return many(1, 2, () => compound(depth + 1)).join(end());
  }
  function compound(depth = 0): string {
    const kind = depth > 2 ? 0 : random();
    if (kind < 0.6) return simple();
    if (kind < 0.85)
      return many(2, 3, () => compound(depth + 1)).join(
        pick([" && ", " || ", " | ", "; ", " & ", "\n", "&&", "|", " |\n", " && \\\n", " |& ", ";"]),
      );
    return pick([
      () => `(${list(depth)})`,
      () => `( ${list(depth)} )`,
      () => `{ ${list(depth)}; }`,
      () => `! ${simple()}`,
      () => `time ${compound(depth + 1)}`,
      () => `if ${list(depth)}; then ${list(depth)}; ${chance(0.4) ? `else ${list(depth)}; ` : ""}fi`,
      () => `for x in ${many(1, 3, word).join(" ")}; do ${list(depth)}; done`,
      () => `for x in a b\ndo\n${list(depth)}\ndone`,
      () => `while fails; do ${list(depth)}; done`,
      () => `until ls; do ${list(depth)}; done`,
      () => `case ${word()} in ${word()}) ${list(depth)};; esac`,
      () => `f() { ${list(depth)}; }; f`,
      () => `[[ ${word()} == ${word()} ]] && ${simple()}`,
      () => `cat <<${pick(["EOF", "'EOF'", "-EOF", "\\EOF"])}\n${pick(INSIDE)}\nEOF\n${simple()}`,
      () => `(( 1 + 1 )) && ${simple()}`,
      () => `[ ${word()} = ${word()} ] && ${simple()}`,
      () => `[ -f ${word()} ${word()}; ${simple()}`,
      () => `test ${word()} ${word()} ${word()} && ${simple()}`,
      () => `cd ${pick(["sub", "./sub", "'sub'", "$X", "..", "-"])} && ${compound(depth + 1)}`,
      () => `{ ${list(depth)}; } 2>&1 | ${simple()}`,
      () => `(${list(depth)}) >${pick(["/dev/null", "x"])}`,
      () => `export ${assign()}; ${simple()}`,
      () => `x=${word()}; ${simple()}`,
      () => `coproc ${simple()}`,
      () => `echo ${word()} | ${simple()}`,
      () => `for x in 'a[$(evil)]' ${word()}; do ${list(depth)}; done`,
      () => `x='a[$(evil)]'; ${compound(depth + 1)}`,
      () => `${simple()} # ${pick(INSIDE)}`,
    ])();
  }
  const TOKENS = [
    ";",
    "|",
    "&",
    "&&",
    "||",
    "(",
    ")",
    "{",
    "}",
    "<",
    ">",
    "$",
    '"',
    "'",
    "`",
    "\\",
    "#",
    "!",
    "~",
    "*",
    "?",
    "[",
    "]",
    "=",
    " ",
    "\n",
    "\t",
    "\\\n",
    "evil",
    " evil ",
    "; evil",
    "\nevil\n",
    "2>",
    "<<",
    "<<<",
    "$(",
    "$((",
    "${",
    "((",
    "[[",
    "if ",
    " then ",
    " fi",
    " do ",
    " done",
    "case ",
    " in ",
    " esac",
    "time ",
    "! ",
    "x=",
    "é",
    "$'",
    "<(",
    ";;",
    "|&",
    "&>",
    ">|",
    "a",
    "EOF",
    "0",
    "-",
  ];
  function mutate(original: string): string {
    let line = original;
    for (const _ of many(1, 3, () => 0)) {
      const at = Math.floor(random() * (line.length + 1)),
        how = random();
      if (how < 0.65) line = line.slice(0, at) + pick(TOKENS) + line.slice(at);
      else if (how < 0.85) line = line.slice(0, at) + line.slice(at + 1 + Math.floor(random() * 2));
      else {
        const to = Math.floor(random() * (line.length + 1));
        line = line.slice(0, at) + line.slice(to, to + 8) + line.slice(at);
      }
    }
    return line;
  }
  return { line: () => compound(), mutate, pick, chance };
}
