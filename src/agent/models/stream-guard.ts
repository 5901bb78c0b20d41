import { monotonicClock } from "../../core/clock.ts";
import { ownTurn } from "../../core/concurrency.ts";
import { headOf } from "../../core/text.ts";
import { NO_ANSWER } from "./failure.ts";
import { KeepAlives, ModelSilentError, ModelStreamBrokenError } from "./silence.ts";

/** Guards the streams of providers: against silence, broken ends, and arguments in very many pieces. */

type Fetch = typeof globalThis.fetch;

/** Most bytes of a refusal that are read; its reason stands at the beginning. */
const MAX_ERROR_BYTES = 65_536;

/** The response that came instead of an answer. */
class NoModelAnswerError extends Error {
  override readonly name: string = NO_ANSWER;
}

/** The provider reported a failure inside a stream that had begun well. */
class ProviderStreamError extends Error {
  override readonly name: string = "ProviderStreamError";
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/**
 * `fetch` whose event streams fail when the answer in them is not whole. Without this, a stream cut at an
 * event boundary, or a failure reported in an event the client library ignores, looks like the end of a
 * shorter answer.
 *
 * A stream counts as whole when it had its end mark: `message_stop` (Anthropic), `[DONE]` or a finish
 * reason (OpenAI chat completions), `response.completed` or `response.incomplete` (OpenAI responses).
 * `idleMs` is the longest silence between two pieces; signs of life without content have a longer limit. Pieces of a call's arguments are joined on their way, and
 * long texts divided. Only the beginning of a refusal is read: clients parse, copy and quote all of it.
 */
export function guardedFetch(idleMs: number, fetch: Fetch = globalThis.fetch): Fetch {
  return async (input, init) => {
    const response = await fetch(input, init);
    const streams = response.headers.get("content-type")?.startsWith("text/event-stream") ?? false;
    if (response.body === null) return response;
    if (!response.ok) return withBody(response, response.body.pipeThrough(firstBytes(MAX_ERROR_BYTES)));
    if (!streams) {
      const type = response.headers.get("content-type");
      if (type === null || !asksForStream(init)) return response;
      await response.body.cancel();
      throw new NoModelAnswerError(`an answer of type ${type} instead of a stream of events`);
    }
    return withBody(response, guardedBody(response.body, idleMs));
  };
}

const withBody = ({ status, statusText, headers }: Response, body: ReadableStream<Uint8Array>): Response =>
  new Response(body, { status, statusText, headers });

function firstBytes(limit: number): TransformStream<Uint8Array, Uint8Array> {
  let left = limit;
  return new TransformStream({
    transform(piece, controller) {
      controller.enqueue(piece.subarray(0, left));
      left -= piece.byteLength;
      if (left <= 0) controller.terminate();
    },
  });
}

/** True if the body of a request demands a stream, in the words of providers' clients. */
function asksForStream(init: RequestInit | undefined): boolean {
  return typeof init?.body === "string" && /"stream":\s*true\b/.test(init.body);
}

function guardedBody(source: ReadableStream<Uint8Array>, idleMs: number): ReadableStream<Uint8Array> {
  const reader = source.getReader();
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const encoder = new TextEncoder();
  const joined = new JoinedArguments();
  const keepAlives = new KeepAlives(idleMs);
  let groups = inGroups([]);
  let isOver = false;
  let isWhole = false;
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      // However much has arrived, other work gets its turn between two parts of an answer.
      await ownTurn();
      const silence = new AbortController();
      const timer = setTimeout(() => {
        silence.abort(new ModelSilentError(idleMs));
        reader.cancel(silence.signal.reason).catch(() => {}); // the stream is given up; how its end goes does not matter
      }, idleMs);
      try {
        for (; ; timer.refresh()) {
          const { value: events } = groups.next();
          if (events) {
            isWhole = events.map(isEnd).includes(true) || isWhole;
            return controller.enqueue(encoder.encode(events.join("")));
          }
          if (isOver) break;
          const since = monotonicClock();
          const { done, value } = await reader.read();
          silence.signal.throwIfAborted();
          isOver = done;
          const part = done ? "" : decoder.decode(value, { stream: true });
          if (!done) keepAlives.note(part, monotonicClock() - since);
          groups = inGroups(done ? joined.finish() : joined.read(part));
        }
        if (!isWhole) throw new ModelStreamBrokenError("the stream ended before the answer did");
        controller.close();
      } catch (error) {
        reader.cancel(error).catch(() => {}); // as above
        throw error;
      } finally {
        clearTimeout(timer);
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

/** Most bytes of an event. Some end an answer by repeating all of it. */
const LONGEST_EVENT = 2_097_152;

/** @throws NoModelAnswerError when an event, whole or not, is longer than that. */
function checkLength(length: number): void {
  if (length > LONGEST_EVENT) throw new NoModelAnswerError("an event of more than 2 MB");
}

const WHOLE =
  /"type":\s*"(?:message_stop|response\.(?:completed|incomplete))"|"finish_reason":\s*"|^data:\s*\[DONE\]/;
const FAILED = /"type":\s*"(?:response\.failed|error)"/;

/** True if the answer ends with this event. @throws the failure that the event reports. */
function isEnd(event: string): boolean {
  checkLength(Buffer.byteLength(event));
  let found = false;
  for (const line of event.split(/\r\n|\n|\r/)) {
    if (!line.startsWith("data:")) continue;
    if (WHOLE.test(line)) found = true;
    else if (FAILED.test(line)) throwReported(line.slice("data:".length));
  }
  return found;
}

/** Throws what a failure event of the responses API says; other events with these words pass. */
function throwReported(data: string): void {
  let event: unknown;
  try {
    event = JSON.parse(data);
  } catch {
    return;
  }
  const type = field(event, "type");
  const report = type === "response.failed" ? field(field(event, "response"), "error") : event;
  if (type !== "response.failed" && (type !== "error" || field(event, "error") !== undefined)) return;
  const code = field(report, "code");
  const message = field(report, "message");
  throw new ProviderStreamError(
    typeof code === "string" ? code : "server_error",
    typeof message === "string" ? message : "the provider ended the answer with an error",
  );
}

/** Maximum length of a call's collected arguments, in characters, and maximum time to collect them, in ms. */
const MOST_COLLECTED = 16_384;
const COLLECT_MS = 100;

/** An empty line ends an event. */
const EVENT_END = /\r\r|\r?\n\r?\n/g;

/** Events of the three protocols that bring a piece of arguments. */
const BRINGS_ARGUMENTS = /"input_json_delta"|"arguments"|"response\.function_call_arguments\.delta"/;

/** The form of an event with a piece of arguments: the text before and after the piece, a JSON string. */
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
 * Arguments are passed on with the first event after 100 ms: nobody reads half a call.
 */
export class JoinedArguments {
  /** The event that is not whole yet, and line ends behind it that may belong to its end. */
  #open: string[] = [];
  #openLength = 0;
  #lineEnds = "";
  #form: Form | undefined;
  /** The pieces collected so far, as JSON without quotes. */
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
      this.#openLength = 0;
      from = to;
    }
    const ends = /[\r\n]{0,3}$/.exec(text.slice(Math.max(from, text.length - 3)))?.[0] ?? "";
    this.#lineEnds = ends;
    this.#open.push(text.slice(from, text.length - ends.length));
    checkLength((this.#openLength += text.length - ends.length - from));
    return ready;
  }

  /** @returns the rest, including the beginning of an event. */
  finish(): string[] {
    return [...this.#release(), [...this.#open, this.#lineEnds].join("")];
  }

  #take(raw: string): string[] {
    const isPiece = raw.length < MOST_COLLECTED && BRINGS_ARGUMENTS.test(raw);
    const known = isPiece && this.#form ? pieceIn(raw, this.#form) : undefined;
    if (known !== undefined) return this.#collect(known);
    const read = isPiece ? readPiece(raw) : undefined;
    if (read === undefined) return [...this.#release(), raw];
    const { piece, ...form } = read;
    if (form.shape === this.#form?.shape) return this.#collect(piece);
    const released = this.#release();
    this.#form = form;
    return [...released, ...this.#collect(piece)];
  }

  #collect(piece: string): string[] {
    const now = monotonicClock();
    if (this.#pieces.length === 0) this.#since = now;
    this.#pieces.push(piece);
    this.#length += piece.length;
    return this.#length >= MOST_COLLECTED || now - this.#since >= COLLECT_MS ? this.#release() : [];
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

/** Index of the quote that closes the JSON string at `start`; -1 if there is none. */
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

/** The JSON of an event, and the text before and after it. */
function dataOf(raw: string): { before: string; json: string; after: string } {
  const { index = raw.length, 0: line = "" } = /^data:[^\r\n]*/m.exec(raw) ?? {};
  const start = index + "data:".length;
  return {
    before: raw.slice(0, start),
    json: raw.slice(start, index + line.length),
    after: raw.slice(index + line.length),
  };
}

/** A text of an event. */
interface Place {
  parent: object;
  key: string;
}

/** Place of a piece of arguments in an event of the three protocols, if the event holds nothing else. */
function argumentsIn(event: unknown): Place | undefined {
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
/** A field of an unknown value; `undefined` if it has none. */
const field = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

/** About how many characters of a stream are read at once: client libraries look at each of them several times. */
const PART = 16_384;
/**
 * Events in groups that are read in a moment each. A long text is divided among several events, the words of an
 * error are cut. Others are passed as they are.
 */
function* inGroups(events: readonly string[]): Generator<string[], undefined> {
  let group: string[] = [];
  let length = 0;
  for (const event of events) {
    for (const part of event.length <= PART ? [event] : partsOf(event)) {
      group.push(part);
      length += part.length;
      if (length < PART) continue;
      yield group;
      [group, length] = [[], 0];
    }
  }
  if (length > 0) yield group;
}

function* partsOf(raw: string): Generator<string> {
  const { before, json, after } = dataOf(raw);
  const event = parsed(json);
  const withText = ({ parent, key }: Place, text: string): string => {
    Reflect.set(parent, key, text);
    return `${before} ${JSON.stringify(event)}${after}`;
  };
  const place = textIn(event);
  const text = field(place?.parent, place?.key ?? "");
  const error = errorIn(event);
  if (place && typeof text === "string") {
    for (let at = 0; at < text.length; at += PART) yield withText(place, text.slice(at, at + PART));
  } else if (error) {
    yield withText(error, headOf(String(field(error.parent, error.key)), PART));
  } else {
    yield raw;
  }
}

/** Place of a piece of text or arguments in an event of the three protocols, if the event holds nothing else. */
function textIn(event: unknown): Place | undefined {
  const type = field(event, "type");
  if (type === "response.output_text.delta") return { parent: Object(event), key: "delta" };
  const delta = type === "content_block_delta" ? field(event, "delta") : undefined;
  if (field(delta, "type") === "text_delta") return { parent: Object(delta), key: "text" };
  if (field(delta, "type") === "thinking_delta") return { parent: Object(delta), key: "thinking" };
  const choice = only(field(event, "choices"));
  const said = field(choice, "delta");
  const isText =
    typeof field(said, "content") === "string" &&
    !field(said, "tool_calls") &&
    !field(choice, "finish_reason");
  return isText ? { parent: Object(said), key: "content" } : argumentsIn(event);
}

/** Place of the words that describe a failure. */
function errorIn(event: unknown): Place | undefined {
  const holders = [event, field(event, "error"), field(field(event, "response"), "error")];
  const parent = holders.find((holder) => typeof field(holder, "message") === "string");
  return parent === undefined ? undefined : { parent: Object(parent), key: "message" };
}
