import { type ChildProcess, spawn } from "node:child_process";

/** Keeps the process groups it is told on standard input, and kills them when that ends. */
const SCRIPT = `
groups=" "
while read -r change id; do
  case $change in
    +) groups="$groups$id " ;;
    -) groups="\${groups%% $id *} \${groups#* $id }" ;;
  esac
done
for id in $groups; do kill -s KILL -- "-$id"; done
`;

/**
 * A small shell beside this process that outlives it by a moment: it learns of the end of this process,
 * a kill included, from its standard input, and then ends the process groups that are left.
 */
export class ProcessGuard {
  #shell: ChildProcess | undefined;

  add(group: number): void {
    this.#tell(`+ ${group}\n`);
  }

  remove(group: number): void {
    this.#tell(`- ${group}\n`);
  }

  close(): void {
    this.#shell?.stdin?.end();
    this.#shell = undefined;
  }

  #tell(change: string): void {
    this.#shell ??= startShell();
    this.#shell.stdin?.write(change);
  }
}

function startShell(): ChildProcess {
  // A group of its own, so that an interrupt from the terminal does not end it before its work.
  const shell = spawn("/bin/sh", ["-c", SCRIPT], {
    detached: true,
    env: {},
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
