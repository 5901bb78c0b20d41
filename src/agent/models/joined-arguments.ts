import { monotonicClock } from "../../core/clock.ts";

/** How much of a call's arguments is held back at most, in characters, and for how long, in milliseconds. */
const HELD_LENGTH = 16_384;
const HELD_MS = 100;

/** An empty line ends an event. */
const EVENT_END = /\r\r|\r?\n\r?\n/g;

/** Events of the three protocols that bring a piece of arguments. */
const BRINGS_ARGUMENTS = /"input_json_delta"|"arguments"|"response\.function_call_arguments\.delta"/;

/** The form of an event with a piece of arguments: what stands before and after the piece, a JSON string. */
interface Form {
  before: string;
  after: string;
  /** The event without the piece: events with the same one belong to the same call. */
  shape: string;
}

/**
 * Joins the events of a provider's stream that bring pieces of a call's arguments, as long as they follow each
 * other and differ in nothing else. Client libraries take far longer for an event than for its text, and
 * a file of 5 MB comes in 200,000 of them. All other events pass as soon as they are whole, in their order,
 * with the same bytes.
 *
 * Arguments are held back until the first event after 100 ms: nobody reads half a call.
 */
export class JoinedArguments {
  /** The event that is not whole yet, and line ends behind it that may belong to its end. */
  #open: string[] = [];
  #lineEnds = "";
  #form: Form | undefined;
  /** The pieces that are held back, as JSON without quotes. */
  #pieces: string[] = [];
  #length = 0;
  #since = 0;

  /** Takes the next part of the stream, cut anywhere. @returns whole events that may be passed on. */
  read(part: string): string[] {
    const text = this.#lineEnds + part;
    const ready: string[] = [];
    let from = 0;
    for (const { index, 0: end } of text.matchAll(EVENT_END)) {
      const to = index + end.length;
      ready.push(...this.#take([...this.#open, text.slice(from, to)].join("")));
      this.#open = [];
      from = to;
    }
    const ends = /[\r\n]{0,3}$/.exec(text.slice(Math.max(from, text.length - 3)))?.[0] ?? "";
    this.#lineEnds = ends;
    this.#open.push(text.slice(from, text.length - ends.length));
    return ready;
  }

  /** @returns what is left, the beginning of an event included. */
  finish(): string[] {
    return [...this.#release(), [...this.#open, this.#lineEnds].join("")];
  }

  #take(raw: string): string[] {
    const isPiece = raw.length < HELD_LENGTH && BRINGS_ARGUMENTS.test(raw);
    const known = isPiece && this.#form ? pieceIn(raw, this.#form) : undefined;
    if (known !== undefined) return this.#hold(known);
    const read = isPiece ? readPiece(raw) : undefined;
    if (read === undefined) return [...this.#release(), raw];
    const { piece, ...form } = read;
    if (form.shape === this.#form?.shape) return this.#hold(piece);
    const released = this.#release();
    this.#form = form;
    return [...released, ...this.#hold(piece)];
  }

  #hold(piece: string): string[] {
    const now = monotonicClock();
    if (this.#pieces.length === 0) this.#since = now;
    this.#pieces.push(piece);
    this.#length += piece.length;
    return this.#length >= HELD_LENGTH || now - this.#since >= HELD_MS ? this.#release() : [];
  }

  #release(): string[] {
    if (this.#form === undefined || this.#pieces.length === 0) return [];
    const event = this.#form.before + this.#pieces.join("") + this.#form.after;
    this.#pieces = [];
    this.#length = 0;
    return [event];
  }
}

/** The piece of an event of this form, found without reading the event: there are hundreds of thousands. */
function pieceIn(raw: string, { before, after }: Form): string | undefined {
  const end = raw.length - after.length;
  if (end < before.length || !raw.startsWith(before) || !raw.endsWith(after)) return undefined;
  return endOfString(raw, before.length) === end ? raw.slice(before.length, end) : undefined;
}

function readPiece(raw: string): (Form & { piece: string }) | undefined {
  const { before, json, after } = dataOf(raw);
  const event = parsed(json);
  const place = argumentsIn(event);
  const piece = field(place?.parent, place?.key ?? "");
  if (place === undefined || typeof piece !== "string") return undefined;
  const name = `"${place.key}"`;
  // The name occurs a second time, so the text below might be the wrong one: the event passes unchanged.
  if (json.indexOf(name) !== json.lastIndexOf(name)) return undefined;
  COLON.lastIndex = json.indexOf(name) + name.length;
  if (!COLON.test(json)) return undefined;
  const start = COLON.lastIndex;
  const end = endOfString(json, start);
  Reflect.set(place.parent, place.key, "");
  // OpenAI numbers its events and hides the lengths of pieces.
  const shape = JSON.stringify({ ...Object(event), sequence_number: undefined, obfuscation: undefined });
  return {
    before: before + json.slice(0, start),
    piece: json.slice(start, end),
    after: json.slice(end) + after,
    shape: before + shape + after,
  };
}

const COLON = /\s*:\s*"/y;

/** Where the JSON string that begins at `start` has its closing quote; -1 when it is none. */
function endOfString(json: string, start: number): number {
  for (let at = start; at < json.length; at += 1) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) return at;
    if (code === BACKSLASH) at += 1;
    else if (code < BLANK) return -1;
  }
  return -1;
}

const [BLANK, QUOTE, BACKSLASH] = [0x20, 0x22, 0x5c];

/** The JSON of an event, and what stands before and after it. */
export function dataOf(raw: string): { before: string; json: string; after: string } {
  const { index = raw.length, 0: line = "" } = /^data:[^\r\n]*/m.exec(raw) ?? {};
  const start = index + "data:".length;
  return {
    before: raw.slice(0, start),
    json: raw.slice(start, index + line.length),
    after: raw.slice(index + line.length),
  };
}

/** A text of an event. */
export interface Place {
  parent: object;
  key: string;
}

/** Where an event of the three protocols has a piece of arguments, if it has nothing but that. */
export function argumentsIn(event: unknown): Place | undefined {
  const type = field(event, "type");
  if (type === "response.function_call_arguments.delta") return { parent: Object(event), key: "delta" };
  const delta = type === "content_block_delta" ? field(event, "delta") : undefined;
  if (field(delta, "type") === "input_json_delta") return { parent: Object(delta), key: "partial_json" };
  const choice = only(field(event, "choices"));
  // `Object` makes an object of anything.
  const {
    tool_calls: calls,
    role: _role,
    ...more
  } = Object(field(choice, "delta")) as Record<string, unknown>;
  const named = field(only(calls), "function");
  const hasMore = field(choice, "finish_reason") || field(named, "name") || Object.values(more).some(Boolean);
  return hasMore ? undefined : { parent: Object(named), key: "arguments" };
}

export const only = (items: unknown): unknown =>
  Array.isArray(items) && items.length === 1 ? items[0] : undefined;
/** A field of what may be anything. */
export const field = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;

export function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}
