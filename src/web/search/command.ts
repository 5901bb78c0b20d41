/** A search by a program of the operator. */
import { ProgramFailure, runProgram } from "../../core/child-process.ts";
import { oneLine } from "../../core/text.ts";
import { parsedJson } from "../../core/unknown.ts";
import { WebProblem } from "../request.ts";
import { type SearchPages, resultList, tidyPages } from "./results.ts";

const COMMAND_TIMEOUT_MS = 30_000;

/**
 * Runs the program for each search: `{"query": "…", "count": 8}` on standard input, `{"results": […]}` or the list
 * alone on standard output, each result with `title`, `url`, `snippet` and perhaps `date`.
 */
export function commandSearch(program: string, args: readonly string[]): SearchPages {
  return async (query, { count, signal }) => {
    const input = `${JSON.stringify({ query, count })}\n`;
    const options = { timeout: COMMAND_TIMEOUT_MS, input, signal, maxOutput: 2 * 1024 * 1024 };
    const output = await runProgram(program, args, options).catch((error: unknown) => {
      signal.throwIfAborted();
      throw new WebProblem("search", `The search command ${describeFailure(error)}.`, { cause: error });
    });
    const answer = parsedJson(output);
    if (answer === undefined) throw new WebProblem("search", "The search command did not write JSON.");
    return tidyPages(Array.isArray(answer) ? resultList(answer) : resultList(answer, "results"), count);
  };
}

function describeFailure(error: unknown): string {
  if (!(error instanceof ProgramFailure)) return "could not be started; check web.search.command";
  if (error.isTimeout) return `did not end within ${COMMAND_TIMEOUT_MS / 1000} s, or wrote more than 2 MB`;
  const said = oneLine(error.message, 200);
  return `failed (exit code ${error.code ?? "none"})${said === "" ? "" : `: ${said}`}`;
}
