/** Nests the layers of an agent around one of its calls. */
import { RunFailure } from "../../core/errors.ts";
import type {
  CallHandler,
  CallResult,
  CallScope,
  Middleware,
  ToolCallRequest,
} from "../contracts/middleware.ts";
import type { Deadline } from "../budget/meter.ts";

/**
 * Nests the `wrapCall` of a stack around `call`, which reports when it begins to work and asks nobody any more. Once it
 * has stopped to ask, so does the whole stack, even if a wrapper takes the pause for an error or does not wait for it.
 */
export function nestLayers(
  stack: readonly Middleware[],
  call: (request: ToolCallRequest, begin: () => void) => Promise<CallResult>,
  { isPause, race }: Pick<CallScope, "isPause"> & Pick<Deadline, "race">,
): CallHandler {
  let paused: { error: unknown } | undefined;
  const check = (): void => {
    if (paused) throw paused.error;
  };
  let begin = (): void => undefined;
  const begun = new Promise<void>((resolve) => (begin = resolve));
  const innermost: CallHandler = async (request) => {
    check();
    try {
      return await call(request, begin);
    } catch (error) {
      if (isPause(error)) paused = { error };
      throw error;
    }
  };
  /** Handlers at work that may still ask. */
  const asking: Array<Promise<unknown>> = [];
  const watched =
    (next: CallHandler): CallHandler =>
    (request) => {
      const result = next(request);
      asking.push(Promise.race([result, begun]).catch(() => undefined));
      return result;
    };
  const nested = stack.reduceRight<CallHandler>((inner, layer) => {
    const wrap = layer.wrapCall?.bind(layer);
    return wrap ? (request) => wrap(request, watched(inner)) : inner;
  }, innermost);
  const run: CallHandler = async (request) => {
    try {
      return await nested(request);
    } finally {
      while (asking.length > 0) await asking.pop();
    }
  };
  return (request) => race(run(request)).finally(check);
}

/** Middleware threw, in its own words, or answered in a wrong form. */
export class MiddlewareFailure extends RunFailure {
  constructor(message: string, options?: { cause: unknown }) {
    super("middleware_error", message, options);
  }
}
