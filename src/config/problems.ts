import type { z } from "zod";
import { closestName } from "../core/closest-names.ts";
import { shownName } from "../core/text.ts";
import { knownKeys } from "./schema-info.ts";

/** Unknown settings of one group that are named. */
const MAX_UNKNOWN = 20;

type Issue = z.core.$ZodIssue;

/** One line per problem: the setting's path, what is wrong, where the value came from. */
export function describeIssues(issues: readonly Issue[], originOf: (path: string) => string): string[] {
  const seen = new Set<string>();
  return issues.flatMap((issue) => {
    const path = formatPath(issue.path);
    if (issue.code === "unrecognized_keys") {
      const known = knownKeys(issue.path);
      const shown = issue.keys.slice(0, MAX_UNKNOWN).map((key) => {
        const full = path === "" ? key : `${path}.${key}`;
        const meant = closestName(shownName(key), known);
        const hint = meant === undefined ? "" : `; did you mean ${meant}?`;
        return `${shownName(full)}: unknown setting${hint} (from ${originOf(full)})`;
      });
      const more = issue.keys.length - shown.length;
      return more > 0 ? [...shown, `${path || "configuration"}: ${more} more unknown settings`] : shown;
    }
    // The first one says it: a value of a wrong type also fails the checks that follow.
    if (seen.has(path)) return [];
    seen.add(path);
    return [`${path === "" ? "configuration" : path}: ${lowerFirst(issue.message)} (from ${originOf(path)})`];
  });
}

/** `["subagents", 0, "name"]` → `subagents[0].name`. */
function formatPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, key) => {
    if (typeof key === "number") return `${text}[${key}]`;
    return text === "" ? String(key) : `${text}.${String(key)}`;
  }, "");
}

const lowerFirst = (text: string): string => text.slice(0, 1).toLowerCase() + text.slice(1);
