/** Looks into values of any kind, such as JSON and addresses from outside. */

export const isObject = (value: unknown): value is object => typeof value === "object" && value !== null;

/** True for objects other than lists. */
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  isObject(value) && !Array.isArray(value);

/** The value itself if it is a record, otherwise an empty one. */
export const recordOf = (value: unknown): Record<string, unknown> => (isRecord(value) ? value : {});

/** A member of an object; `undefined` for any other value. */
export const memberOf = (value: unknown, name: PropertyKey): unknown =>
  isObject(value) ? Reflect.get(value, name) : undefined;

/** The text that is a member of an object; `undefined` if it is none. */
export function textMemberOf(value: unknown, name: string): string | undefined {
  const member = memberOf(value, name);
  return typeof member === "string" ? member : undefined;
}

/** The value of a JSON text; `undefined` if it is not JSON. */
export function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The fields that have a value, for objects in which an absent field means something else than `undefined`. */
export const defined = <Fields extends object>(fields: Fields): Partial<Fields> =>
  // The fields that are left are of the same object.
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<Fields>;

/**
 * The URL that a text is, by itself or with `base`; `undefined` if it is none. Once compiled, Node's `URL.canParse`
 * refuses characters from U+0080 to U+00FF (Node 20.20.2 and 22.23.3), as in `https://bücher.example`; Node 20 lacks
 * `URL.parse`.
 */
export function parsedUrl(text: string, base?: string | URL): URL | undefined {
  try {
    return new URL(text, base);
  } catch {
    return undefined;
  }
}
