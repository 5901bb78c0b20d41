import {
  DeltaSnapshot,
  type PendingWrite,
  type SerializerProtocol,
  WRITES_IDX_MAP,
  isDeltaSnapshot,
} from "@langchain/langgraph-checkpoint";
import { mapAtMost, ownTurn } from "../../core/concurrency.ts";
import type { GraphAddress, WriteAddress, WriteFields } from "./address.ts";

/** A serialised value. */
export type Encoded = [type: string, data: Uint8Array];

/** The rows of what one task wrote. */
export function encodeWrites(
  dumped: (value: unknown) => Encoded | Promise<Encoded>,
  address: WriteAddress,
  writes: readonly PendingWrite[],
): WriteFields[] | Promise<WriteFields[]> {
  const rowsOf = (values: readonly Encoded[]): WriteFields[] =>
    writes.map(([channel], index) => {
      const [type, data] = values[index] ?? ["", new Uint8Array()];
      return [...address, WRITES_IDX_MAP[channel] ?? index, channel, type, data];
    });
  const values = allOf(writes.map(([, value]) => dumped(value)));
  return values instanceof Promise ? values.then(rowsOf) : rowsOf(values);
}

type Settled<Values extends readonly unknown[]> = { -readonly [Key in keyof Values]: Awaited<Values[Key]> };

/** Gives all of `values`, without a promise when none of them is one. Promises are much of the cost of a step. */
export function allOf<Values extends readonly unknown[]>(
  values: Values,
): Settled<Values> | Promise<Settled<Values>> {
  // None of them is a promise.
  return values.some((value) => value instanceof Promise)
    ? Promise.all(values)
    : (values as unknown as Settled<Values>);
}

/** Texts of so many characters, and as many bytes, are stored apart. */
const LARGE = 4096;
/** Entries of a delta channel's snapshot that are stored together. */
const ENTRIES_PER_PIECE = 32;

/** Every stored string that begins so is a reference. Other strings that begin so are stored apart. */
const PREFIX = "deepagent-blobs:";
const REFERENCE = /^deepagent-blobs:(text|bytes|list|record):([\w-]{43}(?:\.[\w-]{43})*)$/;

/** Whether a text is stored apart. */
const isLargeText = (text: string): boolean => text.length >= LARGE || text.startsWith(PREFIX);

/** The value that a reference stands for. */
export type LargePart =
  | { kind: "text"; value: string }
  | { kind: "bytes"; value: Uint8Array }
  | { kind: "list"; value: readonly unknown[] }
  | { kind: "record"; value: object };

/** Replaces a large part of a value, and serialises as a reference to its blobs. */
class Held {
  readonly part: () => LargePart;
  #names: readonly string[] = [];

  constructor(part: LargePart) {
    // Serialisers skip functions, so none of them looks into the part.
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
function lighten(value: unknown, held: Held[], above = new Set<object>()): unknown {
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
  // A value without large parts, as most are, is not copied.
  if (held.length === before) return value;
  return Array.isArray(shown)
    ? items
    : Object.fromEntries(Object.keys(shown).map((key, index) => [key, items[index]]));
}

/** A reference in a value, with the object and key that hold it. */
export interface Reference {
  kind: LargePart["kind"];
  names: readonly string[];
  replaceWith(value: unknown): void;
}

/** Finds every reference below `holder`. */
function referencesIn(holder: object, seen = new Set<object>()): Reference[] {
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
const mentionsReferences = (data: Uint8Array | string): boolean =>
  typeof data === "string"
    ? data.includes(PREFIX)
    : Buffer.from(data.buffer, data.byteOffset, data.length).includes(PREFIX);

/** Divides a snapshot of many entries, which grow with their channel, into lists that are stored one by one. */
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

/** Whether LangGraph's form of a task to start is shown. One with a time limit, which is rare, is not recognized here. */
const isSend = (shown: object): shown is { node: unknown; args: unknown } =>
  "lg_name" in shown && shown.lg_name === "Send" && (shown as { timeout?: unknown }).timeout === undefined;

/** Whether it is a plain value: no instance of a class, and no marked form of one. */
function isPlainPart(shown: unknown): boolean {
  if (typeof shown !== "object" || shown === null || Array.isArray(shown)) return true;
  const prototype: unknown = Object.getPrototypeOf(shown);
  if (prototype !== Object.prototype && prototype !== null) return false;
  return !("lg_name" in shown) && (shown as { type?: unknown }).type !== "Buffer"; // what buffers show
}

/** Characters of one blob; serialising or parsing more at once would block the event loop. */
const CHARACTERS_PER_PIECE = 128 * 1024;
/** Bytes of one blob; base64 of a multiple of three has no padding, so pieces can be joined. */
const BYTES_PER_PIECE = 96 * 1024;
/** How much may wait for its commit. */
const CHARACTERS_UNDER_WAY = 512 * 1024;

/** Blobs that wait for their commit. */
class UnderWay {
  #stored: Promise<void>[] = [];
  #characters = 0;

  /** Waits for those before when they are many. */
  async add(stored: Promise<void>, characters: number): Promise<void> {
    // Whoever awaits the value gets the rejection, which may come before that.
    stored.catch(() => undefined);
    this.#stored.push(stored);
    this.#characters += characters;
    if (this.#characters >= CHARACTERS_UNDER_WAY) await this.committed();
  }

  async committed(): Promise<void> {
    const stored = this.#stored;
    [this.#stored, this.#characters] = [[], 0];
    await Promise.all(stored);
  }
}

/** Texts by the hash of their content. */
export interface BlobStore {
  /** How many texts to ask for at the same time, which saves time where they come over a network. */
  readonly atOnce: number;
  /** Stores a text that the graph refers to; gives its name, and a promise of its commit. */
  put(owner: GraphAddress, text: string): { name: string; stored: Promise<void> };
  /** Throws StorageError when it is not there. */
  get(name: string): string | Promise<string>;
}

/**
 * Stores large parts of values apart from them, each once, and puts them back when the value is loaded. Texts
 * are cut, and snapshots stored some entries at a time, so that no size of a value holds up the event loop.
 *
 * A blob is JSON: a part of a text, or a list of a snapshot's entries.
 */
export class LargeValues implements SerializerProtocol {
  readonly #blobs: BlobStore;
  readonly #serde: SerializerProtocol;

  readonly #unreadable: (thrown: unknown) => unknown;

  /** `unreadable` makes the error for a damaged value. */
  constructor(blobs: BlobStore, serde: SerializerProtocol, unreadable: (thrown: unknown) => unknown) {
    this.#blobs = blobs;
    this.#serde = serde;
    this.#unreadable = unreadable;
  }

  /** Serialises the value as it is, without storing anything. */
  async dumpsTyped(value: unknown): Promise<Encoded> {
    const json = plainJson(value);
    return json === undefined ? this.#serde.dumpsTyped(value) : ["json", Buffer.from(json)];
  }

  async loadsTyped(type: string, data: Uint8Array | string): Promise<unknown> {
    const value = await this.#loaded(type, data);
    if (type !== "json" || !mentionsReferences(data)) return value;
    const holder = { value };
    await mapAtMost(this.#blobs.atOnce, referencesIn(holder), async (reference) =>
      reference.replaceWith(await this.#load(reference)),
    );
    return holder.value;
  }

  async #loaded(type: string, data: Uint8Array | string): Promise<unknown> {
    try {
      return await this.#serde.loadsTyped(type, data);
    } catch (thrown) {
      throw this.#unreadable(thrown);
    }
  }

  /** Serialises the value after storing its large parts apart; gives no promise when it has none. */
  dumps(value: unknown, owner: GraphAddress): Encoded | Promise<Encoded> {
    const json = plainJson(value);
    return json === undefined ? this.#dumpsWhole(value, owner) : ["json", Buffer.from(json)];
  }

  async #dumpsWhole(value: unknown, owner: GraphAddress): Promise<Encoded> {
    const underWay = new UnderWay();
    const encoded = await this.#dumpsInParts(value, owner, underWay);
    await underWay.committed();
    return encoded;
  }

  async #dumpsInParts(value: unknown, owner: GraphAddress, underWay: UnderWay): Promise<Encoded> {
    const held: Held[] = [];
    const light = lighten(value, held);
    for (const one of held) {
      const names: string[] = [];
      for await (const text of this.#pieces(one.part(), owner, underWay)) {
        const { name, stored } = this.#blobs.put(owner, text);
        names.push(name);
        await underWay.add(stored, text.length);
      }
      one.storedAs(names);
    }
    return this.#serde.dumpsTyped(light);
  }

  async *#pieces(
    { kind, value }: LargePart,
    owner: GraphAddress,
    underWay: UnderWay,
  ): AsyncGenerator<string> {
    if (kind === "text") {
      for (let at = 0; at < value.length; at += CHARACTERS_PER_PIECE) {
        if (at > 0) await ownTurn();
        yield JSON.stringify(value.slice(at, at + CHARACTERS_PER_PIECE));
      }
    } else if (kind === "bytes") {
      const bytes = Buffer.from(value.buffer, value.byteOffset, value.length);
      for (let at = 0; at < bytes.length; at += BYTES_PER_PIECE) {
        if (at > 0) await ownTurn();
        yield JSON.stringify(bytes.toString("base64", at, at + BYTES_PER_PIECE));
      }
    } else {
      const entries = kind === "list" ? value : Object.entries(value);
      for (let at = 0; at < entries.length; at += ENTRIES_PER_PIECE) {
        await ownTurn();
        const some = entries.slice(at, at + ENTRIES_PER_PIECE);
        const json = plainJson(some);
        yield json ?? Buffer.from((await this.#dumpsInParts(some, owner, underWay))[1]).toString();
      }
    }
  }

  async #load({ kind, names }: Reference): Promise<unknown> {
    const pieces = await mapAtMost(this.#blobs.atOnce, names, async (name): Promise<unknown> => {
      await ownTurn();
      const json = await this.#blobs.get(name);
      return kind === "list" || kind === "record" ? this.loadsTyped("json", json) : JSON.parse(json);
    });
    // Each blob is one that was stored above.
    if (kind === "list") return pieces.flat();
    if (kind === "record") return Object.fromEntries(pieces.flat() as [string, unknown][]);
    // Joining the pieces one by one copies none of them.
    if (kind === "text") return (pieces as string[]).reduce((text, piece) => text + piece, "");
    return new Uint8Array(Buffer.concat(pieces.map((piece) => Buffer.from(piece as string, "base64"))));
  }
}
