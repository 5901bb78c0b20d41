/** Requests of `node:http`, and their answers as those of `fetch`. */
import { once } from "node:events";
import http, { type IncomingMessage, type RequestOptions } from "node:http";
import https from "node:https";

/** The options of Node's own agent for a URL; among them are the proxies of NODE_USE_ENV_PROXY. */
export const agentOptions = ({ protocol }: URL): { proxyEnv?: unknown } =>
  Reflect.get((protocol === "https:" ? https : http).globalAgent, "options") as object; // every agent has some

/**
 * Sends a request that may be silent as long as its caller waits. It has a connection of its own: an idle one may just
 * be closing, and then nobody knows if the request arrived.
 */
export async function sendRequest(
  url: URL,
  options: RequestOptions,
  body?: string | Uint8Array | null,
): Promise<IncomingMessage> {
  const { request, Agent } = url.protocol === "https:" ? https : http;
  const agent = new Agent({ ...agentOptions(url), keepAlive: false, timeout: 0 });
  const outgoing = request(url, { ...options, agent });
  // The reader of the body learns of later errors, too.
  outgoing.on("error", () => {});
  outgoing.end(body);
  const [incoming] = (await once(outgoing, "response")) as [IncomingMessage]; // as Node documents the event
  return incoming;
}

/** The head of an answer for `new Response`, which takes no body unless it `hasBody`. */
export function headOfAnswer(answer: IncomingMessage) {
  const { statusCode: status = 0, statusMessage: statusText = "", headersDistinct } = answer;
  const headers = Object.entries(headersDistinct).flatMap(([name, values = []]) =>
    values.map((value): [string, string] => [name, value]),
  );
  return { hasBody: ![204, 205, 304].includes(status), head: { status, statusText, headers } };
}
