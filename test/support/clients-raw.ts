import { request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { text } from "node:stream/consumers";

export interface RawRequest {
  method?: string;
  headers?: Record<string, string>;
  body?: string | Buffer;
  chunked?: boolean;
}

export interface RawResponse {
  status: number;
  headers: IncomingHttpHeaders;
  body: string;
}

/** A request with any headers: fetch would set Host and Origin itself. */
export async function send(url: string, { method = "POST", headers = {}, body = "", chunked }: RawRequest) {
  return new Promise<RawResponse>((resolve, reject) => {
    const request = httpRequest(url, {
      method,
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        ...(chunked || body === "" ? {} : { "content-length": String(Buffer.byteLength(body)) }),
        ...headers,
      },
    });
    let isAnswered = false;
    request.on("response", (response) => {
      isAnswered = true;
      text(response).then(
        (responseBody) =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: responseBody }),
        reject,
      );
    });
    // After an early refusal the rest of the body may not be taken; the answer is what counts, if there is one.
    request.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE" && error.code !== "ECONNRESET") reject(error);
    });
    request.on("close", () => {
      if (!isAnswered) reject(new Error("the connection was closed without an answer"));
    });
    request.end(body);
  });
}

/** The body that opens a session of 2025-11-25. */
export const INITIALIZE = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "raw", version: "1" } },
});

/** The headers of requests in the session that this answer opened. */
export const sessionHeaders = ({ headers }: RawResponse) => ({
  "mcp-session-id": String(headers["mcp-session-id"]),
  "mcp-protocol-version": "2025-11-25",
});

export const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
