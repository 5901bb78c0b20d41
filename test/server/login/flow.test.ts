/** Log-ins of clients, as they and their makers describe them. */
import { randomBytes } from "node:crypto";
import { SignJWT, exportJWK, generateKeyPair } from "jose";
import { expect, test } from "vitest";
import {
  Browser,
  LOOPBACK,
  authorizeUrl,
  flow,
  form,
  openSite,
  refresh,
  register,
  registered,
  status,
} from "./support.ts";

const CLAUDE = {
  client_id: "https://claude.ai/oauth/mcp-oauth-client-metadata",
  redirect_uri: "https://claude.ai/api/mcp/auth_callback",
};
const CLAUDE_CODE = "https://claude.ai/oauth/claude-code-client-metadata";
const CHATGPT = {
  client_id: "https://chatgpt.com/oauth/abc123/client.json",
  redirect_uri: "https://chatgpt.com/connector/oauth/abc123",
};
const VSCODE = "https://vscode.dev/oauth/client-metadata.json";

const describeClient = (client_id: string, client_name: string, ...redirect_uris: string[]) => ({
  client_id,
  client_name,
  redirect_uris,
  grant_types: ["authorization_code", "refresh_token"],
  response_types: ["code"],
  token_endpoint_auth_method: "none",
});

const { publicKey, privateKey } = await generateKeyPair("RS256", { extractable: true });
const other = await generateKeyPair("RS256", { extractable: true });
const KEYS = "https://chatgpt.com/oauth/jwks.json";
const DOCUMENTS = {
  [CLAUDE.client_id]: describeClient(CLAUDE.client_id, "Claude", CLAUDE.redirect_uri),
  [CLAUDE_CODE]: describeClient(
    CLAUDE_CODE,
    "Claude Code",
    "http://localhost/callback",
    "http://127.0.0.1/callback",
  ),
  [VSCODE]: describeClient(
    VSCODE,
    "Visual Studio Code",
    "http://127.0.0.1:33418/",
    "https://vscode.dev/redirect",
  ),
  [KEYS]: { keys: [{ ...(await exportJWK(publicKey)), kid: "k", alg: "RS256", use: "sig" }] },
  [CHATGPT.client_id]: {
    ...describeClient(CHATGPT.client_id, "ChatGPT", CHATGPT.redirect_uri),
    token_endpoint_auth_method: "private_key_jwt",
    token_endpoint_auth_signing_alg: "RS256",
    jwks_uri: KEYS,
  },
};

test("a client registers, a person logs in and consents, and the token works until it is renewed", async () => {
  const site = await openSite();
  const client_id = await registered(site);
  const browser = new Browser(site, await site.person("alice"));
  const granted = await flow(site, { client_id, browser });
  expect(granted).toMatchObject({ status: 200, scope: "run read", token_type: "Bearer", expires_in: 28_800 });
  expect(granted.back.searchParams.get("iss")).toBe(site.issuer);
  expect(granted.back.searchParams.get("state")).toBe("s");
  expect((await status(site, granted.access_token)).status).not.toBe(401);
  expect(browser.pages.join()).toContain("Test client");
  expect(browser.pages.join()).toContain("this name is not checked");
  expect(browser.pages.join()).toContain("a program on your computer (localhost:3999)");
  const renewed = await refresh(site, client_id, granted.refresh_token);
  expect(renewed).toMatchObject({ status: 200, body: { scope: "run read" } });
});

test.each([
  ["the scope of the challenge", { scope: "read run" }],
  ["no scope", {}],
  ["a resource with a slash at its end", { resource: "/mcp/" }],
  ["the origin as its resource", { resource: "" }],
  ["scopes of OpenID", { scope: "openid email profile" }],
  ["an unknown scope", { scope: "mcp:everything read" }],
  ["offline access and a new consent", { scope: "read offline_access", more: { prompt: "consent" } }],
])(
  "claude.ai logs in by its document, with %s",
  async (_what, { resource, ...asked }: { resource?: string; scope?: string; more?: { prompt: string } }) => {
    const site = await openSite({ documents: DOCUMENTS });
    const place = resource === undefined ? undefined : site.issuer + resource;
    const browser = new Browser(site, await site.person());
    const granted = await flow(site, {
      ...CLAUDE,
      ...asked,
      browser,
      ...(place !== undefined && { resource: place }),
    });
    expect(granted).toMatchObject({ status: 200 });
    expect(granted.scope.split(" ")).toEqual(expect.arrayContaining(["run", "read"]));
    expect(granted.scope).not.toContain("approve");
    expect((await status(site, granted.access_token)).status).not.toBe(401);
    expect(granted.refresh_token).toBeDefined();
    expect(browser.pages.join()).toContain("known by <b>claude.ai</b>");
  },
);

test("without any resource the token is for this server", async () => {
  const site = await openSite({ documents: DOCUMENTS });
  const granted = await flow(site, { ...CLAUDE, resource: "" });
  expect((await status(site, granted.access_token)).status).not.toBe(401);
});

test("claude.ai registers with a secret method, and gets none", async () => {
  const site = await openSite();
  const { status: code, body } = await register(site, {
    client_name: "Claude",
    redirect_uris: [CLAUDE.redirect_uri],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "client_secret_post",
    scope: "read run approve",
  });
  expect(code).toBe(201);
  expect(body).toMatchObject({ token_endpoint_auth_method: "none", client_name: "Claude" });
  expect(body).not.toHaveProperty("client_secret");
  expect(await flow(site, { client_id: body.client_id, redirect_uri: CLAUDE.redirect_uri })).toMatchObject({
    status: 200,
  });
});

/** What ChatGPT proves itself with at the token endpoint. */
const assertion = async (
  audience: string,
  { key = privateKey, jti = randomBytes(8).toString("hex"), at = 0 } = {},
) => ({
  client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
  client_assertion: await new SignJWT({})
    .setProtectedHeader({ alg: "RS256", kid: "k" })
    .setIssuer(CHATGPT.client_id)
    .setSubject(CHATGPT.client_id)
    .setAudience(audience)
    .setJti(jti)
    .setIssuedAt(Math.floor(Date.now() / 1000) + at)
    .setExpirationTime(Math.floor(Date.now() / 1000) + at + 60)
    .sign(key),
});

test("ChatGPT proves itself by its signature, and nobody can without", async () => {
  const site = await openSite({ documents: DOCUMENTS });
  const ask = async (proof: Record<string, string>) =>
    (await flow(site, { ...CHATGPT, scope: "read run", proof })).status;
  expect(await ask(await assertion(site.issuer))).toBe(200);
  expect(await ask(await assertion(`${site.issuer}/oauth/token`))).toBe(200);
  expect(await ask({})).toBe(401);
  expect(await ask(await assertion(site.issuer, { key: other.privateKey }))).toBe(401);
  expect(await ask(await assertion("https://other.example"))).toBe(401);
  expect(await ask(await assertion(site.issuer, { at: -600 }))).toBe(401);
  const once = await assertion(site.issuer, { jti: "once" });
  expect(await ask(once)).toBe(200);
  expect(await ask(once)).toBe(401);
});

test.each([
  ["Claude Code, any loopback port", CLAUDE_CODE, "http://localhost:51234/callback", "localhost:51234"],
  ["VS Code, another loopback port", VSCODE, "http://127.0.0.1:51111/", "127.0.0.1:51111"],
  ["VS Code, on the web", VSCODE, "https://vscode.dev/redirect", "<b>vscode.dev</b>"],
])("%s logs in by its document", async (_what, client_id, redirect_uri, shown) => {
  const site = await openSite({ documents: DOCUMENTS });
  const browser = new Browser(site, await site.person());
  const granted = await flow(site, {
    client_id,
    redirect_uri,
    browser,
    scope: "read run approve offline_access",
  });
  expect(granted.status).toBe(200);
  expect(browser.pages.join()).toContain(shown);
});

test("Cursor registers a private scheme, a loopback address and a web address, and uses the first", async () => {
  const site = await openSite();
  const redirect_uri = "cursor://anysphere.cursor-mcp/oauth/callback";
  const redirect_uris = [
    redirect_uri,
    "http://localhost:8787/callback",
    "https://www.cursor.com/agents/mcp/oauth/callback",
  ];
  const { body } = await register(site, {
    client_name: "Cursor",
    redirect_uris,
    scope: "read run approve offline_access",
  });
  const browser = new Browser(site, await site.person());
  expect(await flow(site, { client_id: body.client_id, redirect_uri, browser })).toMatchObject({
    status: 200,
  });
  expect(browser.pages.join()).toContain("the program that opens cursor://anysphere.cursor-mcp");
});

test("every log-in of one client is a grant of its own: revoking one leaves the other", async () => {
  const site = await openSite({ documents: DOCUMENTS });
  const browser = new Browser(site, await site.person());
  const [one, two] = [await flow(site, { ...CLAUDE, browser }), await flow(site, { ...CLAUDE, browser })];
  // The second log-in needs no password, and a consent again.
  expect(browser.pages.filter((text) => text.includes('name="password"'))).toHaveLength(1);
  expect(browser.pages.filter((text) => text.includes('name="do"'))).toHaveLength(2);
  const revoked = await form(site, "/oauth/revoke", {
    token: one.refresh_token,
    client_id: CLAUDE.client_id,
  });
  expect(revoked.status).toBe(200);
  expect((await status(site, one.access_token)).status).toBe(401);
  expect((await refresh(site, CLAUDE.client_id, one.refresh_token)).status).toBe(400);
  expect((await status(site, two.access_token)).status).not.toBe(401);
});

const CALL = {
  jsonrpc: "2.0",
  id: 1,
  method: "tools/call",
  params: { name: "answer_deep_agent", arguments: { run_id: "r", approval_id: "a", decision: "approve" } },
};

test("approve is never ticked beforehand, and a step up asks for all scopes together", async () => {
  const site = await openSite();
  const client_id = await registered(site);
  const browser = new Browser(site, await site.person());
  const less = await flow(site, { client_id, scope: "read run approve", browser });
  expect(less.scope).toBe("run read");
  const consent = browser.pages.find((text) => text.includes('name="do"')) ?? "";
  expect(consent).toMatch(/value="read"\s+checked/);
  expect(consent).toMatch(/value="approve"(?!\s+checked)/);
  const { status: code, challenge } = await status(site, less.access_token, CALL);
  expect(code).toBe(403);
  expect(challenge).toContain('scope="run approve read"');
  const more = await flow(site, {
    client_id,
    scope: "run approve read",
    browser,
    choice: { scopes: ["read", "run", "approve"] },
  });
  expect(more.scope.split(" ").sort()).toEqual(["approve", "read", "run"]);
  expect((await status(site, more.access_token, CALL)).status).not.toBe(403);
});

test.each([[["read"]], [["run"]], [["approve"]]])("a person grants %j alone", async (scopes) => {
  const site = await openSite();
  const granted = await flow(site, { client_id: await registered(site), choice: { scopes } });
  expect(granted).toMatchObject({ status: 200, scope: scopes[0] });
});

test("a person who refuses, or ticks nothing, grants nothing", async () => {
  const site = await openSite();
  const client_id = await registered(site);
  for (const choice of [{ refuse: true }, { scopes: [] }])
    expect(await flow(site, { client_id, choice })).toMatchObject({ error: "access_denied" });
});

test("two programs of one account at once, and a code for a verifier that is wrong", async () => {
  const site = await openSite();
  const client_id = await registered(site);
  const browser = new Browser(site, await site.person());
  const back = await browser.open(authorizeUrl(site, "v".repeat(43), { client_id }));
  const code = back.searchParams.get("code") ?? "";
  const asked = { grant_type: "authorization_code", code, client_id, redirect_uri: LOOPBACK };
  const wrong = await form(site, "/oauth/token", { ...asked, code_verifier: "w".repeat(43) });
  expect(wrong).toMatchObject({ status: 400, body: { error: "invalid_grant" } });
});
