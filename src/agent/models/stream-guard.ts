/** Guards the streams of providers against silence and broken ends. */
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { monotonicClock } from "../../core/clock.ts";
import { ownTurn } from "../../core/concurrency.ts";
import { isRecord, memberOf, parsedJson, recordOf, textMemberOf } from "../../core/unknown.ts";
import { isRefusalStatus } from "./failure.ts";
import { CAUSES, refusalKind } from "./provider-words.ts";

type Fetch = typeof globalThis.fetch;

/** Limits on waiting for the beginning of an answer, and for each further piece. */
export interface WaitingLimits {
  requestMs: number;
  idleMs: number;
}

export class ModelStreamBrokenError extends Error {
  override readonly name: string = "ModelStreamBrokenError";
}

const silence = (silentMs: number): Error =>
  Object.assign(new ModelStreamBrokenError("nothing arrived in the middle of an answer"), { silentMs });

class NoModelAnswerError extends Error {
  override readonly name: string = "NoModelAnswerError";
}

/** Most characters of an event. Some end an answer by repeating all of it. */
const LONGEST_EVENT = 2_097_152;
/** Bytes of a stream that are passed on at once: client libraries need some time for each event. */
const PART = 16_384;

/**
 * `fetch` whose event streams fail when they end before the answer's end mark, or with an event that reports a failure:
 * clients would take that for the end of a shorter answer. `idleMs` is the longest silence between two pieces; signs of
 * life without content have a longer limit. Only the beginning of a refusal is read: clients quote all of it.
 */
export function guardedFetch(idleMs: number, fetch: Fetch = globalThis.fetch): Fetch {
  const textOf = (body: ReadableStream<Uint8Array>, limit: number): Promise<string> =>
    within(idleMs, beginningOfBody(body, limit), () => silence(idleMs));
  return async (input, init) => {
    const response = await fetch(input, init);
    const { body, ok, status, statusText, headers } = response;
    const type = headers.get("content-type")?.toLowerCase();
    if (body === null) return response;
    if (!ok) {
      const text = await textOf(body, 65_536);
      return new Response(readRefusal(text)?.body ?? text, { status, statusText, headers });
    }
    const told = { status, statusText, headers };
    if (type?.startsWith("text/event-stream"))
      return new Response(ReadableStream.from(guardedParts(body.getReader(), idleMs)), told);
    if (type === undefined || !(typeof init?.body === "string" && /"stream":\s*true\b/.test(init.body)))
      return response;
    if (/\bjson\b/.test(type)) {
      const answer = asStream(await textOf(body, LONGEST_EVENT));
      if (answer) return answer;
    } else {
      const reader = body.getReader();
      const { value } = await within(idleMs, reader.read(), () => silence(idleMs));
      // Some proxies send a stream of events under another type.
      if (value !== undefined && /^\s*(?:data|event|id|retry)?:/.test(new TextDecoder().decode(value)))
        return new Response(ReadableStream.from(guardedParts(reader, idleMs, value)));
      await reader.cancel().catch(() => undefined);
    }
    throw new NoModelAnswerError(`an answer of type ${type} instead of a stream of events`);
  };
}

/** An answer that was not streamed: a whole message of chat completions, or a refusal under a status of success. */
function asStream(text: string): Response | undefined {
  const answer = parsedJson(text);
  if (Array.isArray(memberOf(answer, "choices")) && findWords(memberOf(answer, "base_resp")) === undefined) {
    const events = `data: ${JSON.stringify(answer)}\n\ndata: [DONE]\n\n`;
    return new Response(events, { headers: { "content-type": "text/event-stream" } });
  }
  const refusal = readRefusal(text);
  const headers = { "content-type": "application/json" };
  return refusal && new Response(refusal.body, { status: refusal.status ?? 400, headers });
}

/** The first `limit` bytes of an answer, as text. */
export function beginningOfBody(body: ReadableStream<Uint8Array>, limit: number): Promise<string> {
  let left = limit;
  const first = new TransformStream<Uint8Array, Uint8Array>({
    transform(piece, controller) {
      controller.enqueue(piece.subarray(0, left));
      left -= piece.byteLength;
      if (left <= 0) controller.terminate();
    },
  });
  return new Response(body.pipeThrough(first)).text();
}

/** The parts of a stream; `arrived` was read before. */
async function* guardedParts(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  idleMs: number,
  arrived: Uint8Array = new Uint8Array(),
): AsyncGenerator<Uint8Array> {
  const decoder = new TextDecoder();
  const answer = new AnswerLines();
  let waitedMs = 0;
  let silentMs = 0;
  try {
    for (;;) {
      for (; arrived.length > 0; arrived = arrived.subarray(PART)) {
        // However much has arrived, other work gets its turn between two parts of an answer.
        await ownTurn();
        const part = arrived.subarray(0, PART);
        const text = decoder.decode(part, { stream: true });
        silentMs = silenceAfter(text, silentMs, waitedMs);
        if (silentMs >= 3 * idleMs) throw silence(silentMs);
        waitedMs = 0;
        answer.read(text);
        yield part;
      }
      const since = monotonicClock();
      const { done, value } = await within(idleMs, reader.read(), () => silence(idleMs));
      if (done) return answer.end();
      waitedMs = monotonicClock() - since;
      arrived = value;
    }
  } finally {
    reader.cancel().catch(() => {}); // how the end of an abandoned stream goes does not matter
  }
}

/** The time in which a stream had signs of life only: comments and pings of event streams, and empty lines. */
export function silenceAfter(part: string, silentMs: number, waitedMs: number): number {
  const isKeepAlive = part
    .split(LINE_END)
    .every((line) => /^(?::|event: ?ping$|data: ?(?:$|\{ ?"type": ?"ping"))|^$/.test(line));
  return isKeepAlive ? silentMs + waitedMs : 0;
}

const LINE_END = /\r\n|\n|\r/;
/** The end marks of Anthropic's messages, of OpenAI's responses, and of chat completions. */
const WHOLE =
  /"type":\s*"(?:message_stop|response\.(?:completed|incomplete))"|"finish_reason":\s*"[^"]|^data:\s*\[DONE\]/;

/** The lines of an event stream, which show if the answer in it is whole. */
class AnswerLines {
  #isWhole = false;
  /** The line that is not whole yet, and the length of its event. */
  #open: string[] = [];
  #length = 0;

  /** Takes the next part of the stream, cut anywhere. @throws the failure that an event reports. */
  read(part: string): void {
    const [rest = "", ...lines] = part.split(LINE_END);
    this.#add(rest);
    for (const line of lines) {
      this.#endLine();
      this.#add(line);
    }
  }

  /** @throws ModelStreamBrokenError if the stream ends here before the answer does. */
  end(): void {
    this.#endLine();
    if (!this.#isWhole) throw new ModelStreamBrokenError("the stream ended before the answer did");
  }

  #add(text: string): void {
    this.#open.push(text);
    this.#length += text.length;
    if (this.#length > LONGEST_EVENT) throw new NoModelAnswerError("an event of more than 2 MB");
  }

  #endLine(): void {
    const line = this.#open.join("");
    this.#open = [];
    if (line === "") this.#length = 0;
    // Some gateways write a refusal into the stream as it is.
    const refusal = line.startsWith("{") ? readRefusal(line) : undefined;
    if (refusal) throw Object.assign(new Error(refusal.message), { status: refusal.status });
    if (!line.startsWith("data:")) return;
    if (WHOLE.test(line)) this.#isWhole = true;
    else if (/"type":\s*"(?:response\.failed|error)"/.test(line)) throwReported(line.slice("data:".length));
  }
}

/** Throws the error in a failure event of the responses API; other events with these words pass. */
function throwReported(data: string): void {
  const event = recordOf(parsedJson(data));
  const isFailed = event["type"] === "response.failed";
  if (!isFailed && (event["type"] !== "error" || event["error"] !== undefined)) return;
  const report = isFailed ? memberOf(event["response"], "error") : event;
  const [code = "server_error", message = ""] = ["code", "message"].map((name) => textMemberOf(report, name));
  throw Object.assign(new Error(message), { code });
}

/**
 * Sets the limits on a model itself, for packages that take no `fetch`. Its streams have no signs of life, so that
 * the longest silence counts between two pieces.
 */
export function limitSilence(model: BaseChatModel, { requestMs, idleMs }: WaitingLimits): void {
  const stream = model._streamResponseChunks.bind(model);
  model._streamResponseChunks = async function* (messages, options, runManager) {
    const own = new AbortController();
    const signal = options.signal ? AbortSignal.any([options.signal, own.signal]) : own.signal;
    const pieces = stream(messages, { ...options, signal }, runManager);
    try {
      let piece = await within(requestMs, pieces.next(), () => new Error("Request timed out."));
      while (piece.done !== true) {
        yield piece.value;
        piece = await within(idleMs, pieces.next(), () => silence(idleMs));
      }
    } finally {
      own.abort();
    }
  };
}

/** Waits for `work` at most so long. @throws the error of `late` then. */
async function within<T>(milliseconds: number, work: Promise<T>, late: () => Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(late()), milliseconds);
  });
  work.catch(() => undefined); // after the time nobody waits for it
  return Promise.race([work, over]).finally(() => clearTimeout(timer));
}

/**
 * A refusal with its words in `error.message`, where clients look for them; `undefined` if the body is not JSON, or
 * does not have the reason of the refusal.
 */
function readRefusal(text: string) {
  const value = parsedJson(text);
  // Gemini puts its refusal into a list.
  const given = recordOf([value].flat()[0]);
  const { error: inner, ...outer } = given;
  const error = recordOf(inner);
  const words = findWords(given);
  if (words === undefined) return undefined;
  const { param } = error;
  const isUnnamed = typeof param === "string" && /^\w+$/.test(param) && !words.includes(param);
  const message = isUnnamed ? `${words} (${param})` : words;
  const number = memberOf(given["base_resp"], "status_code");
  const code = typeof number === "number" ? { code: `base_resp_${number}` } : {};
  const report: Record<string, unknown> = { ...outer, ...code, ...error };
  const cause = refusalKind([report["code"], report["type"]].map(String), message);
  const codes = [error["code"], given["code"], given["status"]].map(Number);
  const status = codes.find(isRefusalStatus) ?? (cause && CAUSES[cause].status);
  const isUsual = value === given && error["message"] === message;
  return { status, message, body: isUsual ? text : JSON.stringify({ error: { ...report, message } }) };
}

/** Members in which gateways and model servers put the reason, the plainest first. The last are MiniMax's. */
const REASON_MEMBERS = ["message", "detail", "msg", "error", "status_msg", "base_resp"];

function findWords(value: unknown): string | undefined {
  if (typeof value === "string") return value.trim() === "" ? undefined : value;
  if (Array.isArray(value)) return value.map(findWords).find((words) => words !== undefined);
  if (!isRecord(value) || value["status_code"] === 0) return undefined;
  const { loc, msg } = value;
  // Servers made with FastAPI name the member beside their words.
  if (Array.isArray(loc) && typeof msg === "string") return `${loc.join(".")}: ${msg}`;
  const reasons = isRecord(value["error"]) ? REASON_MEMBERS.toReversed() : REASON_MEMBERS;
  return reasons.map((name) => findWords(value[name])).find((words) => words !== undefined);
}
