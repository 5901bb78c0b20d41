import { NO_ANSWER, STREAM_BROKEN } from "./failure-facts.ts";

type Fetch = typeof globalThis.fetch;

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
 * `idleMs` is the longest silence between two pieces.
 */
export function guardedFetch(idleMs: number, fetch: Fetch = globalThis.fetch): Fetch {
  return async (input, init) => {
    const response = await fetch(input, init);
    const streams = response.headers.get("content-type")?.startsWith("text/event-stream") ?? false;
    if (!response.ok || response.body === null) return response;
    if (!streams) {
      const type = response.headers.get("content-type");
      if (type === null || !asksForStream(init)) return response;
      await response.body.cancel();
      throw new NoModelAnswerError(`an answer of type ${type} instead of a stream of events`);
    }
    const body = guardedBody(response.body, idleMs);
    return new Response(body, {
      status: response.status,
      statusText: response.statusText,
      headers: response.headers,
    });
  };
}

/** Whether the body of a request demands a stream, as clients of providers word it. */
function asksForStream(init: RequestInit | undefined): boolean {
  return typeof init?.body === "string" && /"stream":\s*true\b/.test(init.body);
}

function guardedBody(source: ReadableStream<Uint8Array>, idleMs: number): ReadableStream<Uint8Array> {
  const reader = source.getReader();
  const progress = new StreamProgress();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await nextPiece(reader, idleMs);
      if (!done) {
        progress.read(value);
        controller.enqueue(value);
        return;
      }
      progress.finish();
      controller.close();
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

async function nextPiece(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  idleMs: number,
): Promise<Awaited<ReturnType<typeof reader.read>>> {
  let timer: NodeJS.Timeout | undefined;
  const silence = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      const error = new ModelSilentError(idleMs);
      reject(error);
      reader.cancel(error).catch(() => {}); // the stream is given up; how its end goes does not matter
    }, idleMs);
  });
  try {
    return await Promise.race([reader.read(), silence]);
  } finally {
    clearTimeout(timer);
  }
}

const WHOLE =
  /"type":\s*"(?:message_stop|response\.(?:completed|incomplete))"|"finish_reason":\s*"|^data:\s*\[DONE\]/;
const FAILED = /"type":\s*"(?:response\.failed|error)"/;

/** Reads along, line by line, and knows whether the answer came to its end. */
class StreamProgress {
  readonly #decoder = new TextDecoder();
  #rest = "";
  #whole = false;

  read(piece: Uint8Array): void {
    const lines = (this.#rest + this.#decoder.decode(piece, { stream: true })).split(/\r\n|\n|\r/);
    this.#rest = lines.pop() ?? "";
    for (const line of lines) this.#line(line);
  }

  finish(): void {
    this.#line(this.#rest);
    if (!this.#whole) throw new ModelStreamBrokenError("the stream ended before the answer did");
  }

  #line(line: string): void {
    if (!line.startsWith("data:")) return;
    if (WHOLE.test(line)) this.#whole = true;
    else if (FAILED.test(line)) throwReported(line.slice("data:".length));
  }
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

function field(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}
