/** Passes a message to a program. */
import { ProgramFailure, runProgram } from "../core/child-process.ts";
import { defined } from "../core/defined.ts";
import { codeOf } from "../core/errors.ts";
import { oneLine } from "../core/text.ts";
import type { SendResult } from "../runs/news.ts";

const TIMEOUT_MS = 20_000;

export interface Program {
  name: string;
  file: string;
  args: readonly string[];
  /** Written to standard input. */
  input?: string;
}

/** Runs the program to its end. An exit code other than 0 is a failure. */
export async function sendToProgram(
  { name, file, args, input }: Program,
  signal: AbortSignal,
): Promise<SendResult> {
  try {
    const limits = { timeout: TIMEOUT_MS, maxOutput: 100_000 };
    await runProgram(file, args, { ...limits, signal, windowsHide: true, ...defined({ input }) });
    return { ok: true };
  } catch (error) {
    signal.throwIfAborted();
    return { ok: false, problem: `${name} ${programProblem(error)}` };
  }
}

function programProblem(error: unknown): string {
  if (!(error instanceof ProgramFailure))
    return codeOf(error) === "ENOENT" ? "is not installed" : "could not be started";
  if (error.isTimeout) return `did not end within ${TIMEOUT_MS / 1000} s, or wrote too much`;
  const said = oneLine(error.message, 200);
  return `failed (exit code ${error.code ?? "none"})${said === "" ? "" : `: ${said}`}`;
}
