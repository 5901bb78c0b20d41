import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { filesIn } from "../../support/files-in.ts";
import { ServersForPeople, openOtherServers } from "../../../src/app/other-servers.ts";
import { mcpServersSchema } from "../../../src/config/mcp-servers.ts";
import { webSchema } from "../../../src/config/sections.ts";
import { silentLogger } from "../../../src/core/logger.ts";
import { ME, databaseFile, openServer, startRun } from "../../runs/support.ts";
import { logInAs, protectedServer } from "../../support/oauth-server.ts";
import { scriptedModel } from "../../support/scripted-model.ts";
import { json, refuse, sloppyHttp } from "../../support/sloppy-mcp-server.ts";
import { browser, problemsOf } from "./chromium.ts";
import { openPages, visit } from "./support.ts";

const ONE_TOOL = /1\s+tool;\s+1\s+needs\s+approval/;

async function opened(
  urls: Readonly<Record<string, string>>,
  env: Readonly<Record<string, string | undefined>> = {},
) {
  const dataDir = filesIn();
  const given = Object.fromEntries(Object.entries(urls).map(([name, url]) => [name, { url }]));
  const config = { dataDir, web: webSchema.parse({}), mcpServers: mcpServersSchema.parse(given) };
  const mcp = openOtherServers(config, env, silentLogger);
  onTestFinished(() => mcp.close());
  const servers = new ServersForPeople(mcp, config, env);
  const { service } = openServer(
    databaseFile(),
    { model: scriptedModel(() => ({ text: "done" })) },
    { concurrentRuns: 0, otherServers: async () => servers },
  );
  const pages = await openPages(service);
  return { mcp, service, pages, link: pages.link({ principal: ME, purpose: "decide" }) };
}

test("the screen shows each server's state, its tools and its last error", async () => {
  const works = await sloppyHttp(() => undefined);
  const { mcp, link } = await opened({ works: works.url, gone: "http://127.0.0.1:1/mcp" });
  const { get, post } = await visit(link);
  expect((await get("/servers")).body).toContain("Not started yet");
  expect((await post("/servers/ask", {})).headers["location"]).toBe("/servers");
  const { body } = await get("/servers");
  expect(body).toContain("2 servers, 1 unavailable");
  expect(body).toMatch(ONE_TOOL);
  expect(body).toContain("Unavailable: no response.");
  expect(body).toMatch(/Checked <time/);
  // A run asks for the tools again during the pause, and what it got stands here until somebody asks.
  await mcp.forAgent();
  expect((await get("/servers")).body).not.toContain("next attempt");
  expect(body).not.toContain("Log in…");
  expect((await get("/")).body).toContain('href="/servers"');
});

test("a log-in begins and ends on the page, and counts once", async () => {
  const { url } = await protectedServer();
  const { link } = await opened({ notes: url });
  const { get, post, origin } = await visit(link);
  await post("/servers/ask", {});
  expect((await get("/servers")).body).toContain("Log-in required.");
  const begun = await post("/servers/login", { server: "notes" });
  const address = /href="(http[^"]+)" rel="noreferrer"/.exec(begun.body)?.[1]?.replaceAll("&#38;", "&") ?? "";
  expect(begun.body).toContain(`<strong>${new URL(address).host}</strong>`);
  const back = await logInAs("ada", address, `${origin}/servers/callback`);
  const { body } = await get(back.pathname + back.search);
  expect(body).toContain("You are logged in.");
  expect(body).toMatch(ONE_TOOL);
  expect((await get(back.pathname + back.search)).body).toContain("This log-in has ended");
  expect((await post("/servers/login", { server: "other" })).status).toBe(422);
});

test("a log-in at an address of a variable begins, and one without its variable says so", async () => {
  const { url } = await protectedServer();
  const { link } = await opened({ notes: "${NOTES_URL}", gone: "${GONE_URL}" }, { NOTES_URL: url });
  const { post } = await visit(link);
  await post("/servers/ask", {});
  expect(await post("/servers/login", { server: "notes" })).toMatchObject({
    status: 200,
    body: expect.stringMatching(/href="http[^"]+" rel="noreferrer"/),
  });
  expect(await post("/servers/login", { server: "gone" })).toMatchObject({
    status: 422,
    body: expect.stringContaining("it needs the environment variable GONE_URL, which is not set"),
  });
});

test("the reason why a log-in did not begin has no secret of the address", async () => {
  const { url } = await sloppyHttp(({ request, response }) => {
    const { origin } = new URL(url);
    if (request.url?.includes("oauth-protected-resource"))
      return json(response, { resource: `${origin}/other`, authorization_servers: [origin] });
    if (request.url?.includes("oauth-authorization-server"))
      return json(response, {
        issuer: origin,
        authorization_endpoint: `${origin}/authorize`,
        token_endpoint: `${origin}/token`,
        response_types_supported: ["code"],
        code_challenge_methods_supported: ["S256"],
      });
    return refuse(response, 401);
  });
  const { link } = await opened({ notes: `${url}?key=\${NOTES_KEY}` }, { NOTES_KEY: "hunter2-hunter2" });
  const { status, body } = await (await visit(link)).post("/servers/login", { server: "notes" });
  expect(status).toBe(422);
  expect(body).toContain("[hidden]");
  expect(body).not.toContain("hunter2");
});

test("a page of one run has neither", async () => {
  const { service, pages } = await opened({ gone: "http://127.0.0.1:1/mcp" });
  const { id } = await startRun(service, "look");
  const looker = await visit(pages.link({ principal: ME, purpose: "watch", run: id }));
  expect((await looker.get("/servers")).status).not.toBe(200);
  expect((await looker.get(`/runs/${id}`)).body).not.toContain('href="/servers"');
  expect((await looker.post("/servers/login", { server: "gone" })).status).toBeGreaterThanOrEqual(400);
});

describe("in Chromium", { tags: "chromium" }, () => {
  const open = browser({ locale: "en-GB", reducedMotion: "reduce" });

  test("a person logs in at a server, comes back, and sees its tools", async () => {
    const { url } = await protectedServer();
    const works = await sloppyHttp(() => undefined);
    const { link, pages } = await opened({
      "notes-of-a-team-with-a-long-name": url,
      works: works.url,
      gone: "http://127.0.0.1:1/a/very/long/path/to/an/mcp/endpoint",
    });
    const { page, messages } = await open(link);
    await page.waitForURL(pages.address);
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.getByLabel("Browser settings").click();
    await page.getByText("Other MCP servers").click();
    await page.getByRole("button", { name: "Check now" }).click();
    await page.getByText("Log-in required.").waitFor();
    expect(await problemsOf(page)).toEqual([]);
    await page.getByRole("button", { name: "Log in…" }).click();
    await page.getByRole("link", { name: "Continue" }).waitFor();
    expect(await problemsOf(page)).toEqual([]);
    const { PICTURES: folder } = process.env;
    if (folder !== undefined) await page.screenshot({ path: join(folder, "servers-390.png") });
    await page.setViewportSize({ width: 1280, height: 800 });
    if (folder !== undefined) await page.screenshot({ path: join(folder, "servers-1280.png") });
    expect(messages).toEqual([]);
    await page.getByRole("link", { name: "Continue" }).click();
    await page.locator("[name=login]").fill("ada");
    await page.locator("[name=password]").fill("x");
    await page.locator("[type=submit]").first().click();
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByText("You are logged in.").waitFor();
    messages.length = 0; // those of the other site
    await page.getByText("Show tools").first().click();
    await page.getByText("approval", { exact: true }).first().waitFor();
    if (folder !== undefined) await page.screenshot({ path: join(folder, "servers-in.png") });
    expect(messages).toEqual([]);
  });
});
