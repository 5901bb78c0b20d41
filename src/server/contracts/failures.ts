import { randomUUID } from "node:crypto";
import { DeepAgentError } from "../../core/errors.ts";
import type { Logger } from "../../core/logger.ts";

/**
 * Turns an error into a text for the client, and logs it. Only our own errors are written for clients; others are hidden
 * behind a reference to the log.
 */
export function failureText(
  error: unknown,
  { kind, name }: { kind: "tool" | "resource"; name: string },
  { logger }: { logger: Logger },
): string {
  const failed = { [kind === "tool" ? "tool" : "request"]: name };
  if (error instanceof DeepAgentError) {
    logger.warn(`${kind}.refused`, { ...failed, code: error.code, error });
    return error.message;
  }
  const reference = randomUUID();
  logger.error(`${kind}.failed`, { ...failed, reference, error });
  return `${name} failed unexpectedly. Try again; if it fails again, look for ${reference} in the server's log.`;
}
