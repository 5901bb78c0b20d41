import * as fc from "fast-check";
import { describe, expect, expectTypeOf, test } from "vitest";
import { pauseAfter } from "../../../src/agent/models/call-model.ts";
import { failureFacts, modelFailure, withoutSecrets } from "../../../src/agent/models/failure.ts";
import { mediaRefusal } from "../../../src/agent/models/media-limits.ts";
import type { ModelFailureReason } from "../../../src/agent/contracts/state.ts";
import { guardedFetch } from "../../../src/agent/models/stream-guard.ts";
import { ConfigurationError, DeepAgentError, RunFailure } from "../../../src/core/errors.ts";
import type { FailureReason } from "../../../src/runs/run.ts";

const named = (name: string, message: string, facts: object = {}): Error =>
  Object.assign(new Error(message), { name, ...facts });

describe("a failure", () => {
  test("has a reason that runs know", () => {
    expectTypeOf<ModelFailureReason>().toExtend<FailureReason>();
  });

  test("that is one already stays what it is", () => {
    const failure = new RunFailure("max_iterations", "enough");
    expect(modelFailure(failure)).toBe(failure);
    const wrong = new ConfigurationError("model_key_missing", "KEY is not set.");
    expect(modelFailure(wrong)).toMatchObject({ code: "configuration", message: "KEY is not set." });
  });

  test.each([
    new TypeError("x is not a function"),
    new Error("wrapped", { cause: new RangeError("prompt is too long") }),
    new DeepAgentError("some_code", "The credit balance is a field of ours."),
    new ReferenceError("No endpoints found that support image input"),
  ])("of the program itself is not the provider's: %s", (error) => {
    const failed = modelFailure(error);
    expect(failed.code).toBe("internal");
    expect(failed.message).not.toMatch(/provider|refused/);
    expect(failed.message).toContain(error.message);
    expect(mediaRefusal(error)).toBeUndefined();
  });

  test("of a package that says nothing of an answer is quoted as nobody's words", () => {
    const failed = modelFailure(new Error("This model cannot call tools."), "x:y");
    expect(failed).toMatchObject({
      code: "model_error",
      message: "The model x:y could not be asked. This model cannot call tools.",
    });
  });

  test("that a provider caused keeps its facts inside errors of this program", () => {
    const cause = named("APIError", "slow down", { status: 429, headers: { "retry-after": "3" } });
    expect(failureFacts(modelFailure(cause))).toMatchObject({ retryable: true, retryAfterMs: 3000 });
  });

  test("keeps its cause for the log", () => {
    const cause = new Error("x");
    expect(modelFailure(cause).cause).toBe(cause);
  });

  test("of anything thrown has a reason and one line without stack", () => {
    fc.assert(
      fc.property(fc.anything({ withNullPrototype: true }), (thrown) => {
        const { code, message } = modelFailure(thrown);
        expect(code).toMatch(/^model_|^context_overflow$/);
        expect(message).not.toMatch(/\n/);
        expect(message.length).toBeLessThan(800);
      }),
    );
  });
});

describe("secrets", () => {
  test.each([
    "Incorrect API key provided: sk-proj-abcDEF123456. See docs",
    "Incorrect API key provided: abcd*******wxyz.",
    "Authorization: Bearer eyJhbGciOi.J9abc",
    "bad key AIzaSyA1234567890abc",
    "x-api-key: 0123456789abcdef",
    "fetch of https://user:pa55word@host/path failed",
    '{"api_key": "0123456789abcdef"}',
  ])("in '%s' are cut out", (text) => {
    expect(withoutSecrets(text)).not.toMatch(/abcDEF|wxyz|eyJh|SyA12|0123456789|pa55/);
  });

  // Each takes minutes where the work grows with the square of the length.
  test.each(["x", "*", " ", "sk-", "token ", "http://", "x***"])("are looked for in 5 MB of %j", (piece) => {
    const text = piece.repeat(5_000_000 / piece.length);
    expect(withoutSecrets(text).length).toBeLessThan(20_000);
    expect(modelFailure(new Error(text)).message.length).toBeLessThan(1000);
  });

  test("are not cut in two where a long text is cut", () => {
    const text = `${"x ".repeat(8185)}sk-abcDEF1234567890 and more`;
    expect(withoutSecrets(text)).not.toContain("sk-");
  });

  test("leave ordinary words alone", () => {
    const text =
      "The model `key-value` may not use tools: max_tokens must be below 8192 (see https://host/path).";
    expect(withoutSecrets("max_tokens must be below 8192, see https://host/path.")).toBe(
      "max_tokens must be below 8192, see https://host/path.",
    );
    expect(withoutSecrets(text)).toContain("max_tokens must be below 8192");
  });
});

describe("another attempt", () => {
  const status = (code: number, facts: object = {}) => named("APIError", "x", { status: code, ...facts });
  const headers = (value: string) => ({ headers: new Headers({ "retry-after": value }) });

  test.each([
    status(408),
    status(429),
    status(429, headers("3")),
    status(429, headers("600")),
    status(500),
    status(529),
    named("TimeoutError", "Request timed out."),
    named("ModelStreamBrokenError", "cut"),
    named("TypeError", "terminated", { cause: named("Error", "x", { code: "ECONNRESET" }) }),
    named("Error", "Connection error.", {
      cause: named("TypeError", "fetch failed", { cause: named("Error", "x", { code: "ECONNREFUSED" }) }),
    }),
  ])("may be made after %s", (error) => {
    expect(failureFacts(error).retryable).toBe(true);
  });

  test.each([
    status(400),
    status(401),
    status(404),
    status(413),
    status(429, { code: "insufficient_quota" }),
    named("Error", "Request was aborted."),
    named("AbortError", "The operation was aborted"),
    named("NoModelAnswerError", "text/html"),
    named("Error", "Connection error.", { cause: named("Error", "x", { code: "CERT_HAS_EXPIRED" }) }),
    new TypeError("x is not a function"),
  ])("is not made after %s", (error) => {
    expect(failureFacts(error).retryable).toBe(false);
  });

  test.each([
    [{ "retry-after": "3" }, 3000],
    // By the clock of the provider, which is years ahead of this one.
    [{ date: "Mon, 01 Jan 2035 00:00:00 GMT", "retry-after": "Mon, 01 Jan 2035 00:00:03 GMT" }, 3000],
  ])("is asked for by %j", (given, pause) => {
    expect(failureFacts(status(429, { headers: given })).retryAfterMs).toBe(pause);
    expect(failureFacts(status(429, { headers: new Headers(given) })).retryAfterMs).toBe(pause);
  });

  test("waits twice as long each time, by chance half of it, at least as long as the provider asks", () => {
    const pauses = (facts: { retryAfterMs?: number }, chance: number) =>
      [1, 2, 3, 7, 8, 20].map((attempt) =>
        pauseAfter({ retryable: true, ...facts }, { attempt, leftMs: 100_000, chance }),
      );
    expect(pauses({}, 1)).toEqual([500, 1000, 2000, 32_000, 60_000, 60_000]);
    expect(pauses({}, 0)).toEqual([250, 500, 1000, 16_000, 30_000, 30_000]);
    expect(pauses({ retryAfterMs: 40_000 }, 0.5)).toEqual([40_000, 40_000, 40_000, 40_000, 45_000, 45_000]);
  });

  test.each([
    [{ retryable: true }, 3000, 3000],
    [{ retryable: true }, 0, undefined],
    [{ retryable: false }, 3000, undefined],
    [{ retryable: true, retryAfterMs: 3001 }, 3000, undefined],
  ])("after %j with %d ms left waits %s", (facts, leftMs, pause) => {
    expect(pauseAfter(facts, { attempt: 9, leftMs, chance: 0.5 })).toBe(pause);
  });
});

describe("an event stream", () => {
  const answer = (body: string, type = "text/event-stream", status = 200) =>
    guardedFetch(1000, () =>
      Promise.resolve(new Response(body, { status, headers: { "content-type": type } })),
    )("http://x");

  test.each([
    'event: message_stop\ndata: {"type":"message_stop"}\n\n',
    'event: message_stop\r\ndata: {"type": "message_stop"}\r\n\r\n',
    'data: {"choices":[{"finish_reason":"stop"}]}\n\n',
    "data: [DONE]",
    'data: {"type":"response.incomplete"}\n\n',
  ])("that ends with %j is whole", async (body) => {
    expect(await (await answer(body)).text()).toBe(body);
  });

  test.each([
    "",
    'data: {"type":"content_block_delta","delta":{"text":"says \\"type\\":\\"message_stop\\""}}\n\n',
    'data: {"choices":[{"finish_reason":null}]}\n\n',
    ": [DONE] in a comment\n\n",
  ])("that ends with %j is broken", async (body) => {
    const error: unknown = await (await answer(body)).text().catch((thrown: unknown) => thrown);
    expect(modelFailure(error).code).toBe("model_stream_broken");
  });

  test("in any pieces is read the same", async () => {
    const body = 'data: {"text":"ü€😀"}\n\ndata: {"type":"response.completed"}\n\n';
    const bytes = new TextEncoder().encode(body);
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: bytes.length }), { maxLength: 6 }),
        async (cuts) => {
          const places = [0, ...cuts.toSorted((a, b) => a - b), bytes.length];
          const stream = new ReadableStream<Uint8Array>({
            start(controller) {
              for (const [index, place] of places.slice(1).entries())
                controller.enqueue(bytes.slice(places[index], place));
              controller.close();
            },
          });
          const fetch = guardedFetch(1000, () =>
            Promise.resolve(new Response(stream, { headers: { "content-type": "text/event-stream" } })),
          );
          expect(await (await fetch("http://x")).text()).toBe(body);
        },
      ),
    );
  });

  test("is not asked of other answers", async () => {
    expect(await (await answer("{}", "application/json")).text()).toBe("{}");
    expect((await answer("no", "text/event-stream", 500)).status).toBe(500);
  });
});
