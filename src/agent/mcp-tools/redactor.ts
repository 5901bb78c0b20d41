/** Blacks out the secrets of another MCP server in everything that it sends, in whichever encoding it sends them. */
import { Buffer } from "node:buffer";
import { fileBytes, mediaFacts } from "../../core/media.ts";
import { NewestOf } from "../../core/newest-of.ts";
import { beginningOf, oneLine } from "../../core/text.ts";
import { isRecord } from "../../core/unknown.ts";
import { withoutSecrets } from "../models/failure.ts";

const HIDDEN = "[hidden]";
/** Shorter values are words such as `1` or `true`, which mean nothing on their own. No form of a secret is shorter. */
const SHORTEST = 6;
/** Escapes within escapes that are undone, such as JSON in a string of JSON. */
const LAYERS = 3;
/** Comparisons for each character of a text. A text that takes more was made to take time, and is hidden as a whole. */
const MOST_WORK = 4;
/** A text with more secrets than this is hidden as a whole. */
const MOST_SPANS = 100_000;

/**
 * Finds secrets as they are and escaped in any way (JSON, addresses, HTML, also some of their characters only), in
 * base64 and base64url at each of the three alignments, in hexadecimal digits and in UTF-16, also with line breaks
 * in between. Does not find a secret that is spread over several values, compressed or encrypted.
 */
export class Redactor {
  readonly #secrets: readonly string[];
  /** Secrets added later, such as tokens. An old token opens nothing. */
  readonly #added = new NewestOf<true>(32);
  /** The forms of all secrets by a digest of their first three characters, the longest first. */
  #forms: Array<Uint16Array[] | undefined> | undefined;

  constructor(secrets: readonly string[] = []) {
    this.#secrets = secrets;
    this.#prepare();
  }

  /** Blacks these out as well. */
  add(...secrets: ReadonlyArray<string | undefined>): void {
    const fresh = secrets.filter((secret) => secret !== undefined && !this.#added.has(secret));
    if (fresh.length === 0) return;
    for (const secret of fresh) this.#added.keep(String(secret), true);
    this.#prepare();
  }

  #prepare(): void {
    const forms = new Set([...this.#secrets, ...this.#added.keys()].flatMap(secretForms));
    this.#forms = forms.size === 0 ? undefined : Array.from({ length: 1 << 15 });
    for (const form of [...forms].sort((left, right) => right.length - left.length)) {
      const codes = charCodes(form);
      if (this.#forms) (this.#forms[digestAt(codes, 0)] ??= []).push(codes);
    }
  }

  /** `text` without secrets. Takes time that is linear in its length, whatever it holds. */
  text(text: string): string {
    if (!this.#forms || text.length < SHORTEST) return text;
    const codes = charCodes(text);
    const spans = this.#spansIn(codes);
    if (/[%&\\\r\n]/.test(text)) {
      let { length } = codes;
      const places = new Uint32Array(length + 1);
      for (let at = 0; at <= length; at += 1) places[at] = at;
      const [starts, ends] = [places, places.slice(1)];
      for (let depth = 0; depth < LAYERS; depth += 1) {
        const shorter = unescape({ codes, starts, ends }, length);
        if (shorter === length) break;
        length = shorter;
        for (const [start, end] of this.#spansIn(codes.subarray(0, length)))
          spans.push([starts[start] ?? 0, ends[end - 1] ?? 0]);
      }
    }
    let [shown, at] = ["", -1];
    for (const [start, end] of spans.sort(([left], [right]) => left - right)) {
      if (start > at) shown += text.slice(Math.max(at, 0), start) + HIDDEN;
      at = Math.max(at, end);
    }
    return shown + text.slice(Math.max(at, 0));
  }

  /** A value of JSON without secrets, in its names too. Media stay as they are, unless a secret is among their bytes. */
  value(value: unknown): unknown {
    if (typeof value === "string") return this.text(value);
    if (typeof value === "number") return this.text(String(value)) === String(value) ? value : HIDDEN;
    if (Array.isArray(value)) return value.map((inner) => this.value(inner));
    if (!isRecord(value)) return value;
    const members = Object.entries(value).map(([key, inner]) => {
      const isMedia = (key === "data" || key === "blob") && typeof inner === "string";
      return [this.text(key), isMedia ? this.#media(inner) : this.value(inner)];
    });
    return Object.fromEntries(members);
  }

  /** A reason for people and models: one bounded line without secrets, and without words that look like secrets. */
  reason(text: string): string {
    return oneLine(withoutSecrets(this.text(beginningOf(text))), 300);
  }

  /** Letters of base64 may spell a short secret by chance, so that bytes count where they are media. */
  #media(data: string): string {
    const bytes = fileBytes(data);
    if (!bytes || !this.#forms) return this.text(data);
    const plain = Buffer.from(bytes).toString("latin1");
    const shown = this.text(plain);
    if (shown !== plain) return Buffer.from(shown, "latin1").toString("base64");
    return mediaFacts(bytes).mimeType === undefined ? this.text(data) : data;
  }

  #spansIn(codes: Uint16Array): Array<[start: number, end: number]> {
    const spans: Array<[number, number]> = [];
    let work = -100_000;
    for (let at = 0; at + SHORTEST <= codes.length; at += 1) {
      const forms = this.#forms?.[digestAt(codes, at)];
      if (forms === undefined) continue;
      for (const form of forms) {
        if (at + form.length > codes.length) continue;
        // Tokens often begin alike, and seldom end alike.
        let left = form.length;
        while (left > 0 && form[left - 1] === codes[at + left - 1]) left -= 1;
        work += form.length - left;
        if (left !== 0) continue;
        spans.push([at, at + form.length]);
        at += form.length - 1;
        break;
      }
      if (work > MOST_WORK * codes.length || spans.length > MOST_SPANS) return [[0, codes.length]];
    }
    return spans;
  }
}

function charCodes(text: string): Uint16Array {
  const bytes = new Uint8Array(2 * text.length);
  Buffer.from(bytes.buffer).write(text, "utf16le");
  return new Uint16Array(bytes.buffer);
}

const digestAt = (codes: Uint16Array, at: number): number =>
  ((codes[at] ?? 0) ^ ((codes[at + 1] ?? 0) << 5) ^ ((codes[at + 2] ?? 0) << 10)) & 0x7fff;

/** A secret and its parts as servers repeat them, each in all encodings but escapes. */
function secretForms(secret: string): string[] {
  const bare = secret.replace(/^(?:bearer|basic|token)\s+/i, "");
  // `user:password` of a header, and the password of an address.
  const login = /^basic\s/i.test(secret) ? Buffer.from(bare, "base64").toString() : "";
  const password = /^[a-z][a-z\d+.-]*:\/\/[^/?#@:\s]*:([^/?#\s]+)@/i.exec(secret)?.[1] ?? "";
  const parts = [secret, bare, login, login.replace(/^[^:]*:/, ""), password];
  return parts
    .flatMap((part) => [part, unescapedOnce(part)])
    .filter((part) => part.length >= SHORTEST)
    .flatMap((part) => {
      const [utf8, utf16] = [Buffer.from(part), Buffer.from(part, "utf16le")];
      const coded = [utf8, utf16].flatMap((bytes) =>
        [0, 1, 2].flatMap((before) => {
          const all = Buffer.concat([Buffer.alloc(before), bytes]);
          const known = Math.floor((all.length * 8) / 6);
          const text = all.toString("base64").slice(before && before + 1, known);
          return [text, text.replaceAll("+", "-").replaceAll("/", "_")];
        }),
      );
      const hex = [utf8, utf16].map((bytes) => bytes.toString("hex"));
      const latin1 = utf8.toString("latin1");
      // A secret may hold an escape itself, which is undone with those around it.
      const plain = [part, latin1, unescapedOnce(latin1)].flatMap((text) => [
        text,
        text.replaceAll(" ", "+"),
      ]);
      // Its last byte is the first one of the next character in the other order of bytes.
      return [
        ...plain.filter((text) => text.length >= SHORTEST),
        ...coded,
        ...hex,
        ...hex.map((text) => text.toUpperCase()),
        utf16.subarray(0, -1).toString("latin1"),
      ];
    });
}

function unescapedOnce(text: string): string {
  const codes = charCodes(text);
  const places = new Uint32Array(text.length);
  const length = unescape({ codes, starts: places, ends: places }, text.length);
  return String.fromCharCode(...codes.subarray(0, length));
}

/**
 * Undoes one layer of escapes in the first `length` codes, and removes line breaks. Returns the new length. `starts` and
 * `ends`: the place of each code in the text as it came.
 */
function unescape(
  { codes, starts, ends }: { codes: Uint16Array; starts: Uint32Array; ends: Uint32Array },
  length: number,
): number {
  const given = codes.subarray(0, length);
  let to = 0;
  let width = 1;
  for (let from = 0; from < length; from += width) {
    const code = given[from] ?? 0;
    const found = code === 0x25 || code === 0x5c || code === 0x26 ? escapeAt(given, from) : 0;
    width = Math.max(found >> 16, 1);
    if (code === 0x0a || code === 0x0d) continue;
    starts[to] = starts[from] ?? 0;
    ends[to] = ends[from + width - 1] ?? 0;
    codes[to] = found === 0 ? code : found;
    to += 1;
  }
  return to;
}

/** The character of an escape in the lower 16 bits, and the length of the escape above; 0 if it is none. */
function escapeAt(codes: Uint16Array, at: number): number {
  const escape = (code: number, length: number): number => (code < 0 ? 0 : (length << 16) | (code & 0xffff));
  if (codes[at] === 0x25) return escape(hexAt(codes, at + 1, 2), 3);
  if (codes[at] === 0x26) {
    let end = at + 1;
    while (end < at + 9 && codes[end] !== 0x3b) end += 1;
    const entity = codes[end] === 0x3b ? String.fromCharCode(...codes.subarray(at, end + 1)) : "";
    const [whole = "", decimal, hex = "", name = ""] =
      /^&(?:#(\d{1,6})|#x([\da-f]{1,5})|(amp|lt|gt|quot|apos));/i.exec(entity) ?? [];
    const code =
      { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" }[name.toLowerCase()]?.charCodeAt(0) ??
      Number(decimal ?? `0x${hex}`);
    return whole === "" ? 0 : escape(code, whole.length);
  }
  const next = String.fromCharCode(codes[at + 1] ?? 0);
  if (next === "u") return escape(hexAt(codes, at + 2, 4), 6);
  if (next === "x") return escape(hexAt(codes, at + 2, 2), 4);
  const meant = `"'\\/`.includes(next) ? next : { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" }[next];
  return escape(meant?.charCodeAt(0) ?? -1, 2);
}

/** The number that so many hexadecimal digits spell; -1 if they are none. */
function hexAt(codes: Uint16Array, at: number, digits: number): number {
  let number = 0;
  for (let place = at; place < at + digits; place += 1) {
    const code = codes[place] ?? 0;
    // Capitals have one bit less than small letters.
    const letter = code | 0x20;
    const digit =
      code >= 0x30 && code <= 0x39 ? code - 0x30 : letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
    if (digit < 0) return -1;
    number = number * 16 + digit;
  }
  return number;
}
