import type { IncomingMessage, ServerResponse } from "node:http";
import { bytesShapeProblem } from "../../core/json-shape.ts";
import { MAX_MESSAGE_BYTES, TOO_LONG } from "../message-limit.ts";

export type Body =
  | { ok: true; value: unknown }
  | { ok: false; status: number; code: number; message: string };

/** Reads a request body as JSON. Of a body over the limit no more than the limit is held. */
export async function readJsonBody(request: IncomingMessage): Promise<Body> {
  const tooLong: Body = { ok: false, status: 413, code: -32_000, message: TOO_LONG };
  if (Number(request.headers["content-length"]) > MAX_MESSAGE_BYTES) return tooLong;
  const chunks: Buffer[] = [];
  let bytes = 0;
  // The stream has no encoding set, so its chunks are buffers. Destroyed, it would take the answer along.
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    bytes += chunk.byteLength;
    if (bytes > MAX_MESSAGE_BYTES) return tooLong;
    chunks.push(chunk);
  }
  const body = Buffer.concat(chunks);
  const problem = bytesShapeProblem(body);
  if (problem !== undefined) return { ok: false, status: 400, code: -32_600, message: problem };
  try {
    const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
    return { ok: true, value };
  } catch {
    return {
      ok: false,
      status: 400,
      code: -32700,
      message: "Parse error: the request body is not valid JSON in UTF-8",
    };
  }
}

/** Answers with a small response that was made for the web's own interface. */
export async function sendResponse(response: ServerResponse, answer: Response): Promise<void> {
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  response.end(await answer.text());
}

/** Answers with a JSON-RPC error that belongs to no request. */
export function sendError(response: ServerResponse, status: number, code: number, message: string): void {
  if (response.headersSent) {
    response.end();
    return;
  }
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify({ jsonrpc: "2.0", error: { code, message }, id: null }));
  // A connection that is closed with something unread in it is reset, and a client that still sends may lose the
  // answer: what is left of a refused body is received, within the time a request has, and thrown away.
  response.req.resume();
}
