/** One line about a call, and one about its result, for people. */
import { headOf, oneLine } from "../../core/text.ts";

const SUMMARY_LIMIT = 160;

/** One line for people: the tool and its main argument, such as `grep "TODO" in /workspace/`. */
export function callSummary(name: string, args: Readonly<Record<string, unknown>>): string {
  if (name === "write_todos") return "write_todos";
  if (name === "grep" || name === "glob") {
    const where = typeof args["path"] === "string" ? ` in ${args["path"]}` : "";
    return oneLine(`${name} ${JSON.stringify(args["pattern"] ?? "")}${where}`, SUMMARY_LIMIT);
  }
  const mostTelling = ["file_path", "path", "pattern", "command", "description", "query", "url"];
  const telling = mostTelling.map((key) => args[key]).find((value) => typeof value === "string");
  return oneLine(typeof telling === "string" ? `${name} ${telling}` : name, SUMMARY_LIMIT);
}

/** The first meaningful line of a result, for people: no heading, fence or bracket alone. */
export function resultSummary(text: string): string {
  const lines = headOf(text.trimStart(), 4000).split("\n");
  const telling = lines.find(
    (line) => /[\p{L}\p{N}]/u.test(line) && !/^\s*(?:#|`{3}|~{3}|<[^<>]*>\s*$)/.test(line),
  );
  return oneLine(telling ?? lines[0] ?? "", SUMMARY_LIMIT);
}
