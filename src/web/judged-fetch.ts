/** `fetch` for addresses that others name: judges each socket, follows redirects itself, and bounds time and size. */
import { headOfAnswer } from "../core/http-request.ts";
import { readBody } from "./body.ts";
import { type Network, WebProblem, followRedirects, request } from "./request.ts";
import { displayHost, urlProblem } from "./url.ts";

/**
 * Makes a `fetch`. It follows three redirects of GET requests without their `authorization`, and returns any other
 * redirect as the answer. It throws WebProblem for an address that may not be asked, and for a late or large answer.
 * `timeoutMs`: for an answer with its body. A body that is sent is a text or a form.
 */
export function judgedFetch({
  timeoutMs = 20_000,
  maxBytes = 256 * 1024,
  ...network
}: Network & { timeoutMs?: number; maxBytes?: number }): (
  url: string | URL,
  sent?: { [Name in "method" | "headers" | "body" | "signal"]?: RequestInit[Name] | undefined },
) => Promise<Response> {
  return async (given, { method = "GET", headers, body, signal } = {}) => {
    const late = AbortSignal.timeout(timeoutMs);
    const sent = Object.fromEntries(new Headers(headers));
    const send = async (to: URL, from = to): ReturnType<typeof request> => {
      const problem = urlProblem(to, network.isNamed);
      if (problem !== undefined)
        throw new WebProblem("refused", `${displayHost(to)} is not asked: ${problem}.`);
      if (to.origin !== from.origin) delete sent["authorization"];
      return request(to, {
        network,
        method,
        headers: { "user-agent": "deepagent-mcp", "accept-encoding": "identity", ...sent },
        signal: signal ? AbortSignal.any([signal, late]) : late,
        ...(typeof body === "string" || body instanceof URLSearchParams ? { body: body.toString() } : {}),
      });
    };
    const url = new URL(given);
    try {
      const { at, incoming } =
        method === "GET" ? await followRedirects(url, 3, send) : { at: url, incoming: await send(url) };
      const { bytes, isCut } = await readBody(incoming, at, maxBytes);
      if (isCut)
        throw new WebProblem("large", `The answer of ${displayHost(at)} has more than ${maxBytes} bytes.`);
      const { hasBody, head } = headOfAnswer(incoming);
      return new Response(hasBody ? bytes : null, head);
    } catch (error) {
      if (late.aborted) throw new WebProblem("late", `${displayHost(url)} did not answer in time.`);
      throw error;
    }
  };
}
