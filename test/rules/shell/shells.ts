/**
 * Runs command lines in bash and in the machine's sh, in a sandbox without network whose programs only log their
 * arguments. The builtins of bash are switched off, so that one that runs is logged, too.
 */
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";

/** Arguments of the programs that a line started, by shell. */
export interface StartedPrograms {
  readonly bash: string[][];
  readonly sh: string[][];
}

const WRAPPERS = ["timeout", "nice", "nohup", "env", "stdbuf", "xargs"];
const BUILTINS =
  ". : [ alias bg bind builtin caller compgen complete compopt declare dirs disown echo enable eval exec export fc fg getopts hash help history jobs kill let local logout mapfile popd printf pushd pwd read readarray readonly return set shift shopt source suspend test times trap true false type typeset ulimit umask unalias unset wait".split(
    " ",
  );
/** Their words do harm in a shell that reads them once more. */
const VARIABLES = {
  X: "evil 1; evil",
  Y: "",
  Z: "*",
  A: "a[$(evil)]",
  D: "-rf evil",
  HOME: "/box",
  LANG: "C.UTF-8",
};
/** A character that no line has ends each argument. */
const END = "\x01";
const STUB = `#!/bin/sh
printf '%s\\001' "\x02\${0##*/}" "$@" >>"/log-$LOGS/$LINE.$$"
printf '%s\\n' evil '-n evil' '; evil' '$(evil)' '\`evil\`' '| evil' 2>/dev/null
[ "\${0##*/}" != fails ]
`;
const shellLoop = (logs: string, command: string): string => `
for f in /lines/*; do
  LINE=\${f##*/} LOGS=${logs} /usr/bin/timeout -k 1 1 ${command} "$(< "$f")" </dev/null >/dev/null 2>&1
  [ $$ -lt 10 ] && kill -9 -1 2>/dev/null
done`;
const DRIVER = `
/usr/bin/mkdir /box/sub /box/src; /usr/bin/cp /stubs/evil /box/run; cd /box
for f in -rf evil 'a b' 'x;evil' a.ts b.ts sub/a.ts src/-x src/b.ts; do : >"./$f"; done
${shellLoop("bash", "/usr/bin/env BASH_ENV=/env.sh /usr/bin/bash -c")}
${shellLoop("sh", "/bin/sh -c")}
exit 0`;

/** `programs`: their names in the lines. Lines that begin with the same number of the result belong together. */
export function runInShells(lines: readonly string[], programs: Iterable<string>): StartedPrograms[] {
  const folder = mkdtempSync(join(tmpdir(), "deepagent-shells-"));
  try {
    prepare(folder, lines, programs);
    const system = ["/bin", "/lib", "/lib64"].flatMap((path) =>
      existsSync(path) ? ["--symlink", `usr${path}`, path] : [],
    );
    const shared = ["stubs", "lines", "env.sh", "driver.sh"].flatMap((name) => [
      "--ro-bind",
      join(folder, name),
      `/${name}`,
    ]);
    const logs = ["log-bash", "log-sh"].flatMap((name) => ["--bind", join(folder, name), `/${name}`]);
    const variables = Object.entries({ ...VARIABLES, PATH: "/stubs" }).flatMap((entry) => [
      "--setenv",
      ...entry,
    ]);
    const { status, stderr } = spawnSync(
      "bwrap",
      [
        ["--ro-bind", "/usr", "/usr", ...system, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/box"],
        ["--unshare-all", "--die-with-parent", "--clearenv", ...shared, ...logs, ...variables],
        ["/usr/bin/bash", "/driver.sh"],
      ].flat(),
      { encoding: "utf8" },
    );
    if (status !== 0) throw new Error(`the sandbox ended with ${status}: ${stderr.slice(0, 500)}`);
    const started = lines.map(() => ({ bash: [] as string[][], sh: [] as string[][] }));
    for (const shell of ["bash", "sh"] as const)
      for (const name of readdirSync(join(folder, `log-${shell}`))) {
        const records = readFileSync(join(folder, `log-${shell}`, name), "utf8")
          .split("\x02")
          .slice(1);
        started[Number.parseInt(name, 10)]?.[shell].push(
          ...records.map((record) => record.split(END).slice(0, -1)),
        );
      }
    return started;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function prepare(folder: string, lines: readonly string[], programs: Iterable<string>): void {
  for (const name of ["stubs", "lines", "log-bash", "log-sh"]) mkdirSync(join(folder, name));
  const stub = (name: string, text: string): void => {
    writeFileSync(join(folder, "stubs", name), text);
    chmodSync(join(folder, "stubs", name), 0o755);
  };
  const names = new Set([...BUILTINS, "evil", "rm", "sh", "bash", "cd", "sleep", ...programs]);
  for (const name of names) if (name !== "." && basename(name) === name) stub(name, STUB);
  for (const name of WRAPPERS) {
    rmSync(join(folder, "stubs", name), { force: true });
    symlinkSync(`/usr/bin/${name}`, join(folder, "stubs", name));
  }
  // Outside bash these are programs, with one option.
  stub("time", '#!/bin/sh\n[ "$1" = -p ] && shift\nexec "$@"\n');
  stub("command", '#!/bin/sh\n[ "$1" = -- ] && shift\nexec "$@"\n');
  const kept = [".", ":", "true", "false", "enable"];
  const off = BUILTINS.filter((name) => !kept.includes(name));
  writeFileSync(join(folder, "env.sh"), `enable -n ${off.join(" ")} enable\n`);
  for (const [index, line] of lines.entries()) writeFileSync(join(folder, "lines", String(index)), line);
  writeFileSync(join(folder, "driver.sh"), DRIVER);
}
