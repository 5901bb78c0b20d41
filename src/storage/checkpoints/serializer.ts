import { load } from "@langchain/core/load";
import { DeltaSnapshot, type SerializerProtocol, isDeltaSnapshot } from "@langchain/langgraph-checkpoint";

/** Type of bytes in the JSON of a value. LangGraph's serialiser makes a list of numbers of them. */
const BYTES = "deepagent_bytes";

/**
 * LangGraph's serialiser, with bytes as base64 in lists, records and snapshots. Its output is text, because the
 * saver of SQLite reads written values as text. `unreadable` makes the error for a damaged value.
 */
export const withBytes = (
  serde: SerializerProtocol,
  unreadable: (thrown: unknown) => unknown,
): SerializerProtocol => ({
  dumpsTyped: async (value) => {
    const toRecord = (one: object): object => {
      if (!(one instanceof Uint8Array)) return one;
      return {
        lc: 2,
        type: BYTES,
        base64: Buffer.from(one.buffer, one.byteOffset, one.length).toString("base64"),
      };
    };
    return serde.dumpsTyped(replaced(value, toRecord));
  },
  loadsTyped: async (type, data) => {
    try {
      // LangGraph's serialiser waits for each value in the JSON, and does so twice for those in a message.
      if (type === "json" && !mentions(data, '"lc":2')) {
        const value: unknown = JSON.parse(typeof data === "string" ? data : new TextDecoder().decode(data));
        // Everything that is more than JSON has this key.
        if (!mentions(data, '"lc"')) return value;
        // Objects of LangChain, such as messages.
        const isSerialized = ({ lc, type, id }: Record<string, unknown>): boolean =>
          lc === 1 && type === "constructor" && Array.isArray(id);
        if (Array.isArray(value) && value.every((one) => isSerialized(Object(one))))
          return await Promise.all(value.map((one) => load(JSON.stringify(one))));
      }
      const value: unknown = await serde.loadsTyped(type, data);
      const toBytes = (one: object): object =>
        "base64" in one && "type" in one && one.type === BYTES
          ? new Uint8Array(Buffer.from(String(one.base64), "base64"))
          : one;
      return mentions(data, `"${BYTES}"`) ? replaced(value, toBytes) : value;
    } catch (thrown) {
      throw unreadable(thrown);
    }
  },
});

export const mentions = (data: Uint8Array | string, text: string): boolean =>
  typeof data === "string"
    ? data.includes(text)
    : Buffer.from(data.buffer, data.byteOffset, data.length).includes(text);

/** Replaces every object in `value` by `replace`; returns `value` itself if nothing changed. */
function replaced(value: unknown, replace: (value: object) => object, above = new Set<unknown>()): unknown {
  if (typeof value !== "object" || value === null || above.has(value)) return value;
  const instead = replace(value);
  if (instead !== value) return instead;
  above.add(value);
  const within = (inner: unknown): unknown => replaced(inner, replace, above);
  const made = replaceParts(value, within);
  above.delete(value);
  return made;
}

/** Instances of other classes stay unchanged. */
function replaceParts(value: object, within: (value: unknown) => unknown): object {
  if (isDeltaSnapshot(value)) {
    const inner = within(value.value);
    return inner === value.value ? value : new DeltaSnapshot(inner);
  }
  if (!Array.isArray(value) && Object.getPrototypeOf(value) !== Object.prototype) return value;
  let made: object | undefined;
  for (const [key, item] of Object.entries(value) as [string, unknown][]) {
    const inner = within(item);
    if (inner === item) continue;
    made ??= Array.isArray(value) ? value.slice() : { ...value };
    Object.assign(made, { [key]: inner });
  }
  return made ?? value;
}
