import { isApproval } from "../../../src/runs/run.ts";
import { gzipSync } from "node:zlib";
import { tool } from "@langchain/core/tools";
import type { Locator, Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { mine, calling, databaseFile, note, openServer, reach, startRun } from "../../runs/support.ts";
import { approvalRuns } from "../support.ts";
import { browser, problemsOf } from "./chromium.ts";
import { wayTo } from "./other-listeners.ts";
import { linkTo, openPages, visit, waitingRun } from "./support.ts";

const editorOf = (page: Page, name: string) => page.getByRole("textbox", { name, exact: true });
const send = (page: Page) => page.getByRole("button", { name: "Approve with changes" });

/** Replaces what is in an editor by keys. `fill` selects the lines themselves: Chromium styles those it then makes. */
async function typeOver(editor: Locator, text: string): Promise<void> {
  await editor.press("ControlOrMeta+a");
  await editor.page().keyboard.insertText(text);
}

const mounted = (page: Page) => page.locator("[data-code][data-mounted]").first().waitFor();

test("the editor is loaded on its own, and says before an approval what would be wrong with it", async () => {
  const { service, runId } = await waitingRun("a");
  const visitor = await visit(linkTo(await openPages(service), runId, "decide"));
  const { body } = await visitor.get("/assets/code.js", { "accept-encoding": "identity" });
  expect(gzipSync(body).length).toBeLessThan(170_000);
  expect((await visitor.get(`${visitor.path}/review`)).body).not.toContain("code.js");
  const check = async (fields: Record<string, string>): Promise<unknown> => {
    const { status, body: answer } = await visitor.post(`${visitor.path}/check`, {
      ...(await visitor.form()),
      ...fields,
    });
    return status === 200 ? JSON.parse(answer) : status;
  };
  expect(await check({ edited_args: '{"text": "b"}' })).toEqual({});
  expect(await check({ edited_args: '{"text": null}' })).toEqual({
    problem: expect.stringContaining("Invalid arguments for note: text"),
  });
  expect(await check({ edited_args: '{\r\n  "text": "a",,\r\n}' })).toEqual({
    problem:
      "The changed arguments are not a JSON object: in line 2, column 15, a name in double quotes is expected.",
    field: "edited_args",
    line: 2,
    column: 15,
  });
  expect(await check({ edited_args: "[".repeat(200_000) })).toMatchObject({ field: "edited_args" });
  expect(await check({ edited_args: "{}", request: "none" })).toEqual({});
  expect((await mine(service).read.view(runId))?.run.status).toBe("input_required");
});

describe("the editor in Chromium", { tags: "chromium" }, () => {
  const open = browser();

  test("tells a mistake while it is typed, keeps it from being sent, and runs what is right", async () => {
    const { service, runId, notes } = await waitingRun("a");
    const { page, messages } = await open(linkTo(await openPages(service), runId, "decide"));
    await page.locator("[data-approval]").waitFor();
    await page.keyboard.press("e");
    await mounted(page);
    const editor = editorOf(page, "Arguments (JSON)");
    await typeOver(editor, '{\n  "text": "a",,\n}');
    await page.getByText("in line 2, column 15, a name in double quotes is expected").waitFor();
    await expect.poll(() => send(page).isDisabled()).toBe(true);
    expect(await send(page).getAttribute("title")).toContain("line 2");
    expect(await editor.getAttribute("aria-invalid")).toBe("true");
    expect(await page.locator(".cm-problem").textContent()).toBe(",");
    await typeOver(editor, `{"text": "${"long".repeat(9)}"}`);
    await page.getByText("Invalid arguments for note: text").waitFor();
    await typeOver(editor, '{"text": "b"}');
    await expect.poll(() => send(page).isDisabled()).toBe(false);
    expect(await editor.getAttribute("aria-invalid")).toBe("false");
    await send(page).click();
    await reach(service, runId, "completed");
    expect(notes).toEqual(["b"]);
    expect(messages).toEqual([]);
  });

  test("does not cover what it is about", async () => {
    const { service, runId } = await waitingRun("a");
    const { page } = await open(linkTo(await openPages(service), runId, "decide"));
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 600 });
      await page.reload();
      await page.locator("[data-approval]").waitFor();
      await page.keyboard.press("e");
      await mounted(page);
      const [detail, foot] = [page.getByRole("group", { name: "Arguments" }), page.locator(".ask-foot")];
      const { y = 0, height = 0 } = (await detail.boundingBox()) ?? {};
      expect((await foot.boundingBox())?.y).toBeGreaterThanOrEqual(y + height);
    }
  });

  test.each([1280, 390])("opens without moving the lines that are read, %d px wide", async (width) => {
    const file = databaseFile();
    const content = Array.from({ length: 200 }, (_, index) => `line ${index}\n`).join("");
    const write = { name: "write_file", args: { file_path: "/notes.md", content } };
    const { service } = openServer(file, { model: calling(write), interruptOn: { write_file: true } });
    const { id } = await startRun(service, "write it");
    await reach(service, id, "input_required");
    const { page } = await open(linkTo(await openPages(service), id, "decide"));
    await page.setViewportSize({ width, height: 800 });
    const read = page.locator(".diff tr", { hasText: "line 90" });
    await read.waitFor();
    const top = async () => Math.round((await read.boundingBox())?.y ?? 0);
    for (const way of ["keys", "pointer"]) {
      await page.reload();
      await read.evaluate((row) => row.scrollIntoView({ block: "start" }));
      await page.evaluate("scrollBy(0, -200)");
      const [before, scrolled] = [await top(), await page.evaluate("scrollY")];
      if (way === "keys") {
        await page.evaluate("document.querySelector('.ask').focus({ preventScroll: true })");
        await page.keyboard.press("e");
      } else await page.locator("[data-fold=edit] > summary").click();
      await mounted(page);
      await expect.poll(() => editorOf(page, "content").isVisible()).toBe(true);
      expect([await top(), await page.evaluate("scrollY")], way).toEqual([before, scrolled]);
      // Half of the screen is left for reading, and the editor is in the other.
      const { y = 0, height = 0 } = (await page.locator(".ask-foot").boundingBox()) ?? {};
      expect(y).toBeGreaterThan(300);
      expect(y + height).toBeLessThanOrEqual(800);
      // News of the run change nothing of that.
      await mine(service).control.tell(id, { text: way });
      await page.waitForTimeout(600);
      expect(await top()).toBe(before);
      await page.keyboard.press("Escape");
      await page.locator("[data-fold=edit] > summary").click();
      await expect.poll(() => page.locator("[data-stuck]").count()).toBe(0);
      expect(await top()).toBe(before);
    }
  });

  test("can be entered and left by keyboard, takes no key for a decision, and serves everybody", async () => {
    const { service, runId } = await waitingRun("a");
    const { page } = await open(linkTo(await openPages(service), runId, "decide"));
    await page.locator("[data-approval]").waitFor();
    await page.keyboard.press("e");
    const editor = editorOf(page, "Arguments (JSON)");
    await mounted(page);
    await expect.poll(() => editor.evaluate((element) => element.matches(":focus"))).toBe(true);
    await page.keyboard.press("Control+A");
    await page.keyboard.type("a x ?");
    expect(await editor.textContent()).toBe("a x ?");
    await page.keyboard.press("Escape");
    expect(await page.evaluate("document.activeElement.tagName")).toBe("SUMMARY");
    await page.keyboard.press("e");
    await page.keyboard.press("Tab");
    expect(await editor.evaluate((element) => element.matches(":focus"))).toBe(false);
    expect(await editor.textContent()).toBe("a x ?");
    expect((await mine(service).read.view(runId))?.run.status).toBe("input_required");
    await page.getByText("not a JSON object").waitFor();
    expect(await problemsOf(page)).toEqual([]);
  });

  test("outlasts other decisions and a broken connection, with what is typed in it", async () => {
    const { service } = approvalRuns(note("a"), note("b"));
    const { id } = await startRun(service, "note");
    const asked = async () => (await mine(service).read.view(id))?.requests.filter(isApproval) ?? [];
    await expect.poll(async () => (await asked()).length).toBe(2);
    const approvals = await asked();
    const pages = await openPages(service);
    const way = await wayTo(pages.address);
    const { page } = await open(way.link(linkTo(pages, id, "decide")));
    const own = page.locator(`[data-approval="${approvals[1]?.id}"]`);
    await own.getByText("Edit").click();
    await mounted(page);
    const editor = own.getByRole("textbox", { name: "Arguments (JSON)" });
    await typeOver(editor, '{"text": null}');
    await own.getByText("Invalid arguments").waitFor();
    await editor.evaluate((element) => Object.assign(element, { isSame: true }));
    await mine(service).requests.answer(
      id,
      { requestId: approvals[0]?.id ?? "", answer: { type: "approve" } },
      "test",
    );
    await expect.poll(() => page.locator("[data-approval]").count()).toBe(1);
    await way.cut();
    await page.getByText("Not connected").waitFor();
    await way.mend();
    await page.getByText("Live", { exact: true }).waitFor();
    expect(await editor.textContent()).toBe('{"text": null}');
    expect(await editor.evaluate((element) => element.matches(":focus") && "isSame" in element)).toBe(true);
    expect(await send(page).isDisabled()).toBe(true);
    await typeOver(editor, '{"text": "c"}');
    await expect.poll(() => send(page).isDisabled()).toBe(false);
    await send(page).click();
    const decided = (await reach(service, id, "completed")).requests.filter(isApproval);
    expect(decided[1]).toMatchObject({ status: "edited" });
  });

  test("shows hostile texts as texts, with the characters that hide", async () => {
    const content = `<img src=x onerror="document.title='owned'">\n</textarea><script>document.title='owned'</script>\n`;
    const keep = tool(() => "kept", {
      name: "write_note",
      description: "Keeps a text.",
      schema: z.object({ content: z.string(), file_path: z.string() }),
    });
    const { service } = openServer(databaseFile(), {
      model: calling({ name: "write_note", args: { content, file_path: "/a.html" } }),
      tools: [keep],
      interruptOn: { write_note: true },
    });
    const { id } = await startRun(service, "keep it");
    await reach(service, id, "input_required");
    const { page, messages } = await open(linkTo(await openPages(service), id, "decide"));
    await page.locator("[data-approval]").waitFor();
    await page.keyboard.press("e");
    await mounted(page);
    const editor = editorOf(page, "content");
    expect(await editor.locator(".cm-line").allTextContents()).toEqual(content.split("\n"));
    await editor.evaluate((element) => element.dispatchEvent(new Event("input")));
    await page.keyboard.insertText("hidden \u202e turned");
    expect(await editor.locator(".cm-specialChar").count()).toBe(1);
    expect(await page.title()).not.toBe("owned");
    expect(messages).toEqual([]);
  });

  test("is not needed: a field of text keeps what was wrong with it, whatever else happens", async () => {
    const { service, runId, notes, view } = await waitingRun("a", "c");
    const { page } = await open("about:blank");
    await page.route("**/assets/code.js", (route) => route.abort());
    await page.goto(linkTo(await openPages(service), runId, "decide"));
    const [first, second] = view.requests.filter(isApproval);
    const own = page.locator(`[data-approval="${first?.id ?? ""}"]`);
    await own.focus();
    await page.keyboard.press("e");
    await own.getByLabel("Arguments (JSON)").fill("{oops");
    const followed = page.waitForResponse((answer) => /mark=\d/.test(answer.url()) && answer.ok());
    await send(page).first().click();
    await own.getByRole("alert").getByText("not a JSON object").waitFor();
    await followed;
    await mine(service).requests.answer(
      runId,
      { requestId: second?.id ?? "", answer: { type: "approve" } },
      "test",
    );
    await expect.poll(() => page.locator("[data-approval]").count()).toBe(1);
    await own.getByRole("alert").getByText("not a JSON object").waitFor();
    expect(await own.getByLabel("Arguments (JSON)").inputValue()).toBe("{oops");
    await own.getByLabel("Arguments (JSON)").fill('{"text": "b"}');
    await send(page).click();
    await reach(service, runId, "completed");
    expect(notes.toSorted()).toEqual(["b", "c"]);
  });
});
