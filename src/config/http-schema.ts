import { isIP } from "node:net";
import { z } from "zod";

/** What a token may do: start and cancel runs, decide on approvals, read resources, files and memories. */
export const SCOPES = ["run", "approve", "read"] as const;
export type Scope = (typeof SCOPES)[number];

const token = z.strictObject({
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/, { error: "must be the SHA-256 of the token in lowercase hex" })
    .describe("SHA-256 of the token."),
  principal: z
    .string()
    .regex(/^[A-Za-z0-9._@+-]{1,128}$/, { error: "use letters, digits and . _ @ + - only, at most 128" })
    .describe("Whose runs it reaches."),
  scopes: z
    .array(z.enum(SCOPES))
    .min(1)
    .default([...SCOPES])
    .describe("What it may do."),
});
export type TokenConfig = z.output<typeof token>;

/** Keys and tokens fetched in the clear could be anybody's, except on this machine. */
const secureUrl = z.string().refine(
  (text) => {
    if (!URL.canParse(text)) return false;
    const { protocol, hostname, hash } = new URL(text);
    return hash === "" && (protocol === "https:" || (protocol === "http:" && LOOPBACK.has(hostname)));
  },
  { error: "must be an https address without fragment" },
);
const LOOPBACK: ReadonlySet<string> = new Set(["127.0.0.1", "[::1]", "localhost"]);

const introspection = z.strictObject({
  url: secureUrl.describe("Introspection endpoint (RFC 7662)."),
  clientId: z.string().min(1).describe("How this server names itself there."),
  clientSecretVariable: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, { error: "must be the name of an environment variable" })
    .describe("Environment variable that holds its secret."),
});

const oauth = z
  .strictObject({
    issuer: secureUrl.describe("As it stands in the tokens, character by character."),
    jwksUrl: secureUrl.optional().describe("Where its keys are."),
    introspection: introspection.optional().describe("Or how it is asked about each token."),
    resource: secureUrl.describe("Where clients reach this server, such as `https://agent.example.org/mcp`."),
    audience: z.string().min(1).optional().describe("Expected in the tokens. Default: `resource`."),
  })
  .refine(({ jwksUrl, introspection: asked }) => (jwksUrl === undefined) !== (asked === undefined), {
    error: "needs either a jwksUrl or introspection",
  });
export type OAuthConfig = z.output<typeof oauth>;

/** `192.0.2.1`, `10.0.0.0/8`, `fd00::/8`. */
const network = z.string().refine(
  (text) => {
    const [address = "", prefix, ...rest] = text.split("/");
    const bits = isIP(address) === 4 ? 32 : isIP(address) === 6 ? 128 : -1;
    return (
      rest.length === 0 && (prefix === undefined ? bits > 0 : /^\d{1,3}$/.test(prefix) && +prefix <= bits)
    );
  },
  { error: "must be an IP address or a network such as 10.0.0.0/8" },
);

/** The part of the configuration that `serve --http` alone reads. */
export const httpSchema = z.strictObject({
  host: z
    .string()
    .default("127.0.0.1")
    .describe(
      "Address that `serve --http` listens on; beyond this machine only with `http.tokens` or `http.oauth`.",
    ),
  port: z
    .int()
    .min(0)
    .max(65_535)
    .default(8808)
    .describe("Port that `serve --http` listens on; 0 takes a free one."),
  allowedHosts: z
    .array(z.string())
    .default([])
    .describe("Host names that requests may name, besides the loopback ones."),
  allowedOrigins: z
    .array(z.string())
    .default([])
    .describe("Hosts of web pages that may send requests, besides the loopback ones."),
  requestsPerMinute: z
    .int()
    .min(1)
    .max(1_000_000)
    .default(1200)
    .describe("Requests that one principal may make in a minute."),
  refusalsPerMinute: z
    .int()
    .min(1)
    .max(1_000_000)
    .default(60)
    .describe("Tokens from one address that may be refused in a minute; good ones go on being accepted."),
  sessions: z
    .int()
    .min(1)
    .max(100_000)
    .default(200)
    .describe(
      "Sessions of 2025-era clients at one time; an idle one makes room for a new one, a busy one never.",
    ),
  sessionsPerPrincipal: z
    .int()
    .min(1)
    .max(100_000)
    .default(100)
    .describe("Those of one principal; likewise."),
  trustedProxies: z
    .array(network)
    .default([])
    .describe(
      "Addresses or networks of reverse proxies; only from them `X-Forwarded-For` says where a request comes from.",
    ),
  tokens: z
    .array(token)
    .refine((tokens) => new Set(tokens.map(({ sha256 }) => sha256)).size === tokens.length, {
      error: "two entries have the same sha256",
    })
    .default([])
    .describe(
      "Bearer tokens: SHA-256 of the token, whose runs they reach, and scopes. With any, every request needs one.",
    ),
  oauth: oauth
    .optional()
    .describe(
      "Accepts access tokens of an OAuth 2.1 authorization server: issuer, jwksUrl or introspection, resource (the public address of this server) and audience.",
    ),
});
