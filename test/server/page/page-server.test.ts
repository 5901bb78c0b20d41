import { createHmac } from "node:crypto";
import { existsSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { isApproval } from "../../../src/runs/run.ts";
import { filesIn } from "../../support/files-in.ts";
import { createCheckpointer } from "../../../src/storage/sqlite/checkpoints/checkpointer.ts";
import { openDatabase } from "../../../src/storage/sqlite/database.ts";
import {
  ME,
  mine,
  calling,
  cleanUpWith,
  databaseFile,
  note,
  openServer,
  reach,
  startRun,
} from "../../runs/support.ts";
import { scriptedModel } from "../../support/scripted-model.ts";
import { send } from "../../support/clients-raw.ts";
import { findPage, linkProof, notePage } from "../../../src/server/page/find-page.ts";
import type { Backend } from "../../../src/backends/backend.ts";
import { snapshotFiles } from "../../../src/backends/runtime.ts";
import { StateBackend } from "../../../src/backends/stores/state.ts";
import { type Logger, silentLogger } from "../../../src/core/logger.ts";
import { LIFETIME_MS, type PagePurpose } from "../../../src/server/contracts/viewer.ts";
import { PROOF_HEADER, SECRET_HEADER } from "../../../src/server/page/tab-secrets.ts";
import { LINKED_SHELL } from "../../../src/server/views/room/shell.ts";
import type { PageServer } from "../../../src/server/contracts/deps.ts";
import { approvalRuns, plainRuns } from "../support.ts";
import { linkTo, openPages, post, visit, visitorOf, waitingRun } from "./support.ts";

const APPROVE = { decision: "approve" };

describe("links", () => {
  test("looking at a link uses nothing up, opening it does, and then it opens nothing more", async () => {
    const { service, runId } = await waitingRun("a");
    const link = linkTo(await openPages(service), runId, "watch");
    expect(link).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/open#[\w-]{43}$/);
    for (const _time of [1, 2]) {
      // Nobody sends what follows the sign of a fragment.
      const looked = await send(link.split("#", 1)[0] ?? "", { method: "GET" });
      expect([looked.status, looked.body]).toEqual([200, LINKED_SHELL.text]);
    }
    const visitor = await visit(link);
    expect(visitor.path).toBe(`/runs/${runId}`);
    expect((await visitor.get(visitor.path)).status).toBe(200);
    expect((await visit(link)).secret).toBe("");
  });

  test("the code stands where no server and no referrer sees it, and nothing sets a cookie", async () => {
    const { service, runId } = await waitingRun("a");
    const logged: string[] = [];
    const log = (...line: unknown[]): void => void logged.push(JSON.stringify(line));
    const logger: Logger = { ...silentLogger, info: log, warn: log, error: log, debug: log };
    const link = linkTo(await openPages(service, undefined, { logger }), runId, "decide");
    const { origin, hash } = new URL(link);
    const opened = await post(`${origin}/open`, { code: hash.slice(1) }, { origin });
    const visitor = visitorOf(origin, opened);
    const answers = [opened, await visitor.get("/"), await visitor.get(visitor.path)];
    expect(answers.map(({ headers }) => headers["set-cookie"])).toEqual([undefined, undefined, undefined]);
    expect(logged).toHaveLength(1);
    expect(logged.join()).not.toContain(hash.slice(1));
    expect(logged.join()).not.toContain(visitor.secret);
  });

  test("a code of another server, a changed or an old one opens nothing", async () => {
    let now = 1_000_000;
    const { service, runId } = await waitingRun("a");
    const pages = await openPages(service, () => now);
    const origin = new URL(linkTo(pages, runId, "watch")).origin;
    const codeOf = (link: string) => new URL(link).hash.slice(1);
    const open = async (code: string) => (await post(`${origin}/open`, { code }, { origin })).status;
    expect(await open(codeOf(linkTo(await openPages(service), runId, "decide")))).toBe(403);
    const good = codeOf(linkTo(pages, runId, "watch"));
    for (const bad of ["", ".", good + "x", good.slice(0, -1)]) {
      expect([bad, await open(bad)]).toEqual([bad, 403]);
    }
    now += 13 * 3600 * 1000;
    expect(await open(good)).toBe(403);
    const fresh = codeOf(linkTo(pages, runId, "watch"));
    const elsewhere = await post(`${origin}/open`, { code: fresh }, { origin: "http://127.0.0.1:1" });
    expect(elsewhere.status).toBe(403);
    expect(await open(fresh)).toBe(200);
  });

  test("a link for someone else's run shows nothing", async () => {
    const { service, runId } = await waitingRun("a");
    const visitor = await visit(linkTo(await openPages(service), runId, "decide", "stranger"));
    expect((await visitor.get(visitor.path)).status).toBe(404);
    const sent = await visitor.post(`${visitor.path}/reply`, { ...APPROVE, request: "x" });
    expect(sent.status).toBe(404);
  });
});

describe("requests", () => {
  test("a session is good for its own run only", async () => {
    const { service, runId } = await waitingRun("a");
    const other = await startRun(service, "another");
    const visitor = await visit(linkTo(await openPages(service), runId, "decide"));
    expect((await visitor.get(`/runs/${other.id}`)).status).toBe(404);
    expect((await visitor.get(visitor.path, { [SECRET_HEADER]: "" })).status).toBe(401);
    expect((await visitor.get(`${visitor.path}/work`, { [SECRET_HEADER]: "a.b" })).status).toBe(401);
    expect((await visitor.get("/runs/%zz")).status).toBe(404);
    const proofs = [`/runs/${runId}`, `/runs/${other.id}`].map((path) => visitor.get(path));
    const proof = expect.stringMatching(/^[\w-]{43}$/);
    expect((await Promise.all(proofs)).map(({ headers }) => headers[PROOF_HEADER])).toEqual([proof, proof]);
    const document = await send(visitor.origin + visitor.path, { method: "GET" });
    expect([document.status, document.body]).toEqual([200, LINKED_SHELL.text]);
  });

  test.each([
    ["another name for the host", { host: "attacker.example" }],
    ["localhost instead of the address", { host: "localhost" }],
    ["a request of another site", { origin: "https://attacker.example" }],
    ["a request of a page without origin", { origin: "null" }],
    ["a request of another port", { origin: "http://127.0.0.1:1" }],
    ["a request of another port, by the browser's word", { "sec-fetch-site": "same-site" }],
  ])("%s is refused", async (_what, headers) => {
    const { service, runId } = await waitingRun("a");
    const visitor = await visit(linkTo(await openPages(service), runId, "decide"));
    const fields = { ...(await visitor.form()), ...APPROVE };
    expect((await visitor.get(visitor.path, headers)).status).toBe(403);
    expect((await visitor.post(`${visitor.path}/reply`, fields, headers)).status).toBe(403);
    expect((await mine(service).read.view(runId))?.run.status).toBe("input_required");
  });

  test("a decision without origin, without the tab's secret or not as a form is refused", async () => {
    const { service, runId } = await waitingRun("a");
    const visitor = await visit(linkTo(await openPages(service), runId, "decide"));
    const fields: Record<string, string> = { ...(await visitor.form()), ...APPROVE };
    const address = `${visitor.path}/reply`;
    expect((await post(visitor.origin + address, fields, visitor.headers)).status).toBe(403);
    expect((await post(visitor.origin + address, fields, { origin: visitor.origin })).status).toBe(401);
    for (const secret of ["", `${visitor.secret}x`, visitor.secret.slice(1)]) {
      expect((await visitor.post(address, fields, { [SECRET_HEADER]: secret })).status).toBe(401);
    }
    const asCookie = { [SECRET_HEADER]: "cookie", cookie: `page-session=${visitor.secret}` };
    expect((await visitor.post(address, fields, asCookie)).status).toBe(401);
    expect((await visitor.post(address, fields, { "content-type": "text/plain" })).status).toBe(400);
    const huge = { ...fields, message: "x".repeat(2 ** 20) };
    expect((await visitor.post(address, huge)).status).toBe(400);
    expect((await visitor.get(address)).status).toBe(404);
    expect((await visitor.post(visitor.path, fields)).status).toBe(405);
    expect((await mine(service).read.view(runId))?.run.status).toBe("input_required");
  });

  test("every answer forbids frames, foreign and inline content, and copies", async () => {
    const { service, runId } = await waitingRun("a");
    const pages = await openPages(service);
    const visitor = await visit(linkTo(pages, runId, "decide"));
    const assets = ["page.css", "page.js", "inter.woff2"].map((name) => `/assets/${name}`);
    const ofRun = ["", "/work", "/review"].map((part) => visitor.path + part);
    const paths = ["/", "/open", ...assets, ...ofRun];
    const documents = paths.map((path) => send(visitor.origin + path, { method: "GET" }));
    const answers = [...paths.map((path) => visitor.get(path)), ...documents];
    for (const [index, { headers, body }] of (await Promise.all(answers)).entries()) {
      const path = paths[index % paths.length] ?? "";
      const cached = path.startsWith("/assets/") ? "private, max-age=300" : "no-store";
      expect(headers).toMatchObject({ "cache-control": cached, "x-frame-options": "DENY" });
      expect(headers["content-security-policy"]).toMatch(/default-src 'none'.*frame-ancestors 'none'/);
      expect(headers["content-security-policy"]).not.toContain("unsafe");
      expect(headers["referrer-policy"]).toBe("no-referrer");
      if (path.startsWith("/assets/")) continue;
      expect(body).not.toMatch(/<script(?! src="\/)|https?:\/\/| on\w+="|style="/);
    }
  });
});

test("styles and scripts are compressed for browsers that take it", async () => {
  const { service, runId } = await waitingRun("a");
  const visitor = await visit(linkTo(await openPages(service), runId, "watch"));
  const plain = await visitor.get("/assets/page.css");
  const packed = await visitor.get("/assets/page.css", { "accept-encoding": "gzip, br" });
  expect([plain.headers["content-encoding"], packed.headers["content-encoding"]]).toEqual([undefined, "br"]);
  expect(packed.body.length).toBeLessThan(plain.body.length / 3);
});

describe("decisions", () => {
  test("a link from a tool result shows the call and cannot decide", async () => {
    const { service, runId, notes, view } = await waitingRun("a");
    const pages = await openPages(service);
    const watcher = await visit(linkTo(pages, runId, "watch"));
    const { body } = await watcher.get(watcher.path);
    expect(body).toContain("deepagent-mcp runs open");
    expect(body).not.toMatch(/<form[^>]*method="post"/);
    const fields = { request: view.requests.filter(isApproval)[0]?.id ?? "", ...APPROVE };
    expect((await watcher.post(`${watcher.path}/reply`, fields)).status).toBe(403);
    expect((await mine(service).read.view(runId))?.run.status).toBe("input_required");
    expect(notes).toEqual([]);
  });

  test("approve runs the call, and a second decision is told about the first", async () => {
    const { service, runId, notes } = await waitingRun("a");
    const visitor = await visit(linkTo(await openPages(service), runId, "decide"));
    const fields = await visitor.form();
    const decide = (more: object) => visitor.post(`${visitor.path}/reply`, { ...fields, ...more });
    expect((await decide(APPROVE)).status).toBe(303);
    const view = await reach(service, runId, "completed");
    expect(view.requests.filter(isApproval)).toMatchObject([{ status: "approved", decidedBy: "page" }]);
    const again = await decide({ decision: "reject" });
    expect(again.status).toBe(422);
    expect(again.body).toContain("already been decided: approved");
    expect(notes).toEqual(["a"]);
  });

  test("approve the same for this run covers what the page says, and the page lists it", async () => {
    const { service, runId, notes } = await waitingRun("a", "b", "a");
    const visitor = await visit(linkTo(await openPages(service), runId, "decide"));
    const { body } = await visitor.get(visitor.path);
    expect(body).toContain("Approve for this run");
    expect(body).toContain("Also approves note with exactly these arguments for the rest of the run.");
    const asked = (await mine(service).read.view(runId))?.requests
      .filter(isApproval)
      .find(({ args }) => args["text"] === "a");
    const fields = { ...(await visitor.form()), request: asked?.id ?? "", decision: "approve_same" };
    expect((await visitor.post(`${visitor.path}/reply`, fields)).status).toBe(303);
    await expect.poll(() => notes).toEqual(["a", "a"]);
    expect((await visitor.get(`${visitor.path}/work`)).body).toContain("Approved for this run");
  });

  test("reject passes the message on", async () => {
    const { service, runId, notes } = await waitingRun("a");
    const visitor = await visit(linkTo(await openPages(service), runId, "decide"));
    const fields = { ...(await visitor.form()), decision: "reject", message: "not <now>" };
    await visitor.post(`${visitor.path}/reply`, fields);
    const view = await reach(service, runId, "completed");
    expect(view.requests.filter(isApproval)[0]?.answer).toEqual({ type: "reject", message: "not <now>" });
    expect(notes).toEqual([]);
  });

  test("edited arguments are run only when they are approved as edited, and are valid", async () => {
    const { service, runId, notes } = await waitingRun("a");
    const visitor = await visit(linkTo(await openPages(service), runId, "decide"));
    const fields = await visitor.form();
    const decide = (more: object) => visitor.post(`${visitor.path}/reply`, { ...fields, ...more });
    const unchanged = '{ "text" :\r\n "a" }';
    const wrong: [Record<string, string>, string][] = [
      [{ decision: "approve", edited_args: '{"text":"b"}' }, "You changed the arguments"],
      [{ decision: "edit", edited_args: "{broken" }, "not a JSON object"],
      [{ decision: "edit", edited_args: "[]" }, "not a JSON object"],
      [{ decision: "edit", edited_args: `{"text":"${"x".repeat(30)}"}` }, "text"],
      [{ decision: "edit" }, "No decision was sent"],
      [{ edited_args: unchanged }, "No decision was sent"],
      [{ decision: "approve", request: "other" }, "no such request"],
    ];
    for (const [more, problem] of wrong) {
      const { status, body } = await decide(more);
      expect([more, status]).toEqual([more, 422]);
      expect(body).toContain(problem);
    }
    const kept = await decide({ decision: "edit", edited_args: "<mine", message: "&c" });
    expect(kept.body).toContain("&#60;mine</textarea>");
    expect(notes).toEqual([]);
    expect((await decide({ decision: "edit", edited_args: '{"text":"b"}' })).status).toBe(303);
    await reach(service, runId, "completed");
    expect(notes).toEqual(["b"]);
  });
});

describe("all runs", () => {
  const toAll = (pages: PageServer, purpose: PagePurpose = "decide", principal = ME): string =>
    pages.link({ principal, purpose });

  test("a person starts one, tells it something, cancels it and goes on with it", async () => {
    const { service } = approvalRuns(note("a"));
    const visitor = await visit(toAll(await openPages(service)));
    expect(visitor.path).toBe("/");
    const started = await visitor.post("/start", { task: "note <b>it</b>" });
    expect(started.status).toBe(303);
    const path = started.headers.location ?? "";
    const runId = path.slice("/runs/".length);
    await reach(service, runId, "input_required");
    const home = (await visitor.get("/")).body;
    expect(home).toContain("note &#60;b&#62;it&#60;/b&#62;");
    expect(home).toContain("1 request needs your attention");
    expect((await visitor.get("/review")).body).toContain("data-approval");
    expect((await visitor.post(`${path}/tell`, { text: "softly" })).status).toBe(303);
    expect((await visitor.get(`${path}/work`)).body).toContain("Message: softly");
    expect((await visitor.post(`${path}/cancel`, {})).status).toBe(303);
    expect((await mine(service).read.view(runId))?.run.status).toBe("cancelled");
    const next = await visitor.post(`${path}/continue`, { task: "once more" });
    const nextId = (next.headers.location ?? "").slice("/runs/".length);
    const [first, second] = await Promise.all([
      mine(service).read.view(runId),
      mine(service).read.view(nextId),
    ]);
    expect(second?.run.threadId).toBe(first?.run.threadId);
    expect((await visitor.post(`${path}/fork`, { task: "x", point: "thr_other@1" })).status).toBe(422);
  });

  test("a conversation begins anew from one of its moments", async () => {
    const database = openDatabase(databaseFile());
    cleanUpWith(() => database.close());
    const checkpointer = createCheckpointer(database);
    const agent = { model: scriptedModel(() => ({ text: "yes" })), checkpointer };
    const { service } = openServer(databaseFile(), agent, { checkpoints: async () => checkpointer });
    const { id } = await startRun(service, "go");
    await reach(service, id, "completed");
    const visitor = await visit(toAll(await openPages(service)));
    const { body } = await visitor.get(`/runs/${id}/answer`);
    const point = /name="point" value="([^"]+)"/.exec(body)?.[1] ?? "";
    const fork = await visitor.post(`/runs/${id}/fork`, { task: "another way", point });
    const forkId = (fork.headers.location ?? "").slice("/runs/".length);
    expect((await mine(service).read.view(forkId))?.run.forkedFrom).toBe(point);
  });

  test("are found by status and words, and only the principal's", async () => {
    const service = plainRuns("yes");
    const { id } = await startRun(service, "count the ravens");
    await reach(service, id, "completed");
    await service.as({ principal: "stranger" }).control.start({ task: "count the doves" });
    const pages = await openPages(service);
    const visitor = await visit(toAll(pages));
    const rows = async (query: string) =>
      ((await visitor.get(`/${query}`)).body.match(/class="run-row"/g) ?? []).length;
    expect(await rows("")).toBe(1);
    expect(await rows("?q=RAVENS")).toBe(1);
    expect(await rows("?q=doves")).toBe(0);
    expect(await rows("?status=failed")).toBe(0);
    expect(await rows("?status=completed&q=%25")).toBe(0);
    const stranger = await visit(toAll(pages, "decide", "stranger"));
    expect((await stranger.get(`/runs/${id}`)).status).toBe(404);
  });

  test("a link that only looks starts nothing, and a session of one run sees no other screen", async () => {
    const { service, runId } = await waitingRun("a");
    const pages = await openPages(service);
    const watcher = await visit(toAll(pages, "watch"));
    expect((await watcher.get("/")).body).not.toMatch(/<form[^>]*method="post"/);
    expect((await watcher.post("/start", { task: "x" })).status).toBe(403);
    const own = await visit(linkTo(pages, runId, "decide"));
    for (const path of ["/", "/review", "/files", "/files/save"])
      expect((await own.get(path)).status).toBe(404);
    expect((await own.post("/start", { task: "x" })).status).toBe(404);
    expect(await mine(service).read.list({ limit: 9 })).toHaveLength(1);
  });

  test("sessions end with their server, and a changed secret opens nothing", async () => {
    let now = 1_000_000;
    const { service } = await waitingRun("a");
    const key = Buffer.alloc(32, 9);
    const first = await openPages(service, () => now, { key });
    const visitor = await visit(toAll(first));
    const [text = "", signature = ""] = visitor.secret.split(".");
    const forged = Buffer.from(
      JSON.stringify({ principal: ME, purpose: "decide", expires: 9e15, id: "x" }),
    ).toString("base64url");
    const signed = createHmac("sha256", key).update(`page secret ${text}`).digest("base64url");
    for (const bad of [`${text}.${signed}`, `${forged}.${signature}`, "x.y", `${text}.`]) {
      expect([bad, (await visitor.get("/", { [SECRET_HEADER]: bad })).status]).toEqual([bad, 401]);
    }
    expect((await visitor.get("/")).status).toBe(200);
    await first.close();
    const second = await openPages(service, () => now, { key });
    const asked = await send(second.address, { method: "GET", headers: visitor.headers });
    expect([asked.status, asked.headers[PROOF_HEADER]]).toEqual([401, undefined]);
    const other = await visit(toAll(second));
    now += LIFETIME_MS;
    expect((await other.get("/")).status).toBe(401);
  });

  test("every server has a port that nobody can know before", async () => {
    const { service } = await waitingRun("a");
    const addresses = new Set<string>();
    for (let count = 0; count < 4; count += 1) {
      const pages = await openPages(service);
      addresses.add(pages.address);
      await pages.close();
    }
    expect(addresses.size).toBeGreaterThan(1);
  });

  test("whoever has the key of the data folder is given a link, once for each proof, and nobody else", async () => {
    const { service } = await waitingRun("a");
    const key = Buffer.alloc(32, 9);
    let now = 1_000_000;
    const pages = await openPages(service, () => now, { key, local: ME });
    now += 1000;
    const { origin, host } = new URL(pages.address);
    const ask = (proof: string) => post(`${origin}/link`, {}, { origin, authorization: `Proof ${proof}` });
    const given = await ask(linkProof(key, host, now));
    expect((await visit((JSON.parse(given.body) as { link: string }).link)).path).toBe("/");
    const other = linkProof(Buffer.alloc(32, 1), host, now);
    const late = linkProof(key, host, now + 61_000);
    // Of another time than the proof that was used, so that only its port is wrong.
    const elsewhere = linkProof(key, "127.0.0.1:7373", now + 1);
    const wrong = [linkProof(key, host, now), other, elsewhere, late, "x.y", ""];
    for (const proof of wrong) expect([proof, (await ask(proof)).status]).toEqual([proof, 403]);
    now += 1;
    expect((await ask(linkProof(key, host, now))).status).toBe(200);
    now += 61_000;
    expect((await ask(linkProof(key, host, now - 61_000))).status).toBe(403);
  });

  test("a proof that another listener got at its port before is worth nothing to it", async () => {
    const { service } = await waitingRun("a");
    const key = Buffer.alloc(32, 9);
    const now = 1_000_000;
    const pages = await openPages(service, () => now, { key, local: ME });
    const { origin, host } = new URL(pages.address);
    const authorization = `Proof ${linkProof(key, host, now - 1)}`;
    expect((await post(`${origin}/link`, {}, { origin, authorization })).status).toBe(403);
  });

  test("files are read, and memories found, changed and deleted by a person", async () => {
    const { service } = openServer(
      databaseFile(),
      { model: calling(note("a")) },
      {
        tree: async (principal) => memoriesOf(principal),
        searchMemories: async (_principal, query) => ({
          hits: [{ path: "/memories/a.md", snippet: `about <${query}>`, score: 1 }],
        }),
      },
    );
    const stored = new Map<string, Backend>();
    const memoriesOf = (principal: string): Backend => {
      const known = stored.get(principal);
      if (known !== undefined) return known;
      const made = new StateBackend({ files: snapshotFiles() });
      stored.set(principal, made);
      return made;
    };
    await memoriesOf(ME).write("/memories/a.md", "# one\n\n<b>two</b>\n");
    const pages = await openPages(service);
    const visitor = await visit(toAll(pages));
    expect((await visitor.get("/files/memories/")).body).toContain("a.md");
    const { body } = await visitor.get("/files/memories/a.md");
    expect(body).toContain('<md-text class="prose"># one\n\n&#60;b&#62;two&#60;/b&#62;\n</md-text>');
    expect((await visitor.get("/files?q=tides")).body).toContain("about &#60;tides&#62;");
    // A browser leaves out one line break at the beginning.
    const [, field] = /<textarea[^>]*>\n([^]*?)<\/textarea>/.exec(body) ?? [];
    expect(field).toBe("# one\n\n&#60;b&#62;two&#60;/b&#62;\n");
    const version = /name="version" value="([^"]*)"/.exec(body)?.[1] ?? "";
    const save = (fields: object) =>
      visitor.post("/files/save", { path: "/memories/a.md", content: "new\r\n", version, ...fields });
    expect((await save({})).status).toBe(303);
    expect((await memoriesOf(ME).read("/memories/a.md")).content).toBe("new\n");
    const late = await save({ version: "other", content: "mine <kept>" });
    expect(late.status).toBe(422);
    expect(late.body).toContain(">\nmine &#60;kept&#62;</textarea>");
    expect((await save({ path: "/workspace/x" })).status).toBe(422);
    expect((await visitor.post("/files/delete", { path: "/other.md" })).status).toBe(422);
    expect((await visitor.post("/files/delete", { path: "/memories/a.md" })).status).toBe(303);
    expect((await memoriesOf(ME).read("/memories/a.md")).code).toBe("not_found");
    const watcher = await visit(toAll(pages, "watch"));
    await memoriesOf(ME).write("/memories/b.md", "x");
    expect((await watcher.get("/files/memories/b.md")).body).not.toContain("<textarea");
  });

  test("a command finds the page of its data folder, and trusts nobody else at that address", async () => {
    const { service } = await waitingRun("a");
    const folder = filesIn();
    const key = Buffer.alloc(32, 9);
    const find = (first?: string, own = key) => findPage(folder, own, Date.now(), first);
    expect(await find()).toBeUndefined();
    const pages = await openPages(service, undefined, { key, local: ME });
    const forget = await notePage(folder, pages.address);
    expect((await visit((await find("run_x")) ?? "")).path).toBe("/runs/run_x");
    expect(await find(undefined, Buffer.alloc(32, 1))).toBeUndefined();
    const impostor = createServer((_request, response) => {
      response.end(JSON.stringify({ link: `http://${String(_request.headers.host)}/open`, proof: "x" }));
    });
    await new Promise<void>((resolve) => impostor.listen(0, "127.0.0.1", resolve));
    cleanUpWith(() => impostor.close());
    const address = impostor.address();
    const port = typeof address === "object" ? address?.port : 0;
    const forgetImpostor = await notePage(folder, `http://127.0.0.1:${port}/`);
    // The server that began earlier still runs.
    expect(new URL((await find()) ?? "").origin).toBe(new URL(pages.address).origin);
    await forget();
    expect(await find()).toBeUndefined();
    expect(existsSync(join(folder, "page.json"))).toBe(true);
    await forgetImpostor();
    expect(existsSync(join(folder, "page.json"))).toBe(false);
  });
});
