import { DeltaSnapshot, isDeltaSnapshot } from "@langchain/langgraph-checkpoint";

/** Characters of a text, or bytes, from which on it is stored by itself. */
const LARGE = 4096;
/** Entries of a delta channel's snapshot that are stored together. */
export const ENTRIES_PER_PIECE = 32;

/** Every stored string that begins so is a reference: one that is none is stored by itself, whatever its size. */
const PREFIX = "deepagent-blobs:";
const REFERENCE = /^deepagent-blobs:(text|bytes|list|record):([\w-]{43}(?:\.[\w-]{43})*)$/;

/** Whether a text is stored by itself. */
export const isLargeText = (text: string): boolean => text.length >= LARGE || text.startsWith(PREFIX);

/** What a reference stands for. */
export type LargePart =
  | { kind: "text"; value: string }
  | { kind: "bytes"; value: Uint8Array }
  | { kind: "list"; value: readonly unknown[] }
  | { kind: "record"; value: object };

/** Stands where a large part was; serialises as a reference to the blobs it was stored as. */
export class Held {
  readonly part: () => LargePart;
  #names: readonly string[] = [];

  constructor(part: LargePart) {
    // A function is nothing to serialise: whoever walks the value does not look into the part.
    this.part = () => part;
  }

  storedAs(names: readonly string[]): void {
    this.#names = names;
  }

  toJSON(): string {
    return `${PREFIX}${this.part().kind}:${this.#names.join(".")}`;
  }
}

/** A copy of `value` in which `held` stands for every large part of it; `value` itself when there is none. */
export function lighten(value: unknown, held: Held[], above = new Set<object>()): unknown {
  const hold = (part: LargePart): Held => {
    const one = new Held(part);
    held.push(one);
    return one;
  };
  if (typeof value === "string") return isLargeText(value) ? hold({ kind: "text", value }) : value;
  if (value instanceof Uint8Array) return value.length >= LARGE ? hold({ kind: "bytes", value }) : value;
  if (typeof value !== "object" || value === null || isOpaque(value) || above.has(value)) return value;
  if (isDeltaSnapshot(value)) {
    const part = piecesOf(value.value);
    const inner = part === undefined ? lighten(value.value, held, above) : hold(part);
    return inner === value.value ? value : new DeltaSnapshot(inner);
  }
  const shown = serialised(value);
  if (typeof shown !== "object" || shown === null) return value;
  above.add(value);
  const before = held.length;
  const items = (Array.isArray(shown) ? shown : Object.values(shown)).map((item: unknown) =>
    lighten(item, held, above),
  );
  above.delete(value);
  // Hardly ever is there anything large, and then there is nothing to copy.
  if (held.length === before) return value;
  return Array.isArray(shown)
    ? items
    : Object.fromEntries(Object.keys(shown).map((key, index) => [key, items[index]]));
}

/** A place in a value where a reference stands. */
export interface Reference {
  kind: LargePart["kind"];
  names: readonly string[];
  replaceWith(value: unknown): void;
}

/** Every reference in what `holder` holds, and in what that holds. */
export function referencesIn(holder: object, seen = new Set<object>()): Reference[] {
  if (seen.has(holder) || isOpaque(holder)) return [];
  seen.add(holder);
  return Object.entries(holder).flatMap(([key, item]: [string, unknown]): Reference[] => {
    if (typeof item === "object" && item !== null) return referencesIn(item, seen);
    const [, kind, names] = (typeof item === "string" && REFERENCE.exec(item)) || [];
    if (kind === undefined || names === undefined) return [];
    const replaceWith = (value: unknown): void => void Reflect.set(holder, key, value);
    return [{ kind: kind as LargePart["kind"], names: names.split("."), replaceWith }]; // as the expression has it
  });
}

/** Whether serialised data may have references. */
export const mentionsReferences = (data: Uint8Array | string): boolean =>
  typeof data === "string"
    ? data.includes(PREFIX)
    : Buffer.from(data.buffer, data.byteOffset, data.length).includes(PREFIX);

/** Snapshots grow with their channel: what has many entries is stored some at a time. */
function piecesOf(value: unknown): LargePart | undefined {
  if (Array.isArray(value)) return value.length > ENTRIES_PER_PIECE ? { kind: "list", value } : undefined;
  if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype)
    return;
  return Object.keys(value).length > ENTRIES_PER_PIECE ? { kind: "record", value } : undefined;
}

const serialised = (value: object): unknown =>
  "toJSON" in value && typeof value.toJSON === "function" ? (value.toJSON() as unknown) : value;

/**
 * What the serialiser or a constructor looks into, so that nothing in it may be replaced. Messages only keep
 * what they are given; the chunks of one parse it.
 */
function isOpaque(value: object): boolean {
  if (value instanceof Map || value instanceof Set || value instanceof RegExp || value instanceof Error)
    return true;
  if (ArrayBuffer.isView(value)) return true;
  if (!("lc_id" in value) || !Array.isArray(value.lc_id)) return false;
  const [, module, name] = value.lc_id as unknown[]; // checked next
  return module !== "messages" || typeof name !== "string" || name.endsWith("Chunk");
}
