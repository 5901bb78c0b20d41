import { monotonicClock } from "../../core/clock.ts";

/** How much of a call's arguments is held back at most, in characters, and for how long, in milliseconds. */
const HELD_LENGTH = 16_384;
const HELD_MS = 100;

/** An empty line ends an event. */
const EVENT_END = /\r\r|\r?\n\r?\n/g;

/** Events of the three protocols that bring a piece of arguments. */
const BRINGS_ARGUMENTS = /"input_json_delta"|"arguments"|"response\.function_call_arguments\.delta"/;

/** An event with a piece of arguments, read. */
interface ArgumentEvent {
  /** The event without the piece: events with the same one belong to the same call. */
  shape: string;
  piece: string;
  /** The event with another piece. */
  withPiece(piece: string): string;
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
  #held: (ArgumentEvent & { since: number; length: number; pieces: string[]; raw: string }) | undefined;

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
    const event = isPiece ? argumentEvent(raw) : undefined;
    if (event === undefined) return [...this.#release(), raw];
    const now = monotonicClock();
    const released = this.#held?.shape === event.shape ? [] : this.#release();
    this.#held ??= { ...event, since: now, length: 0, pieces: [], raw };
    this.#held.pieces.push(event.piece);
    this.#held.length += event.piece.length;
    const isDue = this.#held.length >= HELD_LENGTH || now - this.#held.since >= HELD_MS;
    return isDue ? [...released, ...this.#release()] : released;
  }

  #release(): string[] {
    const held = this.#held;
    this.#held = undefined;
    if (held === undefined) return [];
    return [held.pieces.length === 1 ? held.raw : held.withPiece(held.pieces.join(""))];
  }
}

function argumentEvent(raw: string): ArgumentEvent | undefined {
  const lines = raw.split(/(\r\n|\n|\r)/);
  const at = lines.findIndex((line) => line.startsWith("data:"));
  const event = parsed(lines[at]?.slice("data:".length) ?? "");
  const place = placeOfPiece(event);
  const piece = field(place?.parent, place?.key ?? "");
  if (place === undefined || typeof piece !== "string") return undefined;
  const withData = (data: unknown): string => lines.with(at, `data: ${JSON.stringify(data)}`).join("");
  Reflect.set(place.parent, place.key, "");
  return {
    // OpenAI numbers its events and hides the lengths of pieces.
    shape: withData({ ...Object(event), sequence_number: undefined, obfuscation: undefined }),
    piece,
    withPiece(whole) {
      Reflect.set(place.parent, place.key, whole);
      return withData(event);
    },
  };
}

/** Where an event of the three protocols has a piece of arguments, if it has nothing but that. */
function placeOfPiece(event: unknown): { parent: object; key: string } | undefined {
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

const only = (items: unknown): unknown => (Array.isArray(items) && items.length === 1 ? items[0] : undefined);
/** A field of what may be anything. */
export const field = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}
