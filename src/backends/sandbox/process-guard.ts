import type { ChildProcess } from "node:child_process";
import { runProgram, startChild } from "../../core/child-process.ts";
import { END_MARKED, SYSTEM_PATH } from "./environment.ts";

const ENVIRONMENT = { PATH: SYSTEM_PATH };
const END_TIMEOUT_MS = 10_000;

/**
 * Keeps the process groups it is told on standard input, and kills them when that ends without a last word;
 * with them goes what left its group but has the mark of this process.
 */
const SCRIPT = `
groups=" "
while read -r change id; do
  case $change in
    +) groups="$groups$id " ;;
    .) exit ;;
    -) groups="\${groups%% $id *} \${groups#* $id }" ;;
  esac
done
for id in $groups; do kill -s KILL -- "-$id"; done
end_marked() {${END_MARKED}}
end_marked "$1"
# Of what was being started when this process ended, some may not have had its mark yet.
sleep 2
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

  /** To be called before the first program is started, so that there is no moment without a guard. */
  open(): void {
    this.#shell ??= startShell(this.#mark);
  }

  add(group: number): void {
    this.#tell(`+ ${group}\n`);
  }

  remove(group: number): void {
    this.#tell(`- ${group}\n`);
  }

  /** Kills what one command started, or every one, also what is in no group known here. */
  async endMarked(mark = this.#mark): Promise<void> {
    if (this.#shell === undefined) return;
    const options = { env: ENVIRONMENT, cwd: "/", timeout: END_TIMEOUT_MS };
    await runProgram("/bin/sh", ["-c", END_MARKED, "sh", mark], options).catch(() => undefined);
  }

  /** To be called when everything has ended. */
  close(): void {
    this.#shell?.stdin?.end(".\n");
    this.#shell = undefined;
  }

  #tell(change: string): void {
    this.#shell?.stdin?.write(change);
  }
}

function startShell(mark: string): ChildProcess {
  // A group of its own, so that an interrupt from the terminal does not end it before its work.
  const shell = startChild("/bin/sh", ["-c", SCRIPT, "sh", mark], {
    detached: true,
    env: ENVIRONMENT,
    cwd: "/",
    stdio: ["pipe", "ignore", "ignore"],
  });
  shell.unref();
  const { stdin } = shell;
  if (stdin !== null && "unref" in stdin && typeof stdin.unref === "function") stdin.unref();
  // Without the guard, groups end with `close` and with an orderly exit of this process.
  shell.on("error", () => undefined);
  stdin?.on("error", () => undefined);
  return shell;
}

/** A program with its arguments and its whole environment. */
export interface Will {
  file: string;
  args: readonly string[];
  env: Readonly<Record<string, string>>;
}

/**
 * A program that runs when this process is gone, killed or not. A shell beside this process learns of its
 * end from its standard input.
 */
export class LastWill {
  readonly #shell: ChildProcess;

  constructor({ file, args, env }: Will) {
    const script = 'cat >/dev/null; exec "$@"';
    // A group of its own, so that an interrupt from the terminal does not end it before its work.
    this.#shell = startChild("/bin/sh", ["-c", script, "sh", file, ...args], {
      detached: true,
      env,
      cwd: "/",
      stdio: ["pipe", "ignore", "ignore"],
    });
    this.#shell.unref();
    const { stdin } = this.#shell;
    if (stdin !== null && "unref" in stdin && typeof stdin.unref === "function") stdin.unref();
    // Without the shell there is no last will; what this process still does itself is not touched.
    this.#shell.on("error", () => undefined);
    stdin?.on("error", () => undefined);
  }

  /** The program is not run any more. */
  revoke(): void {
    const { pid } = this.#shell;
    if (pid === undefined || this.#shell.exitCode !== null) return;
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      // It has ended by itself.
    }
  }
}
