import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { anthropic } from "./wire-server-anthropic.ts";
import { openaiEmbeddings } from "./wire-server-embeddings.ts";
import { openaiChat } from "./wire-server-openai.ts";
import { openaiResponses } from "./wire-server-responses.ts";
import {
  type Fault,
  isFault,
  isWireError,
  type Json,
  record,
  type WireAnswer,
  type WireError,
  type WireProtocol,
  type WireReply,
  type WireRequest,
} from "./wire-server-protocol.ts";
import { onTestFinished } from "vitest";

export type { WireReply, WireRequest } from "./wire-server-protocol.ts";

/** A server that ends with the test. */
export async function wireServer(reply: Parameters<typeof startWireServer>[0]): Promise<WireServer> {
  const server = await startWireServer(reply);
  onTestFinished(() => server.close());
  return server;
}

export interface WireServer {
  /** `http://127.0.0.1:port`. */
  readonly url: string;
  /** Variables that point a provider's package here. */
  env(provider: "anthropic" | "openai"): Record<string, string | undefined>;
  /** Requests that passed the provider's rules, in order. */
  readonly requests: WireRequest[];
  /** Why requests were refused by the provider's rules, in order. */
  readonly refusals: string[];
  /** Answers whose connection ended before they were whole. */
  readonly abandoned: number;
  close(): Promise<void>;
}

export const WIRE_KEY = "wire-test-key-0123456789";

const PROTOCOLS: Readonly<Record<string, WireProtocol>> = {
  "/v1/messages": anthropic,
  "/v1/chat/completions": openaiChat,
  "/v1/responses": openaiResponses,
  "/v1/embeddings": openaiEmbeddings,
};

/**
 * A server on 127.0.0.1 that speaks the Anthropic Messages, OpenAI Chat Completions and OpenAI Responses
 * protocols, with and without streaming, and OpenAI Embeddings. What it answers comes from `reply`; a request that breaks the
 * provider's rules is refused with the provider's error before `reply` sees it.
 */
export async function startWireServer(
  reply: (request: WireRequest) => WireReply | Promise<WireReply>,
): Promise<WireServer> {
  const requests: WireRequest[] = [];
  const refusals: string[] = [];
  let abandoned = 0;
  const server = createServer((incoming, response) => {
    response.on("close", () => {
      if (!response.writableFinished) abandoned += 1;
    });
    serve(incoming, response).catch((error: unknown) => {
      response.writeHead(500).end(String(error));
    });
  });

  async function serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    // Anthropic asks for features to come by a query.
    const protocol = PROTOCOLS[incoming.url?.split("?")[0] ?? ""];
    const body = await readBody(incoming);
    if (protocol === undefined || incoming.method !== "POST") {
      response
        .writeHead(404, { "content-type": "application/json" })
        .end('{"error":{"message":"Not Found"}}');
      return;
    }
    const refused =
      protocol.keyProblem(incoming.headers, WIRE_KEY) ??
      bodyProblem(body) ??
      protocol.problem(record(parse(body)));
    if (refused !== undefined) {
      refusals.push(refused.message);
      sendError(response, protocol, refused);
      return;
    }
    const request = protocol.read(record(parse(body)), requests.length);
    requests.push(request);
    const answer = await reply(request);
    if (isFault(answer)) await sendFault(response, protocol, request, answer);
    else if (isWireError(answer)) sendError(response, protocol, answer);
    else await sendAnswer(response, protocol, request, answer);
  }

  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // a TCP server has such an address
  return {
    url,
    requests,
    refusals,
    get abandoned() {
      return abandoned;
    },
    env: (provider) =>
      provider === "anthropic"
        ? { ANTHROPIC_API_KEY: WIRE_KEY, ANTHROPIC_BASE_URL: url }
        : { OPENAI_API_KEY: WIRE_KEY, OPENAI_BASE_URL: `${url}/v1` },
    close: () => close(server),
  };
}

async function sendAnswer(
  response: ServerResponse,
  protocol: WireProtocol,
  request: WireRequest,
  answer: WireAnswer,
): Promise<void> {
  if (!request.stream) {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify(protocol.body(request, answer)));
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
  const events = protocol.events(request, answer);
  const half = Math.ceil(events.length / 2);
  for (const event of events.slice(0, half)) response.write(event);
  await answer.rest;
  for (const event of events.slice(half)) response.write(event);
  response.end();
}

function sendError(response: ServerResponse, protocol: WireProtocol, error: WireError): void {
  response.writeHead(error.status, { "content-type": "application/json", ...error.headers });
  response.end(JSON.stringify(protocol.errorBody(error)));
}

/** Breaks the answer in the way the fault says; of a stream, about half is sent before. */
async function sendFault(
  response: ServerResponse,
  protocol: WireProtocol,
  request: WireRequest,
  fault: Fault,
): Promise<void> {
  if (fault.fault === "hang") return;
  if (fault.fault === "refuse") {
    response.destroy();
    return;
  }
  const answer = "answer" in fault ? fault.answer : undefined;
  const text = "This answer is going to be cut somewhere in its middle.";
  const events = protocol.events(request, answer ?? { text });
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const event of events.slice(0, Math.ceil(events.length / 2))) {
    await new Promise<void>((resolve) => response.write(event, () => resolve()));
  }
  if (fault.fault === "cut") response.destroy();
  if (fault.fault === "end") response.end();
  if (fault.fault === "report") response.end(protocol.errorEvent(fault.error));
}

async function readBody(incoming: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of incoming) pieces.push(piece as Buffer); // no encoding is set on the stream
  return Buffer.concat(pieces).toString("utf8");
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

/** Both services parse strictly: half a surrogate pair is not JSON to them. */
function bodyProblem(body: string): WireError | undefined {
  const value = parse(body);
  if (value === undefined) return { status: 400, message: "The request body is not valid JSON." };
  const broken = (part: unknown): boolean =>
    typeof part === "string"
      ? /\p{Surrogate}/u.test(part)
      : typeof part === "object" && part !== null && Object.values(part as Json).some(broken);
  return broken(value)
    ? { status: 400, message: "The request body is not valid JSON: no low surrogate in string." }
    : undefined;
}

async function close(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
}
