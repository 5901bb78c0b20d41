/** Chooses the search of the web from settings and the names of variables: nothing is requested. */
import { variableText, oneLine } from "../../core/text.ts";
import type { SearchOptions, SearchProvider } from "./options.ts";
import { KEYED_SERVICES, keyedSearch, searxng } from "./providers.ts";
import { type SearchPages, resultList, tidyPages } from "./ask.ts";
import { ProgramFailure, runProgram } from "../../core/child-process.ts";
import { parsedJson } from "../../core/unknown.ts";
import { WebProblem } from "../request.ts";

type Variables = Readonly<Record<string, string | undefined>>;

export type SearchChoice =
  /** `found`: a search that can be made, with its name for people; absent: none is configured. */
  | { ok: true; found?: { name: string; search: SearchPages } }
  /** `keys`: variables any of which would do, where a key is all that is missing. */
  | { ok: false; problem: string; keys?: readonly string[] };

export const SEARCH_KEYS: readonly string[] = Object.values(KEYED_SERVICES).flatMap(({ keys }) => keys);

/** The search that is configured, or that a key in the environment is for. */
export function searchChoice(options: SearchOptions, env: Variables): SearchChoice {
  const { url, command: [program, ...args] = [] } = options;
  const services = Object.entries(KEYED_SERVICES) as [SearchProvider, { keys: readonly string[] }][]; // its own keys
  const keyed = services.find(([, { keys }]) => findKey(env, keys) !== undefined)?.[0];
  const implied = options.command !== undefined ? "command" : url !== undefined ? "searxng" : keyed;
  const provider = options.provider ?? implied;
  switch (provider) {
    case undefined:
    case "off":
      return { ok: true };
    case "command":
      if (program === undefined) return { ok: false, problem: missingSetting(provider, "command") };
      return { ok: true, found: { name: "the search command", search: commandSearch(program, args) } };
    case "searxng":
      if (url === undefined) return { ok: false, problem: missingSetting(provider, "url") };
      return { ok: true, found: { name: "SearXNG", search: searxng(url) } };
    default: {
      const service = KEYED_SERVICES[provider];
      const { keys, title: name, url: usual } = service;
      const key = findKey(env, keys);
      if (key !== undefined)
        return { ok: true, found: { name, search: keyedSearch(service, url ?? usual, key) } };
      const problem = `The search provider ${provider} needs the environment variable ${keys[0]}, which is not set.`;
      return { ok: false, problem, keys };
    }
  }
}

const missingSetting = (provider: SearchProvider, setting: string): string =>
  `The search provider ${provider} needs web.search.${setting}.`;

const findKey = (env: Variables, keys: readonly string[]): string | undefined =>
  keys.map((name) => variableText(env[name] ?? "")).find((value) => value !== "");

const COMMAND_TIMEOUT_MS = 30_000;

/**
 * Runs the program for each search: `{"query": "…", "count": 8}` on standard input, `{"results": […]}` or the list
 * alone on standard output, each result with `title`, `url`, `snippet` and perhaps `date`.
 */
function commandSearch(program: string, args: readonly string[]): SearchPages {
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
