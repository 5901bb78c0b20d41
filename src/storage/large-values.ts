import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";
import { ownTurn } from "../core/turns.ts";
import type { BlobOwner, Blobs } from "./blobs.ts";
import type { Encoded } from "./encode-writes.ts";
import { unreadable } from "./errors.ts";
import {
  ENTRIES_PER_PIECE,
  Held,
  type LargePart,
  lighten,
  mentionsReferences,
  type Reference,
  referencesIn,
} from "./large-parts.ts";
import { plainJson } from "./plain-json.ts";

/** Of one blob: what is serialised or parsed in one go holds up the event loop. */
const CHARACTERS_PER_PIECE = 128 * 1024;
/** The same of bytes, which are stored in base64: pieces of a multiple of three have no padding within. */
const BYTES_PER_PIECE = 96 * 1024;
/** What may wait for its commit. */
const CHARACTERS_UNDER_WAY = 512 * 1024;

/**
 * Stores large parts of values apart from them, each once, and puts them back when the value is loaded. Texts
 * are cut, and snapshots stored some entries at a time, so that no size of a value holds up the event loop.
 *
 * A blob is JSON: a part of a text, or a list of a snapshot's entries.
 */
export class LargeValues implements SerializerProtocol {
  readonly #blobs: Blobs;
  readonly #serde: SerializerProtocol;

  constructor(blobs: Blobs, serde: SerializerProtocol) {
    this.#blobs = blobs;
    this.#serde = serde;
  }

  /** As it is, without storing anything. */
  async dumpsTyped(value: unknown): Promise<Encoded> {
    const json = plainJson(value);
    return json === undefined ? this.#serde.dumpsTyped(value) : ["json", Buffer.from(json)];
  }

  async loadsTyped(type: string, data: Uint8Array | string): Promise<unknown> {
    const value = await this.#loaded(type, data);
    if (type !== "json" || !mentionsReferences(data)) return value;
    const holder = { value };
    for (const reference of referencesIn(holder)) reference.replaceWith(await this.#load(reference));
    return holder.value;
  }

  async #loaded(type: string, data: Uint8Array | string): Promise<unknown> {
    try {
      return await this.#serde.loadsTyped(type, data);
    } catch (thrown) {
      throw unreadable(thrown, "the database of checkpoints");
    }
  }

  /** Serialised, with its large parts stored by themselves; at once where it has none. */
  dumps(value: unknown, owner: BlobOwner): Encoded | Promise<Encoded> {
    const json = plainJson(value);
    return json === undefined ? this.#dumpsInParts(value, owner) : ["json", Buffer.from(json)];
  }

  async #dumpsInParts(value: unknown, owner: BlobOwner): Promise<Encoded> {
    const held: Held[] = [];
    const light = lighten(value, held);
    for (const one of held) await this.#store(one, owner);
    return this.#serde.dumpsTyped(light);
  }

  async #store(held: Held, owner: BlobOwner): Promise<void> {
    const names: string[] = [];
    let underWay: Promise<void>[] = [];
    let characters = 0;
    for await (const text of this.#pieces(held.part(), owner)) {
      const { name, stored } = this.#blobs.put(owner, text);
      // Whoever waits for the value is told; this may fail before that.
      stored.catch(() => undefined);
      names.push(name);
      underWay.push(stored);
      characters += text.length;
      if (characters < CHARACTERS_UNDER_WAY) continue;
      await Promise.all(underWay);
      [underWay, characters] = [[], 0];
    }
    await Promise.all(underWay);
    held.storedAs(names);
  }

  async *#pieces({ kind, value }: LargePart, owner: BlobOwner): AsyncGenerator<string> {
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
        const [, data] = await this.dumps(entries.slice(at, at + ENTRIES_PER_PIECE), owner);
        yield Buffer.from(data).toString();
      }
    }
  }

  async #load({ kind, names }: Reference): Promise<unknown> {
    const pieces: unknown[] = [];
    let text = "";
    for (const name of names) {
      await ownTurn();
      const json = this.#blobs.get(name);
      // Added one by one, the pieces of a text are not copied.
      if (kind === "text") text += JSON.parse(json) as string;
      else pieces.push(kind === "bytes" ? JSON.parse(json) : await this.loadsTyped("json", json));
    }
    // Each as stored above.
    if (kind === "list") return pieces.flat();
    if (kind === "record") return Object.fromEntries(pieces.flat() as [string, unknown][]);
    if (kind === "text") return text;
    return new Uint8Array(Buffer.concat(pieces.map((piece) => Buffer.from(piece as string, "base64"))));
  }
}
