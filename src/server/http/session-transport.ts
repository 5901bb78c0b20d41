/** The transport of one 2025-era session on one server. Several servers may have one for the same session. */
import { AsyncLocalStorage } from "node:async_hooks";
import type { ServerResponse } from "node:http";
import { getRequestListener } from "@hono/node-server";
import {
  type AuthInfo,
  type EventStore,
  type JSONRPCMessage,
  type JSONRPCRequest,
  type RequestId,
  type WebStandardStreamableHTTPServerTransportOptions as SessionTransportOptions,
  WebStandardStreamableHTTPServerTransport,
  isJSONRPCNotification,
  isJSONRPCRequest,
  isJSONRPCResponse,
} from "@modelcontextprotocol/server";
import type { StoredSession } from "../../runs/server-ports.ts";
import { NO_ID, type OpenCall, frameOf } from "./event-store.ts";
import type { AuthenticatedRequest } from "./stateless.ts";

/**
 * The request that a message belongs to while a transport stores it, with the whole `call` if its opening event keeps
 * that for other servers. One for all transports: before Node 24 each that was ever used makes every promise of the
 * process slower, for as long as the process lives.
 */
const storingFor = new AsyncLocalStorage<{
  id?: RequestId | undefined;
  call?: JSONRPCRequest | undefined;
}>();

/** The id of requests that another server answered and that are repeated here. Their answers go to nobody. */
const REPEATED = "repeated";
const POST = { accept: "application/json, text/event-stream", "content-type": "application/json" };

/**
 * Streamable HTTP as the SDK has it, on Node. Where several servers serve a session, each asks its questions
 * under ids of its own, so that no answer is taken for that to another question.
 */
export class SessionTransport extends WebStandardStreamableHTTPServerTransport {
  readonly #server: string | undefined;
  /** A request of each stream that is answered here; by it the SDK finds the stream. */
  readonly #requestOf = new Map<string, RequestId>();
  readonly #events: EventStore;
  #isRestoring = false;
  /** Requests by GET that are open here. */
  #listening = 0;

  /** `server`: names this server among those that serve the session. Absent: it is the only one. */
  constructor(
    server: string | undefined,
    { eventStore, ...options }: SessionTransportOptions & { eventStore: EventStore },
  ) {
    const storeEvent: EventStore["storeEvent"] = async (stream, message) => {
      if (this.#isRestoring) return NO_ID;
      const { id, call } = storingFor.getStore() ?? {};
      if (isJSONRPCResponse(message)) this.#requestOf.delete(stream);
      else if (id !== undefined) this.#requestOf.set(stream, id);
      if (call === undefined || "jsonrpc" in message) return eventStore.storeEvent(stream, message);
      // Stored in the place of the empty message that opens a stream and is not sent either.
      return eventStore.storeEvent(stream, { call } as unknown as JSONRPCMessage);
    };
    super({ ...options, eventStore: { ...eventStore, storeEvent } });
    this.#server = server;
    this.#events = eventStore;
  }

  /**
   * Serves one request of Node. Notifies a client that starts to listen here about the resources that it `missed`,
   * and answers a batch with the `errors` about the messages removed from it.
   */
  async serve(
    request: AuthenticatedRequest,
    response: ServerResponse,
    body: unknown,
    { missed = [], errors = [] }: { missed?: readonly string[] | undefined; errors?: readonly object[] } = {},
  ): Promise<void> {
    if (request.method === "GET") {
      this.#listen(response);
      await this.#endEarlier(request.headers["last-event-id"]);
    }
    const options = { authInfo: request.auth, parsedBody: body };
    const first = [body].flat().find((message) => isJSONRPCRequest(message));
    const call = this.#server === undefined || first !== body ? undefined : first;
    await onWeb(async (web) => {
      const answer = await storingFor.run({ id: first?.id, call }, () => this.handleRequest(web, options));
      for (const uri of missed)
        await this.send({ jsonrpc: "2.0", method: "notifications/resources/updated", params: { uri } });
      if (errors.length === 0 || !answer.ok) return answer;
      if (answer.body === null) return Response.json(errors);
      const frames = errors.map((error) => `event: message\ndata: ${JSON.stringify(error)}\n\n`);
      return preceded(answer, frames);
    })(request, response);
  }

  /**
   * Ends the stream that a new one takes the place of: a proxy may hold it open while its client is gone. The SDK
   * would refuse the new one.
   */
  async #endEarlier(lastEventId: string | string[] | undefined): Promise<void> {
    if (typeof lastEventId !== "string" || lastEventId === "") return this.closeStandaloneSSEStream();
    const stream = await this.#events.getStreamIdForEventId?.(lastEventId);
    // The SDK's name for the stream that belongs to no request.
    if (stream === "_GET_stream") this.closeStandaloneSSEStream();
    const id = stream === undefined ? undefined : this.#requestOf.get(stream);
    if (id !== undefined) this.closeSSEStream(id);
  }

  /** True if this transport answers a call on this stream. */
  isServing(stream: string): boolean {
    return this.#requestOf.has(stream);
  }

  /**
   * Serves a request by GET for the rest of a stream whose call nobody answers any more: sends the stored events, and
   * answers the call again. Handlers find the run that the first call started, and repeat the open requests.
   */
  async serveAgain(request: AuthenticatedRequest, response: ServerResponse, { call, rest }: OpenCall) {
    this.#listen(response);
    await onWeb(async (web) => {
      const headers = new Headers(web.headers);
      for (const [name, value] of Object.entries(POST)) headers.set(name, value);
      const again = new Request(web.url, { method: "POST", headers, signal: web.signal });
      const options = { authInfo: request.auth, parsedBody: call };
      const answer = await storingFor.run({ id: call.id, call }, () => this.handleRequest(again, options));
      return answer.ok ? preceded(answer, rest.map(frameOf)) : answer;
    })(request, response);
  }

  /** Restores the state of the server instance after earlier requests to other servers; nothing is sent. */
  async restore({ opening, subscriptions }: StoredSession, auth: AuthInfo | undefined): Promise<void> {
    this.#isRestoring = true;
    try {
      const request = new Request("http://localhost/mcp", { method: "POST", headers: POST });
      const options = { authInfo: auth, parsedBody: JSON.parse(opening) as unknown };
      const answer = await this.handleRequest(request, options);
      await answer.text();
    } finally {
      this.#isRestoring = false;
    }
    this.initialized();
    for (const uri of subscriptions)
      this.onmessage?.({ jsonrpc: "2.0", id: REPEATED, method: "resources/subscribe", params: { uri } });
  }

  /** Initializes the server instance, whichever server gets the client's notification. */
  initialized(): void {
    this.onmessage?.({ jsonrpc: "2.0", method: "notifications/initialized" });
  }

  /** Passes answers to the server instance under its own ids. Call it once that is connected. */
  connected(): void {
    const receive = this.onmessage;
    if (this.#server === undefined) return;
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the SDK object is not an event target
    this.onmessage = (message, extra) => {
      if (!isJSONRPCResponse(message)) return receive?.(message, extra);
      const [server, number] = String(message.id).split("-");
      if (server === this.#server && number !== undefined)
        receive?.({ ...message, id: Number(number) }, extra);
    };
  }

  override async send(message: JSONRPCMessage, options?: { relatedRequestId?: RequestId }): Promise<void> {
    if (isJSONRPCResponse(message) && message.id === REPEATED) return;
    const isShared = this.#server !== undefined;
    // The server with the client's stream notifies it.
    const isChange = isJSONRPCNotification(message) && message.method.startsWith("notifications/resources/");
    if (isShared && isChange && this.#listening === 0) return;
    const sent = isShared ? this.#marked(message) : message;
    return storingFor.run({ id: options?.relatedRequestId }, () => super.send(sent, options));
  }

  #marked(message: JSONRPCMessage): JSONRPCMessage {
    if (isJSONRPCRequest(message)) return { ...message, id: `${this.#server}-${message.id}` };
    if (!(isJSONRPCNotification(message) && message.method === "notifications/cancelled")) return message;
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
export const askerOf = (id: unknown): string | undefined => /^([0-9a-f]{12})-\d{1,10}$/.exec(String(id))?.[1];

function preceded(answer: Response, events: readonly string[]): Response {
  const joined = new TransformStream<Uint8Array, Uint8Array>({
    start: (controller) => controller.enqueue(new TextEncoder().encode(events.join(""))),
  });
  return new Response(answer.body?.pipeThrough(joined), answer);
}

const onWeb = (handle: (request: Request) => Promise<Response>) =>
  getRequestListener(handle, { overrideGlobalObjects: false });
