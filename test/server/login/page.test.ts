/** The page, with the same log-in. */
import { expect, test } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { silentLogger } from "../../../src/core/logger.ts";
import { SECRET_HEADER } from "../../../src/server/page/tab-secrets.ts";
import { send } from "../../support/clients-raw.ts";
import { openServer, databaseFile } from "../../runs/support.ts";
import { scriptedModel } from "../../support/scripted-model.ts";
import { openCommand } from "../support.ts";
import { holder } from "../page/log-in-support.ts";
import { Logins } from "../../../src/runs/logins.ts";
import { openDatabase } from "../../../src/storage/sqlite/database.ts";
import { sqliteRuns } from "../../../src/storage/sqlite/runs/repository.ts";
import { PASSWORD, addPerson, codeOf, flow, openSite, registered, status } from "./support.ts";

async function openWithPage() {
  const file = databaseFile();
  const { service } = openServer(
    file,
    { model: scriptedModel(() => ({ text: "done" })) },
    { concurrentRuns: 0 },
  );
  const logins = new Logins(
    sqliteRuns(openDatabase(file)).logins,
    () => Date.now(),
    async () => [Buffer.alloc(32, 5)],
  );
  const shared = { clock: systemClock, logger: silentLogger };
  const site = await openSite({
    place: { logins, person: (name = "alice") => addPerson(logins, name) },
    page: {
      ...shared,
      runs: async () => service,
      key: async () => Buffer.alloc(32, 7),
      openCommand,
      settings: {},
      sharedRuns: async () => service,
    },
  });
  const enter = async (fields: Record<string, string>, headers: Record<string, string> = {}) => {
    const sent = {
      origin: site.issuer,
      [SECRET_HEADER]: "cookie",
      "content-type": "application/x-www-form-urlencoded",
    };
    const body = new URLSearchParams(fields).toString();
    const answer = await send(`${site.issuer}/login`, { body, headers: { ...sent, ...headers } });
    const { session } =
      answer.status === 200 ? (JSON.parse(answer.body) as { session?: { secret: string } }) : {};
    return { answer, ...holder(site.issuer, { secret: session?.secret ?? "" }) };
  };
  return { site, service, enter };
}

test("a person logs in to the page with name, password and code, and out again", async () => {
  const { site, enter } = await openWithPage();
  const owner = await site.person();
  const stranger = holder(site.issuer, {});
  const asked = await stranger.get("/review");
  expect(asked.status).toBe(401);
  expect(asked.body).toMatch(/name="name"[^]*name="password"[^]*name="code"/);
  expect(asked.body).toContain('name="next" value="/review"');
  const secrets = { name: owner.name, password: PASSWORD, code: codeOf(owner), next: "/review" };
  const { answer, get, post } = await enter(secrets);
  expect([answer.status, JSON.parse(answer.body)]).toMatchObject([200, { at: "/review" }]);
  expect((await get("/")).body).toContain("Log out");
  expect((await enter({ ...secrets, next: "/" })).answer.status).toBe(401);
  const access = await get("/access");
  expect(access.body).toContain("The page in a browser");
  expect((await post("/logout", {})).status).toBe(200);
  expect((await get("/")).status).toBe(401);
  expect(
    await site.logins.rows.read("find", {
      model: "Grant",
      id: /id="access-([\w-]+)"/.exec(access.body)?.[1] ?? "",
      now: 0,
    }),
  ).toEqual([]);
});

test.each([
  ["//evil.example/x", "/"],
  ["https://evil.example/x", "/"],
  ["/\\evil.example", "/"],
  ["/runs/run_1?tab=x", "/runs/run_1?tab=x"],
])("a log-in that is asked to lead to %s leads to %s", async (next, at) => {
  const { site, enter } = await openWithPage();
  const owner = await site.person();
  const { answer } = await enter({ name: owner.name, password: PASSWORD, code: codeOf(owner), next });
  expect(JSON.parse(answer.body)).toMatchObject({ at });
});

test("a wrong password, and a form of another page, open nothing", async () => {
  const { site, enter } = await openWithPage();
  const owner = await site.person();
  const wrong = await enter({ name: owner.name, password: "wrong", code: codeOf(owner) });
  expect([wrong.answer.status, wrong.answer.body.includes("wrong, or there were too many attempts")]).toEqual(
    [401, true],
  );
  const forged = await enter(
    { name: owner.name, password: PASSWORD, code: codeOf(owner) },
    { origin: "https://evil.example" },
  );
  expect(forged.answer.status).toBe(403);
  expect((await enter({ name: owner.name })).answer.status).toBe(401);
});

test("the page lists connected clients, and revokes one or all of them", async () => {
  const { site, service, enter } = await openWithPage();
  const client_id = await registered(site);
  const owner = await site.person();
  const [one, two] = [
    await flow(site, { client_id, owner }),
    await flow(site, { client_id, owner, choice: { code: codeOf(owner, 1) } }),
  ];
  // The codes of this person are used up for a moment.
  const token = await site.logins.openPage(owner.name, site.url);
  const { get, post, answer } = await enter({ token });
  expect(answer.status).toBe(200);
  const { body } = await get("/access");
  expect(body.match(/Connected client/g)).toHaveLength(3);
  expect(body).toContain("Test client");
  expect(body).toContain("a program on your computer (localhost:3999)");
  const rows = [...body.matchAll(/id="access-([\w-]+)"[^]*?<\/article>/g)];
  const [, id = ""] = rows.find(([text]) => text.includes("Test client")) ?? [];
  expect((await post("/access/revoke", { share: id })).status).toBe(303);
  const left = await Promise.all(
    [one, two].map(async ({ access_token }) => (await status(site, access_token)).status),
  );
  expect(left.filter((code) => code === 401)).toHaveLength(1);
  expect((await post("/access/revoke", { share: "everywhere" })).status).toBe(303);
  for (const { access_token } of [one, two]) expect((await status(site, access_token)).status).toBe(401);
  expect((await get("/")).status).toBe(401);
  expect(await service.as({ principal: owner.name }).access.list()).toEqual([]);
});

test("another person sees and revokes nothing of it", async () => {
  const { site, service, enter } = await openWithPage();
  const client_id = await registered(site);
  const [alice, bob] = [await site.person("alice"), await site.person("bob")];
  const granted = await flow(site, { client_id, owner: alice });
  const { get, post } = await enter({ name: "bob", password: PASSWORD, code: codeOf(bob) });
  expect((await get("/access")).body).not.toContain("Test client");
  const [client] = await service.as({ principal: "alice" }).access.list();
  expect((await post("/access/revoke", { share: client?.id ?? "" })).status).toBe(303);
  await post("/access/revoke", { share: "everywhere" });
  expect((await status(site, granted.access_token)).status).not.toBe(401);
});
