/** Clients that are refused, and what an attacker tries. */
import { expect, test } from "vitest";
import { Browser, LOOPBACK, authorizeUrl, flow, openSite, register, registered, status } from "./support.ts";

test.each([
  "https://evil.example/cb",
  "http://10.0.0.1/cb",
  "javascript:alert(1)",
  "http://localhost.evil.example/cb",
  "https://claude.ai.evil.example/api/mcp/auth_callback",
  "https://claude.ai./api/mcp/auth_callback",
  "https://claude.ai/api/mcp/auth_callback?next=https://evil.example",
  "https://claude.ai/api/mcp/auth_callback#x",
  "https://claude.ai@evil.example/api/mcp/auth_callback",
  "https://chatgpt.com/connector/oauth/a/b",
  "https://chatgpt.com/connector/oauth/..",
  "http://user@localhost/cb",
  "http://localhost/cb#x",
  "https://localhost/cb",
  "cursor://evil.example/oauth/callback",
])("a client that wants its codes at %s is not registered", async (redirect) => {
  const site = await openSite();
  const { status: code, body } = await register(site, {
    client_name: "Claude",
    redirect_uris: [LOOPBACK, redirect],
  });
  expect([code, body["error"]]).toEqual([400, "invalid_redirect_uri"]);
});

test.each([
  [{}],
  [{ redirect_uris: [] }],
  [{ redirect_uris: "x" }],
  [[]],
  [{ redirect_uris: Array(11).fill(LOOPBACK) }],
])("the registration %j is refused", async (body) => {
  expect((await register(await openSite(), body)).status).toBe(400);
});

test("the operator allows more callbacks", async () => {
  const redirect = "https://app.example/callback";
  const site = await openSite({ http: { redirects: [redirect] } });
  const client_id = await registered(site, redirect);
  expect(await flow(site, { client_id, redirect_uri: redirect })).toMatchObject({ status: 200 });
});

test("an address that was not registered gets no code, and the browser is not sent there", async () => {
  const site = await openSite();
  const client_id = await registered(site);
  for (const redirect_uri of [
    "https://evil.example/cb",
    "http://localhost:3999/other",
    "https://claude.ai/api/mcp/auth_callback",
  ]) {
    const browser = new Browser(site, await site.person());
    const seen = await browser.follow(authorizeUrl(site, "v".repeat(43), { client_id, redirect_uri }));
    expect(seen.response?.status).toBe(400);
    expect(seen.text).toContain("You cannot log in this way");
    expect(seen.response?.headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
  }
});

const EVIL = "https://evil.example/client.json";
const CLAUDE = "https://claude.ai/oauth/mcp-oauth-client-metadata";
const LISTED = "https://vscode.dev/oauth/client-metadata.json";
const own = (id: string, more: object = {}) => ({
  client_id: id,
  client_name: "Claude",
  redirect_uris: ["https://claude.ai/api/mcp/auth_callback"],
  token_endpoint_auth_method: "none",
  ...more,
});

test.each([
  ["is not on the list", EVIL, own(EVIL)],
  [
    "names a callback elsewhere",
    LISTED,
    own(LISTED, { redirect_uris: ["https://claude.ai/api/mcp/auth_callback", "https://evil.example/cb"] }),
  ],
  ["names another client", LISTED, own(CLAUDE)],
  [
    "has a secret",
    LISTED,
    own(LISTED, { client_secret: "x", token_endpoint_auth_method: "client_secret_post" }),
  ],
  ["leads elsewhere", LISTED, Response.redirect("https://evil.example/client.json", 302)],
  ["does not exist", "https://chatgpt.com/oauth/none/client.json", undefined],
])("a client is refused whose document %s", async (_what, client_id, document) => {
  const site = await openSite({ documents: document === undefined ? {} : { [client_id]: document } });
  const browser = new Browser(site, await site.person());
  const redirect_uri = "https://claude.ai/api/mcp/auth_callback";
  const seen = await browser.follow(authorizeUrl(site, "v".repeat(43), { client_id, redirect_uri }));
  expect(seen.response?.status).toBeGreaterThanOrEqual(400);
  expect(seen.text).not.toContain('name="password"');
});

test("a document is never fetched from an address of this machine", async () => {
  const site = await openSite();
  for (const client_id of [
    "https://localhost/oauth/client.json",
    "https://127.0.0.1/client.json",
    "http://169.254.169.254/x",
  ]) {
    const seen = await new Browser(site, await site.person()).follow(
      authorizeUrl(site, "v".repeat(43), { client_id }),
    );
    expect(seen.response?.status).toBe(400);
  }
});

test("plain challenges, missing challenges and other resources are refused", async () => {
  const site = await openSite();
  const client_id = await registered(site);
  const refused = async (request: object): Promise<string | null> => {
    const browser = new Browser(site, await site.person());
    const { at } = await browser.follow(authorizeUrl(site, "v".repeat(43), { client_id, ...request }));
    const { searchParams, hash } = new URL(at);
    return searchParams.get("error") ?? new URLSearchParams(hash.slice(1)).get("error");
  };
  expect(await refused({ more: { code_challenge_method: "plain" } })).toBe("invalid_request");
  expect(await refused({ more: { code_challenge: "" } })).toBe("invalid_request");
  expect(await refused({ more: { response_type: "token" } })).toBe("unsupported_response_type");
  expect(await refused({ resource: "https://other.example/mcp" })).toBe("invalid_target");
});

test("a token for another server is refused", async () => {
  const site = await openSite();
  const { name } = await site.person();
  const foreign = await site.logins.openPage(name, "https://other.example/mcp");
  expect((await status(site, foreign)).status).toBe(401);
  const own = await site.logins.openPage(name, site.url);
  expect((await status(site, own)).status).not.toBe(401);
});

test("one address registers only so many clients in a minute, and clients without a log-in make room", async () => {
  const site = await openSite({ options: { clock: () => 1_000_000 } });
  const { rows } = site.logins;
  const client = (id: string, created: number) => ({
    model: "Client",
    id,
    principal: null,
    grant_id: null,
    uid: null,
    body: "{}",
    now: created,
    expires_at: Date.now() + 60_000,
  });
  for (let at = 0; at < 1005; at += 1) await rows.change("put", client(`c${at}`, at));
  await rows.change("keep", { grant: "", client: "c0", now: 1, expires_at: Date.now() + 60_000 });
  const id = await registered(site);
  const left = await rows.read<{ body: string }>("find", { model: "Client", id: "c0", now: 0 });
  expect(left).toHaveLength(1);
  expect(await rows.read("find", { model: "Client", id: "c1", now: 0 })).toEqual([]);
  expect(await rows.read("find", { model: "Client", id: "c1004", now: 0 })).toHaveLength(1);
  expect(await rows.read("find", { model: "Client", id, now: 0 })).toHaveLength(1);
  const answers = await Promise.all(
    Array.from({ length: 130 }, () => register(site, { redirect_uris: [LOOPBACK] })),
  );
  expect(new Set(answers.map((one) => one.status))).toEqual(new Set([201, 429]));
});

const PATHS = [
  "/.well-known/oauth-authorization-server",
  "/.well-known/openid-configuration",
  "/.well-known/oauth-protected-resource",
  "/.well-known/oauth-protected-resource/mcp",
];

test("metadata are the same whatever a client or a proxy says of the address", async () => {
  const site = await openSite();
  for (const path of PATHS) {
    const plain = await (await fetch(site.issuer + path)).text();
    const forged = {
      "x-forwarded-host": "evil.example",
      "x-forwarded-proto": "https",
      forwarded: "host=evil.example",
    };
    expect(await (await fetch(site.issuer + path, { headers: forged })).text()).toBe(plain);
    expect(plain).not.toContain("evil.example");
  }
  const [server, resource] = [
    await (await fetch(site.issuer + PATHS[0])).json(),
    await (await fetch(site.issuer + PATHS[2])).json(),
  ];
  expect(resource).toMatchObject({ resource: site.url, authorization_servers: [site.issuer] });
  expect(server).toMatchObject({
    issuer: site.issuer,
    scopes_supported: ["run", "approve", "read", "offline_access"],
    code_challenge_methods_supported: ["S256"],
    token_endpoint_auth_methods_supported: ["none", "private_key_jwt"],
    client_id_metadata_document_supported: true,
    authorization_response_iss_parameter_supported: true,
  });
  const addresses = Object.entries(server as object).filter(([name]) => /_endpoint$|jwks_uri/.test(name));
  expect(addresses.map(([name]) => name).sort()).toEqual([
    "authorization_endpoint",
    "jwks_uri",
    "registration_endpoint",
    "revocation_endpoint",
    "token_endpoint",
  ]);
  for (const [name, address] of addresses) {
    expect(String(address).startsWith(site.issuer)).toBe(true);
    const method = /^(?:authorization|jwks)/.test(name) ? "GET" : "POST";
    expect((await fetch(String(address), { method, redirect: "manual" })).status).not.toBe(404);
  }
});

test("behind a path, addresses begin with it", async () => {
  const site = await openSite({ http: { publicUrl: "https://agent.example/deep" } });
  const local = new URL(site.url).origin;
  const headers = { host: "agent.example" };
  const { send } = await import("../../support/clients-raw.ts");
  const paths = [
    "/.well-known/oauth-authorization-server/deep",
    "/.well-known/oauth-authorization-server",
    "/.well-known/openid-configuration",
  ];
  const bodies = await Promise.all(
    paths.map(async (path) => (await send(local + path, { method: "GET", headers })).body),
  );
  expect(new Set(bodies).size).toBe(1);
  expect(JSON.parse(bodies[0] ?? "")).toMatchObject({
    issuer: "https://agent.example/deep",
    token_endpoint: "https://agent.example/deep/oauth/token",
  });
  const refused = await send(site.url, { headers, body: "{}" });
  expect(refused.headers["www-authenticate"]).toContain(
    'resource_metadata="https://agent.example/deep/.well-known/oauth-protected-resource/mcp"',
  );
  const foreign = await send(local + paths[0], { method: "GET", headers: { host: "evil.example" } });
  expect(foreign.status).toBe(403);
  const redirect_uris = [LOOPBACK];
  const made = await send(`${local}/oauth/register`, { headers, body: JSON.stringify({ redirect_uris }) });
  const { client_id } = JSON.parse(made.body) as { client_id: string };
  const query = authorizeUrl({ issuer: local, url: "https://agent.example/deep/mcp" }, "v".repeat(43), {
    client_id,
  });
  const begun = await send(query, { method: "GET", headers: { ...headers, accept: "text/html" } });
  expect(begun.headers.location).toMatch(/^\/deep\/oauth\/consent\//);
  expect(begun.headers["set-cookie"]?.join()).toMatch(
    /path=\/deep\/oauth\/consent\/[^,]*,[^,]*samesite=lax; secure; httponly/i,
  );
});
