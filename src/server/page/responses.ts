/** Writes the answers of the page server, and reads its forms. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Html } from "../views/html.ts";
import type { Asset } from "./assets.ts";

/** Nothing from elsewhere, nothing inline, no frames, forms to this server only. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "font-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join("; ");

export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy": POLICY,
  "x-frame-options": "DENY",
  "x-content-type-options": "nosniff",
  // Path and query are left out, because a token may be there. Without any referrer, forms would lose their Origin.
  "referrer-policy": "strict-origin",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store",
};

/**
 * Whether a request names this server as its host, and comes from one of its own pages if it changes something.
 * A page whose domain was rebound to this machine names another host.
 */
export function isAllowed(request: IncomingMessage, host: string): boolean {
  if (request.headers.host !== host) return false;
  const { origin } = request.headers;
  if (request.method === "GET") return origin === undefined || origin === `http://${host}`;
  return origin === `http://${host}`;
}

export function sendHtml(response: ServerResponse, status: number, page: Html): void {
  response.writeHead(status, { ...SECURITY_HEADERS, "content-type": "text/html; charset=utf-8" });
  response.end(page.text);
}

export function sendText(response: ServerResponse, status: number, type: string, text: string): void {
  response.writeHead(status, { ...SECURITY_HEADERS, "content-type": `${type}; charset=utf-8` });
  response.end(text);
}

export function sendAsset(request: IncomingMessage, response: ServerResponse, asset: Asset): void {
  const { type, body, packed } = asset;
  const isPacked = packed !== undefined && /\bbr\b/.test(request.headers["accept-encoding"] ?? "");
  const headers = { ...SECURITY_HEADERS, "content-type": type, "cache-control": "private, max-age=300" };
  response.writeHead(200, { ...headers, ...(isPacked ? { "content-encoding": "br" } : {}) });
  response.end(isPacked ? packed() : body());
}

export function redirect(response: ServerResponse, location: string, cookie?: string): void {
  const cookies = cookie === undefined ? {} : { "set-cookie": cookie };
  response.writeHead(303, { ...SECURITY_HEADERS, ...cookies, location });
  response.end();
}

const MAX_FORM_BYTES = 1024 * 1024;

/** The fields of a posted form; `undefined` when it is none, or too large. */
export async function readForm(request: IncomingMessage): Promise<URLSearchParams | undefined> {
  const type = request.headers["content-type"]?.split(";", 1)[0]?.trim();
  if (type !== "application/x-www-form-urlencoded") return undefined;
  const chunks: Buffer[] = [];
  let bytes = 0;
  // The stream has no encoding set, so its chunks are buffers.
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.byteLength;
    if (bytes > MAX_FORM_BYTES) return undefined;
    chunks.push(chunk);
  }
  return new URLSearchParams(Buffer.concat(chunks).toString("utf8"));
}
