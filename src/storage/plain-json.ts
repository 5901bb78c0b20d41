import { isLargeText } from "./large-parts.ts";

/**
 * The JSON that LangGraph's serialiser makes of `value`, in one pass over it; `undefined` for what has large
 * parts, and for what is rare in a thread and takes more of that serialiser: maps, errors, bytes, cycles.
 */
export function plainJson(value: unknown): string | undefined {
  let isPlain = true;
  const encoded = (_key: string, shown: unknown): unknown => {
    if (!isPlain) return undefined;
    if (shown === undefined) return { lc: 2, type: "undefined" };
    if (typeof shown === "object" && shown !== null && isSend(shown)) {
      return { node: shown.node, args: shown.args };
    }
    isPlain = typeof shown === "string" ? !isLargeText(shown) : isPlainPart(shown);
    return isPlain ? shown : undefined;
  };
  try {
    const json = JSON.stringify(value, encoded);
    return isPlain ? json : undefined;
  } catch {
    return undefined;
  }
}

/** What a task to be started shows itself as; its time, which hardly any has, is not seen to here. */
const isSend = (shown: object): shown is { node: unknown; args: unknown } =>
  "lg_name" in shown && shown.lg_name === "Send" && (shown as { timeout?: unknown }).timeout === undefined;

/** Not of a class of its own, nor what something else shows itself as, marked. */
function isPlainPart(shown: unknown): boolean {
  if (typeof shown !== "object" || shown === null || Array.isArray(shown)) return true;
  const prototype: unknown = Object.getPrototypeOf(shown);
  if (prototype !== Object.prototype && prototype !== null) return false;
  return !("lg_name" in shown) && (shown as { type?: unknown }).type !== "Buffer"; // what buffers show
}
