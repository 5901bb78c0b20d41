import { systemClock } from "../../../src/core/clock.ts";
import { silentLogger } from "../../../src/core/logger.ts";
import type { TokenConfig } from "../../../src/config/sections.ts";
import type { RunService } from "../../../src/runs/service.ts";
import { createAuthenticator, tokenVerifier } from "../../../src/server/auth/auth.ts";
import { type HttpOptions, type HttpServer, serveHttp } from "../../../src/server/http/http.ts";
import type { HttpPageOptions } from "../../../src/server/http/http-page.ts";
import { createResourceChanges } from "../../../src/server/resources/changes.ts";
import { openStreams } from "../../../src/storage/sqlite/streams.ts";
import { ME, cleanUpWith } from "../../runs/support.ts";
import { type RawResponse, send } from "../../support/clients-raw.ts";
import { entry } from "../auth/support.ts";
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
  const tokens = [
    entry("mine", ME),
    entry("bobs", "bob"),
    entry("only-looks", ME, ["read"]),
    entry("only-runs", ME, ["run"]),
  ];
  const runs = async () => service;
  const shared = { clock: systemClock, logger: silentLogger };
  const server = await serveHttp({
    ...shared,
    host: "127.0.0.1",
    port: 0,
    allowedHosts: [],
    allowedOrigins: [],
    openStreams: () => openStreams(":memory:"),
    factory: () => {
      throw new Error("no MCP request is sent here");
    },
    changes: createResourceChanges({ runs, logger: silentLogger }),
    authenticator: createAuthenticator({ verifiers: [tokenVerifier(() => tokens)] }),
    page: { ...shared, runs, key: async () => Buffer.alloc(32, 7), openCommand, settings: [], ...page },
    ...http,
  });
  cleanUpWith(() => server.close());
  return { ...server, origin: new URL(server.url).origin, tokens };
}

export interface Person {
  answer: RawResponse;
  setCookie: string;
  cookie: string;
  get(path: string, headers?: Record<string, string>): Promise<RawResponse>;
  post(path: string, fields: Record<string, string>, headers?: Record<string, string>): Promise<RawResponse>;
  /** The secret of the forms that this session gets. */
  csrf(): Promise<string>;
}

/** Sends the form of the log-in screen. */
export async function logIn(
  origin: string,
  token: string,
  fields: Record<string, string> = {},
  headers: Record<string, string> = {},
): Promise<Person> {
  const answer = await post(`${origin}/login`, { token, ...fields }, { origin, ...headers });
  const setCookie = answer.headers["set-cookie"]?.[0] ?? "";
  return { answer, setCookie, ...holder(origin, setCookie.split(";")[0] ?? "") };
}

/** A browser that has this cookie. */
export function holder(origin: string, cookie: string): Omit<Person, "answer" | "setCookie"> {
  const get = (path: string, headers = {}) =>
    send(origin + path, { method: "GET", headers: { cookie, accept: "text/html", ...headers } });
  return {
    cookie,
    get,
    post: (path, fields, headers = {}) => post(origin + path, fields, { cookie, origin, ...headers }),
    csrf: async () => /name="csrf" value="([^"]+)"/.exec((await get("/")).body)?.[1] ?? "",
  };
}
