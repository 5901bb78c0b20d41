import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { ME, mine, note, startRun } from "../../runs/support.ts";
import { browser, problemsOf } from "./chromium.ts";
import { openPages, waitingRun } from "./support.ts";
import { approvalRuns } from "../support.ts";

const NAME = `検潮所の警報 🛰️ <b>and</b> ${"a-name-without-an-end-".repeat(6)}`;

/** Keeps what the browser was told to show, because nobody sees it here. */
const RECORD = `const Real = Notification;
  globalThis.told = [];
  globalThis.Notification = class extends Real {
    constructor(title, options) { super(title, options); told.push({ title, ...options }); }
  };`;
const HIDDEN = "Object.defineProperty(document, 'hidden', { configurable: true, get: () => true })";

describe("settings of the browser, in Chromium", { tags: "chromium" }, () => {
  const open = browser({ locale: "en-GB", timezoneId: "UTC", reducedMotion: "reduce" });

  async function opened(service: Parameters<typeof openPages>[0]) {
    const pages = await openPages(service);
    const { page, messages } = await open(pages.link({ principal: ME, purpose: "decide" }));
    await page.waitForURL(pages.address);
    await page.locator("#screen").waitFor();
    return { page, messages, address: pages.address };
  }

  const openMenu = (page: Page): Promise<void> =>
    page.locator("summary[aria-label='Browser settings']").click();
  const schemeOf = (page: Page): Promise<string> =>
    page.evaluate<string>("getComputedStyle(document.body).backgroundColor");
  const [LIGHT, DARK] = ["rgb(250, 250, 251)", "rgb(13, 14, 16)"];

  test("the theme counts at once, on every page and server, before anything is painted", async () => {
    const { service } = await waitingRun("a");
    const { page, messages, address } = await opened(service);
    await page.emulateMedia({ colorScheme: "light" });
    expect(await schemeOf(page)).toBe(LIGHT);
    await openMenu(page);
    const dark = page.getByRole("button", { name: "Dark" });
    await dark.click();
    expect(await schemeOf(page)).toBe(DARK);
    expect(await dark.getAttribute("aria-pressed")).toBe("true");
    await page.goto(`${address}files`);
    await page.locator("#screen").waitFor();
    expect(await schemeOf(page)).toBe(DARK);
    // The page's own script never comes, so nothing but the document has been painted.
    await page.route("**/assets/page.js", () => undefined);
    await page.goto(address, { waitUntil: "commit" });
    await page.locator(".opening").waitFor({ state: "attached" });
    expect(await schemeOf(page)).toBe(DARK);
    await page.unroute("**/assets/page.js");
    const other = await opened(service);
    expect(await schemeOf(other.page)).toBe(DARK);
    await openMenu(other.page);
    await other.page.getByRole("button", { name: "System" }).click();
    await other.page.emulateMedia({ colorScheme: "light" });
    expect(await schemeOf(other.page)).toBe(LIGHT);
    await other.page.emulateMedia({ colorScheme: "dark" });
    expect(await schemeOf(other.page)).toBe(DARK);
    expect([...messages, ...other.messages]).toEqual([]);
  });

  test("Escape and a click elsewhere close the menu, and the focus goes back to its button", async () => {
    const { service } = await waitingRun("a");
    const { page } = await opened(service);
    const menu = page.locator("#settings");
    const isOpen = async (): Promise<boolean> => (await menu.getAttribute("open")) !== null;
    await page.locator("#settings > summary").focus();
    await page.keyboard.press("Enter");
    expect(await isOpen()).toBe(true);
    await page.getByRole("switch", { name: "Single-key shortcuts" }).focus();
    await page.keyboard.press("Escape");
    expect(await isOpen()).toBe(false);
    expect(await page.locator("#settings > summary:focus").count()).toBe(1);
    await openMenu(page);
    await page.mouse.click(200, 700);
    expect(await isOpen()).toBe(false);
  });

  test("passes axe in both themes, and is a sheet with rows for a thumb on phones", async () => {
    const { service } = await waitingRun("a");
    const { page } = await opened(service);
    await openMenu(page);
    expect(await problemsOf(page)).toEqual([]);
    await page.getByRole("button", { name: "Dark" }).click();
    expect(await problemsOf(page)).toEqual([]);
    await page.getByRole("button", { name: "Light" }).click();
    expect(await problemsOf(page)).toEqual([]);
    const { x, width, y, height } = (await page.locator("#settings .menu").boundingBox()) ?? {};
    expect({ x, width, end: (y ?? 0) + (height ?? 0) }).toEqual({ x: 0, width: 390, end: 800 });
    for (const row of await page.locator("#settings :is(.setting, .menu-item)").all())
      expect((await row.boundingBox())?.height).toBeGreaterThanOrEqual(44);
    await page.getByRole("button", { name: "System" }).click();
  });

  test("single keys do nothing once they are off", async () => {
    const { service } = await waitingRun("a");
    const { page } = await opened(service);
    const help = page.getByRole("dialog", { name: "Keyboard shortcuts" });
    await openMenu(page);
    await page.getByRole("switch", { name: "Single-key shortcuts" }).click();
    await page.keyboard.press("Escape");
    await page.keyboard.press("?");
    await page.keyboard.press("n");
    expect(await help.isVisible()).toBe(false);
    expect(await page.locator("#task:focus").count()).toBe(0);
    await page.reload();
    await page.locator("#screen").waitFor();
    await openMenu(page);
    await page.getByRole("button", { name: "Show all keys" }).click();
    await help.waitFor();
    await page.keyboard.press("Escape");
    await openMenu(page);
    await page.getByRole("switch", { name: "Single-key shortcuts" }).click();
    await page.keyboard.press("Escape");
    await page.keyboard.press("?");
    await help.waitFor();
  });

  test("a refused permission puts the switch back and says where to allow it", async () => {
    const { service } = await waitingRun("a");
    const { page } = await opened(service);
    await page.getByRole("button", { name: "Keyboard shortcuts" }).click();
    await page.keyboard.press("Escape");
    await openMenu(page);
    const box = page.getByRole("switch", { name: "Notify me when something needs me" });
    await box.click();
    await page.getByText("Your browser blocks notifications. Allow them for this address").waitFor();
    expect(await box.isChecked()).toBe(false);
    expect(await problemsOf(page)).toEqual([]);
  });

  test("a notification names the run and what it needs, and nothing of its content", async () => {
    const { service } = approvalRuns(note("a"));
    const { page, address } = await opened(service);
    await page.context().grantPermissions(["notifications"], { origin: new URL(address).origin });
    await page.evaluate(RECORD);
    const told = (): Promise<unknown[]> => page.evaluate<unknown[]>("told");
    await page.evaluate(HIDDEN);
    const { id: before } = await startRun(service, "before anything was turned on");
    await expect.poll(() => page.title()).toMatch(/^\(1\)/);
    expect(await told()).toEqual([]);
    await openMenu(page);
    await page.getByRole("switch", { name: "Notify me when something needs me" }).click();
    await startRun(service, NAME);
    await expect.poll(told).toHaveLength(1);
    const [shown] = (await told()) as { title: string; body: string }[];
    expect(shown?.title).toMatch(/^検潮所の警報 🛰️ <b>and<\/b> a-name/);
    expect(shown?.title.length).toBeLessThan(90);
    expect(shown?.body).toBe("Needs your decision");
    await mine(service).control.cancel(before, "seen");
    await expect.poll(() => page.title()).toMatch(/^\(1\)/);
    expect(await told()).toHaveLength(1);
  });
});
