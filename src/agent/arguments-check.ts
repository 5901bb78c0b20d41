import { Validator } from "@langchain/core/utils/json_schema";
import { isStandardSchema } from "@langchain/core/utils/standard_schema";
import { interopSafeParse, isInteropZodSchema } from "@langchain/core/utils/types";
import type { ArgumentIssue } from "../tools/call.ts";

/** What is wrong with the arguments of a call; empty: nothing that can be told before the tool runs. */
export type ArgumentsCheck = (args: unknown) => readonly ArgumentIssue[];

/**
 * Checks by any schema that a tool of LangChain can have: zod 4 or 3, Standard Schema, JSON Schema; made
 * when it is first needed. A schema that is no schema, or that has to wait for something, finds nothing:
 * the tool itself decides when it runs.
 */
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
      if (!(result instanceof Promise)) return (result.issues ?? []).map(fromStandard);
      result.catch(() => {}); // told by the tool when it runs
      return [];
    };
  }
  if (typeof schema !== "object" || schema === null) return () => [];
  // What LangChain checks by when it runs the tool, in the same draft, but telling all that is wrong.
  const validator = new Validator(schema, "2019-09", false);
  return (args) => issuesOf(validator.validate(args).errors);
}

type StandardIssue = Pick<ArgumentIssue, "message"> & {
  path?: ReadonlyArray<PropertyKey | { readonly key: PropertyKey }> | undefined;
};

const fromStandard = ({ message, path = [] }: StandardIssue): ArgumentIssue => ({
  message,
  path: path.map((segment) => (typeof segment === "object" ? segment.key : segment)),
});

type SchemaError = ReturnType<Validator["validate"]>["errors"][number];

/** Say no more than that something below them is wrong, which is told, too. */
const OUTER: ReadonlySet<string> = new Set(
  (
    "properties patternProperties additionalProperties unevaluatedProperties " +
    "items prefixItems additionalItems unevaluatedItems allOf $ref $recursiveRef"
  ).split(" "),
);
/** One of several forms would do; what is wrong by each of them is left out. */
const CHOICE: ReadonlySet<string> = new Set(["anyOf", "oneOf"]);
/** The schema `false`: nothing may be there. */
const NOTHING = "false";

function issuesOf(errors: readonly SchemaError[]): ArgumentIssue[] {
  const choices: SchemaError[] = [];
  const telling = errors.filter((error) => {
    if (OUTER.has(error.keyword) || choices.some((choice) => isBelow(error, choice))) return false;
    if (CHOICE.has(error.keyword)) choices.push(error);
    return true;
  });
  return telling.map(({ keyword, error, instanceLocation }) => ({
    message: keyword === NOTHING ? "not expected here" : error,
    path: instanceLocation.split("/").slice(1).map(unescaped),
  }));
}

/** The schema `false` is told without its place in the schema. */
const isBelow = (error: SchemaError, choice: SchemaError): boolean =>
  `${error.instanceLocation}/`.startsWith(`${choice.instanceLocation}/`) &&
  (error.keyword === NOTHING || error.keywordLocation.startsWith(`${choice.keywordLocation}/`));

/** One part of a JSON pointer. */
const unescaped = (part: string): string => part.replaceAll("~1", "/").replaceAll("~0", "~");
