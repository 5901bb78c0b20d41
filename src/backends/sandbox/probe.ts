import { ProgramFailure } from "../../core/child-process.ts";
import { codeOf } from "../../core/errors.ts";

/** Why commands cannot be isolated on this machine. */
export interface NoSandbox {
  /** The problem, and what to do about it. */
  reason: string;
  /** Set if the machine was too busy for a trial, so that a later attempt may succeed. */
  isTransient?: true;
}

/** Time limit for a trial of the sandbox. */
export const PROBE_TIMEOUT_MS = 10_000;

/** True if `runProgram` failed at its time limit. */
export const isTimedOut = (error: unknown): boolean => error instanceof ProgramFailure && error.isTimeout;

/** True if `runProgram` failed because the program does not exist. */
export const isMissing = (error: unknown): boolean => codeOf(error) === "ENOENT";

export const tooSlow = (program: string, timeoutMs: number): NoSandbox => ({
  reason: `It is not known if commands can be isolated: ${program} did not answer within ${timeoutMs / 1000} s. The machine may be overloaded. Try again when it is less busy; a server does so before each run.`,
  isTransient: true,
});
