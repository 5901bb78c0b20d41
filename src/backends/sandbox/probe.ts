import { ProgramFailure } from "../../core/child-process.ts";

/** Why commands cannot be isolated on this machine. */
export interface NoSandbox {
  /** What it is, and what to do about it. */
  reason: string;
  /** Nothing is known yet: the machine was too busy to try, and a later attempt may say otherwise. */
  isTransient?: true;
}

/** How long a program of the sandbox may take to do nothing. */
export const PROBE_TIMEOUT_MS = 10_000;

/** Whether `runProgram` failed because the program's time was over. */
export const isTimedOut = (error: unknown): boolean => error instanceof ProgramFailure && error.isTimeout;

/** Whether `runProgram` failed because there is no such program. */
export const isMissing = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === "ENOENT";

export const tooSlow = (program: string, timeoutMs: number): NoSandbox => ({
  reason: `Whether commands can be isolated is not known: ${program} did not answer within ${timeoutMs / 1000} s, as on a machine that is overloaded. Try again when it is less busy; a server does so before each run.`,
  isTransient: true,
});
