import { createServer } from "node:http";
import { describe, expect, test } from "vitest";
import { failureFacts } from "../../../src/agent/models/failure.ts";
import { resolveModel } from "../../../src/agent/models/resolve.ts";
import { addressOf } from "../../support/http-address.ts";
import { PROVIDERS } from "../../support/wire-thread.ts";

const DATE = "Mon, 01 Jan 2035 00:00:00 GMT";
const NOW = Date.parse(DATE);
const epoch = (seconds: number): number => NOW / 1000 + seconds;

type Case = readonly [headers: Record<string, string>, pause: number | undefined, body?: object];

const CASES: readonly Case[] = [
  [{ "retry-after": "7" }, 7000],
  [{ "retry-after": "1m30s" }, 90_000],
  [{ "retry-after": "Mon, 01 Jan 2035 00:00:03 GMT" }, 3000],
  [{ "retry-after-ms": "250", "retry-after": "3" }, 250],
  // What cannot be meant is passed over.
  [{ "retry-after": "-3" }, undefined],
  [{ "retry-after": "soon" }, undefined],
  [{ "retry-after": "90000" }, undefined],
  [{ "retry-after": "Sun, 31 Dec 2034 00:00:00 GMT" }, undefined],
  [{ "retry-after-ms": "-1", "retry-after": "3" }, 3000],
  [{}, 7660, { message: "Rate limit reached. Please try again in 7.66s. Visit the page." }],
  [{}, 20_000, { message: "Please retry after 20 seconds." }],
  [{}, 90_000, { message: "Too fast: wait 1m30s" }],
  [{}, 432_000, { message: "Please try again in 7m12s." }],
  [{}, 34_075, { message: "Please retry in 34.074824224s." }],
  [{}, 120, { message: "Please try again in 120ms" }],
  [{}, 65_000, { message: "Wait for 1 minute and 5 seconds before the next request" }],
  [{}, undefined, { message: "Please wait a few minutes, or retry 3 times" }],
  [{}, undefined, { message: "You can try again in 3 days" }],
  [
    {},
    34_000,
    { details: [{ "@type": "type.googleapis.com/google.rpc.Help" }, { retryDelay: "34s" }], message: "x" },
  ],
  [{}, 12_000, { metadata: { retry_after_seconds: 12 }, message: "x" }],
  [{}, 30_000, { metadata: { headers: { "X-RateLimit-Reset": String(NOW + 30_000) } }, message: "x" }],
  [{ "x-ratelimit-reset-requests": "6s" }, 6000],
  [{ "x-ratelimit-reset-tokens": "1m2.5s" }, 62_500],
  [{ "x-ratelimit-reset-tokens": "120ms" }, 120],
  [{ "x-ratelimit-reset-requests-day": "330.382867" }, 330_383],
  [{ "x-ratelimit-reset": String(epoch(9)) }, 9000],
  [{ "x-ratelimit-reset": String(NOW + 9000) }, 9000],
  [{ "anthropic-ratelimit-tokens-reset": "2035-01-01T00:00:09Z" }, 9000],
  // The limit that is used up counts, and the longest of several; else the shortest.
  [
    {
      "x-ratelimit-reset-requests": "1s",
      "x-ratelimit-remaining-requests": "9",
      "x-ratelimit-reset-tokens": "20s",
      "x-ratelimit-remaining-tokens": "0",
    },
    20_000,
  ],
  [
    {
      "anthropic-ratelimit-requests-reset": "2035-01-01T00:00:01Z",
      "anthropic-ratelimit-requests-remaining": "0",
      "anthropic-ratelimit-tokens-reset": "2035-01-01T00:00:05Z",
      "anthropic-ratelimit-tokens-remaining": "0",
    },
    5000,
  ],
  [{ "x-ratelimit-reset-requests": "8s", "x-ratelimit-reset-tokens": "20s" }, 8000],
  [{ "retry-after": "3", "x-ratelimit-reset-requests": "8s" }, 3000],
];

const ROWS = CASES.map(([headers, pause, body = {}]) => [headers, pause, body] as const);

test.each(ROWS)("a refusal with the headers %j asks for %s ms", (headers, pause, body) => {
  const error = Object.assign(new Error("slow down"), {
    status: 429,
    headers: new Headers({ date: DATE, ...headers }),
    error: { message: "slow down", ...body },
  });
  expect(failureFacts(error).retryAfterMs).toBe(pause);
});

test("the reset times of limits say nothing about another failure", () => {
  const headers = { date: DATE, "anthropic-ratelimit-tokens-reset": "2035-01-01T00:00:09Z" };
  const error = Object.assign(new Error("x"), { status: 500, headers });
  expect(failureFacts(error).retryAfterMs).toBeUndefined();
});

describe.each(PROVIDERS)("over $protocol", ({ spec }) => {
  test.each(ROWS.filter(([, pause]) => pause !== undefined))(
    "an answer with the headers %j asks for %d ms: %j",
    async (headers, pause, body) => {
      const server = createServer((request, response) => {
        request.resume();
        const error = { type: "rate_limit_error", message: "slow down", ...body };
        response.sendDate = false;
        response.writeHead(429, { "content-type": "application/json", date: DATE, ...headers });
        response.end(JSON.stringify({ type: "error", error }));
      });
      const url = await addressOf(server);
      const env = {
        ANTHROPIC_API_KEY: "test-key-0123456789",
        ANTHROPIC_BASE_URL: url,
        OPENAI_API_KEY: "test-key-0123456789",
        OPENAI_BASE_URL: `${url}/v1`,
      };
      const { model } = await resolveModel({ model: spec, env });
      const error: unknown = await model.invoke("hello").catch((thrown: unknown) => thrown);
      expect(failureFacts(error)).toMatchObject({ status: 429, retryAfterMs: pause, retryable: true });
    },
  );
});
