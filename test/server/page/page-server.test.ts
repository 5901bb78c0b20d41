import { request as httpRequest } from "node:http";
import { describe, expect, test } from "vitest";
import { ME, reach, startRun } from "../../runs/support.ts";
import { send } from "../../support/clients-raw.ts";
import { plainRuns } from "../support.ts";
import { linkTo, openPages, post, visit, waitingRun } from "./support.ts";

const APPROVE = { decision: "approve" };

describe("links", () => {
  test("looking at a link uses nothing up, opening it does, and then it opens nothing more", async () => {
    const { service, runId } = await waitingRun("a");
    const link = linkTo(await openPages(service), runId, "watch");
    for (const _time of [1, 2]) {
      const looked = await send(link, { method: "GET" });
      expect([looked.status, looked.headers["set-cookie"]]).toEqual([200, undefined]);
    }
    const visitor = await visit(link);
    expect(visitor.path).toBe(`/runs/${runId}`);
    expect((await visitor.get(visitor.path)).status).toBe(200);
    expect((await visit(link)).setCookie).toBe("");
    expect((await send(link, { method: "GET" })).status).toBe(403);
  });

  test("the cookie is for this page alone, and is out of reach of scripts and other sites", async () => {
    const { service, runId } = await waitingRun("a");
    const { setCookie } = await visit(linkTo(await openPages(service), runId, "watch"));
    expect(setCookie).toMatch(
      new RegExp(
        `^deepagent_page_\\w+=[\\w-]{43}; Path=/runs/${runId}; Max-Age=\\d+; HttpOnly; SameSite=Strict$`,
      ),
    );
  });

  test("a token of another server, a changed or an old one opens nothing", async () => {
    let now = 1_000_000;
    const { service, runId } = await waitingRun("a");
    const pages = await openPages(service, () => now);
    const origin = new URL(linkTo(pages, runId, "watch")).origin;
    const tokenOf = (link: string) => new URL(link).searchParams.get("token") ?? "";
    const open = async (token: string) => (await post(`${origin}/open`, { token }, { origin })).status;
    expect(await open(tokenOf(linkTo(await openPages(service), runId, "decide")))).toBe(403);
    const good = tokenOf(linkTo(pages, runId, "watch"));
    for (const bad of ["", ".", good + "x", good.slice(0, -1)]) {
      expect([bad, await open(bad)]).toEqual([bad, 403]);
    }
    now += 13 * 3600 * 1000;
    expect(await open(good)).toBe(403);
    expect(await open(tokenOf(linkTo(pages, runId, "watch")))).toBe(303);
  });

  test("a link for someone else's run shows nothing", async () => {
    const { service, runId } = await waitingRun("a");
    const visitor = await visit(linkTo(await openPages(service), runId, "decide", "stranger"));
    expect((await visitor.get(visitor.path)).status).toBe(404);
    const sent = await visitor.post(`${visitor.path}/decide`, { ...APPROVE, approval: "x", csrf: "y" });
    expect(sent.status).toBe(403);
  });
});

describe("requests", () => {
  test("a session is good for its own run only", async () => {
    const { service, runId } = await waitingRun("a");
    const other = await startRun(service, "another");
    const visitor = await visit(linkTo(await openPages(service), runId, "decide"));
    expect((await visitor.get(`/runs/${other.id}`)).status).toBe(404);
    expect((await visitor.get(visitor.path, { cookie: "" })).status).toBe(404);
    expect((await visitor.get(`${visitor.path}/updates`, { cookie: "a=b" })).status).toBe(404);
    expect((await visitor.get("/runs/%zz")).status).toBe(404);
  });

  test.each([
    ["another name for the host", { host: "attacker.example" }],
    ["localhost instead of the address", { host: "localhost" }],
    ["a request of another site", { origin: "https://attacker.example" }],
    ["a request of a page without origin", { origin: "null" }],
    ["a request of another port", { origin: "http://127.0.0.1:1" }],
  ])("%s is refused", async (_what, headers) => {
    const { service, runId } = await waitingRun("a");
    const visitor = await visit(linkTo(await openPages(service), runId, "decide"));
    const fields = { ...(await visitor.form()), ...APPROVE };
    expect((await visitor.get(visitor.path, headers)).status).toBe(403);
    expect((await visitor.post(`${visitor.path}/decide`, fields, headers)).status).toBe(403);
    expect((await service.view(ME, runId))?.run.status).toBe("input_required");
  });

  test("a decision without origin, without the form's secret or not as a form is refused", async () => {
    const { service, runId } = await waitingRun("a");
    const visitor = await visit(linkTo(await openPages(service), runId, "decide"));
    const fields: Record<string, string> = { ...(await visitor.form()), ...APPROVE };
    const address = `${visitor.path}/decide`;
    const cookie = visitor.setCookie.split(";")[0] ?? "";
    expect((await post(visitor.origin + address, fields, { cookie })).status).toBe(403);
    expect((await visitor.post(address, { ...fields, csrf: "" })).status).toBe(403);
    expect((await visitor.post(address, { ...fields, csrf: `${fields["csrf"]}x` })).status).toBe(403);
    expect((await visitor.post(address, fields, { "content-type": "text/plain" })).status).toBe(400);
    const huge = { ...fields, message: "x".repeat(2 ** 20) };
    expect((await visitor.post(address, huge)).status).toBe(400);
    expect((await visitor.get(address)).status).toBe(405);
    expect((await service.view(ME, runId))?.run.status).toBe("input_required");
  });

  test("every answer forbids frames, foreign and inline content, and copies", async () => {
    const { service, runId } = await waitingRun("a");
    const pages = await openPages(service);
    const visitor = await visit(linkTo(pages, runId, "decide"));
    const link = new URL(linkTo(pages, runId, "watch"));
    const paths = [
      "/",
      "/page.css",
      "/page.js",
      "/open.js",
      visitor.path,
      link.pathname + link.search,
      "/open",
    ];
    for (const path of paths) {
      const { headers, body } = await visitor.get(path);
      expect(headers).toMatchObject({ "cache-control": "no-store", "x-frame-options": "DENY" });
      expect(headers["content-security-policy"]).toMatch(/default-src 'none'.*frame-ancestors 'none'/);
      expect(headers["content-security-policy"]).not.toContain("unsafe");
      expect(headers["referrer-policy"]).toBe("strict-origin");
      expect(body).not.toMatch(/<script(?! src="\/)|https?:\/\/| on\w+="|style="/);
    }
  });
});

describe("decisions", () => {
  test("a link from a tool result shows the call and cannot decide, with or without a form's secret", async () => {
    const { service, runId, notes, view } = await waitingRun("a");
    const pages = await openPages(service);
    const watcher = await visit(linkTo(pages, runId, "watch"));
    const { body } = await watcher.get(watcher.path);
    expect(body).toContain("deepagent-mcp runs open");
    expect(body).not.toContain("<form");
    const other = await visit(linkTo(pages, runId, "decide"));
    for (const fields of [{ approval: view.approvals[0]?.id ?? "", csrf: "" }, await other.form()]) {
      expect((await watcher.post(`${watcher.path}/decide`, { ...fields, ...APPROVE })).status).toBe(403);
    }
    expect((await service.view(ME, runId))?.run.status).toBe("input_required");
    expect(notes).toEqual([]);
  });

  test("approve runs the call, and a second decision is told about the first", async () => {
    const { service, runId, notes } = await waitingRun("a");
    const visitor = await visit(linkTo(await openPages(service), runId, "decide"));
    const fields = await visitor.form();
    const decide = (more: object) => visitor.post(`${visitor.path}/decide`, { ...fields, ...more });
    expect((await decide(APPROVE)).status).toBe(303);
    const view = await reach(service, runId, "completed");
    expect(view.approvals).toMatchObject([{ status: "approved", decidedBy: "page" }]);
    const again = await decide({ decision: "reject" });
    expect([again.status, again.body]).toEqual([422, expect.stringContaining("decided already: approved")]);
    expect(notes).toEqual(["a"]);
  });

  test("approve the same for this run covers what the page says, and the page lists it", async () => {
    const { service, runId, notes } = await waitingRun("a", "b", "a");
    const visitor = await visit(linkTo(await openPages(service), runId, "decide"));
    const { body } = await visitor.get(visitor.path);
    expect(body).toContain("Approve the same for this run");
    expect(body).toContain("every further note with exactly the arguments shown here");
    const asked = (await service.view(ME, runId))?.approvals.find(({ args }) => args["text"] === "a");
    const fields = { ...(await visitor.form()), approval: asked?.id ?? "", decision: "approve_same" };
    expect((await visitor.post(`${visitor.path}/decide`, fields)).status).toBe(303);
    await expect.poll(() => notes).toEqual(["a", "a"]);
    expect((await visitor.get(visitor.path)).body).toContain("Approved for this run");
  });

  test("reject passes the message on", async () => {
    const { service, runId, notes } = await waitingRun("a");
    const visitor = await visit(linkTo(await openPages(service), runId, "decide"));
    const fields = { ...(await visitor.form()), decision: "reject", message: "not <now>" };
    await visitor.post(`${visitor.path}/decide`, fields);
    const view = await reach(service, runId, "completed");
    expect(view.approvals[0]?.decision).toEqual({ type: "reject", message: "not <now>" });
    expect(notes).toEqual([]);
  });

  test("edited arguments are run only when they are approved as edited, and are valid", async () => {
    const { service, runId, notes } = await waitingRun("a");
    const visitor = await visit(linkTo(await openPages(service), runId, "decide"));
    const fields = await visitor.form();
    const decide = (more: object) => visitor.post(`${visitor.path}/decide`, { ...fields, ...more });
    const unchanged = '{ "text" :\r\n "a" }';
    const wrong: [Record<string, string>, string][] = [
      [{ decision: "approve", edited_args: '{"text":"b"}' }, "You changed the arguments"],
      [{ decision: "edit", edited_args: "{broken" }, "not a JSON object"],
      [{ decision: "edit", edited_args: "[]" }, "not a JSON object"],
      [{ decision: "edit", edited_args: `{"text":"${"x".repeat(30)}"}` }, "text"],
      [{ decision: "edit" }, "No decision was sent"],
      [{ edited_args: unchanged }, "No decision was sent"],
      [{ decision: "approve", approval: "other" }, "no such approval"],
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

  test("arguments that were opened and left as they are do not stand in the way of approving", async () => {
    const { service, runId, notes } = await waitingRun("a");
    const visitor = await visit(linkTo(await openPages(service), runId, "decide"));
    const fields = { ...(await visitor.form()), ...APPROVE, edited_args: '{\r\n  "text": "a"\r\n}' };
    expect((await visitor.post(`${visitor.path}/decide`, fields)).status).toBe(303);
    await reach(service, runId, "completed");
    expect(notes).toEqual(["a"]);
  });
});

describe("updates", () => {
  /** Reads events until one says that the run has ended, or the stream does. */
  function updates(url: string, cookie: string, onUpdate: (count: number) => void) {
    return new Promise<{ run: string; approvals: string; ended: boolean }[]>((resolve, reject) => {
      const request = httpRequest(url, { headers: { cookie } }, (response) => {
        let text = "";
        const all = () =>
          [...text.matchAll(/^data: (.*)\n\n/gm)].map(
            ([, data = ""]) => JSON.parse(data) as { run: string; approvals: string; ended: boolean },
          );
        response.setEncoding("utf8").on("data", (chunk: string) => {
          text += chunk;
          onUpdate(all().length);
        });
        response.once("close", () => resolve(all()));
      });
      request.once("error", reject).end();
    });
  }

  test("follow the run from where it is to its end", async () => {
    const { service, runId, view } = await waitingRun("a");
    const visitor = await visit(linkTo(await openPages(service), runId, "watch"));
    const cookie = visitor.setCookie.split(";")[0] ?? "";
    const seen = await updates(`${visitor.origin}${visitor.path}/updates`, cookie, (count) => {
      const approvalId = view.approvals[0]?.id ?? "";
      if (count === 1) void service.decide(ME, runId, approvalId, { type: "approve" }, "test");
    });
    expect(seen[0]).toMatchObject({ approvals: expect.stringContaining("data-approval"), ended: false });
    expect(seen.at(-1)).toMatchObject({
      approvals: "",
      ended: true,
      run: expect.stringContaining("Completed"),
    });
  });

  test("end when the server closes", async () => {
    const { service, runId } = await waitingRun("a");
    const pages = await openPages(service);
    const visitor = await visit(linkTo(pages, runId, "watch"));
    const cookie = visitor.setCookie.split(";")[0] ?? "";
    const seen = await updates(`${visitor.origin}${visitor.path}/updates`, cookie, (count) => {
      if (count === 1) void pages.close();
    });
    expect(seen).toHaveLength(1);
  });

  test("of a run that has ended are one, and the page shows the answer", async () => {
    const service = plainRuns("the <answer>");
    const { id } = await startRun(service, "go");
    await reach(service, id, "completed");
    const visitor = await visit(linkTo(await openPages(service), id, "watch"));
    const { body } = await visitor.get(visitor.path);
    expect(body).toContain("the &#60;answer&#62;");
    const { body: stream } = await visitor.get(`${visitor.path}/updates`);
    expect(stream.match(/^event: update$/gm)).toHaveLength(1);
  });
});
