/** Mends arguments that a model wrote in another form than the schema of their tool asks for. */
import { looseJson } from "../core/loose-json.ts";
import { isRecord, memberOf, recordOf } from "../core/unknown.ts";

type Schema = Readonly<Record<string, unknown>>;

interface MendScope {
  root: Schema;
  depth: number;
}

/**
 * The arguments with each value in the form that its schema asks for, if it can only be meant so: a number or a list
 * in a string, `null` for a value that may be missing, a name or a choice in another case, a remark that the tool does
 * not know. For arguments that the schema refuses; the result has to be checked by it too.
 */
export function mendedArguments(schema: unknown, args: unknown): unknown {
  const root = recordOf(schema);
  const scope = { root, depth: 0 };
  const known = recordOf(root["properties"]);
  if (!isRecord(args) || Object.keys(args).some((key) => Object.hasOwn(known, key) && key !== "name"))
    return mended(root, args, scope);
  // Names under which models put all arguments once more.
  const wrappers = ["arguments", "args", "input", "parameters"];
  const inner = wrappers.map((name) => mended({ type: "object" }, args[name], scope)).find(isRecord);
  return mended(root, inner ?? args, scope);
}

function mended(given: Schema, value: unknown, { root, depth }: MendScope): unknown {
  if (depth > 20) return value;
  const scope = { root, depth: depth + 1 };
  const schema = plainForm(given, root);
  switch (schemaTypes(schema)[0]) {
    case "object":
      return mendedObject(schema, parsedAs(value, isRecord), scope);
    case "array":
      const list = parsedAs(value, Array.isArray);
      const items = plainForm(recordOf(schema["items"]), root);
      const [type] = schemaTypes(items);
      const isOne = (type === "string" && typeof list === "string") || (type === "object" && isRecord(list));
      const members: unknown = isOne ? [list] : list;
      return Array.isArray(members) ? members.map((item) => mended(items, item, scope)) : list;
    case "number":
    case "integer":
      const isNumber = typeof value === "string" && /^\s{0,9}-?\d{1,15}(\.\d{1,15})?\s{0,9}$/.test(value);
      return isNumber ? Number(value) : value;
    case "boolean":
      return typeof value === "string" && /^(true|false)$/i.test(value) ? /^true$/i.test(value) : value;
    default:
      const { enum: choices } = schema;
      if (schemaTypes(schema)[0] === "string" && (typeof value === "number" || typeof value === "boolean"))
        return String(value);
      if (typeof value !== "string" || !Array.isArray(choices)) return value;
      const texts = choices.filter((choice) => typeof choice === "string");
      return onlyAlike(value, texts) ?? value;
  }
}

/** The one form of a value that a schema takes beside `null`, references followed. */
function plainForm(schema: Schema, root: Schema): Schema {
  const { $ref: reference, anyOf, oneOf = anyOf } = schema;
  if (typeof reference === "string" && reference.startsWith("#/"))
    return recordOf(reference.slice(2).split("/").reduce<unknown>(memberOf, root));
  const forms = Array.isArray(oneOf) ? oneOf.filter((form) => memberOf(form, "type") !== "null") : [];
  return forms.length === 1 ? plainForm(recordOf(forms[0]), root) : schema;
}

const schemaTypes = ({ type }: Schema): unknown[] => [type].flat().filter((one) => one !== "null");

/** A value that was written into a string, if it is of the wanted kind. */
function parsedAs(value: unknown, isWanted: (value: unknown) => boolean): unknown {
  const inner = typeof value === "string" && /^\s{0,9}[[{]/.test(value) ? looseJson(value) : undefined;
  return isWanted(inner) ? inner : value;
}

/** The one of some names that differs from a word in case, blanks, `-` and `_` alone. */
export function onlyAlike(word: string, names: readonly string[]): string | undefined {
  const [only, ...more] = names.filter((name) => normalized(name) === normalized(word));
  return more.length === 0 ? only : undefined;
}

const normalized = (word: string): string => word.toLowerCase().replaceAll(/[\s_-]/g, "");

/** Remarks on a call that models add to any tool. */
const REMARKS: ReadonlySet<string> = new Set(
  "description explanation reason reasoning purpose thought thoughts".split(" "),
);

function mendedObject(schema: Schema, value: unknown, scope: MendScope): unknown {
  const { properties, required = [] } = schema;
  if (!isRecord(value) || !isRecord(properties)) return value;
  const missing = Object.keys(properties).filter((name) => !Object.hasOwn(value, name));
  const isOptional = (name: string): boolean => !(required as readonly unknown[]).includes(name);
  const entries = Object.entries(value).flatMap(([written, item]): [string, unknown][] => {
    const isKnown = Object.hasOwn(properties, written);
    const name = isKnown ? written : (onlyAlike(written, missing) ?? written);
    if (!Object.hasOwn(properties, name)) return item === null || REMARKS.has(name) ? [] : [[name, item]];
    const own = recordOf(properties[name]);
    const isString = schemaTypes(own)[0] === "string";
    // An empty text may be a value of its own.
    const takesBlank = isString && !["enum", "format", "minLength", "pattern"].some((bound) => bound in own);
    if (isOptional(name) && (item === null || (item === "" && !takesBlank))) return [];
    // Texts that may hold JSON, which models then send as an object.
    const mayHoldJson = isString && /^(?:content|text|body|data)$/.test(name);
    const isJson = mayHoldJson && typeof item === "object" && item !== null;
    return [[name, isJson ? JSON.stringify(item, null, 2) : mended(own, item, scope)]];
  });
  return Object.fromEntries(entries);
}
