import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { onTestFinished } from "vitest";
import { program } from "./harness-stdio.ts";

interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** The program as a child process, spoken to in lines. */
export interface Child {
  readonly process: ChildProcessWithoutNullStreams;
  /** Lines of standard output so far. */
  readonly output: readonly string[];
  /** Standard error so far. */
  errors(): string;
  send(message: object): void;
  /** The first line of output, past or to come, that `matches`, parsed. */
  receive(matches: (message: Record<string, unknown>) => boolean): Promise<Record<string, unknown>>;
  readonly exited: Promise<Exit>;
}

/** Starts the program, or `script`; it is killed after the test if it still runs. */
export async function startProgram(
  args: readonly string[],
  env: Record<string, string>,
  script?: string,
): Promise<Child> {
  const child = spawn(process.execPath, [script ?? (await program()), ...args], { env });
  const gone = once(child, "exit");
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await gone;
  });
  const output: string[] = [];
  let errors = "";
  const waiting = new Set<() => void>();
  const wake = (): void => waiting.forEach((check) => check());
  createInterface({ input: child.stdout }).on("line", (line) => {
    output.push(line);
    wake();
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  // What is sent to a process that has gone is lost.
  child.stdin.on("error", () => undefined);
  const exited = once(child, "close").then(([code, signal]): Exit => ({ code, signal }));
  return {
    process: child,
    output,
    errors: () => errors,
    exited,
    send: (message) => void child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`),
    receive: (matches) => {
      const found = new Promise<Record<string, unknown>>((resolve) => {
        let next = 0;
        const check = (): void => {
          for (; next < output.length; next += 1) {
            const message = JSON.parse(output[next] ?? "") as Record<string, unknown>;
            if (!matches(message)) continue;
            waiting.delete(check);
            resolve(message);
            return;
          }
        };
        waiting.add(check);
        check();
      });
      const ended = exited.then(() => Promise.reject(new Error(`the program has ended: ${errors}`)));
      return Promise.race([found, ended]);
    },
  };
}

/** Processes that have `mark` in their environment. Linux only. */
export function processesWith(mark: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => environmentOf(pid).includes(mark));
}

function environmentOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, "utf8");
  } catch {
    return "";
  }
}
