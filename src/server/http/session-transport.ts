/** The transport of one 2025-era session on one server. Several servers may have one for the same session. */
import { AsyncLocalStorage } from "node:async_hooks";
import type { ServerResponse } from "node:http";
import { getRequestListener } from "@hono/node-server";
import {
  type AuthInfo,
  type EventStore,
  type HandleRequestOptions,
  type JSONRPCMessage,
  type JSONRPCNotification,
  type JSONRPCRequest,
  type RequestId,
  WebStandardStreamableHTTPServerTransport,
  type WebStandardStreamableHTTPServerTransportOptions,
  isJSONRPCNotification,
  isJSONRPCRequest,
  isJSONRPCResponse,
} from "@modelcontextprotocol/server";
import type { StoredSession } from "../../runs/server-ports.ts";
import { NO_ID, type OpenCall, isOpening } from "./event-store.ts";
import type { AuthenticatedRequest } from "./stateless.ts";

export interface SessionTransportOptions extends WebStandardStreamableHTTPServerTransportOptions {
  /** Names this server among those that serve the session. Absent: it is the only one. */
  server: string | undefined;
  eventStore: EventStore;
}

/** The id of requests that another server answered and that are repeated here. Their answers go to nobody. */
const REPEATED = "repeated";
const POST = { accept: "application/json, text/event-stream", "content-type": "application/json" };

/**
 * Streamable HTTP as the SDK has it, on Node. Where several servers serve a session, each asks its questions
 * under ids of its own, so that no answer is taken for that to another question.
 */
export class SessionTransport extends WebStandardStreamableHTTPServerTransport {
  readonly #server: string | undefined;
  /** The call whose stream is being opened. */
  readonly #call = new AsyncLocalStorage<JSONRPCRequest>();
  /** Streams of calls that are answered here. */
  readonly #serving = new Set<string>();
  #isRestoring = false;
  /** Requests by GET that are open here. */
  #listening = 0;

  constructor({ server, eventStore, ...options }: SessionTransportOptions) {
    const storeEvent: EventStore["storeEvent"] = async (stream, message) => {
      if (this.#isRestoring) return NO_ID;
      if (isJSONRPCResponse(message)) this.#serving.delete(stream);
      const call = isOpening(message) ? this.#call.getStore() : undefined;
      if (call === undefined) return eventStore.storeEvent(stream, message);
      this.#serving.add(stream);
      // Stored in the place of an empty message, which is not sent either.
      return eventStore.storeEvent(stream, { call } as unknown as JSONRPCMessage);
    };
    super({ ...options, eventStore: { ...eventStore, storeEvent } });
    this.#server = server;
  }

  /** Serves one request of Node. Tells a client that begins to listen here about resources that it `missed`. */
  async serve(
    request: AuthenticatedRequest,
    response: ServerResponse,
    body: unknown,
    missed: readonly string[] = [],
  ): Promise<void> {
    if (request.method === "GET") this.#listen(response);
    const options = { ...authOf(request), parsedBody: body };
    await onWeb(request, response, async (web) => {
      if (this.#server !== undefined && isJSONRPCRequest(body)) {
        return this.#call.run(body, () => this.handleRequest(web, options));
      }
      const answer = await this.handleRequest(web, options);
      for (const uri of missed) {
        await this.send({ jsonrpc: "2.0", method: "notifications/resources/updated", params: { uri } });
      }
      return answer;
    });
  }

  /** Whether a call is answered here on this stream. */
  isServing(stream: string): boolean {
    return this.#serving.has(stream);
  }

  /**
   * Serves a request by GET for the rest of a stream whose call nobody answers any more: sends what is stored, and
   * answers the call again. Handlers find the run that the first call started, and ask again what is open.
   */
  async serveAgain(
    request: AuthenticatedRequest,
    response: ServerResponse,
    { call, rest }: OpenCall,
  ): Promise<void> {
    this.#listen(response);
    await onWeb(request, response, async (web) => {
      const headers = new Headers(web.headers);
      for (const [name, value] of Object.entries(POST)) headers.set(name, value);
      const again = new Request(web.url, { method: "POST", headers, signal: web.signal });
      const options = { ...authOf(request), parsedBody: call };
      const answer = await this.#call.run(call, () => this.handleRequest(again, options));
      const before = rest
        .map(({ id, message }) => `event: message\nid: ${id}\ndata: ${message}\n\n`)
        .join("");
      const joined = new TransformStream<Uint8Array, Uint8Array>({
        start: (controller) => controller.enqueue(new TextEncoder().encode(before)),
      });
      return answer.ok ? new Response(answer.body?.pipeThrough(joined), answer) : answer;
    });
  }

  /** Has the server instance know what it was told before, by other servers' requests; nothing is sent. */
  async restore({ opening, subscriptions }: StoredSession, auth: AuthInfo | undefined): Promise<void> {
    this.#isRestoring = true;
    try {
      const request = new Request("http://localhost/mcp", { method: "POST", headers: POST });
      const answer = await this.handleRequest(request, {
        ...authOf({ auth }),
        parsedBody: JSON.parse(opening),
      });
      await answer.text();
    } finally {
      this.#isRestoring = false;
    }
    this.initialized();
    for (const uri of subscriptions) {
      this.receive({ jsonrpc: "2.0", id: REPEATED, method: "resources/subscribe", params: { uri } });
    }
  }

  /** Has the server instance begin, whichever server the client tells that it has. */
  initialized(): void {
    this.onmessage?.({ jsonrpc: "2.0", method: "notifications/initialized" });
  }

  /** Takes a message that came to another server. */
  receive(message: JSONRPCMessage): void {
    this.onmessage?.(isJSONRPCRequest(message) ? { ...message, id: REPEATED } : message);
  }

  /** Makes the server instance see answers under the ids that it gave. Call it once that is connected. */
  connected(): void {
    const receive = this.onmessage;
    if (this.#server === undefined) return;
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the SDK object is no event target
    this.onmessage = (message, extra) => {
      if (!isJSONRPCResponse(message)) return receive?.(message, extra);
      const [server, number] = String(message.id).split("-");
      if (server === this.#server && number !== undefined)
        receive?.({ ...message, id: Number(number) }, extra);
    };
  }

  override async send(message: JSONRPCMessage, options?: { relatedRequestId?: RequestId }): Promise<void> {
    if (this.#server === undefined) return super.send(message, options);
    if (isJSONRPCResponse(message) && message.id === REPEATED) return;
    // The server that has the client's stream tells it.
    if (isChange(message) && this.#listening === 0) return;
    return super.send(this.#marked(message), options);
  }

  #marked(message: JSONRPCMessage): JSONRPCMessage {
    if (isJSONRPCRequest(message)) return { ...message, id: `${this.#server}-${message.id}` };
    if (!isCancellation(message)) return message;
    const { params } = message;
    return {
      ...message,
      params: { ...params, requestId: `${this.#server}-${String(params?.["requestId"])}` },
    };
  }

  #listen(response: ServerResponse): void {
    this.#listening += 1;
    response.once("close", () => (this.#listening -= 1));
  }
}

/** The server that asked the question with this id. `undefined`: no server of ours did. */
export const askerOf = (id: unknown): string | undefined => MARKED.exec(String(id))?.[1];

/** Whether the client takes a request back. */
export const isCancellation = (message: unknown): message is JSONRPCNotification =>
  isJSONRPCNotification(message) && message.method === "notifications/cancelled";

const MARKED = /^([0-9a-f]{12})-\d{1,10}$/;

const isChange = (message: JSONRPCMessage): boolean =>
  isJSONRPCNotification(message) && message.method.startsWith("notifications/resources/");

const authOf = ({ auth }: { auth?: AuthInfo | undefined }): HandleRequestOptions =>
  auth === undefined ? {} : { authInfo: auth };

async function onWeb(
  request: AuthenticatedRequest,
  response: ServerResponse,
  handle: (request: Request) => Promise<Response>,
): Promise<void> {
  await getRequestListener(handle, { overrideGlobalObjects: false })(request, response);
}
