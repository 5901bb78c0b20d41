import { describe, expect, test } from "vitest";
import { mine } from "../../runs/support.ts";
import { browser } from "./chromium.ts";
import { linkTo, openPages, waitingRun } from "./support.ts";

describe("updates in Chromium", { tags: "chromium" }, () => {
  const open = browser();

  /** A run that waits for two decisions, and its page. */
  async function opened(path = "review") {
    const { service, runId, view } = await waitingRun("first", "second");
    const pages = await openPages(service);
    const { page, messages } = await open(linkTo(pages, runId, "decide"));
    await page.waitForURL(/\/runs\//);
    await page.goto(`${new URL(page.url()).origin}/runs/${runId}/${path}`);
    await page.locator("#screen main").waitFor();
    /** Decides the request that is shown first. */
    const decide = async () => {
      const requestId = (await page.locator("[data-approval]").first().getAttribute("data-approval")) ?? "";
      await mine(service).requests.answer(runId, { requestId, answer: { type: "approve" } }, "test");
    };
    const decideAll = async () => {
      for (const { id: requestId } of view.requests)
        await mine(service).requests.answer(runId, { requestId, answer: { type: "approve" } }, "test");
    };
    return { page, messages, decide, decideAll };
  }

  test("a page that a translator rewrote still says what happens", async () => {
    const { page, messages, decideAll } = await opened("work");
    await page.getByText("Needs you", { exact: true }).last().waitFor();
    await page.evaluate(`{
      const walker = document.createTreeWalker(document.getElementById("screen"), NodeFilter.SHOW_TEXT);
      const texts = [];
      while (walker.nextNode()) if (walker.currentNode.data.trim() !== "") texts.push(walker.currentNode);
      for (const text of texts) {
        const font = document.createElement("font");
        font.textContent = "[" + text.data + "]";
        text.replaceWith(font);
      }
    }`);
    await page.getByText("[Needs you]", { exact: true }).last().waitFor();
    await decideAll();
    await page.getByText("Completed", { exact: true }).last().waitFor();
    expect(await page.getByRole("status").getByText("[Needs you]").count()).toBe(0);
    expect(messages).toEqual([]);
  });

  test("a request keeps its element, its focus and its open fold while the one before it goes", async () => {
    const { page, decide } = await opened();
    const second = page.locator("[data-approval]").last();
    await second.locator("summary", { hasText: "Reject" }).click();
    await second.locator("textarea[name=message]").fill("Because of 你好");
    await page.evaluate("void (known = [...document.querySelectorAll('[data-approval]')].at(-1))");
    await decide();
    await expect.poll(() => page.locator("[data-approval]").count()).toBe(1);
    const left = page.locator("[data-approval]");
    expect(await page.evaluate("known === document.querySelector('[data-approval]')")).toBe(true);
    expect(await left.locator("textarea[name=message]").inputValue()).toBe("Because of 你好");
    expect(await page.evaluate("document.activeElement.name")).toBe("message");
    expect(await left.locator("details[data-fold=reject]").getAttribute("open")).not.toBeNull();
  });

  test("a complaint and its form stay while the rest of the screen goes on", async () => {
    const { page, decide } = await opened();
    // Before the editor is loaded, the server is the first to say what is wrong.
    await page.evaluate(`{
      const field = [...document.querySelectorAll("textarea[name=edited_args]")].at(-1);
      field.value = "{";
      field.form.requestSubmit(field.form.querySelector("button[value=edit]"));
    }`);
    const complaint = page.locator(".ask [role=alert]");
    await complaint.waitFor();
    const text = await complaint.innerText();
    await decide();
    await expect.poll(() => page.locator("[data-approval]").count()).toBe(1);
    expect(await complaint.innerText()).toBe(text);
  });
});
