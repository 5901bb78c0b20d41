import { systemClock } from "../../../src/core/clock.ts";
import { silentLogger } from "../../../src/core/logger.ts";
import type { TokenConfig } from "../../../src/config/sections.ts";
import type { RunService } from "../../../src/runs/service.ts";
import { createAuthenticator, tokenVerifier } from "../../../src/server/auth/auth.ts";
import type { HttpOptions, HttpServer } from "../../../src/server/http/http.ts";
import type { HttpPageOptions } from "../../../src/server/http/http-page.ts";
import { createResourceChanges } from "../../../src/server/resources/changes.ts";
import { ME } from "../../runs/support.ts";
import { type Entrance, SECRET_HEADER } from "../../../src/server/page/tab-secrets.ts";
import { type RawResponse, send } from "../../support/clients-raw.ts";
import { asDocument } from "../../support/screen-html.ts";
import { entry } from "../auth/support.ts";
import { serve } from "../http/support.ts";
import { openCommand } from "../support.ts";
import { post } from "./support.ts";

export interface Site extends HttpServer {
  origin: string;
  /** As they are in the configuration now. */
  tokens: TokenConfig[];
}

/** The HTTP server with its page, and tokens of two people. */
export async function openSite(
  service: RunService,
  page: Partial<HttpPageOptions> = {},
  http: Partial<HttpOptions> = {},
): Promise<Site> {
  const alone = [entry("only-looks", ME, ["read"]), entry("only-runs", ME, ["run"])];
  const tokens = [entry("mine", ME), entry("bobs", "bob"), ...alone];
  const runs = async () => service;
  const shared = { clock: systemClock, logger: silentLogger };
  const server = await serve({
    ...shared,
    changes: createResourceChanges({ runs, logger: silentLogger }),
    authenticator: createAuthenticator({ verifiers: [tokenVerifier(() => tokens)] }),
    page: { ...shared, runs, key: async () => Buffer.alloc(32, 7), openCommand, settings: {}, ...page },
    ...http,
  });
  return { ...server, tokens };
}

export interface Person {
  answer: RawResponse;
  /** Where the log-in leads; empty: nowhere. */
  at: string;
  /** Empty where the tab keeps the session. */
  setCookie: string;
  cookie: string;
  /** Empty where there is a cookie. */
  secret: string;
  get(path: string, headers?: Record<string, string>): Promise<RawResponse>;
  post(path: string, fields: Record<string, string>, headers?: Record<string, string>): Promise<RawResponse>;
}

/** What a proxy with TLS passes on, for a server that allows this host. */
export const SECURE = { host: "agent.example", origin: "https://agent.example" };

/** Sends the form of the log-in screen. */
export async function logIn(
  origin: string,
  token: string,
  fields: Record<string, string> = {},
  headers: Record<string, string> = {},
): Promise<Person> {
  const sent = { origin, [SECRET_HEADER]: NO_SECRET, ...headers };
  const answer = await post(`${origin}/login`, { token, ...fields }, sent);
  const setCookie = answer.headers["set-cookie"]?.[0] ?? "";
  const cookie = setCookie.split(";")[0] ?? "";
  const { at = "", session } = answer.status === 200 ? (JSON.parse(answer.body) as Entrance) : { at: "" };
  const { secret = "" } = session ?? {};
  return { answer, at, setCookie, secret, ...holder(origin, { cookie, secret }, headers) };
}

/** What the script sends where the tab has no secret. */
const NO_SECRET = "cookie";

/** A tab with this secret, or in a browser with this cookie. */
export function holder(
  origin: string,
  { cookie = "", secret = "" }: { cookie?: string; secret?: string },
  more: Record<string, string> = {},
): Pick<Person, "cookie" | "get" | "post"> {
  const own = { cookie, [SECRET_HEADER]: secret || NO_SECRET, ...more };
  return {
    cookie,
    get: (path, headers = {}) =>
      send(origin + path, { method: "GET", headers: { ...own, ...headers } }).then(asDocument),
    post: (path, fields, headers = {}) =>
      post(origin + path, fields, { origin, ...own, ...headers }).then(asDocument),
  };
}
