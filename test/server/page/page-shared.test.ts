import { isApproval } from "../../../src/runs/run.ts";
import { describe, expect, test } from "vitest";
import { type Clock, systemClock } from "../../../src/core/clock.ts";
import type { RunService } from "../../../src/runs/service.ts";
import { MAX_SHARES } from "../../../src/runs/shares.ts";
import type { PageServer } from "../../../src/server/contracts/deps.ts";
import { mine, calling, databaseFile, openServer, reach, startRun } from "../../runs/support.ts";
import { browser, problemsOf } from "./chromium.ts";
import { fileRuns } from "./file-runs.ts";
import { type Site, logIn, openSite } from "./log-in-support.ts";
import { type Visitor, linkTo, openPages, post, visit, visitorOf, waitingRun } from "./support.ts";

const HOUR = 3_600_000;

interface Shared {
  service: RunService;
  runId: string;
  pages: PageServer;
  owner: Visitor;
  /** Address of a new link. */
  link(lifetime?: string): Promise<string>;
  follow(link: string): Promise<Visitor>;
}

async function shared({ service, runId }: Pick<Shared, "service" | "runId">, clock?: Clock): Promise<Shared> {
  const pages = await openPages(service, clock, { sharedRuns: async () => service });
  const owner = await visit(linkTo(pages, runId, "decide"));
  return {
    service,
    runId,
    pages,
    owner,
    link: async (lifetime = "day") => {
      const { status, body } = await owner.post(`/runs/${runId}/share`, { for: lifetime });
      expect(status).toBe(200);
      return owner.origin + (/.*data-address="(\/shared[^"]+)"/s.exec(body)?.[1] ?? "");
    },
    follow: async (link) => {
      const { origin, hash, pathname } = new URL(link);
      expect(pathname).toBe("/shared");
      return visitorOf(origin, await post(link.split("#", 1)[0] ?? "", { code: hash.slice(1) }, { origin }));
    },
  };
}

const waiting = async () => shared(await waitingRun("a"));

test("a shared link shows its run to anyone, as often as they like, and decides nothing", async () => {
  const { service, runId, owner, link, follow } = await waiting();
  const other = await startRun(service, "another one");
  const address = await link();
  const [first, second] = [await follow(address), await follow(address)];
  expect([first.path, second.path]).toEqual([`/runs/${runId}`, `/runs/${runId}`]);
  const { status, body } = await first.get(`${first.path}/review`);
  expect(status).toBe(200);
  expect(body).toContain('Read-only<span class="desk">, shared until');
  expect(body).toContain("This link is read-only");
  expect(body).not.toMatch(
    /<form[^>]*method="post"|deepagent-mcp runs open|Copy link|data-dialog="share-run"/,
  );
  for (const path of ["/", "/review", "/search?q=a", "/files", `/runs/${other.id}`, `/runs/${runId}/steps/2`])
    expect((await first.get(path)).status, path).toBe(404);
  const [approval] = (await mine(service).read.view(runId))?.requests.filter(isApproval) ?? [];
  for (const [path, fields] of [
    ["reply", { request: approval?.id ?? "", decision: "approve" }],
    ["tell", { text: "hello" }],
    ["cancel", {}],
    ["rename", { name: "mine" }],
    ["delete", {}],
    ["continue", { task: "more" }],
    ["share", { for: "day" }],
    ["unshare", { share: "x" }],
  ] as const)
    expect((await first.post(`/runs/${runId}/${path}`, fields)).status, path).toBe(403);
  expect((await first.post("/start", { task: "x" })).status).toBe(404);
  expect((await mine(service).read.view(runId))?.run).toMatchObject({
    status: "input_required",
    task: "note <b>this</b>",
  });
  expect((await owner.get(`/runs/${runId}/work`)).body).toContain("Opened 2 times.");
  expect((await first.get(`/runs/${runId}/export?as=markdown`)).status).toBe(200);
});

test("an expired, revoked, forged, cut or unknown link gets one clear page, and open pages end with it", async () => {
  let ahead = 0;
  const clock = () => systemClock() + ahead;
  const { service: own } = openServer(databaseFile(), { model: calling() }, { clock, concurrentRuns: 0 });
  const { id: queued } = await startRun(own, "look around");
  const { service, runId, owner, link, follow } = await shared({ service: own, runId: queued }, clock);
  const [short, long] = [await link("hour"), await link("week")];
  const [early, late] = [await follow(short), await follow(long)];
  ahead = HOUR;
  const ended = await early.get(early.path);
  expect([ended.status, (await late.get(late.path)).status]).toEqual([401, 200]);
  expect(ended.body).toContain("This link does not work");
  const [id = ""] = (await mine(service).access.list()).map((link) => link.id);
  const [, , signature = ""] = new URL(long).hash.split(".");
  const forged = `shared.${id}.${signature.slice(0, -1)}${signature.endsWith("A") ? "B" : "A"}`;
  for (const code of [new URL(short).hash.slice(1), forged, forged.slice(0, 40), "shared.x.y", ""]) {
    const { status, body } = await post(`${owner.origin}/shared`, { code }, { origin: owner.origin });
    expect([status, body.includes("This link does not work")], code).toEqual([403, true]);
    const header = { ...owner.headers, "page-session": code === "" ? "shared." : code };
    expect((await owner.get(`/runs/${runId}`, header)).status).toBe(401);
  }
  // A later server has another port, and the same key.
  const later = await openPages(service, clock, { sharedRuns: async () => service });
  const { origin } = new URL(later.address);
  const code = new URL(long).hash.slice(1);
  expect((await post(`${origin}/shared`, { code }, { origin })).status).toBe(403);
  expect(await service.as({ principal: "somebody else" }).access.revoke(id)).toBe(false);
  expect((await owner.post(`/runs/${runId}/unshare`, { share: id })).status).toBe(200);
  expect((await late.get(late.path)).status).toBe(401);
  expect((await follow(long)).secret).toBe("");
});

test("links are of one run and its owner: another principal makes none, and none outlives the run", async () => {
  const { service, runId, owner, link, follow } = await waiting();
  expect(await service.as({ principal: "somebody else" }).access.share(runId, HOUR)).toMatchObject({
    ok: false,
    code: "not_found",
  });
  expect(await service.as({ principal: "somebody else" }).access.list()).toEqual([]);
  const address = await link();
  await mine(service).control.cancel(runId, "enough");
  await reach(service, runId, "cancelled");
  const visitor = await follow(address);
  expect((await visitor.get(`${visitor.path}/answer`)).status).toBe(200);
  await expect.poll(async () => (await mine(service).control.delete(runId)).ok).toBe(true);
  expect((await visitor.get(visitor.path)).status).toBe(401);
  expect((await follow(address)).secret).toBe("");
  expect((await owner.post(`/runs/${runId}/share`, { for: "day" })).status).toBe(404);
});

test("there are not more links than one can look through, and none for ever", async () => {
  const { service, runId, owner } = await waiting();
  const endless = await mine(service).access.share(runId, Infinity);
  if (!endless.ok) throw new Error(endless.message);
  expect(endless.share.expiresAt - endless.share.createdAt).toBe(7 * 24 * HOUR);
  for (let made = 1; made < MAX_SHARES; made += 1) await mine(service).access.share(runId, HOUR);
  const { status, body } = await owner.post(`/runs/${runId}/share`, { for: "day" });
  expect([status, body.includes("which is the maximum")]).toEqual([422, true]);
  expect((await owner.post(`/runs/${runId}/share`, { for: "year" })).status).toBe(422);
  expect(await mine(service).access.list()).toHaveLength(MAX_SHARES);
});

test("over HTTP any server with the key knows a link, which needs no token", async () => {
  const { service, runId } = await waitingRun("a");
  const sharing = { sharedRuns: async () => service };
  const [one, other] = [await openSite(service, sharing), await openSite(service, sharing)];
  const owner = await logIn(one.origin, "mine");
  const { body } = await owner.post(`/runs/${runId}/share`, { for: "week" });
  const address = /data-address="(\/shared[^"]+)"/.exec(body)?.[1] ?? "";
  expect(body).not.toContain("on this machine only");
  const code = address.split("#")[1] ?? "";
  const follow = async (site: Site) =>
    visitorOf(site.origin, await post(`${site.origin}/shared`, { code }, { origin: site.origin }));
  const visitor = await follow(other);
  expect((await visitor.get(`/runs/${runId}/work`)).body).toContain(
    'Read-only<span class="desk">, shared until',
  );
  // The secret of one server's tab is good at the other, which has the same key.
  const { headers } = visitor;
  expect((await (await follow(one)).get(`/runs/${runId}`, headers)).status).toBe(200);
  const looks = await logIn(one.origin, "only-looks");
  expect((await looks.post(`/runs/${runId}/share`, { for: "day" })).status).toBe(403);
  const bob = await logIn(one.origin, "bobs");
  expect((await bob.post(`/runs/${runId}/share`, { for: "day" })).status).toBe(404);
  await owner.post(`/runs/${runId}/unshare`, { share: code.split(".")[1] ?? "" });
  expect((await visitor.get(`/runs/${runId}`)).status).toBe(401);
});

test("a server that makes no links has no entry for them, and takes none", async () => {
  const { service, runId } = await waitingRun("a");
  const pages = await openPages(service);
  const owner = await visit(linkTo(pages, runId, "decide"));
  expect((await owner.get(`/runs/${runId}/work`)).body).not.toContain("share-run");
  expect((await owner.post(`/runs/${runId}/share`, { for: "day" })).status).toBe(422);
  const { status } = await post(`${owner.origin}/shared`, { code: "x" }, { origin: owner.origin });
  expect(status).toBe(401);
});

test("whoever follows a link sees what the run changed, and no file as it is", async () => {
  const { service, runId } = await fileRuns();
  const { link, follow } = await shared({ service, runId });
  const visitor = await follow(await link());
  const files = `${visitor.path}/files`;
  const changed = (await mine(service).read.view(runId))?.filesChanged ?? [];
  expect(changed.length).toBeGreaterThan(0);
  const { body: tree } = await visitor.get(files);
  expect(tree).not.toMatch(/All files|Search names and contents/);
  for (const path of changed) expect(tree).toContain(path.split("/").at(-1));
  const { body } = await visitor.get(files + (changed[0] ?? ""));
  expect(body).toContain("Changed by");
  expect(body).not.toMatch(/>Edit<|data-lines|aria-label="Content"/);
  expect((await visitor.get(`${files}${changed[0]}?as=text`)).status).toBe(404);
  expect((await visitor.get(`${files}/workspace/?q=a`)).body).not.toContain("Files with");
  expect((await visitor.get(`${files}/workspace/`)).body).toContain("Choose a file");
});

describe("links to one run, in Chromium", { tags: "chromium" }, () => {
  const open = browser({ locale: "en-GB", timezoneId: "UTC", reducedMotion: "reduce" });

  test("a person makes a link, somebody else follows it, and it ends when the person stops it", async () => {
    const { pages, runId } = await waiting();
    const { page, messages } = await open(linkTo(pages, runId, "decide"));
    await page.waitForURL(/\/runs\//);
    await page.locator("#run-menu summary").click();
    await page.getByRole("button", { name: "Share a read-only link…" }).click();
    await page.getByLabel("Expires in").selectOption("1 hour");
    await page.getByRole("button", { name: "Create link" }).click();
    const field = page.getByLabel("Link", { exact: true });
    await field.waitFor();
    expect(await problemsOf(page)).toEqual([]);
    const address = await field.inputValue();
    expect(address).toMatch(new RegExp(`^${pages.address}shared#shared\\.`));
    const guest = await open(address);
    await guest.page.waitForURL(/\/runs\//);
    await guest.page.getByText("Read-only, shared until").waitFor();
    expect(guest.page.url()).not.toContain("shared.");
    expect(await guest.page.getByRole("button", { name: /Approve|Message|Cancel/ }).count()).toBe(0);
    expect(await problemsOf(guest.page)).toEqual([]);
    await page.getByRole("button", { name: "Stop sharing" }).click();
    await expect.poll(() => field.count()).toBe(0);
    await guest.page.reload();
    await guest.page.getByRole("heading", { name: "This link does not work" }).waitFor();
    expect([...messages, ...guest.messages.filter((text) => !/40[13]/.test(text))]).toEqual([]);
  });
});
