/** Describes problems of the configuration, one line each. */
import type { z } from "zod";
import { closestName } from "../core/options.ts";
import { shownName } from "../core/text.ts";
import { knownKeys } from "./schema.ts";

/** Puts a problem in front of the setting's name, as the person gave it. */
export type Describe = (path: string, problem: string) => string;

/** Unknown settings of one group that are named. */
const MAX_UNKNOWN = 20;

/** Only the first problem of a setting is described: a value of the wrong kind also fails later checks. */
export function describeIssues(issues: readonly z.core.$ZodIssue[], describe: Describe): string[] {
  const seen = new Set<string>();
  return issues.flatMap((issue) => {
    const path = issue.path.reduce<string>((text, key) => {
      if (typeof key === "number") return `${text}[${key}]`;
      return text === "" ? String(key) : `${text}.${String(key)}`;
    }, "");
    if (issue.code === "unrecognized_keys") {
      const known = knownKeys(issue.path);
      const shown = issue.keys.slice(0, MAX_UNKNOWN).map((key) => {
        const full = path === "" ? key : `${path}.${key}`;
        const meant = closestName(shownName(key), known);
        return describe(
          shownName(full),
          `unknown setting${meant === undefined ? "" : `; did you mean ${meant}?`}`,
        );
      });
      const more = issue.keys.length - shown.length;
      return more > 0 ? [...shown, `${path || "configuration"}: ${more} more unknown settings`] : shown;
    }
    if (seen.has(path)) return [];
    seen.add(path);
    return [describe(path === "" ? "configuration" : path, issue.message)];
  });
}
