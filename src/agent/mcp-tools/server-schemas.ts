import type { jsonSchemaValidator } from "@modelcontextprotocol/client";

/**
 * Checks JSON by the schemas of a server, without what a server could say there that takes for ever to check
 * (patterns, items that must all differ): it is no more than help, its server checks what it is given.
 */
export async function serverSchemas(): Promise<jsonSchemaValidator> {
  const { AjvJsonSchemaValidator } = await import("@modelcontextprotocol/client/validators/ajv");
  const schemas = new AjvJsonSchemaValidator();
  // Leaving keywords out of a schema makes another one.
  return { getValidator: (schema) => schemas.getValidator(withoutSlowChecks(schema) as typeof schema) };
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
