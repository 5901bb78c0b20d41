/** Authenticates requests over HTTP, by static tokens or by the claims of verified ones. */
import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import {
  type AuthInfo,
  OAuthError,
  OAuthErrorCode,
  bearerAuthChallengeResponse,
  verifyBearerToken,
} from "@modelcontextprotocol/server";
import type { OAuthConfig, TokenConfig } from "../../config/sections.ts";
import { type Holder, LOCAL, type Principal, SCOPES, type Scope } from "../../runs/run.ts";
import type { Holds, MadeWith } from "../../runs/shares.ts";
import { memberOf, defined } from "../../core/unknown.ts";

type AuthFailure = "no_token" | "invalid_token" | "no_scope" | "issuer_unavailable" | "too_many_failures";

type Accepted = { ok: true; auth: AuthInfo };
/** `isFinal`: the token is no longer good; otherwise it may be. */
type Refused = { ok: false; reason: AuthFailure; isFinal: boolean; response: Response };

/** A refusal also has the seconds that the address must wait; 0: none. */
export type Checked = Accepted | (Refused & { wait: number });

/** Checks tokens, and bounds how many an address may have refused. */
export interface Tokens {
  /** Seconds that the address of a request has to wait after too many refused tokens. */
  wait(request: IncomingMessage): number;
  check(request: IncomingMessage, authorization: string | undefined): Promise<Checked>;
  /** Checks a token that was valid before, so a refusal does not count as a guess. */
  recheck(request: IncomingMessage, authorization: string | undefined): Promise<Checked>;
  /** Counts a guess of another kind, such as a wrong password. Returns the seconds to wait; 0: none. */
  refuse(request: IncomingMessage): number;
  /** Counts a request to log in, which needs no token. Returns the seconds to wait; 0: none. */
  visit(request: IncomingMessage): number;
  holds: Holds;
}

interface VerifyOptions {
  /** True if it may ask another server about an unknown token. */
  mayAsk: boolean;
  /** Age up to which an earlier answer of another server is used, in ms. Default: half a minute. */
  maxAgeMs?: number;
  /** Digest of a configured token, in place of the token. */
  sha256?: string;
}

/** Decides about requests by their `Authorization` header. */
export interface Authenticator {
  authenticate(authorization: string | undefined, options?: VerifyOptions): Promise<Accepted | Refused>;
  holds: Holds;
}

export type TokenVerifier = (
  token: string,
  options: VerifyOptions,
) => AuthInfo | undefined | Promise<AuthInfo | undefined>;

/** Everything that stays open with a token ends within this time after the token was revoked, in ms. */
export const HELD_MS = 5000;
/** Longest `Authorization` header that is looked at, in characters. */
const MAX_HEADER = 16_384;

/** Accepts bearer tokens that one of the verifiers knows. The answer never reveals why a token was refused. */
export function createAuthenticator({
  verifiers,
  key,
  resourceMetadataUrl,
  oauth,
}: {
  /** Asked in this order; `undefined`: the token is not of this kind. A refused token throws `OAuthError`. */
  verifiers: readonly TokenVerifier[];
  /** Seals tokens of an authorization server for storage: at least 32 bytes. Default: nothing is made with such tokens. */
  key?: () => Promise<Uint8Array>;
  /** Address at which clients find the authorization server that issues tokens. */
  resourceMetadataUrl?: string;
  /** That authorization server, which may have names of its own for scopes. */
  oauth?: OAuthClaims;
}): Authenticator {
  const scopeNames = oauth === undefined ? new Map<Scope, string>() : requestedNames(oauth);
  const metadata = defined({ resourceMetadataUrl });
  const verify = async (token: string, how: VerifyOptions): Promise<AuthInfo> => {
    for (const verifier of verifiers) {
      const auth = await verifier(token, how);
      if (auth !== undefined) return auth;
    }
    throw invalidToken();
  };
  const authenticate: Authenticator["authenticate"] = async (authorization, how = { mayAsk: true }) => {
    try {
      if ((authorization?.length ?? 0) > MAX_HEADER) throw invalidToken();
      const verifier = {
        verifyAccessToken: async (token: string) => {
          const auth = withCredential(await verify(token, how), token, key);
          return { ...auth, extra: { ...auth.extra, scopeNames } };
        },
      };
      return { ok: true, auth: await verifyBearerToken(authorization, { verifier, ...metadata }) };
    } catch (error) {
      if (!(error instanceof OAuthError)) throw error;
      const reason = authorization === undefined ? "no_token" : (REASONS[error.code] ?? "invalid_token");
      // A client without a token learns which scopes exist; those are the useful ones to request.
      const challenge = { ...metadata, requiredScopes: namedScopes(SCOPES, scopeNames) };
      const isFinal = reason === "invalid_token" || reason === "no_scope";
      return { ok: false, reason, isFinal, response: refusal(error, reason, challenge) };
    }
  };
  const holds: Holds = async ({ principal, credential }) => {
    if (credential === undefined) return principal === LOCAL;
    const { owner, sha256, sealed = "" } = JSON.parse(credential) as Credential; // as `withCredential` makes it
    if (sha256 !== undefined) {
      const auth = await verify("", { mayAsk: false, sha256 }).catch(() => undefined);
      return auth !== undefined && maySucceed(auth, owner);
    }
    const { compactDecrypt } = await import("jose");
    const opened = await compactDecrypt(sealed, await sealingKey(key)).catch(() => undefined);
    // Empty if another key sealed it.
    const token = Buffer.from(opened?.plaintext ?? []).toString();
    const outcome = await authenticate(`Bearer ${token}`, { mayAsk: true, maxAgeMs: HELD_MS });
    return outcome.ok ? maySucceed(outcome.auth, owner) : !outcome.isFinal;
  };
  return { authenticate, holds };
}

/** Returns the names that a client asks the authorization server for. `names`: those that are not the scope's own. */
const namedScopes = (scopes: readonly Scope[], names: ReadonlyMap<Scope, string>): string[] =>
  scopes.map((scope) => names.get(scope) ?? scope);

/** Returns the names of scopes at the authorization server that issued a token. */
export const requiredScopes = ({ extra }: AuthInfo, scopes: readonly Scope[]): string[] =>
  namedScopes(scopes, (extra?.["scopeNames"] ?? new Map()) as ReadonlyMap<Scope, string>); // see `authenticate`

/** A token in storage, with its owner: by its digest if the configuration has that, else sealed. */
type Credential = { owner: string; sha256?: string; sealed?: string };

/** True if a stored token is of an authorization server. */
export const isIssued = (credential: string): boolean =>
  (JSON.parse(credential) as Credential).sha256 === undefined; // as `withCredential` makes it

type Key = (() => Promise<Uint8Array>) | undefined;

/** Adds the stored facts about the token, for links and subscriptions made with it. */
function withCredential(auth: AuthInfo, token: string, key: Key): AuthInfo {
  const sha256 = auth.extra?.["sha256"];
  const credential = async (): Promise<string> => {
    const own = sha256 === undefined ? { sealed: await sealed(token, key) } : { sha256 };
    return JSON.stringify({ owner: ownerOf(auth), ...own });
  };
  return { ...auth, extra: { ...auth.extra, credential } };
}

/** Returns the token of a request, for links and subscriptions made with it, or undefined if it had none. */
export async function madeWith(auth: AuthInfo | undefined): Promise<MadeWith | undefined> {
  const make = auth?.extra?.["credential"] as (() => Promise<string>) | undefined; // see `withCredential`
  return make && { credential: await make(), until: (auth?.expiresAt ?? Infinity) * 1000 };
}

const sealingKey = async (key: Key): Promise<Uint8Array> =>
  createHmac("sha256", (await key?.()) ?? OWN_KEY)
    .update("tokens of links")
    .digest();
/** Seals tokens that no other process can open. Used if no key is configured. */
const OWN_KEY = randomBytes(32);

async function sealed(token: string, key: Key): Promise<string> {
  const { CompactEncrypt } = await import("jose");
  const jwe = new CompactEncrypt(Buffer.from(token));
  return jwe.setProtectedHeader({ alg: "dir", enc: "A256GCM" }).encrypt(await sealingKey(key));
}

const REASONS: Readonly<Record<string, AuthFailure>> = {
  [OAuthErrorCode.InsufficientScope]: "no_scope",
  [OAuthErrorCode.TemporarilyUnavailable]: "issuer_unavailable",
  [OAuthErrorCode.TooManyRequests]: "too_many_failures",
};

function refusal(
  error: OAuthError,
  reason: AuthFailure,
  challenge: Parameters<typeof bearerAuthChallengeResponse>[1],
): Response {
  const body = error.toResponseObject();
  if (reason === "issuer_unavailable")
    return Response.json(body, { status: 503, headers: { "retry-after": "5" } });
  if (reason === "too_many_failures") return Response.json(body, { status: 429 });
  return bearerAuthChallengeResponse(error, challenge);
}

export const invalidToken = (): OAuthError =>
  new OAuthError(OAuthErrorCode.InvalidToken, "The token is unknown, expired or not for this server");

/** Reports that the token could not be checked now; it may be valid. */
export function issuerUnavailable(): OAuthError {
  const message = "The authorization server does not answer. Try again soon.";
  return new OAuthError(OAuthErrorCode.TemporarilyUnavailable, message);
}

/**
 * Facts about a verified request. The token itself is not passed on. `sha256`: digest of a configured token.
 * `expiresAt`: in seconds since the epoch; a token that does not expire has none.
 */
export function authInfoOf(
  verified: { principal: Principal; scopes: readonly string[] } & { sha256?: string; expiresAt?: number },
): AuthInfo {
  const { principal, scopes, sha256, expiresAt = Number.MAX_SAFE_INTEGER } = verified;
  return { token: "", clientId: principal, scopes: [...scopes], expiresAt, extra: { principal, sha256 } };
}

/** Returns the principal of a request. Without authentication everyone is the same one. */
export function principalOf(auth: AuthInfo | undefined): Principal {
  if (auth === undefined) return LOCAL;
  const principal = auth.extra?.["principal"];
  if (typeof principal !== "string" || principal === "")
    throw new Error("a verified token names no principal");
  return principal;
}

/** Returns the holder of a token. Its scopes are read at each use, because those of a session can grow. */
export const holderFor = (principal: Principal, auth: AuthInfo | undefined): Holder =>
  auth === undefined
    ? { principal }
    : {
        principal,
        get scopes() {
          return auth.scopes;
        },
      };

/** Identifies the owner of a session or stream: a principal and the scopes of the token that opened it. */
export function ownerOf(auth: AuthInfo | undefined): string {
  return JSON.stringify([principalOf(auth), auth === undefined ? null : [...auth.scopes].sort()]);
}

/**
 * True if the holder of a token may continue the session of `owner`: the same principal with at least its scopes.
 * A renewed token has the same scopes; one that was requested because a scope was missing has more.
 */
export function maySucceed(auth: AuthInfo | undefined, owner: string): boolean {
  const [principal, scopes] = JSON.parse(owner) as [Principal, string[] | null]; // as ownerOf makes them
  if (principal !== principalOf(auth) || (scopes === null) !== (auth === undefined)) return false;
  return (scopes ?? []).every((scope) => auth?.scopes.includes(scope));
}

/**
 * Verifies tokens against the current configuration, which holds only their hashes. Every entry is compared in
 * constant time, so that the duration does not reveal how close a guess came.
 */
export function tokenVerifier(current: () => readonly TokenConfig[]): TokenVerifier {
  return (token, options) => {
    const { sha256: digest = createHash("sha256").update(token).digest("hex") } = options;
    const given = Buffer.from(digest, "hex");
    const [found] = current().filter(({ sha256 }) => timingSafeEqual(Buffer.from(sha256, "hex"), given));
    return found && authInfoOf(found);
  };
}

/** Clocks of servers differ by this much, in seconds. */
export const CLOCK_TOLERANCE_SECONDS = 60;

/**
 * Returns the holder of a valid token. The principal is issuer and subject together, so it is nobody from
 * `http.tokens`.
 *
 * @throws OAuthError when the token names nobody, has no scope of this server, or is bound to a key: such a
 * token is worth nothing without the proof that it is presented by the one it was issued to (RFC 9449).
 */
export function holderOf(config: OAuthClaims, claims: Readonly<Record<string, unknown>>): AuthInfo {
  const { sub, exp, cnf } = claims; // exp: seconds since the epoch
  if (typeof sub !== "string" || sub === "" || cnf !== undefined) throw invalidToken();
  const { resource, audience = resource } = config;
  const texts = (claim: unknown): unknown[] =>
    typeof claim === "string" ? claim.split(" ") : Array.isArray(claim) ? claim : [];
  const granted = new Set(CLAIMS.flatMap((name) => texts(claims[name])));
  // Keycloak has the roles of each client apart.
  const paths = [...GROUPS, ["resource_access", audience, "roles"]];
  const groups = paths.map((path) => path.reduce<unknown>(memberOf, claims)).flatMap(texts);
  const configured = configuredNames(config);
  // Also as names below the audience (`api://app/run`).
  const scopes = SCOPES.filter((scope) => {
    const own = [audience, resource].map((place) => `${withoutSlash(place)}/${scope}`);
    return (
      [scope, ...own].some((name) => granted.has(name)) ||
      // Entra is asked for `api://app/Agent.Run`, and writes `Agent.Run`.
      configured[scope].some((name) => [name, name.split("/").at(-1)].some((one) => granted.has(one))) ||
      configured[scope].some((name) => groups.includes(name))
    );
  });
  if (scopes.length === 0) {
    const message = `The token has none of the scopes ${[...requestedNames(config).values()].join(", ")}`;
    throw new OAuthError(OAuthErrorCode.InsufficientScope, message);
  }
  const expiresAt = typeof exp === "number" ? exp + CLOCK_TOLERANCE_SECONDS : undefined;
  return authInfoOf({ principal: `${config.issuer}#${sub}`, scopes, ...defined({ expiresAt }) });
}

export type OAuthClaims = Pick<OAuthConfig, "issuer" | "resource" | "audience" | "scopes">;

/**
 * Claims with permissions, as text with blanks or as a list: RFC 9068 has `scope`, Okta, Kinde, and Ory a list `scp`,
 * Microsoft Entra the text `scp` and for clients `roles`, Auth0 and Kinde `permissions`.
 */
const CLAIMS = ["scope", "scp", "permissions", "roles"];
/** Claims with groups and roles, which count under configured names only: Keycloak, Amazon Cognito, Authentik. */
const GROUPS = [["realm_access", "roles"], ["cognito:groups"], ["groups"]];

/** Configured names by scope. A name of a list is that of the scope after its last `/`, `:` or `.`. */
function configuredNames({ scopes = [] }: OAuthClaims): Readonly<Record<Scope, readonly string[]>> {
  const names = (scope: Scope): readonly string[] => {
    if (Array.isArray(scopes)) return scopes.filter((name) => name.split(/[/:.]/).at(-1) === scope);
    const given = scopes[scope] ?? [];
    return typeof given === "string" ? [given] : given;
  };
  return { run: names("run"), approve: names("approve"), read: names("read") };
}

/** Returns the names that clients ask an authorization server for: configured ones, or the scopes themselves. */
export function requestedNames(config: OAuthClaims): ReadonlyMap<Scope, string> {
  const names = configuredNames(config);
  return new Map(SCOPES.map((scope) => [scope, names[scope][0] ?? scope]));
}

const withoutSlash = (address: string): string => (address.endsWith("/") ? address.slice(0, -1) : address);

/** An address with and without a slash at its end: providers and people write either. */
export const bothForms = (address: string): string[] => [withoutSlash(address), `${withoutSlash(address)}/`];
