import { isLargeText } from "./large-parts.ts";

/**
 * The JSON that LangGraph's serialiser makes of `value`, in one pass over it; `undefined` for what has large
 * parts, and for what is rare in a thread and takes more of that serialiser: maps, errors, bytes, cycles.
 */
export function plainJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(shown(value));
  } catch {
    return undefined; // not plain, or what JSON has no form for
  }
}

/** How LangGraph writes what is not there. */
const MISSING = { lc: 2, type: "undefined" };

/**
 * What `JSON.stringify` is to write in the place of `value`, which is copied only where that differs: a function
 * that it would call for each part instead costs several times as much.
 */
function shown(value: unknown): unknown {
  if (value === undefined) return MISSING;
  if (typeof value === "string" && isLargeText(value)) throw new NotPlain();
  if (typeof value !== "object" || value === null) return value;
  if (!("toJSON" in value) || typeof value.toJSON !== "function") return shownParts(value);
  const given: unknown = value.toJSON();
  if (typeof given !== "object" || given === null) return shown(given);
  if ("toJSON" in given) throw new NotPlain(); // it would be asked once more
  return shownParts(given);
}

function shownParts(value: object): object {
  if (Array.isArray(value)) return shownItems(value);
  if (isSend(value)) return shownEntries({ node: value.node, args: value.args });
  if (!isPlain(value)) throw new NotPlain();
  return shownEntries(value);
}

function shownItems(items: readonly unknown[]): readonly unknown[] {
  let copy: unknown[] | undefined;
  for (let index = 0; index < items.length; index += 1) {
    const item = items[index];
    const own = shown(item);
    if (own !== item) (copy ??= [...items])[index] = own;
  }
  return copy ?? items;
}

function shownEntries(record: object): object {
  const entries: Array<[string, unknown]> = Object.entries(record);
  let isChanged = false;
  for (const entry of entries) {
    const own = shown(entry[1]);
    isChanged ||= own !== entry[1];
    entry[1] = own;
  }
  return isChanged ? Object.fromEntries(entries) : record;
}

class NotPlain extends Error {
  override readonly name: string = "NotPlain";
}

/** What a task to be started shows itself as; its time, which hardly any has, is not seen to here. */
const isSend = (part: object): part is { node: unknown; args: unknown } =>
  "lg_name" in part && part.lg_name === "Send" && (part as { timeout?: unknown }).timeout === undefined;

/** Not of a class of its own, nor what something else shows itself as, marked. */
function isPlain(part: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(part);
  if (prototype !== Object.prototype && prototype !== null) return false;
  return !("lg_name" in part) && (part as { type?: unknown }).type !== "Buffer"; // what buffers show
}
