import { isGraphBubbleUp } from "@langchain/langgraph";
import { DeepAgentError, errorMessage, RunFailure } from "../../core/errors.ts";
import type { Logger } from "../../core/logger.ts";
import type { AgentRuntime } from "./middleware.ts";

/** The code under which middleware that throws or answers in a wrong form is logged and told. */
export const MIDDLEWARE_ERROR = "middleware_error";

/** Where middleware is at work. */
export interface MiddlewareCall {
  middleware: string;
  hook: string;
  runtime: AgentRuntime;
  log: Logger;
}

/**
 * Runs a hook. What it throws itself becomes a failure of the middleware, and the log has cause and stack. Pauses,
 * aborts, expected errors and those in `passed` (failures from further in) are thrown on unchanged.
 */
export async function hooked<Result>(
  { middleware, hook, runtime, log }: MiddlewareCall,
  run: () => Result | Promise<Result>,
  passed: ReadonlySet<unknown> = new Set(),
): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    if (passed.has(error) || isGraphBubbleUp(error) || runtime.signal?.aborted === true) throw error;
    throw failureOf(error, { middleware, hook, log });
  }
}

/** Makes a failure of the middleware of what a hook threw, and logs it. Expected errors are given back unchanged. */
export function failureOf(
  error: unknown,
  { middleware, hook, log }: Pick<MiddlewareCall, "middleware" | "hook" | "log">,
): unknown {
  if (error instanceof DeepAgentError && !(error instanceof MiddlewareFailure)) return error;
  log.error(MIDDLEWARE_ERROR, { middleware, hook, error });
  if (error instanceof MiddlewareFailure) return error;
  return new MiddlewareFailure(errorMessage(error), { cause: error });
}

/** Middleware threw, in its own words, or answered in a wrong form. */
export class MiddlewareFailure extends RunFailure {
  constructor(message: string, options?: { cause: unknown }) {
    super(MIDDLEWARE_ERROR, message, options);
  }
}

/** `next`, and a set of what it threw. */
export function noting<Request, Result>(
  next: (request: Request) => Promise<Result>,
): { next: (request: Request) => Promise<Result>; thrown: Set<unknown> } {
  const thrown = new Set<unknown>();
  return {
    thrown,
    next: async (request) => {
      try {
        return await next(request);
      } catch (error) {
        thrown.add(error);
        throw error;
      }
    },
  };
}
