/** Rewrites JSON Schemas for Gemini, which reads a part of OpenAPI. */
import { JSON_TEXT, type Schema, distinct, flat, listOf, noted, quoted } from "./tool-schema.ts";
import { isRecord, recordOf } from "../../core/unknown.ts";

/** Keywords that mean the same there. */
const KEPT: ReadonlySet<string> = new Set(["description", "minItems", "maxItems", "minimum", "maximum"]);

/** The parameters of a tool. A tool without any has an object without properties, which is not sent. */
export const geminiSchema = (schema: Schema): Schema =>
  Object.keys(recordOf(schema["properties"])).length > 0
    ? narrowed(schema)
    : { type: "object", properties: {} };

/**
 * One type for each value, enums of strings, no unions. Gemini refuses other keywords (nanbingxyz/5ire#42), lists of
 * types (n8n-io/n8n#15553), other enums (router-for-me/CLIProxyAPI#1076), values without a type
 * (google-gemini/gemini-cli#4400) and objects without properties (CherryHQ/cherry-studio#3270).
 */
function narrowed(schema: Schema): Schema {
  const { properties, required, items, format, ...single } = flat(schema);
  const union = [...listOf(schema["anyOf"]), ...listOf(schema["oneOf"])].map(recordOf);
  const given = distinct([single["type"], ...union.map((member) => member["type"])].flat());
  const types = given.filter((word) => typeof word === "string" && word !== "null");
  const named = Object.entries(recordOf(properties)).map(([name, part]) => [name, narrowed(recordOf(part))]);
  const inferred = named.length > 0 ? "object" : isRecord(items) ? "array" : "string";
  const [type = inferred, ...others] = types;
  const forms = union.length > 0 ? union : [single];
  const values = forms.flatMap((form) => ("const" in form ? [form["const"]] : listOf(form["enum"])));
  const isWords = type === "string" && values.every((value) => typeof value === "string" && value !== "");
  const sent: Record<string, unknown> = Object.fromEntries(
    Object.entries(single).filter(([key]) => KEPT.has(key)),
  );
  if (given.includes("null")) sent["nullable"] = true;
  if (values.length > 0 && isWords) sent["enum"] = values;
  if (format === "date-time" && type === "string") sent["format"] = format;
  if (type === "array") sent["items"] = narrowed(recordOf(items));
  if (type === "object" && named.length > 0) {
    Object.assign(
      sent,
      { properties: Object.fromEntries(named) },
      required === undefined ? {} : { required },
    );
  }
  const isOpen = type === "object" && named.length === 0;
  sent["type"] = isOpen ? "string" : type;
  const notes = [
    ...(values.length > 0 && !isWords ? [`One of ${quoted(values)}.`] : []),
    ...(others.length > 0 ? [`Or of type ${others.join(", ")}.`] : []),
    ...(isOpen ? [JSON_TEXT] : []),
  ];
  return notes.reduce<Schema>(noted, sent);
}
