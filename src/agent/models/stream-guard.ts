import { monotonicClock } from "../../core/clock.ts";
import { ownTurn } from "../../core/concurrency.ts";
import { memberOf, parsedJson } from "../../core/unknown.ts";
import { NO_ANSWER } from "./failure.ts";
import { KeepAlives, ModelSilentError, ModelStreamBrokenError } from "./silence.ts";

/** Guards the streams of providers against silence and broken ends. */

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
 * `idleMs` is the longest silence between two pieces; signs of life without content have a longer limit. Only the
 * beginning of a refusal is read: clients parse, copy and quote all of it.
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
  const events = new WholeEvents();
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
          const { value: group } = groups.next();
          if (group) {
            isWhole = group.map(isEnd).includes(true) || isWhole;
            return controller.enqueue(encoder.encode(group.join("")));
          }
          if (isOver) break;
          const since = monotonicClock();
          const { done, value } = await reader.read();
          silence.signal.throwIfAborted();
          isOver = done;
          const part = done ? "" : decoder.decode(value, { stream: true });
          if (!done) keepAlives.note(part, monotonicClock() - since);
          groups = inGroups(done ? events.finish() : events.read(part));
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
  const event = parsedJson(data);
  const type = memberOf(event, "type");
  const report = type === "response.failed" ? memberOf(memberOf(event, "response"), "error") : event;
  if (type !== "response.failed" && (type !== "error" || memberOf(event, "error") !== undefined)) return;
  const code = memberOf(report, "code");
  const message = memberOf(report, "message");
  throw new ProviderStreamError(
    typeof code === "string" ? code : "server_error",
    typeof message === "string" ? message : "the provider ended the answer with an error",
  );
}

/** An empty line ends an event. */
const EVENT_END = /\r\r|\r?\n\r?\n/g;

/** Cuts a stream into its events, with the same bytes. */
class WholeEvents {
  /** The event that is not whole yet, and line ends behind it that may belong to its end. */
  #open: string[] = [];
  #openLength = 0;
  #lineEnds = "";

  /** Takes the next part of the stream, cut anywhere. @returns the events that are whole. */
  read(part: string): string[] {
    const text = this.#lineEnds + part;
    const ready: string[] = [];
    let from = 0;
    for (const { index, 0: end } of text.matchAll(EVENT_END)) {
      const to = index + end.length;
      ready.push([...this.#open, text.slice(from, to)].join(""));
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

  /** @returns the rest, which may be the beginning of an event. */
  finish(): string[] {
    return [[...this.#open, this.#lineEnds].join("")];
  }
}

/** About how many characters of a stream are read at once: client libraries need some time for each event. */
const PART = 16_384;

/** Events in groups that are read in a moment each. */
function* inGroups(events: readonly string[]): Generator<string[], undefined> {
  let group: string[] = [];
  let length = 0;
  for (const event of events) {
    group.push(event);
    length += event.length;
    if (length < PART) continue;
    yield group;
    [group, length] = [[], 0];
  }
  if (length > 0) yield group;
}
