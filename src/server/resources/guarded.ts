import { randomUUID } from "node:crypto";
import { ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server";
import { DeepAgentError } from "../../core/errors.ts";
import type { ServerDeps } from "../deps.ts";

/** Lets through what is written for the client; anything else is logged and hidden behind a reference. */
export async function guarded<Value>(
  request: string,
  { logger }: Pick<ServerDeps, "logger">,
  work: () => Promise<Value>,
): Promise<Value> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ProtocolError) throw error;
    if (error instanceof DeepAgentError) {
      logger.warn("resource.refused", { request, code: error.code, error });
      throw new ProtocolError(ProtocolErrorCode.InternalError, error.message);
    }
    const reference = randomUUID();
    logger.error("resource.failed", { request, reference, error });
    throw new ProtocolError(
      ProtocolErrorCode.InternalError,
      `${request} failed unexpectedly. Try again; if it fails again, look for ${reference} in the server's log.`,
    );
  }
}
