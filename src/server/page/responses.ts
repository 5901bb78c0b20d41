/** Writes the answers of the page server, and reads its forms. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { promisify } from "node:util";
import { brotliCompress, constants } from "node:zlib";
import type { Html } from "../views/html.ts";
import type { Asset } from "./assets.ts";
import { type Entrance, PROOF_HEADER } from "./tab-secrets.ts";
import headers from "./security-headers.json" with { type: "json" };

/** Nothing from elsewhere, nothing inline, no frames, forms to this server only. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = headers;

/** True if a request comes from a page of one of these origins, or from none and changes nothing. */
export function isFrom({ method, headers }: IncomingMessage, origins: readonly string[]): boolean {
  const { origin } = headers;
  return origin === undefined ? method === "GET" || method === "HEAD" : origins.includes(origin);
}

const BROTLI = { "content-encoding": "br" };

/** Answers one request of a browser. The page's own addresses, in markup and redirects, begin with `base`. */
export class Reply {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly #base: string;

  constructor(request: IncomingMessage, response: ServerResponse, base = "") {
    this.request = request;
    this.response = response;
    this.#base = base;
  }

  html(status: number, page: Html, headers: Readonly<Record<string, string>> = {}): void {
    this.text(status, "text/html", this.based(page), headers);
  }

  text(status: number, type: string, text: string, headers: Readonly<Record<string, string>> = {}): void {
    const own = { ...SECURITY_HEADERS, "content-type": `${type}; charset=utf-8` };
    this.response.writeHead(status, { ...own, ...headers });
    this.response.end(text);
  }

  json(value: object, headers?: Readonly<Record<string, string>>): void {
    this.text(200, "application/json", JSON.stringify(value), headers);
  }

  async screen(status: number, shown: object): Promise<void> {
    const content = Buffer.from(this.jsonOf(shown));
    const type = { "content-type": "application/json; charset=utf-8" };
    if (!this.#takesBrotli()) this.response.writeHead(status, { ...SECURITY_HEADERS, ...type }).end(content);
    else {
      const packed = await promisify(brotliCompress)(content, {
        params: { [constants.BROTLI_PARAM_QUALITY]: 4 },
      });
      this.response.writeHead(status, { ...SECURITY_HEADERS, ...type, ...BROTLI }).end(packed);
    }
  }

  /** The page's own addresses among attributes begin with `base`. */
  jsonOf(value: object): string {
    const isOwn = (key: string, text: unknown): text is string =>
      /(?:^|-)(?:href|src|action|address)$/.test(key) && typeof text === "string" && text.startsWith("/");
    const replaced = (key: string, text: unknown): unknown => (isOwn(key, text) ? this.at(text) : text);
    return JSON.stringify(value, this.#base === "" ? undefined : replaced);
  }

  /** Makes the script keep a session, and go to an address of the page. */
  enter({ at, session }: Entrance, headers?: Readonly<Record<string, string>>): void {
    this.json({ at: this.at(at), session }, headers);
  }

  async asset({ type, body, packed }: Asset): Promise<void> {
    const isPacked = packed !== undefined && this.#takesBrotli();
    const headers = { ...SECURITY_HEADERS, "content-type": type, "cache-control": "private, max-age=300" };
    const content = isPacked ? await packed() : body();
    this.response.writeHead(200, { ...headers, ...(isPacked ? BROTLI : {}) });
    this.response.end(content);
  }

  #takesBrotli(): boolean {
    return /\bbr\b/.test(this.request.headers["accept-encoding"] ?? "");
  }

  redirect(location: string): void {
    this.response.writeHead(303, { ...SECURITY_HEADERS, location: this.at(location) });
    this.response.end();
  }

  /** Aborts when the browser no longer waits for the answer. */
  left(): AbortSignal {
    const gone = new AbortController();
    this.response.once("close", () => gone.abort());
    return gone.signal;
  }

  /** Makes the answer carry the proof of a tab's secret. */
  prove(proof: string): void {
    this.response.setHeader(PROOF_HEADER, proof);
  }

  /** An address of the page as browsers name it. */
  at(address: string): string {
    return this.#base + address;
  }

  /** Text inside markup has no quotes, because they are escaped: only our own attributes are found. */
  based({ text }: Html): string {
    return this.#base === "" ? text : text.replace(/\b(href|src|action|address)="\//g, `$1="${this.#base}/`);
  }
}

/** A text of a form as it was typed. Forms send every line break as CRLF. */
export const typedIn = (form: URLSearchParams, name: string): string =>
  (form.get(name) ?? "").replaceAll("\r\n", "\n");

/** Returns the typed text without surrounding blanks. */
export const textOf = (form: URLSearchParams, name: string): string => typedIn(form, name).trim();

/** The fields of a posted form; `undefined` when it is none, or too large. */
export async function readForm(
  request: IncomingMessage,
  maxBytes = 1024 * 1024,
): Promise<URLSearchParams | undefined> {
  const type = request.headers["content-type"]?.split(";", 1)[0]?.trim();
  if (type !== "application/x-www-form-urlencoded") return undefined;
  const chunks: Buffer[] = [];
  let bytes = 0;
  // The stream has no encoding set, so its chunks are buffers.
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) return undefined;
    chunks.push(chunk);
  }
  return new URLSearchParams(Buffer.concat(chunks).toString("utf8"));
}
