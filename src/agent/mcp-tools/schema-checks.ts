/** Checks arguments and results by the JSON Schemas of other MCP servers. */
import type { jsonSchemaValidator } from "@modelcontextprotocol/client";
import { orElse } from "../../core/errors.ts";
import { isRecord } from "../../core/unknown.ts";
import { isLonger } from "./answers.ts";

/** Returns the problem of a value; undefined without one, and for every value if the schema cannot be read. */
export type SchemaCheck = (value: unknown) => string | undefined;

/**
 * Makes checks of schemas, each compiled when it is first used. Ignores keywords that can take for ever to check
 * (patterns, items that must all differ) and schemas that take long to compile. The checks only help the model; the
 * server makes its own.
 */
export async function schemaChecks(): Promise<(schema: object) => SchemaCheck> {
  const { AjvJsonSchemaValidator } = await import("@modelcontextprotocol/client/validators/ajv");
  const schemas = new AjvJsonSchemaValidator();
  return (schema) => {
    let check: SchemaCheck | undefined;
    return (value) => (check ??= compile(schemas, schema))(value);
  };
}

function compile(schemas: jsonSchemaValidator, schema: object): SchemaCheck {
  // 1000 characters take 5 to 10 ms.
  if (isLonger(schema, 4000)) return () => undefined;
  // Leaving keywords out of a schema makes another one.
  const checked = withoutSlowChecks(schema) as Parameters<typeof schemas.getValidator>[0];
  const check = orElse(() => schemas.getValidator(checked), undefined);
  return (value) => check?.(value).errorMessage;
}

/** Keywords that are left out, those whose keys are names of the server's own, and those whose values are data. */
const KEYWORDS = {
  slow: ["pattern", "patternProperties", "uniqueItems"],
  naming: ["properties", "$defs", "definitions", "dependentSchemas"],
  data: ["const", "enum", "default", "examples"],
};

/** `isNaming`: the keys of the value are names, not keywords. */
function withoutSlowChecks(value: unknown, isNaming = false): unknown {
  if (Array.isArray(value)) return value.map((member) => withoutSlowChecks(member));
  if (!isRecord(value)) return value;
  const kept = Object.entries(value).filter(([key]) => isNaming || !KEYWORDS.slow.includes(key));
  const checked = kept.map(([key, inner]) => {
    const isData = !isNaming && KEYWORDS.data.includes(key);
    return [key, isData ? inner : withoutSlowChecks(inner, !isNaming && KEYWORDS.naming.includes(key))];
  });
  return Object.fromEntries(checked);
}
