/** Answers of authorization servers that are not quite in the form of OAuth. */
import { type IncomingMessage, type ServerResponse, createServer } from "node:http";
import { text } from "node:stream/consumers";
import { expect, it } from "vitest";
import { beginLogin } from "../../../src/agent/mcp-tools/authorize.ts";
import { type Login, ServerLogin } from "../../../src/agent/mcp-tools/login.ts";
import { POLICY } from "./connect-to.ts";
import { addressOf } from "../../support/http-address.ts";

type Fields = Record<string, unknown>;

/** What differs from the answers of an ordinary server. */
interface Odd {
  /** Describes the server itself. */
  resource?: (origin: string) => Fields;
  metadata?: Fields | ((origin: string) => Fields);
  registration?: Fields;
  /** A text is a form. */
  token?: Fields | string;
}

const TOKEN = { access_token: "token", token_type: "Bearer", expires_in: 3600, refresh_token: "next" };

/** An MCP server that is its own authorization server. */
async function serverWith({ resource, metadata, registration, token = {} }: Odd): Promise<string> {
  const respond = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await text(request);
    const origin = `http://${request.headers.host}`;
    const [path] = (request.url ?? "").split("?");
    switch (path) {
      case "/mcp":
        return void response.writeHead(401, { "www-authenticate": "Bearer" }).end();
      case "/.well-known/oauth-protected-resource/mcp":
        return resource
          ? json(response, { authorization_servers: [origin], ...resource(origin) })
          : void response.writeHead(404).end();
      case "/.well-known/oauth-authorization-server":
        return json(response, {
          issuer: origin,
          authorization_endpoint: `${origin}/authorize`,
          token_endpoint: `${origin}/token`,
          registration_endpoint: `${origin}/register`,
          response_types_supported: ["code"],
          code_challenge_methods_supported: ["S256"],
          ...(typeof metadata === "function" ? metadata(origin) : metadata),
        });
      case "/register":
        return json(response, { ...(JSON.parse(body) as Fields), client_id: "client", ...registration });
      case "/token":
        return typeof token === "string" ? void response.end(token) : json(response, { ...TOKEN, ...token });
      default:
        return void response.writeHead(404).end();
    }
  };
  const server = createServer((request, response) => void respond(request, response));
  return `${await addressOf(server)}/mcp`;
}

const json = (response: ServerResponse, body: Fields): void =>
  void response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));

it.each<[source: string, odd: Odd, tokens?: object]>([
  ["an ordinary server", {}],
  ["NousResearch/hermes-agent#51934", { registration: { redirect_uris: undefined } }],
  [
    "a registration that writes every field",
    { registration: { client_secret: null, client_secret_expires_at: null, client_uri: "", jwks_uri: null } },
  ],
  ["a time as text", { registration: { client_id_issued_at: "2026-01-01", scope: ["a"] } }],
  [
    "metadata that is null",
    { metadata: { scopes_supported: null, jwks_uri: null, service_documentation: "" } },
  ],
  ["metadata without types", { metadata: { response_types_supported: undefined } }],
  ["no type", { token: { token_type: undefined } }],
  ["scopes as a list", { token: { scope: ["a", "b"] } }, { scope: "a b" }],
  ["nulls beside the token", { token: { scope: null, id_token: null, token_type: null } }],
  [
    "expo/expo#49053: an issuer with a slash at its end",
    { metadata: (origin) => ({ issuer: `${origin}/` }) },
  ],
  ["GitHub's form", { token: "access_token=token&scope=repo&token_type=bearer" }, { scope: "repo" }],
])("%s: the log-in succeeds", async (_source, odd, tokens = {}) => {
  const login = await logIn(odd);
  expect(login.tokens).toMatchObject({ access_token: "token", ...tokens });
});

it.each<[source: string, path: string, asked: string]>([
  ["an ordinary server", "/mcp", ""],
  ["with a slash at its end", "/mcp/", ""],
  ["with a query in the address", "/mcp", "?project=a"],
  ["with both", "/mcp/", "?project=a/b"],
  ["that is the origin", "", ""],
])("a resource %s is asked for as it calls itself", async (_source, path, asked) => {
  const odd = { resource: (origin: string) => ({ resource: `${origin}${path}` }) };
  const { address } = await begin(odd, undefined, asked);
  expect(address.searchParams.get("resource")).toBe(`${address.origin}${path}`);
});

it.each<[reason: RegExp, odd: Odd]>([
  [/^Issuer mismatch/, { metadata: { issuer: "https://login.example.com" } }],
  [/^Protected resource .*other/, { resource: (origin) => ({ resource: `${origin}/other` }) }],
  [/^Protected resource .*mcp2/, { resource: (origin) => ({ resource: `${origin}/mcp2/` }) }],
  [/^Incompatible auth server: .*S256/, { metadata: { code_challenge_methods_supported: ["plain"] } }],
  [/set oauth\.clientId: .*registration/, { metadata: { registration_endpoint: null } }],
])("a log-in that cannot begin names the reason alone: %s", async (reason, odd) => {
  await expect(begin(odd)).rejects.toThrow(reason);
});

it("an answer without scopes grants those that were asked for (RFC 6749, 5.1)", async () => {
  expect((await logIn({}, "notes:read")).tokens.scope).toBe("notes:read");
  expect((await logIn({ token: { scope: "a" } }, "notes:read")).tokens.scope).toBe("a");
});

it("another issuer, and one that only begins alike, are refused", async () => {
  await expect(logIn({ metadata: { issuer: "http://127.0.0.1:9" } })).rejects.toThrow(/issuer/i);
  await expect(logIn({ metadata: (origin) => ({ issuer: `${origin}/tenant` }) })).rejects.toThrow(/issuer/i);
});

it("a token whose end is null has no end", async () => {
  expect((await logIn({ token: { expires_in: null } })).expiresAt).toBeUndefined();
});

it("punkpeye/mcp-remote#357: a token is renewed with the permissions that were granted", async () => {
  let kept: Login | undefined = await logIn({ token: { scope: "a b" } });
  const asked: unknown[] = [];
  const login = new ServerLogin("s", kept.url, {
    store: {
      read: async () => kept,
      change: async (_server, change) => (kept = await change(kept)),
    },
    fetchFor: () => (url, init) => {
      if (init?.body instanceof URLSearchParams) asked.push(init.body.get("scope"));
      return fetch(url, init);
    },
    command: () => "",
    clock: () => 0,
  });
  expect(await login.renewed("token")).toBe("token");
  expect(asked).toEqual(["a b"]);
});

async function begin(odd: Odd, scope?: string, query = "") {
  const server = { url: `${await serverWith(odd)}${query}`, headers: {}, ...POLICY };
  return beginLogin({ server, redirectUrl: "http://127.0.0.1:9/callback", scope, fetch, clock: () => 0 });
}

async function logIn(odd: Odd, scope?: string) {
  const pending = await begin(odd, scope);
  return pending.finish(new URLSearchParams({ state: pending.state, code: "code" }));
}
