import type { jsonSchemaValidator } from "@modelcontextprotocol/client";
import { isLonger } from "./tool-lists.ts";

/** Characters of a schema that is compiled: 1000 take 5 to 10 ms. */
const MAX_COMPILED = 4000;

/**
 * Checks JSON by the schemas of a server, without what a server could say there that takes for ever to check
 * (patterns, items that must all differ), and not by schemas that take long to compile: it is no more than help,
 * its server checks what it is given.
 */
export async function serverSchemas(): Promise<jsonSchemaValidator> {
  const { AjvJsonSchemaValidator } = await import("@modelcontextprotocol/client/validators/ajv");
  const schemas = new AjvJsonSchemaValidator();
  return {
    getValidator: (schema) => {
      // Leaving keywords out of a schema makes another one.
      const checked = isLonger(schema, MAX_COMPILED) ? {} : withoutSlowChecks(schema);
      return schemas.getValidator(checked as typeof schema);
    },
  };
}

const SLOW: ReadonlySet<string> = new Set(["pattern", "patternProperties", "uniqueItems"]);
/** Keywords whose keys are names of the server's own. */
const NAMES: ReadonlySet<string> = new Set(["properties", "$defs", "definitions", "dependentSchemas"]);
/** Keywords whose values are data, not schemas. */
const DATA: ReadonlySet<string> = new Set(["const", "enum", "default", "examples"]);

function withoutSlowChecks(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutSlowChecks);
  if (!isObject(schema)) return schema;
  const kept = Object.entries(schema).filter(([keyword]) => !SLOW.has(keyword));
  return Object.fromEntries(
    kept.map(([keyword, value]) => {
      if (DATA.has(keyword)) return [keyword, value];
      if (!NAMES.has(keyword) || !isObject(value)) return [keyword, withoutSlowChecks(value)];
      const named = Object.entries(value).map(([name, own]) => [name, withoutSlowChecks(own)]);
      return [keyword, Object.fromEntries(named)];
    }),
  );
}

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null;
