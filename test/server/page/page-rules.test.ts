import { describe, expect, test } from "vitest";
import { isApproval } from "../../../src/runs/run.ts";
import type { RunService } from "../../../src/runs/service.ts";
import { ME, mine, reach, startRun } from "../../runs/support.ts";
import { ruledRuns } from "../support.ts";
import { browser, problemsOf } from "./chromium.ts";
import { LONG_PATH, RULED_AT, ruledRun } from "./rule-runs.ts";
import { linkTo, openPages, visit } from "./support.ts";

const ALWAYS = { decision: "approve_always" };

/** A run that waits for a person to let it note the first of `texts`. */
async function asking(...texts: string[]) {
  const { service, notes } = ruledRuns(...texts);
  const { id: runId } = await startRun(service, "note it");
  const view = await reach(service, runId, "input_required");
  return { service, notes, runId, approval: view.requests.filter(isApproval)[0]?.id ?? "" };
}

const savedBy = async (service: RunService): Promise<string[]> =>
  (await mine(service).rules.list()).map(({ rule }) => rule);

describe("always allow", () => {
  test("is offered below the call in plain words, with no rule chosen", async () => {
    const { service, runId } = await asking("docs/a/b.md");
    const visitor = await visit(linkTo(await openPages(service), runId, "decide"));
    const { body } = await visitor.get(`${visitor.path}/review`);
    const fold = /<details[^>]*data-fold="always"[^]*?<\/details>/.exec(body)?.[0] ?? "";
    expect(fold).toContain("Always allow…");
    expect([...fold.matchAll(/name="rule" value="([^"]*)"/g)].map(([, rule]) => rule)).toEqual([
      "Edit(/docs/a/b.md)",
      "Edit(/docs/a/**)",
      "Edit(/docs/**)",
    ]);
    expect(fold).not.toMatch(/ checked| open/);
    expect(fold).toContain("Create and change the file docs/a/b.md without asking.");
    expect(fold).toContain("<code>create docs/a/new.txt</code>");
    expect(fold).toContain('value="approve_always"');
    expect(body.indexOf('value="reject"')).toBeLessThan(body.indexOf(fold));
  });

  test("saves the chosen rule, which then decides in the place of a person", async () => {
    const { service, notes, runId } = await asking("docs/a.md", "docs/a.md", "docs/b.md");
    const visitor = await visit(linkTo(await openPages(service), runId, "decide"));
    const form = await visitor.form();
    const send = (more: object) => visitor.post(`${visitor.path}/reply`, { ...form, ...ALWAYS, ...more });
    const sent = await send({ rule: "Edit(/docs/a.md)" });
    expect(sent.status).toBe(303);
    await expect.poll(() => notes).toEqual(["docs/a.md", "docs/a.md"]);
    await reach(service, runId, "input_required");
    const { body } = await visitor.get(`${visitor.path}/review`);
    expect(body).toContain("Allowed by your rule Edit(/docs/a.md)");
    expect((await visitor.get(`${visitor.path}/work`)).body).toContain(
      "Allowed by your rule Edit(/docs/a.md): call <code>note</code>",
    );
    // The same form again changes nothing, and says so.
    const again = await send({ rule: "Edit(/docs/a.md)" });
    expect([again.status, again.body]).toEqual([
      422,
      expect.stringContaining("already been decided: approved"),
    ]);
    expect(await savedBy(service)).toEqual(["Edit(/docs/a.md)"]);
  });

  test("needs a choice, and one of those that this call offers", async () => {
    const { service, notes, runId } = await asking("docs/a.md");
    const other = await startRun(service, "another");
    await reach(service, other.id, "input_required");
    const visitor = await visit(linkTo(await openPages(service), runId, "decide"));
    const form = await visitor.form();
    const send = (more: Record<string, string>) =>
      visitor.post(`${visitor.path}/reply`, { ...form, ...ALWAYS, ...more });
    const none = await send({});
    expect([none.status, none.body]).toEqual([422, expect.stringContaining("Choose the calls")]);
    // It comes back open, with what was chosen.
    expect(none.body).toMatch(/<details[^>]*data-fold="always"[^>]* open/);
    for (const rule of ["Bash(*)", "Edit(/**)", "Edit(/docs/a.md), Bash(*)", "Edit(/docs/b.md)"]) {
      const refused = await send({ rule });
      expect([rule, refused.status]).toEqual([rule, 422]);
      expect(refused.body).toContain("This rule is not offered");
    }
    const edited = await send({ rule: "Edit(/docs/a.md)", edited_args: '{"text":"src/x"}' });
    expect(edited.body).toContain("You changed the arguments");
    expect([notes, await savedBy(service)]).toEqual([[], []]);
  });

  test("is refused with the rules of another request, and without the right to decide", async () => {
    const { service, notes, runId, approval } = await asking("docs/a.md");
    const answer = (rules: string[], scopes?: ["read", "run"]) =>
      service
        .as({ principal: ME, ...(scopes && { scopes }) })
        .requests.answer(runId, { requestId: approval, answer: { type: "approve_always", rules } }, "test");
    const { runId: theirs, service: others } = await asking("src/secret/key.ts");
    const [asked] = (await reach(others, theirs, "input_required")).requests.filter(isApproval);
    for (const { rules } of asked?.ruled?.offers ?? [])
      expect(await answer(rules)).toMatchObject({ ok: false, code: "invalid_answer" });
    // One text that reads like two rules.
    expect(await answer(["Edit(/docs/a.md), Edit(/docs/**)"])).toMatchObject({ ok: false });
    await expect(answer(["Edit(/docs/a.md)"], ["read", "run"])).rejects.toMatchObject({
      code: "insufficient_scope",
    });
    const watcher = await visit(linkTo(await openPages(service), runId, "watch"));
    const { body } = await watcher.get(`${watcher.path}/review`);
    expect(body).not.toContain("Always allow");
    const fields = { request: approval, ...ALWAYS, rule: "Edit(/docs/a.md)" };
    expect((await watcher.post(`${watcher.path}/reply`, fields)).status).toBe(403);
    expect([notes, await savedBy(service)]).toEqual([[], []]);
  });

  test("is replaced by the reason why rules did not allow the call", async () => {
    const { service, runId } = await ruledRun();
    const visitor = await visit(linkTo(await openPages(service, () => RULED_AT), runId, "decide"));
    const { body } = await visitor.get(`${visitor.path}/review`);
    expect(body).toContain(
      "A rule would allow this, but this conversation has read: results of a web search, results of the MCP server issues; so you are asked.",
    );
    // The edit was allowed by its rule, the call of the other server is offered one, and the page is held back.
    expect(body.match(/data-fold="always"/g)).toHaveLength(1);
  });
});

describe("the list of rules", () => {
  test("shows each with its folder, its origin and its uses, and removes it", async () => {
    const { service } = await ruledRun();
    const pages = await openPages(service, () => RULED_AT);
    const visitor = await visit(pages.link({ principal: ME, purpose: "decide" }));
    const { body } = await visitor.get("/rules");
    expect(body).toContain("3 rules");
    expect(body).toContain(`<code>Edit(/${LONG_PATH})</code>`);
    expect(body).toContain("In /home/me/tide-alarms");
    expect(body).toMatch(/Saved[^]*on the page\./);
    expect(body).toContain('href="/runs/run_saved"');
    expect(body).toMatch(/Used 1 time, last/);
    expect((await visitor.get("/")).body).toContain('href="/rules"');
    const [, id = ""] = /name="rule" value="([^"]*)"/.exec(body) ?? [];
    expect((await visitor.post("/rules/remove", { rule: id })).status).toBe(303);
    expect(await savedBy(service)).toHaveLength(2);
    expect((await visitor.post("/rules/remove", { rule: "rule_of_nobody" })).status).toBe(303);
  });

  test("is only read by who may not decide, and not at all from a link to one run", async () => {
    const { service, runId } = await ruledRun();
    const pages = await openPages(service, () => RULED_AT);
    const watcher = await visit(pages.link({ principal: ME, purpose: "watch" }));
    const { body } = await watcher.get("/rules");
    expect(body).toContain("3 rules");
    expect(body).not.toContain("Remove");
    const [rule] = await mine(service).rules.list();
    expect((await watcher.post("/rules/remove", { rule: rule?.id ?? "" })).status).toBe(403);
    const ofRun = await visit(linkTo(pages, runId, "decide"));
    expect((await ofRun.get("/rules")).status).not.toBe(200);
    const stranger = await visit(pages.link({ principal: "someone else", purpose: "decide" }));
    expect((await stranger.get("/rules")).body).toContain("No rules yet");
    await stranger.post("/rules/remove", { rule: rule?.id ?? "" });
    expect(await savedBy(service)).toHaveLength(3);
  });
});

describe("in Chromium", { tags: "chromium" }, () => {
  const visitPage = browser({ locale: "en-GB", timezoneId: "UTC", reducedMotion: "reduce" });

  test("a rule is chosen with the keyboard alone, and outlasts updates of the page", async () => {
    const { service, runId } = await ruledRun([
      { kind: "edit", paths: ["src/alarms.ts"] },
      { kind: "server_tool", name: "issues__create_issue" },
    ]);
    const pages = await openPages(service, () => RULED_AT);
    const { page, messages } = await visitPage(linkTo(pages, runId, "decide"));
    const own = page.locator(".ask").first();
    await own.locator("[data-fold=always] > summary").press("Enter");
    const narrow = own.getByRole("radio").first();
    await narrow.press("Space");
    const other = (await mine(service).read.view(runId))?.requests[1]?.id ?? "";
    await mine(service).requests.answer(runId, { requestId: other, answer: { type: "reject" } }, "terminal");
    await expect.poll(() => page.locator(".ask").count()).toBe(1);
    expect(await narrow.isChecked()).toBe(true);
    // In Chromium the return key would press another decision.
    await narrow.press("Enter");
    expect((await mine(service).read.view(runId))?.requests[0]?.status).toBe("pending");
    await own.getByRole("button", { name: "Approve and always allow" }).press("Enter");
    await expect.poll(() => savedBy(service)).toContain("Edit(/src/alarms.ts)");
    expect(messages).toEqual([]);
  });

  test("long names fit every window", async () => {
    const paths = [
      LONG_PATH.replace("報告書", "別の報告書"),
      `${"long-name-without-an-end-".repeat(3)}/a.md`,
    ];
    const { service, runId } = await ruledRun(paths.map((path) => ({ kind: "edit", paths: [path] })));
    const pages = await openPages(service, () => RULED_AT);
    const { page } = await visitPage(pages.link({ principal: ME, purpose: "decide" }));
    await page.waitForURL(pages.address);
    await page.goto(new URL(`/runs/${runId}/review`, pages.address).href);
    await page.locator("[data-fold=always] > summary").last().click();
    expect(await problemsOf(page)).toEqual([]);
    const [summary, button] = [
      page.locator("[data-fold=always] > summary").last(),
      page.getByRole("button", { name: "Approve and always allow" }).last(),
    ];
    await button.scrollIntoViewIfNeeded();
    for (const one of [summary, button]) expect((await one.boundingBox())?.height).toBeGreaterThanOrEqual(24);
    await page.goto(new URL("/rules", pages.address).href);
    await page.locator("main").waitFor();
    expect(await problemsOf(page)).toEqual([]);
  });
});
