/** `fetch` for addresses that others name: judges each socket, follows redirects itself, and bounds time and size. */
import type { IncomingMessage } from "node:http";
import { headOfAnswer } from "../core/http-answer.ts";
import { type Network, WebProblem, asProblem, request } from "./request.ts";
import { hostOf, urlProblem } from "./url.ts";

export interface JudgedFetchOptions extends Network {
  /** Milliseconds for an answer with its body. Default 20 s. */
  timeoutMs?: number;
  /** Bytes of a body. Default 256 KiB. */
  maxBytes?: number;
}

/** The part of `RequestInit` that is used here. A body is a text or a form. */
interface Sent {
  method?: string | undefined;
  headers?: RequestInit["headers"];
  body?: RequestInit["body"];
  signal?: AbortSignal | null | undefined;
}

const MOST_REDIRECTS = 3;

/**
 * Makes a `fetch`. It follows redirects of GET requests without their `authorization`, and gives any other redirect as
 * the answer. It throws WebProblem for an address that may not be asked, and for an answer that is late or too large.
 */
export function judgedFetch({
  timeoutMs = 20_000,
  maxBytes = 256 * 1024,
  ...network
}: JudgedFetchOptions): (url: string | URL, sent?: Sent) => Promise<Response> {
  return async (given, { method = "GET", headers, body, signal } = {}) => {
    const late = AbortSignal.timeout(timeoutMs);
    const sent = Object.fromEntries(new Headers(headers));
    let url = new URL(given);
    for (let redirects = 0; ; redirects += 1) {
      const problem = urlProblem(url, network.isNamed);
      if (problem !== undefined) throw new WebProblem("refused", `${hostOf(url)} is not asked: ${problem}.`);
      try {
        const answer = await request(url, {
          network,
          method,
          headers: { "user-agent": "deepagent-mcp", "accept-encoding": "identity", ...sent },
          signal: signal ? AbortSignal.any([signal, late]) : late,
          ...(typeof body === "string" || body instanceof URLSearchParams ? { body: body.toString() } : {}),
        });
        const next = method === "GET" ? redirectOf(answer, url) : undefined;
        if (next === undefined) return await responseOf(answer, url, maxBytes);
        answer.destroy();
        if (redirects === MOST_REDIRECTS)
          throw new WebProblem("redirects", `${hostOf(url)} redirects too often.`);
        if (next.origin !== url.origin) delete sent["authorization"];
        url = next;
      } catch (error) {
        if (late.aborted) throw new WebProblem("late", `${hostOf(url)} did not answer in time.`);
        throw asProblem(error, url);
      }
    }
  };
}

function redirectOf({ statusCode = 0, headers }: IncomingMessage, from: URL): URL | undefined {
  const isRedirect = [301, 302, 303, 307, 308].includes(statusCode);
  return isRedirect && headers.location !== undefined && URL.canParse(headers.location, from.href)
    ? new URL(headers.location, from)
    : undefined;
}

async function responseOf(answer: IncomingMessage, url: URL, maxBytes: number): Promise<Response> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBytes) {
      answer.destroy();
      throw new WebProblem("large", `The answer of ${hostOf(url)} has more than ${maxBytes} bytes.`);
    }
    chunks.push(chunk);
  }
  const { hasBody, head } = headOfAnswer(answer);
  return new Response(hasBody ? Buffer.concat(chunks) : null, head);
}
