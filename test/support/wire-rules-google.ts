import { type Json, list, record, text } from "./wire-server-protocol.ts";

/** The fields of a schema in Gemini's API; others are unknown names to it. */
const FIELDS: ReadonlySet<string> = new Set(
  "type format title description nullable enum maxItems minItems properties required minProperties maxProperties minLength maxLength pattern example anyOf propertyOrdering default items minimum maximum".split(
    " ",
  ),
);
const TYPES: ReadonlySet<string> = new Set(["string", "number", "integer", "boolean", "array", "object"]);

/** The first rule of Gemini's API that a schema breaks. A function without arguments has none. */
export function googleSchemaProblem(schema: Json, at = "parameters"): string | undefined {
  const { type, properties, items, required, format } = schema;
  const unknown = Object.keys(schema).find((key) => !FIELDS.has(key));
  if (unknown !== undefined) return `Unknown name "${unknown}" at '${at}': Cannot find field.`;
  if (Array.isArray(type)) return `${at}: Proto field is not repeating, cannot start list.`;
  if (!TYPES.has(text(type))) return `${at} schema didn't specify the schema type field`;
  const named = Object.entries(record(properties));
  if (type === "object" && named.length === 0 && at !== "parameters")
    return `${at}.properties: should be non-empty for OBJECT type`;
  if (type !== "object" && (properties ?? required) !== undefined)
    return `${at}.properties: only allowed for OBJECT type`;
  if (type === "array" && items === undefined) return `${at}.items: missing field.`;
  const values = schema["enum"];
  if (values !== undefined && type !== "string") return `${at}.enum: only allowed for STRING type`;
  if (Array.isArray(values) && !values.every((value) => typeof value === "string" && value !== ""))
    return `Invalid value at '${at}.enum' (TYPE_STRING)`;
  if (type === "string" && format !== undefined && !["enum", "date-time"].includes(text(format)))
    return `${at}.format: only 'enum' and 'date-time' are supported for STRING type`;
  const absent = (Array.isArray(required) ? required : []).find(
    (name) => !(text(name) in record(properties)),
  );
  if (absent !== undefined) return `${at}.required[0]: property is not defined`;
  const parts = [...named, ...(items === undefined ? [] : [["items", items] as const])];
  for (const [name, part] of [...parts, ...list(schema["anyOf"]).map((one) => ["anyOf", one] as const)]) {
    const problem = googleSchemaProblem(record(part), `${at}.${name}`);
    if (problem !== undefined) return problem;
  }
  return undefined;
}
