/** Rewrites the JSON Schemas of tools so that every model provider takes them, and maps arguments back. */
import { orElse } from "../../core/errors.ts";
import { headOf, oneLine } from "../../core/text.ts";
import { isRecord, parsedJson, recordOf } from "../../core/unknown.ts";

export type Schema = Readonly<Record<string, unknown>>;

/** A schema as it is sent, and the way back for the arguments that a model writes by it. */
export interface SentSchema {
  schema: Schema;
  restore: (args: unknown) => unknown;
}

/** Names of properties that all providers take: others are refused by Anthropic, dots by older services of it. */
const PROPERTY_NAME = /^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/;
/** Most schemas that are written for one tool: references to references may grow without end. */
const MAX_SCHEMAS = 1000;
/** Times that a reference is followed inside itself. */
const MAX_RECURSION = 2;
const MAX_ENUM = 500;
const DRAFT = "https://json-schema.org/draft/2020-12/schema";

interface ReadScope {
  root: Schema;
  left: { schemas: number };
  /** References that led here. */
  refs: readonly string[];
  sentName: (name: string) => string;
}

/**
 * The parameters of a tool as providers take them; a part that cannot be expressed allows any value. One bad schema
 * makes them refuse the whole request: unions at the root (makenotion/notion-mcp-server#340), arrays without items
 * (ruvnet/ruflo#1294), objects without properties (NousResearch/hermes-agent#2095), names with other characters
 * (beautyfree/appstore-connect-mcp#2), all that draft 2020-12 forbids (tadata-org/fastapi_mcp#218). `narrow` is the
 * last change, for a provider that reads less than the draft.
 */
export function sentSchema(given: unknown, narrow = (schema: Schema): Schema => schema): SentSchema {
  const root = recordOf(given);
  const { sentName, originalOf } = sentNames(root);
  const scope: ReadScope = { root, left: { schemas: MAX_SCHEMAS }, refs: [], sentName };
  const { enum: _enum, const: _const, not: _not, ...kept } = flat(sound(root, scope));
  const draft = root["$schema"] === DRAFT ? { $schema: DRAFT } : {};
  const schema = narrow({ ...draft, ...kept, type: "object", properties: recordOf(kept["properties"]) });
  return { schema, restore: (args) => restored(args, schema, originalOf) };
}

export const asArray = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const distinct = (values: readonly unknown[]): unknown[] => [
  ...new Map(values.map((value) => [JSON.stringify(value), value])).values(),
];

const mapMembers = (record: unknown, change: (member: unknown, name: string) => unknown): Schema =>
  Object.fromEntries(Object.entries(recordOf(record)).map(([name, member]) => [name, change(member, name)]));

/** `schema` with `text` at the end of its description. */
function noted(schema: Schema, text: string): Schema {
  const { description } = schema;
  return { ...schema, description: isString(description) ? `${description} ${text}` : text };
}

const quotedValues = (values: readonly unknown[]): string =>
  values.map((value) => oneLine(JSON.stringify(value), 80)).join(", ");

/** Names for properties that would be refused, different from all others of the tool. */
function sentNames(root: Schema) {
  const [sent, originals] = [new Map<string, string>(), new Map<string, string>()];
  const taken = new Set<string>();
  JSON.stringify(root, (key, value: unknown) => (taken.add(key), value));
  const sentName = (name: string): string => {
    const known = PROPERTY_NAME.test(name) ? name : sent.get(name);
    if (known !== undefined) return known;
    const plain = headOf(name.replace(/[^a-zA-Z0-9_]+/g, "_"), 56).replace(/^(?=\d|$)/, "_");
    let free = plain;
    for (let number = 2; taken.has(free); number += 1) free = `${plain}_${number}`;
    taken.add(free);
    sent.set(name, free);
    originals.set(free, name);
    return free;
  };
  return { sentName, originalOf: (name: string) => originals.get(name) ?? name };
}

/** Ends the description of an object that could only be asked for as text. */
const JSON_TEXT = "A JSON object, as text.";

function restored(given: unknown, schema: unknown, originalOf: (name: string) => string): unknown {
  const { anyOf, oneOf, allOf, properties, items, additionalProperties, description } = recordOf(schema);
  const isText = typeof given === "string" && String(description).endsWith(JSON_TEXT);
  const members = [anyOf, oneOf, allOf].flatMap(asArray);
  const read = isText ? parsedJson(given) : undefined;
  const written = read === undefined ? given : read;
  const value = members.reduce((before, member) => restored(before, member, originalOf), written);
  if (Array.isArray(value)) return value.map((item) => restored(item, items, originalOf));
  if (!isRecord(value)) return value;
  const own = recordOf(properties);
  const entries = Object.entries(value).map(([name, inner]) =>
    Object.hasOwn(own, name)
      ? [originalOf(name), restored(inner, own[name], originalOf)]
      : [name, restored(inner, additionalProperties, originalOf)],
  );
  return Object.fromEntries(entries);
}

const isString = (value: unknown): value is string => typeof value === "string";

type Reader = (value: unknown, scope: ReadScope) => unknown;

const when =
  (isKept: (value: unknown) => boolean): Reader =>
  (value) =>
    isKept(value) ? value : undefined;
const isFlag = (value: unknown): boolean => typeof value === "boolean";

/** The keywords that are sent, by what their values must be. A value of another form is left out. */
const READERS: Readonly<Record<string, Reader>> = {
  "title description format": when(isString),
  type(value) {
    const types: readonly unknown[] = ["object", "array", "string", "number", "integer", "boolean", "null"];
    const words = [value].flat().filter(isString);
    const known = distinct(words.map((word) => word.toLowerCase())).filter((word) => types.includes(word));
    return known.length > 1 ? known : known[0];
  },
  properties(value, scope) {
    const named = Object.entries(recordOf(value)).filter(([, part]) => isRecord(part) || part === true);
    return Object.fromEntries(named.map(([name, part]) => [scope.sentName(name), sound(part, scope)]));
  },
  required: (value, { sentName }) => distinct(asArray(value).filter(isString).map(sentName)),
  "items additionalProperties propertyNames not if then else": (value, scope) =>
    isRecord(value) ? sound(value, scope) : when(isFlag)(value, scope),
  "anyOf oneOf allOf prefixItems"(value, scope) {
    // Some libraries mark optional values with `{ not: {} }`.
    const isPresent = (part: unknown): boolean => isRecord(part) && JSON.stringify(part) !== '{"not":{}}';
    const members = asArray(value).filter(isPresent);
    return members.length > 0 ? members.map((part) => sound(part, scope)) : undefined;
  },
  enum: (value) => (asArray(value).length > 0 ? distinct(asArray(value)) : undefined),
  "const default": when((value) => value !== null),
  // JavaScript and Python both have to read a pattern: OpenAI checks patterns with Python.
  pattern: when((value) => {
    const isForPython = isString(value) && !/\\[pPkuc]|\(\?<[A-Za-z]/.test(value);
    return isForPython && orElse(() => new RegExp(value, "u").source !== "", false);
  }),
  "uniqueItems nullable": when(isFlag),
  "minimum maximum exclusiveMinimum exclusiveMaximum": when((value) => typeof value === "number"),
  multipleOf: when((value) => Number(value) > 0),
  "minLength maxLength minItems maxItems": when((value) => Number.isInteger(value) && Number(value) >= 0),
};
const KEYWORDS = new Map(
  Object.entries(READERS).flatMap(([words, reader]) => words.split(" ").map((word) => [word, reader])),
);

/** A schema with its references in place and no other than the known keywords. */
function sound(given: unknown, outer: ReadScope): Schema {
  outer.left.schemas -= 1;
  const { schema, scope } = dereferenced(outer.left.schemas < 0 ? {} : recordOf(given), outer);
  // A list of items was a tuple before draft 2020-12.
  const source = Array.isArray(schema["items"]) ? { ...schema, prefixItems: schema["items"] } : schema;
  const read = Object.entries(source).flatMap(([keyword, value]) => {
    const kept = KEYWORDS.get(keyword)?.(value, scope);
    return kept === undefined ? [] : [[keyword, kept]];
  });
  return completed(Object.fromEntries(read));
}

function dereferenced(given: Schema, outer: ReadScope): { schema: Schema; scope: ReadScope } {
  let [schema, scope] = [given, outer];
  while (isString(schema["$ref"])) {
    const { $ref: ref, ...beside } = schema as { $ref: string };
    const isTooDeep = scope.refs.filter((other) => other === ref).length >= MAX_RECURSION;
    const target = isTooDeep ? {} : recordOf(pointedAt(scope.root, ref));
    [schema, scope] = [
      { ...target, ...beside },
      { ...scope, refs: [...scope.refs, ref] },
    ];
  }
  return { schema, scope };
}

/** The value that a JSON pointer names; undefined for other documents, and where nothing is. */
function pointedAt(root: unknown, ref: string): unknown {
  const [document, ...steps] = ref.split("/");
  const names = steps.map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~").replaceAll("%24", "$"));
  return names.reduce<unknown>(
    (at, name) => (Object.hasOwn(Object(at), name) ? Reflect.get(Object(at), name) : undefined),
    document === "#" ? root : undefined,
  );
}

/** Adds the items of arrays and the properties of objects, where they are missing. */
function completed({ nullable, ...read }: Record<string, unknown>): Schema {
  const { type, items, prefixItems, required, properties, additionalProperties, enum: values } = read;
  const isOpen = type === "object" && additionalProperties === undefined;
  if (nullable === true && isString(type)) read["type"] = [type, "null"];
  if (properties !== undefined || asArray(required).length > 0 || isOpen) {
    const undescribed = Object.fromEntries(asArray(required).map((name) => [name, {}]));
    read["properties"] = { ...undescribed, ...recordOf(properties) };
  }
  if (asArray(required).length === 0) delete read["required"];
  if ([type].flat().includes("array") || items !== undefined || prefixItems !== undefined)
    read["items"] = isRecord(items) ? items : unionSchema(asArray(prefixItems));
  if (asArray(values).length <= MAX_ENUM) return read;
  delete read["enum"];
  const some = quotedValues(asArray(values).slice(0, 20));
  return noted(read, `One of ${asArray(values).length} values, such as ${some}.`);
}

function unionSchema(schemas: readonly unknown[]): unknown {
  // A name that is only required does not describe its value.
  const forms = distinct(schemas).filter((form) => Object.keys(recordOf(form)).length > 0);
  return forms.length > 1 ? { anyOf: forms } : (forms[0] ?? {});
}

/** A schema without unions at its root. It has the properties of all members, and describes the demands of each. */
function flat({ anyOf: any, oneOf: one, allOf: all, ...base }: Schema): Schema {
  const membersOf = (union: unknown): Schema[] => asArray(union).map((member) => flat(recordOf(member)));
  const whole = [base, ...membersOf(all)];
  const members = [...membersOf(any), ...membersOf(one)].filter((member) => member["type"] !== "null");
  const sets = members.map((member) => asArray(member["required"]));
  const shared = asArray(sets[0]).filter((name) => sets.every((set) => set.includes(name)));
  const required = distinct([...whole.flatMap((part) => asArray(part["required"])), ...shared]);
  const properties = new Map<string, unknown[]>();
  for (const part of [...whole, ...members]) {
    for (const [name, form] of Object.entries(recordOf(part["properties"])))
      properties.set(name, [...(properties.get(name) ?? []), form]);
  }
  // A member may allow other properties where another one does not.
  const { additionalProperties: _other, ...first } = members[0] ?? {};
  const { required: _required, ...joined } = Object.assign({}, first, ...whole.toReversed()) as Schema;
  const unions = Object.fromEntries([...properties].map(([name, forms]) => [name, unionSchema(forms)]));
  const schema = {
    ...joined,
    ...(properties.size > 0 && { properties: unions }),
    ...(required.length > 0 && { required }),
  };
  const forms = distinct(sets.map((set) => `(${set.join(", ") || "none of them"})`));
  const isChoice = properties.size > 0 && forms.length > 1;
  return isChoice ? noted(schema, `Give one of: ${forms.join(" or ")}.`) : schema;
}

/** Keywords that describe a value; those that bound it are left to the tools themselves. */
const DESCRIBING =
  "title description type properties required items prefixItems anyOf oneOf allOf enum const nullable".split(
    " ",
  );

/** The parameters of a tool for servers that turn schemas into a grammar, and fail at patterns and lengths. */
export function plainSchema(schema: Schema): Schema {
  const plain = (value: unknown): unknown =>
    Array.isArray(value) ? value.map(plain) : isRecord(value) ? plainSchema(value) : value;
  const kept = Object.entries(schema).filter(([keyword]) => DESCRIBING.includes(keyword));
  return mapMembers(Object.fromEntries(kept), (value, keyword) => {
    if (keyword === "properties") return mapMembers(value, plain);
    return keyword === "enum" || keyword === "const" ? value : plain(value);
  });
}

/** Keywords that mean the same in Gemini. */
const KEPT = ["description", "minItems", "maxItems", "minimum", "maximum"];

/** The parameters of a tool for Gemini, which reads a part of OpenAPI. An object without properties is not sent. */
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
  const union = [...asArray(schema["anyOf"]), ...asArray(schema["oneOf"])].map(recordOf);
  const given = distinct([single["type"], ...union.map((member) => member["type"])].flat());
  const types = given.filter((word) => isString(word) && word !== "null");
  const named = mapMembers(properties, (part) => narrowed(recordOf(part)));
  const isNamed = Object.keys(named).length > 0;
  const inferred = isNamed ? "object" : isRecord(items) ? "array" : "string";
  const [type = inferred, ...others] = types;
  const forms = union.length > 0 ? union : [single];
  const values = forms.flatMap((form) => ("const" in form ? [form["const"]] : asArray(form["enum"])));
  const isWords = type === "string" && values.every((value) => isString(value) && value !== "");
  const kept = Object.entries(single).filter(([key]) => KEPT.includes(key));
  const sent: Record<string, unknown> = Object.fromEntries(kept);
  if (given.includes("null")) sent["nullable"] = true;
  if (values.length > 0 && isWords) sent["enum"] = values;
  if (format === "date-time" && type === "string") sent["format"] = format;
  if (type === "array") sent["items"] = narrowed(recordOf(items));
  if (type === "object" && isNamed) {
    sent["properties"] = named;
    if (required !== undefined) sent["required"] = required;
  }
  const isOpen = type === "object" && !isNamed;
  sent["type"] = isOpen ? "string" : type;
  const notes = [
    ...(values.length > 0 && !isWords ? [`One of ${quotedValues(values)}.`] : []),
    ...(others.length > 0 ? [`Or of type ${others.join(", ")}.`] : []),
    ...(isOpen ? [JSON_TEXT] : []),
  ];
  return notes.reduce<Schema>(noted, sent);
}
