import { ConfigSchema } from "./schema.ts";

/** What the schema says about one setting, for help and messages. */
export interface SettingInfo {
  description?: string;
  /** As text, such as `"workspace"` or `8`; absent when there is none. */
  defaultText?: string;
  /** Allowed values, when there is a fixed list. */
  choices?: readonly string[];
}

/** Facts about the setting at `path`, such as `http.port`. */
export function settingInfo(path: string): SettingInfo {
  const schema = schemaAt(path.split("."));
  const initial = child(child(schema, "def"), "defaultValue");
  const description = child(schema, "description") ?? child(unwrap(schema), "description");
  const options = child(unwrap(schema), "options");
  return {
    ...(typeof description === "string" ? { description } : {}),
    ...(isPlain(initial) ? { defaultText: String(initial) } : {}),
    ...(Array.isArray(options) ? { choices: options.map(String) } : {}),
  };
}

/** Names that are allowed in the group at `path`, as far as they are fixed. */
export function knownKeys(path: readonly PropertyKey[]): string[] {
  const shape = child(unwrap(schemaAt(path)), "shape");
  return typeof shape === "object" && shape !== null ? Object.keys(shape) : [];
}

function schemaAt(path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>((schema, key) => {
    const inner = unwrap(schema);
    return typeof key === "number" ? child(inner, "element") : child(child(inner, "shape"), key);
  }, ConfigSchema);
}

/** The schema inside defaults and optionals. */
function unwrap(schema: unknown): unknown {
  const inner = child(child(schema, "def"), "innerType");
  return inner === undefined ? schema : unwrap(inner);
}

function child(value: unknown, key: PropertyKey): unknown {
  return typeof value === "object" && value !== null && key in value ? Reflect.get(value, key) : undefined;
}

function isPlain(value: unknown): value is string | number | boolean {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean";
}
