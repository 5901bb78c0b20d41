import type { z } from "zod";
import table from "./kind-names.json" with { type: "json" };

const KIND_NAMES: Readonly<Record<string, string>> = table;

/**
 * Describes the problem of a value in plain words, for `safeParse(value, { error: plainProblem })`. Texts of the schema
 * itself count before it. Never repeats the value, which may be a secret.
 */
export function plainProblem(issue: z.core.$ZodRawIssue): string {
  switch (issue.code) {
    case "invalid_type":
      const kind = KIND_NAMES[issue.expected] ?? `of the kind ${issue.expected}`;
      if (issue.input === undefined) return `is missing; it must be ${kind}`;
      if (issue.expected === "int" && typeof issue.input === "number") return `must be ${kind}`;
      const name = Array.isArray(issue.input) ? "array" : typeof issue.input;
      return `must be ${kind}, not ${issue.input === null ? "null" : (KIND_NAMES[name] ?? `a ${name}`)}`;
    case "invalid_value":
      const values = issue.values.map(String);
      const last = values.at(-1) ?? "nothing";
      return `must be ${values.length < 2 ? last : `${values.slice(0, -1).join(", ")} or ${last}`}`;
    case "too_small":
    case "too_big": {
      const isSmall = issue.code === "too_small";
      const bound = isSmall ? issue.minimum : issue.maximum;
      const [strict, usual] = isSmall ? ["greater than", "at least"] : ["less than", "at most"];
      const unit = UNITS[issue.origin];
      if (unit === undefined) return `must be ${issue.inclusive === false ? strict : usual} ${bound}`;
      return isSmall && Number(bound) === 1 ? "must not be empty" : `must have ${usual} ${bound} ${unit}`;
    }
    case "invalid_format":
      if (issue.format === "starts_with") return `must begin with ${String(issue["prefix"])}`;
      return issue.format === "url" ? "must be an address" : "has characters that are not allowed";
    case "unrecognized_keys":
      return `has unknown names: ${issue.keys.join(", ")}`;
    case "not_multiple_of":
      return `must be a multiple of ${issue.divisor}`;
    default:
      return "has the wrong form";
  }
}

/** Units of values that have a length. */
const UNITS: Readonly<Record<string, string>> = { string: "characters", array: "entries", record: "entries" };
