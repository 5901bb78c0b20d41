import { ownTurn } from "../../core/turns.ts";
import { NO_ANSWER, STREAM_BROKEN } from "./failure-facts.ts";
import { JoinedArguments, field } from "./joined-arguments.ts";
import { inGroups } from "./long-events.ts";

type Fetch = typeof globalThis.fetch;

/** Bytes of a refusal that are read: what it is about stands at its beginning. */
const MAX_ERROR_BYTES = 65_536;

/** A streamed answer ended before it was complete. */
export class ModelStreamBrokenError extends Error {
  override readonly name: string = STREAM_BROKEN;
}

/** A streamed answer fell silent. */
class ModelSilentError extends ModelStreamBrokenError {
  readonly silentMs: number;

  constructor(silentMs: number) {
    super("nothing arrived in the middle of an answer");
    this.silentMs = silentMs;
  }
}

/** What came instead of an answer. */
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
 * `idleMs` is the longest silence between two pieces. Pieces of a call's arguments are joined on their way, and
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

/** Whether the body of a request demands a stream, as clients of providers word it. */
function asksForStream(init: RequestInit | undefined): boolean {
  return typeof init?.body === "string" && /"stream":\s*true\b/.test(init.body);
}

function guardedBody(source: ReadableStream<Uint8Array>, idleMs: number): ReadableStream<Uint8Array> {
  const reader = source.getReader();
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const encoder = new TextEncoder();
  const joined = new JoinedArguments();
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
          const { done, value } = await reader.read();
          silence.signal.throwIfAborted();
          isOver = done;
          groups = inGroups(done ? joined.finish() : joined.read(decoder.decode(value, { stream: true })));
        }
        if (!isWhole) throw new ModelStreamBrokenError("the stream ended before the answer did");
        controller.close();
      } finally {
        clearTimeout(timer);
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

/** Most bytes of an event that is no text. Some end an answer by repeating all of it. */
const LONGEST_EVENT = 2_097_152;
const WHOLE =
  /"type":\s*"(?:message_stop|response\.(?:completed|incomplete))"|"finish_reason":\s*"|^data:\s*\[DONE\]/;
const FAILED = /"type":\s*"(?:response\.failed|error)"/;

/** Whether the answer came to its end with this event. @throws the failure that the event reports. */
function isEnd(event: string): boolean {
  if (Buffer.byteLength(event) > LONGEST_EVENT) throw new NoModelAnswerError("an event of more than 2 MB");
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
