/** Sends one message over HTTP. */
import { defined } from "../core/unknown.ts";
import { errorMessage, isAbortError } from "../core/errors.ts";
import type { SendResult } from "../runs/news.ts";
import { type Network, request, secondsToWait } from "../web/request.ts";
import { displayHost } from "../web/url.ts";

export interface Post {
  url: URL;
  network: Network;
  headers?: Readonly<Record<string, string>>;
  /** JSON. */
  body: string;
  signal: AbortSignal;
  /** Statuses after which no further attempt can succeed. Default: 410, the receiver is gone. */
  final?: ReadonlySet<number>;
}

/**
 * Posts JSON. Every status but 2xx is a failure, redirects included: they would take the message elsewhere. The
 * answer's body is not read.
 */
export async function post({ final = new Set([410]), ...sent }: Post): Promise<SendResult> {
  const { url, signal } = sent;
  try {
    const answer = await postJson(sent);
    answer.destroy();
    const { statusCode: status = 0 } = answer;
    if (status >= 200 && status < 300) return { ok: true };
    const seconds = secondsToWait(answer.headers["retry-after"]);
    const afterMs = seconds === undefined ? undefined : Number(seconds) * 1000;
    const problem = `${displayHost(url)} answered ${status}`;
    return { ok: false, problem, ...(final.has(status) && { isFinal: true }), ...defined({ afterMs }) };
  } catch (error) {
    if (isAbortError(error) || signal.aborted) throw error;
    return { ok: false, problem: errorMessage(error), isUnreachable: true };
  }
}

/** Posts JSON, and returns the answer with its unread body. */
export const postJson = ({ url, headers, ...options }: Omit<Post, "final">) =>
  request(url, {
    ...options,
    headers: { ...headers, "content-type": "application/json", "user-agent": "deepagent-mcp" },
    method: "POST",
  });
