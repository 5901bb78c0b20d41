/** Looks into values of any kind, such as JSON from outside. */

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
