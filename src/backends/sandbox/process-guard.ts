import { type ChildProcess, spawn } from "node:child_process";
import { END_MARKED } from "./marked-command.ts";
import { SYSTEM_PATH } from "./shell-environment.ts";

/**
 * Keeps the process groups it is told on standard input, and kills them when that ends; with them goes what
 * left its group but has the mark of this process. `!` kills what has one command's mark at once.
 */
const SCRIPT = `
end_marked() { ${END_MARKED.replace("; exit 0", "")}; }
groups=" "
while read -r change id; do
  case $change in
    +) groups="$groups$id " ;;
    -) groups="\${groups%% $id *} \${groups#* $id }" ;;
    !) end_marked "$id" ;;
  esac
done
for id in $groups; do kill -s KILL -- "-$id"; done
end_marked "$1"
`;

/**
 * A small shell beside this process that outlives it by a moment: it learns of the end of this process,
 * a kill included, from its standard input, and then ends the process groups that are left.
 */
export class ProcessGuard {
  readonly #mark: string;
  #shell: ChildProcess | undefined;

  /** `mark`: how the marks of all commands begin. */
  constructor(mark: string) {
    this.#mark = mark;
  }

  add(group: number): void {
    this.#tell(`+ ${group}\n`);
  }

  remove(group: number): void {
    this.#tell(`- ${group}\n`);
  }

  /** Kills what a command started and is no longer in its group. */
  endMarked(mark: string): void {
    this.#shell?.stdin?.write(`! ${mark}\n`);
  }

  close(): void {
    this.#shell?.stdin?.end();
    this.#shell = undefined;
  }

  #tell(change: string): void {
    this.#shell ??= startShell(this.#mark);
    this.#shell.stdin?.write(change);
  }
}

function startShell(mark: string): ChildProcess {
  // A group of its own, so that an interrupt from the terminal does not end it before its work.
  const shell = spawn("/bin/sh", ["-c", SCRIPT, "sh", mark], {
    detached: true,
    env: { PATH: SYSTEM_PATH },
    cwd: "/",
    stdio: ["pipe", "ignore", "ignore"],
  });
  shell.unref();
  const { stdin } = shell;
  if ("unref" in stdin && typeof stdin.unref === "function") stdin.unref();
  // Without the guard, groups end with `close` and with an orderly exit of this process.
  shell.on("error", () => undefined);
  stdin.on("error", () => undefined);
  return shell;
}
