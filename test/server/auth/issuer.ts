import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { exportJWK, generateKeyPair, SignJWT, type JWTPayload } from "jose";
import { onTestFinished } from "vitest";
import { authenticationOf } from "../../../src/cli/serve-http.ts";
import { ConfigSchema, type ConfigInput } from "../../../src/config/schema.ts";
import { silentLogger } from "../../../src/core/logger.ts";
import { INITIALIZE, send } from "../../support/clients-raw.ts";
import { play } from "../../support/harness-brain.ts";
import { openGuarded } from "./support.ts";

export const RESOURCE = "https://agent.example/mcp";
export const HOUR = 3600;
export const now = (): number => Math.floor(Date.now() / 1000);

/** How the server finds out about tokens. */
export const WAYS = ["keys", "introspection"] as const;
export type Way = (typeof WAYS)[number];

/** A secret with characters that are not the same when they are form-encoded. */
const SECRET = "s:e+c r%t";
const CREDENTIALS = `Basic ${btoa("agent:s%3Ae%2Bc+r%25t")}`;
const keys = generateKeyPair("ES256");

/** An authorization server on this machine: signs what it is told to, and knows the opaque tokens it gave out. */
export async function openIssuer() {
  const { publicKey, privateKey } = await keys;
  const jwk = { ...(await exportJWK(publicKey)), kid: "k1", alg: "ES256", use: "sig" };
  const opaque = new Map<string, object>();
  const state = {
    /** Tokens that it was asked about, in order. */
    asked: [] as string[],
    /** What it answers instead, when it is out of order. */
    broken: undefined as { status: number; body: string; location?: string } | undefined,
  };
  const server = createServer((request, response) => {
    void text(request).then((form) => {
      response.setHeader("content-type", "application/json");
      if (request.url === "/jwks") return response.end(JSON.stringify({ keys: [jwk] }));
      const asked = new URLSearchParams(form).get("token") ?? "";
      state.asked.push(asked);
      if (state.broken !== undefined) {
        const { status, body, location } = state.broken;
        return response.writeHead(status, location === undefined ? {} : { location }).end(body);
      }
      if (request.headers.authorization !== CREDENTIALS) return response.writeHead(401).end("{}");
      return response.end(JSON.stringify(opaque.get(asked) ?? { active: false }));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const claims = { iss: issuer, aud: RESOURCE, sub: "alice", scope: "run approve read", exp: now() + HOUR };
  return {
    issuer,
    jwksUrl: `${issuer}/jwks`,
    state,
    publicKey,
    /** `undefined` leaves a claim out. */
    signed: (changes: JWTPayload = {}, key = privateKey, header: object = {}) =>
      new SignJWT({ ...claims, ...changes })
        .setProtectedHeader({ alg: "ES256", kid: "k1", ...header })
        .sign(key),
    opaque: (changes: JWTPayload & { active?: unknown } = {}): string => {
      const token = `opaque-${opaque.size + 1}`;
      opaque.set(token, { active: true, ...claims, ...changes });
      return token;
    },
    revoke: (token: string): void => void opaque.delete(token),
    introspection: { url: `${issuer}/introspect`, clientId: "agent", clientSecretVariable: "AGENT_SECRET" },
  };
}

export const authenticated = (http: Partial<ConfigInput["http"]>) =>
  authenticationOf(
    ConfigSchema.parse({ dataDir: "/data", http }).http,
    { env: { AGENT_SECRET: SECRET }, logger: silentLogger },
    () => ({
      deps: { stateKey: async () => Buffer.alloc(32, 1) },
      operator: () => Promise.reject(new Error("nobody logs in here")),
    }),
  );

/** The product behind an authorization server of its own. */
export async function openWithIssuer(way: Way, http: Partial<ConfigInput["http"]> = {}) {
  const authority = await openIssuer();
  const { issuer, jwksUrl, introspection } = authority;
  const found = way === "keys" ? { jwksUrl } : { introspection };
  const authentication = await authenticated({ oauth: { issuer, resource: RESOURCE, ...found }, ...http });
  const { refusalsPerMinute = 1000, trustedProxies = [] } = http ?? {};
  const think = play({ "Say hello": [{ text: "hello" }] });
  const server = await openGuarded(think, {
    ...authentication,
    authenticator: authentication.authenticator,
    refusalsPerMinute,
    trustedProxies,
  });
  const ask = (token: string) =>
    send(server.url, { body: INITIALIZE, headers: { authorization: `Bearer ${token}` } });
  return {
    ...authority,
    server,
    ask,
    token: async (changes: JWTPayload = {}): Promise<string> =>
      way === "keys" ? authority.signed(changes) : authority.opaque(changes),
  };
}
