import type { ChildProcess } from "node:child_process";
import { startChild } from "../../core/child-process.ts";

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
