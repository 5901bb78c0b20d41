/** A server with a log-in of its own, people, and browsers played by plain HTTP. */
import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Secret, TOTP } from "otpauth";
import { onTestFinished } from "vitest";
import { authenticationOf } from "../../../src/cli/serve-http.ts";
import { type ConfigInput, ConfigSchema } from "../../../src/config/schema.ts";
import { type Logger, silentLogger } from "../../../src/core/logger.ts";
import { Logins } from "../../../src/runs/logins.ts";
import type { HttpOptions } from "../../../src/server/http/http.ts";
import type { LogInOptions } from "../../../src/server/http/login/provider.ts";
import { openSqlite } from "../../../src/storage/sqlite/storage.ts";
import type { Storage } from "../../../src/storage/storage.ts";
import { freePort } from "../../support/free-port.ts";
import { serve } from "../http/support.ts";

export const PASSWORD = "correct horse battery";
export const LOOPBACK = "http://localhost:3999/callback";

export interface Owner {
  name: string;
  totp: TOTP;
}

export interface Place {
  logins: Logins;
  /** Adds a person. */
  person(name?: string): Promise<Owner>;
}

export async function openStorage(folder = newFolder()): Promise<Storage> {
  const storage = await openSqlite(folder, silentLogger);
  onTestFinished(() => storage.close());
  return storage;
}

export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "login-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export function loginsOf(storage: Storage, keys: readonly Uint8Array[] = [Buffer.alloc(32, 5)]): Place {
  const logins = new Logins(
    storage.runs.logins,
    () => Date.now(),
    async () => keys,
  );
  return { logins, person: (name = `alice-${randomBytes(3).toString("hex")}`) => addPerson(logins, name) };
}

export async function addPerson(logins: Logins, name: string): Promise<Owner> {
  const address = await logins.add(name, PASSWORD);
  const secret = new URL(address ?? "").searchParams.get("secret") ?? "";
  return { name, totp: new TOTP({ secret: Secret.fromBase32(secret) }) };
}

interface Settings {
  http?: ConfigInput["http"];
  logger?: Logger;
  /** Documents and keys of clients, by address, in place of the network. */
  documents?: Readonly<Record<string, unknown>>;
  page?: HttpOptions["page"];
  port?: number;
  place?: Place;
  options?: Partial<HttpOptions>;
}

export interface Site extends Place {
  /** Address of the server, without a slash at its end. */
  issuer: string;
  /** Address of the MCP endpoint. */
  url: string;
  close(): Promise<void>;
}

export async function openSite(settings: Settings = {}): Promise<Site> {
  const { logger = silentLogger, documents, page, port = await freePort(), options } = settings;
  const place = settings.place ?? loginsOf(await openStorage());
  const { http } = ConfigSchema.parse({ dataDir: "/data", http: { owner: true, port, ...settings.http } });
  const authentication = await authenticationOf(http, { env: {}, logger }, () => ({
    deps: { stateKey: async () => Buffer.alloc(32, 1) },
    operator: async () => ({ logins: place.logins }),
  }));
  const fetch: LogInOptions["fetch"] = async (url) => {
    const found = documents?.[url instanceof Request ? url.url : url.toString()];
    if (found instanceof Response) return found.clone();
    return found === undefined ? new Response("", { status: 404 }) : Response.json(found);
  };
  const { tokens: _tokens, holds: _holds, logIn, ...rest } = authentication;
  const own = logIn && { ...logIn, ...(documents && { fetch }) };
  const server = await serve({
    ...http,
    agUi: undefined,
    ...rest,
    page,
    logIn: own,
    logger,
    port,
    ...options,
  });
  const issuer = logIn?.issuer ?? "";
  return { ...place, issuer, url: server.url, close: () => server.close() };
}

/** A code that was not used: the clock of the person is moved on, and the server allows for one step. */
export const codeOf = ({ totp }: Owner, step = 0): string =>
  totp.generate({ timestamp: Date.now() + step * 30_000 });

interface Choice {
  /** Scopes that the person ticks. Default: those that the page ticked. */
  scopes?: readonly string[];
  refuse?: boolean;
  code?: string;
  password?: string;
  /** The address that the form is sent from. */
  origin?: string;
}

/** A browser with its cookies. */
export class Browser {
  readonly jar = new Map<string, string>();
  readonly #site: Pick<Site, "issuer">;
  readonly #owner: Owner;
  /** Texts of the pages that it saw. */
  readonly pages: string[] = [];
  readonly answers: Response[] = [];

  constructor(site: Pick<Site, "issuer">, owner: Owner) {
    this.#site = site;
    this.#owner = owner;
  }

  async get(url: string, init: RequestInit = {}): Promise<Response> {
    const cookie = [...this.jar].map(([name, value]) => `${name}=${value}`).join("; ");
    const headers = new Headers({ accept: "text/html", cookie });
    new Headers(init.headers).forEach((value, name) => headers.set(name, value));
    const ask = (): Promise<Response> => fetch(url, { redirect: "manual", ...init, headers });
    // A connection that the server closed while nothing was sent is found out by its next request.
    const response = await ask().catch(ask);
    for (const line of response.headers.getSetCookie()) {
      const [pair = ""] = line.split(";");
      const at = pair.indexOf("=");
      if (line.includes("01 Jan 1970")) this.jar.delete(pair.slice(0, at));
      else this.jar.set(pair.slice(0, at), pair.slice(at + 1));
    }
    this.answers.push(response);
    return response;
  }

  /** Follows redirects to a page, or to an address elsewhere. */
  async follow(
    url: string,
    init: RequestInit = {},
  ): Promise<{ at: string; response?: Response; text: string }> {
    let response = await this.get(url, init);
    for (let at = url; ;) {
      const to = response.headers.get("location");
      if (to === null) {
        const text = await response.text();
        this.pages.push(text);
        return { at, response, text };
      }
      at = new URL(to, at).href;
      if (!at.startsWith(this.#site.issuer)) return { at, text: "" };
      response = await this.get(at);
    }
  }

  send(url: string, form: URLSearchParams, origin = new URL(this.#site.issuer).origin) {
    const headers = { origin, "content-type": "application/x-www-form-urlencoded" };
    return this.follow(url, { method: "POST", body: form, headers });
  }

  /** Logs in and consents; returns the address of the callback. Throws if it ends at another page. */
  async open(address: string, choice: Choice = {}): Promise<URL> {
    let seen = await this.follow(address);
    if (seen.text.includes('name="password"')) {
      const { name } = this.#owner;
      const { password = PASSWORD, code = codeOf(this.#owner) } = choice;
      seen = await this.send(seen.at, new URLSearchParams({ name, password, code }), choice.origin);
    }
    if (seen.text.includes('name="do"')) {
      const ticked = [...seen.text.matchAll(/name="scope"\s+value="(\w+)"([^/>]*)/g)].flatMap(
        ([, name = "", rest = ""]) =>
          (choice.scopes ? choice.scopes.includes(name) : rest.includes("checked")) ? [name] : [],
      );
      const form = new URLSearchParams();
      for (const name of ticked) form.append("scope", name);
      form.set("do", choice.refuse === true ? "refuse" : "connect");
      seen = await this.send(seen.at, form, choice.origin);
    }
    if (seen.response !== undefined) throw new Error(`${seen.response.status} ${seen.text}`);
    return new URL(seen.at);
  }
}

interface Request {
  client_id: string;
  redirect_uri?: string;
  scope?: string;
  resource?: string;
  more?: Record<string, string>;
  choice?: Choice;
  browser?: Browser;
  owner?: Owner;
  /** Parameters of the token request. */
  proof?: Record<string, string>;
}

export interface Granted {
  status: number;
  access_token: string;
  refresh_token: string;
  scope: string;
  error?: string;
  back: URL;
  verifier: string;
}

const challengeOf = (verifier: string): string => createHash("sha256").update(verifier).digest("base64url");

export function authorizeUrl(
  { issuer, url }: Pick<Site, "issuer" | "url">,
  verifier: string,
  request: Request,
): string {
  const { client_id, redirect_uri = LOOPBACK, scope, resource = url, more } = request;
  const query = new URLSearchParams({
    response_type: "code",
    client_id,
    redirect_uri,
    state: "s",
    code_challenge: challengeOf(verifier),
    code_challenge_method: "S256",
    ...(scope && { scope }),
    ...(resource && { resource }),
    ...more,
  });
  return `${issuer}/oauth/authorize?${query.toString()}`;
}

export async function form(site: Pick<Site, "issuer">, path: string, fields: Record<string, string>) {
  const response = await fetch(site.issuer + path, { method: "POST", body: new URLSearchParams(fields) });
  const text = await response.text();
  return { status: response.status, body: (text === "" ? {} : JSON.parse(text)) as Record<string, string> };
}

/** A whole log-in of a client. */
export async function flow(site: Site, request: Request): Promise<Granted> {
  const verifier = randomBytes(32).toString("base64url");
  const browser = request.browser ?? new Browser(site, request.owner ?? (await site.person()));
  const back = await browser.open(authorizeUrl(site, verifier, request), request.choice);
  const code = back.searchParams.get("code");
  if (code === null)
    return { status: 0, error: back.searchParams.get("error") ?? "", back, verifier } as Granted;
  const { client_id, redirect_uri = LOOPBACK, resource = site.url, proof } = request;
  const asked = { grant_type: "authorization_code", code, redirect_uri, client_id, code_verifier: verifier };
  const { status, body } = await form(site, "/oauth/token", {
    ...asked,
    ...(resource && { resource }),
    ...proof,
  });
  return { ...body, status, back, verifier } as unknown as Granted;
}

export async function register(site: Pick<Site, "issuer">, body: object) {
  const response = await fetch(`${site.issuer}/oauth/register`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return {
    status: response.status,
    body: (await response.json()) as Record<string, unknown> & { client_id: string },
  };
}

export const registered = async (site: Pick<Site, "issuer">, redirect = LOOPBACK): Promise<string> =>
  (await register(site, { client_name: "Test client", redirect_uris: [redirect] })).body.client_id;

export const refresh = (site: Pick<Site, "issuer">, client_id: string, refresh_token: string, more = {}) =>
  form(site, "/oauth/token", { grant_type: "refresh_token", refresh_token, client_id, ...more });

/** Status of a request with this token, and its challenge. */
export async function status(
  site: Pick<Site, "url">,
  token: string,
  body: object = { jsonrpc: "2.0", id: 1, method: "ping" },
) {
  const headers = {
    authorization: `Bearer ${token}`,
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
  };
  const response = await fetch(site.url, { method: "POST", headers, body: JSON.stringify(body) });
  await response.body?.cancel();
  return { status: response.status, challenge: response.headers.get("www-authenticate") ?? "" };
}
