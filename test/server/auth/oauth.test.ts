import { exportJWK, generateKeyPair, SignJWT, type JWTPayload } from "jose";
import { describe, expect, test } from "vitest";
import { ConfigSchema, type ConfigInput } from "../../../src/config/schema.ts";
import { CLIENT_KINDS } from "../../support/clients.ts";
import { send } from "../../support/clients-raw.ts";
import { runIdOf, untilStatus } from "../../e2e/support.ts";
import { authenticated, HOUR, now, openIssuer, openWithIssuer, RESOURCE, WAYS } from "./issuer.ts";
import { sha256 } from "./support.ts";

/** An issuer, and a configuration with names of scopes. */
async function configured(scopes: NonNullable<NonNullable<ConfigInput["http"]>["oauth"]>["scopes"]) {
  const authority = await openIssuer();
  const { issuer, jwksUrl, introspection } = authority;
  const oauth = (way: (typeof WAYS)[number]) => ({
    issuer,
    resource: RESOURCE,
    scopes,
    ...(way === "keys" ? { jwksUrl } : { introspection }),
  });
  return { authority, oauth };
}

describe.each(WAYS)("an access token, by %s,", (way) => {
  test.each<[string, JWTPayload]>([
    ["of another issuer", { iss: "https://other.example" }],
    ["for another audience", { aud: "https://other.example/mcp" }],
    ["for others only", { aud: ["https://other.example/mcp", "https://agent.example/"] }],
    ["without an audience", { aud: undefined }],
    ["that has expired", { exp: now() - HOUR }],
    ["that is not valid yet", { nbf: now() + HOUR }],
    ["without a subject", { sub: undefined }],
    ["with an empty subject", { sub: "" }],
    ["that is bound to a key", { cnf: { jkt: "x" } }],
  ])("%s is refused with the way to a better one", async (_name, changes) => {
    const { token, ask } = await openWithIssuer(way);
    expect((await ask(await token())).status).toBe(200);
    expect((await ask(await token({ aud: [RESOURCE, "https://other.example"] }))).status).toBe(200);
    const refused = await ask(await token(changes));
    expect(refused.status).toBe(401);
    expect(refused.headers["www-authenticate"]).toContain(
      'scope="run approve read", resource_metadata="https://agent.example/.well-known/oauth-protected-resource/mcp"',
    );
  });

  test.each<[JWTPayload]>([[{ scope: "openid profile" }], [{ scope: undefined }], [{ scope: "RUN" }]])(
    "with scopes %j may do nothing here",
    async (changes) => {
      const { token, ask } = await openWithIssuer(way);
      const refused = await ask(await token(changes));
      expect(refused.status).toBe(403);
      expect(refused.headers["www-authenticate"]).toContain('error="insufficient_scope"');
    },
  );

  test.each<[string, JWTPayload, readonly string[]]>([
    ["text scope", { scope: "run read" }, ["run", "read"]],
    ["list scope", { scope: ["run", "read"] }, ["run", "read"]],
    ["Entra", { scp: "run approve", ver: "2.0" }, ["run", "approve"]],
    ["Entra, one scope", { scp: "approve" }, ["approve"]],
    ["Entra, names of its own", { scp: "Agent.Approve" }, ["approve"]],
    ["Entra, application", { roles: ["run", "read"] }, ["run", "read"]],
    ["Okta, Kinde, Ory", { scp: ["read"] }, ["read"]],
    ["Auth0", { scope: "openid profile", permissions: ["approve"] }, ["approve"]],
    ["Cognito", { scope: `${RESOURCE}/read openid` }, ["read"]],
    ["both", { scope: "run", permissions: ["read"], scp: 7, roles: null }, ["run", "read"]],
    ["Keycloak", { realm_access: { roles: ["agents-admin", "run"] } }, ["approve"]],
    [
      "Keycloak's client",
      { resource_access: { [RESOURCE]: { roles: ["agents-all"] }, account: { roles: ["agents-admin"] } } },
      ["run"],
    ],
    ["Authentik", { groups: ["agents-admin", "agents-all"] }, ["run", "approve"]],
    ["Cognito's groups", { "cognito:groups": ["agents-all"] }, ["run"]],
    ["configured names", { scope: "agents-all api://app/run" }, ["run"]],
  ])("with scopes as %s has them lets its holder do that", async (_name, claims, scopes) => {
    const { authority, oauth } = await configured({
      run: ["api://app/run", "agents-all"],
      approve: ["agents-admin", "api://app/Agent.Approve"],
    });
    const { authenticator } = await authenticated({ oauth: oauth(way) });
    const given = { scope: undefined, ...claims };
    const token = way === "keys" ? await authority.signed(given) : authority.opaque(given);
    const accepted = await authenticator?.authenticate(`Bearer ${token}`);
    expect(accepted).toMatchObject({ ok: true, auth: { scopes } });
  });

  test.each<[string, (issuer: string) => JWTPayload]>([
    ["a slash after the issuer", (issuer) => ({ iss: `${issuer}/` })],
    ["a slash after the audience", () => ({ aud: `${RESOURCE}/` })],
    ["a clock that is 50 seconds ahead", () => ({ iat: now() + 50, nbf: now() + 50 })],
    ["an expiry 30 seconds ago", () => ({ exp: now() - 30 })],
  ])("with %s is accepted", async (_name, changes) => {
    const { token, ask, issuer } = await openWithIssuer(way);
    expect((await ask(await token(changes(issuer)))).status).toBe(200);
  });

  test.each(CLIENT_KINDS)("lets a subject (%s) have runs of its own, and scopes", async (kind) => {
    const tokens = [{ sha256: sha256("alice-token"), principal: "alice" }];
    const { server, token } = await openWithIssuer(way, { tokens });
    const alice = await server.connect(await token(), kind);
    const runId = runIdOf(await alice.call("run_deep_agent", { task: "Say hello" }));
    expect(await untilStatus(alice, runId, "completed")).toMatchObject({ answer: "hello" });
    const renewed = await server.connect(await token({ exp: now() + 2 * HOUR }), kind);
    expect((await renewed.call("check_deep_agent", { run_id: runId })).isError).toBe(false);
    // The same name from elsewhere is somebody else: of the issuer, and of the server's own configuration.
    for (const other of [await token({ sub: "bob" }), "alice-token"]) {
      const stranger = await server.connect(other, kind);
      expect((await stranger.call("check_deep_agent", { run_id: runId })).isError).toBe(true);
    }
    const reads = await server.connect(await token({ scope: undefined, scp: ["read"] }), kind);
    await expect(reads.call("run_deep_agent", { task: "Say hello" })).rejects.toThrow(/run/);
  });
});

test("a signed token without expiry is refused", async () => {
  const { signed, ask } = await openWithIssuer("keys");
  expect((await ask(await signed({ exp: undefined }))).status).toBe(401);
});

test.each(["at+jwt", "JWT", "jwt", "AT+JWT", "application/at+jwt", "Application/JWT"])(
  "a signed token of the kind %s is accepted",
  async (typ) => {
    const { signed, ask } = await openWithIssuer("keys");
    expect((await ask(await signed({}, undefined, { typ }))).status).toBe(200);
  },
);

test.each<unknown>([
  "logout+jwt",
  "dpop+jwt",
  "secevent+jwt",
  "id+jwt",
  "oauth-authz-req+jwt",
  "application/logout+jwt",
  "application/application/jwt",
  "at+jwt2",
  "at+jwt ",
  "",
  null,
  7,
  ["JWT"],
])("a signed token of the kind %j is refused, because it was issued for another use", async (typ) => {
  const { signed, ask } = await openWithIssuer("keys");
  expect((await ask(await signed({}, undefined, { typ }))).status).toBe(401);
});

test("a token that was signed by someone else, or by nobody, is refused", async () => {
  const { signed, ask, publicKey } = await openWithIssuer("keys");
  const foreign = await generateKeyPair("ES256");
  expect((await ask(await signed({}, foreign.privateKey))).status).toBe(401);
  const [, payload] = (await signed()).split(".");
  const header = (alg: string): string => Buffer.from(JSON.stringify({ alg })).toString("base64url");
  expect((await ask(`${header("none")}.${payload}.`)).status).toBe(401);
  const secret = new TextEncoder().encode(JSON.stringify(await exportJWK(publicKey)));
  const shared = await new SignJWT({ iss: "x" }).setProtectedHeader({ alg: "HS256" }).sign(secret);
  expect((await ask(`${header("HS256")}.${payload}.${shared.split(".")[2]}`)).status).toBe(401);
  expect((await ask("not.a.token")).status).toBe(401);
});

test("without the issuer's keys the server says that it is at fault, not the token", async () => {
  const { signed, issuer } = await openIssuer();
  const oauth = { issuer, resource: RESOURCE, jwksUrl: "http://127.0.0.1:1/jwks" };
  const { authenticator } = await authenticated({ oauth });
  expect(await authenticator?.authenticate(`Bearer ${await signed()}`)).toMatchObject({
    ok: false,
    reason: "issuer_unavailable",
    response: { status: 503 },
  });
});

test.each([
  [
    ["api://app/run", "api://app/approve", "api://app/read"],
    "api://app/run api://app/approve api://app/read",
  ],
  [{ run: ["agent:run", "agents"], read: "agent:read" }, "agent:run approve agent:read"],
])("clients are told to request the names %j", async (scopes, names) => {
  const { oauth } = await configured(scopes);
  const { authenticator, documents } = await authenticated({ oauth: oauth("keys") });
  const advertised = documents?.get("/.well-known/oauth-protected-resource");
  expect(advertised).toMatchObject({ scopes_supported: names.split(" ") });
  const refused = await authenticator?.authenticate(undefined);
  expect(refused?.ok === false && refused.response.headers.get("www-authenticate")).toContain(
    `scope="${names}"`,
  );
});

test.each([[["app"]], [[]], [{ write: "x" }], [{ run: "" }]])("the names %j are refused", (scopes) => {
  const oauth = {
    issuer: "https://login.example",
    resource: RESOURCE,
    jwksUrl: "https://login.example/k",
    scopes,
  };
  expect(ConfigSchema.safeParse({ dataDir: "/data", http: { oauth } }).success).toBe(false);
});

test("anyone may read which authorization server to ask", async () => {
  const { server, issuer } = await openWithIssuer("keys");
  const { origin } = new URL(server.url);
  for (const path of ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"]) {
    const found = await send(`${origin}${path}`, { method: "GET" });
    expect(found.status).toBe(200);
    expect(JSON.parse(found.body)).toMatchObject({
      resource: RESOURCE,
      authorization_servers: [issuer],
      scopes_supported: ["run", "approve", "read"],
    });
    expect((await send(`${origin}${path}`, { body: "{}" })).status).toBe(405);
  }
  const named = { method: "GET", headers: { host: "agent.example" } };
  expect((await send(`${origin}/.well-known/oauth-protected-resource`, named)).status).toBe(200);
});

const ISSUER = "https://issuer.example";
const INTROSPECTION = { url: `${ISSUER}/introspect`, clientId: "agent", clientSecretVariable: "SECRET" };

test.each<[string, object]>([
  ["an issuer in the clear", { issuer: "http://issuer.example", jwksUrl: `${ISSUER}/jwks` }],
  ["an issuer over ftp", { issuer: "ftp://127.0.0.1", jwksUrl: `${ISSUER}/jwks` }],
  ["an issuer that is no address", { issuer: "issuer", jwksUrl: `${ISSUER}/jwks` }],
  ["an issuer with a fragment", { issuer: `${ISSUER}/#x`, jwksUrl: `${ISSUER}/jwks` }],
  ["keys in the clear", { jwksUrl: "http://issuer.example/jwks" }],
  ["no way to find out about tokens", {}],
  ["two ways", { jwksUrl: `${ISSUER}/jwks`, introspection: INTROSPECTION }],
  ["introspection in the clear", { introspection: { ...INTROSPECTION, url: "http://issuer.example/" } }],
  [
    "a secret that stands in the file",
    { introspection: { ...INTROSPECTION, clientSecretVariable: "s3cr3t!" } },
  ],
])("the configuration refuses %s", (_name, oauth) => {
  const http = { oauth: { issuer: ISSUER, resource: RESOURCE, ...oauth } };
  expect(ConfigSchema.safeParse({ dataDir: "/data", http }).success).toBe(false);
});
