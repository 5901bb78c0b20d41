import type { Logger } from "../../core/logger.ts";

/**
 * Keeps standard output for the protocol: returns its stream, and sends everything else that writes
 * there, such as `console.log` in a dependency, to standard error.
 */
export function reserveStdout(): NodeJS.WriteStream {
  const protocol = process.stdout;
  // The global console looks the stream up when it is first used.
  Object.defineProperty(process, "stdout", { configurable: true, get: () => process.stderr });
  return protocol;
}

/** Resolves with the name of the signal that tells the process to end. */
export function untilSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => resolve(signal));
  });
}

/**
 * A promise that nobody waits for must not end a server that works for others. LangGraph looks at a failed
 * write of a checkpoint only at the end of the step; the run gets the failure there.
 */
export function surviveRejections(logger: Logger): void {
  process.on("unhandledRejection", (error) => logger.error("process.unhandled_rejection", { error }));
}
