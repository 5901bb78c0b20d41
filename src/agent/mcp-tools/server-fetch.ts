/** `fetch` for other MCP servers: no limit of silence but the caller's, and answers in strict form. */
import { Readable } from "node:stream";
import type { FetchLike, RequestId } from "@modelcontextprotocol/client";
import { headOfAnswer, sendRequest } from "../../core/http-request.ts";
import { type LineChecks, checkedBody, checkedEvents } from "../../core/message-lines.ts";
import { REFUSALS } from "./failure-reasons.ts";
import type { ServerLogin } from "./login.ts";
import { isSessionLost, parseMessages, strictEvent } from "./messages.ts";

/** Makes a `fetch` whose answers pass the checks for a method before they are parsed. */
export function serverFetch(checksBy: (method?: string) => LineChecks): FetchLike {
  return async (url, init = {}) => {
    const response = await patientFetch(new URL(url), init);
    if (init.method === "POST") return strictAnswer(response, init, checksBy);
    return boundedAnswer(response, checksBy());
  };
}

/**
 * Sends requests to the server's own origin with the token of a log-in, and once more with a new token if the server
 * refuses it. Throws an error with the remedy if no token helps.
 */
export function withLogin(fetch: FetchLike, login: ServerLogin, { origin }: URL): FetchLike {
  return async (url, init = {}) => {
    if (new URL(url).origin !== origin) return fetch(url, init);
    const token = await login.token();
    const answer = await fetch(url, authorized(init, token));
    if (answer.status === 403) {
      // The permissions that the call lacks.
      const wanted = /^(?=.*\berror="?insufficient_scope\b).*\bscope="([^"]{1,500})"/i;
      const scope = wanted.exec(answer.headers.get("www-authenticate") ?? "")?.[1];
      if (scope === undefined) return answer;
      discard(answer);
      throw await login.needsScope(scope);
    }
    if (answer.status !== 401) return answer;
    // The server may mean the session, which it has lost, and not the token.
    const hasSession = new Headers(init.headers).has("mcp-session-id");
    if (hasSession && isSessionLost(answer.status, await answer.clone().text())) return answer;
    discard(answer);
    return fetch(url, authorized(init, await login.renewed(token)));
  };
}

/** An answer that nobody reads would keep its connection. */
const discard = ({ body }: Response): void => void body?.cancel().catch(() => undefined);

const authorized = (init: RequestInit, token: string | undefined): RequestInit => {
  const headers = new Headers(init.headers);
  if (token !== undefined) headers.set("authorization", `Bearer ${token}`);
  return { ...init, headers };
};

/** Makes a request that may be silent as long as its caller waits; the `fetch` of Node ends it after 300 s. */
async function patientFetch(
  url: URL,
  { method = "GET", headers, body, signal }: RequestInit,
): Promise<Response> {
  // Some gateways refuse requests without a user agent, and compress answers unless asked not to.
  const sent = {
    "user-agent": "deepagent-mcp",
    "accept-encoding": "identity",
    ...Object.fromEntries(new Headers(headers)),
  };
  const text = body as string | null | undefined; // the package sends JSON and forms
  const incoming = await sendRequest(url, { method, headers: sent, ...(signal ? { signal } : {}) }, text);
  const { hasBody, head } = headOfAnswer(incoming);
  if (!hasBody) incoming.resume();
  // Both types stand for a stream of bytes.
  const stream = hasBody ? (Readable.toWeb(incoming) as ReadableStream<Uint8Array>) : null;
  return new Response(stream, head);
}

async function strictAnswer(
  response: Response,
  sent: RequestInit,
  checksBy: (method?: string) => LineChecks,
): Promise<Response> {
  const message: unknown = typeof sent.body === "string" ? JSON.parse(sent.body) : undefined;
  const { id: ownId, method } = Object(message) as { id?: RequestId; method?: string }; // the package wrote it
  // An answer has no method, and a notification no id.
  const id = method === undefined ? undefined : ownId;
  const { ok, status, statusText, headers } = response;
  const bounded = boundedAnswer(response, checksBy(method), id);
  if (ok && isEvents(response)) return bounded;
  const text = await bounded.text();
  // Nobody waits for the answer to a notification, and nobody should wait for one to a probe.
  if (id === undefined && !ok && status !== 404 && !REFUSALS.has(status))
    return new Response(null, { status: 202 });
  if (method === "server/discover" && ok && text === "") return new Response(null, { status: 404 });
  const messages =
    id === undefined || REFUSALS.has(status) ? undefined : parseMessages(text, ok ? id : undefined);
  const isLost = new Headers(sent.headers).has("mcp-session-id") && isSessionLost(status, text);
  const isAnswer = ok || (!isLost && messages?.some((message) => "error" in message && message.id === id));
  const others = new Headers(headers);
  if (!messages || !isAnswer) return new Response(text || null, { status, statusText, headers: others });
  others.set("content-type", "application/json");
  return new Response(JSON.stringify(messages.length === 1 ? messages[0] : messages), { headers: others });
}

const mediaType = ({ headers }: Response): string =>
  (headers.get("content-type") ?? "").replace(/;.*/, "").trim().toLowerCase();

const isEvents = (response: Response): boolean => mediaType(response) === "text/event-stream";

/** Passes on events in strict form, a message if it is not too large, and the page of a proxy if it is short. */
function boundedAnswer(response: Response, checks: LineChecks, id?: RequestId): Response {
  const { body, ok, status, statusText, headers } = response;
  if (body === null) return response;
  const isPage = !ok || mediaType(response) === "text/html";
  const strict = (event: Uint8Array) => Buffer.from(strictEvent(new TextDecoder().decode(event), id));
  const stream =
    ok && isEvents(response)
      ? body
          .pipeThrough(checkedEvents(checks))
          .pipeThrough(new TransformStream({ transform: (event, out) => out.enqueue(strict(event)) }))
      : body.pipeThrough(checkedBody(isPage ? { ...checks, maxBytes: 64 * 1024 } : checks));
  return new Response(stream, { status, statusText, headers });
}
