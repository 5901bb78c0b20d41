import { GraphRecursionError } from "@langchain/langgraph";
import { RunFailure } from "../../core/errors.ts";

/** Errors of the graph engine that mean something to a person; everything else is passed on as it is. */
export function graphFailure(error: unknown): unknown {
  if (!(error instanceof GraphRecursionError)) return error;
  return new RunFailure(
    "recursion_limit",
    "The run took more steps than its limit allows. Send a follow-up message to continue, or raise the limit.",
    { cause: error },
  );
}
