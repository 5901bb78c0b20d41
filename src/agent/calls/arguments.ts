/** Checks the arguments of calls by any schema that a LangChain tool can have. */
import { Validator } from "@langchain/core/utils/json_schema";
import { isStandardSchema } from "@langchain/core/utils/standard_schema";
import { interopSafeParse, isInteropZodSchema } from "@langchain/core/utils/types";
import type { ArgumentIssue } from "../../tools/call.ts";

/** Returns the problems of a call's arguments; empty if none can be found before the tool runs. */
export type ArgumentsCheck = (args: unknown) => readonly ArgumentIssue[];

/** Checks by zod, Standard or JSON Schema. An invalid or asynchronous one is left to the tool itself. */
export function argumentsCheck(schema: unknown): ArgumentsCheck {
  let check: ArgumentsCheck | undefined;
  return (args) => {
    try {
      check ??= checkBy(schema);
      return check(args);
    } catch {
      return [];
    }
  };
}

function checkBy(schema: unknown): ArgumentsCheck {
  if (isInteropZodSchema(schema)) {
    return (args) => {
      const parsed = interopSafeParse(schema, args);
      // An error without issues is one of the schema: it has to wait, or failed itself.
      return parsed.success ? [] : (parsed.error.issues ?? []);
    };
  }
  if (isStandardSchema(schema)) {
    return (args) => {
      const result = schema["~standard"].validate(args);
      if (!(result instanceof Promise))
        return (result.issues ?? []).map(({ message, path = [] }) => ({
          message,
          path: path.map((segment) => (typeof segment === "object" ? segment.key : segment)),
        }));
      result.catch(() => {}); // the tool itself reports it when it runs
      return [];
    };
  }
  if (typeof schema !== "object" || schema === null) return () => [];
  // The validator and draft that LangChain uses when it runs the tool, but reporting every problem.
  const validator = new Validator(schema, "2019-09", false);
  return (args) => issuesOf(validator.validate(args).errors);
}

type SchemaError = ReturnType<Validator["validate"]>["errors"][number];

/** Keywords that only repeat that something below them is wrong. */
const OUTER = (
  "properties patternProperties additionalProperties unevaluatedProperties " +
  "items prefixItems additionalItems unevaluatedItems allOf $ref $recursiveRef"
).split(" ");
/** The schema `false`: nothing may be there. */
const NOTHING = "false";

function issuesOf(errors: readonly SchemaError[]): ArgumentIssue[] {
  const choices: SchemaError[] = [];
  // True if an error belongs to one form of the choice. The schema `false` is reported without its location.
  const isBelow = (error: SchemaError, choice: SchemaError): boolean =>
    `${error.instanceLocation}/`.startsWith(`${choice.instanceLocation}/`) &&
    (error.keyword === NOTHING || error.keywordLocation.startsWith(`${choice.keywordLocation}/`));
  const telling = errors.filter((error) => {
    if (OUTER.includes(error.keyword) || choices.some((choice) => isBelow(error, choice))) return false;
    // The problems of each form are left out.
    if (["anyOf", "oneOf"].includes(error.keyword)) choices.push(error);
    return true;
  });
  return telling.map(({ keyword, error, instanceLocation }) => {
    const [, ...path] = instanceLocation.split("/");
    return {
      message: keyword === NOTHING ? "not expected here" : error,
      path: path.map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~")),
    };
  });
}
