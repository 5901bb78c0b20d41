import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { cleanUpWith, note, reach, startRun } from "../../runs/support.ts";
import { approvalRuns } from "../support.ts";
import { LOOKS, browser, problemsOf } from "./chromium.ts";
import { openSite } from "./log-in-support.ts";

describe("logging in with Chromium", { tags: "chromium" }, () => {
  const openAddress = browser({ bypassCSP: true, reducedMotion: "reduce" });

  async function open() {
    const { service } = approvalRuns(note("a"));
    const { id } = await startRun(service, "note it");
    await reach(service, id, "input_required");
    const site = await openSite(service);
    const { page } = await openAddress("about:blank");
    await page.context().clearCookies();
    return { service, site, page, id };
  }

  async function logIn(page: Page, token: string): Promise<void> {
    // The field has the focus as soon as the page is there.
    await page.locator("input[name=token]:focus").waitFor();
    await page.keyboard.type(token);
    const answered = page.waitForResponse((response) => response.url().endsWith("/login"));
    await page.keyboard.press("Enter");
    await answered;
    await page.waitForLoadState("load");
    await page.getByRole("button", { name: /^Log (?:in|out)$/ }).waitFor();
  }

  test("fits, can be used by anybody, and by keyboard alone", async () => {
    const { site, page, id } = await open();
    const problems: string[] = [];
    const look = async (): Promise<void> => {
      const looks = [
        ...LOOKS,
        ...([
          [1280, "dark"],
          [390, "light"],
        ] as const),
      ];
      problems.push(...(await problemsOf(page, looks)));
    };
    await page.goto(`${site.origin}/runs/${id}/review`);
    await look();
    await logIn(page, "no-such-token");
    await page.getByRole("alert").waitFor();
    await look();
    await logIn(page, "mine");
    await page.waitForURL(`${site.origin}/runs/${id}/review`);
    await page.getByRole("button", { name: "Log out" }).waitFor();
    await look();
    expect(problems).toEqual([]);
  });

  test("a link of another site leads to the page, and a decision there lets the run go on", async () => {
    const { service, site, page, id } = await open();
    await page.goto(site.origin);
    await logIn(page, "mine");
    const elsewhere = createServer((_request, response) => {
      response.setHeader("content-type", "text/html");
      response.end(`<a href="${site.origin}/runs/${id}/review">the run</a>`);
    }).listen(0, "127.0.0.1");
    cleanUpWith(() => elsewhere.close());
    await once(elsewhere, "listening");
    const { port } = elsewhere.address() as AddressInfo; // it listens on a port
    // Another site, unlike another port of the same host.
    await page.goto(`http://localhost:${port}/`);
    await page.getByText("the run").click();
    await page.getByRole("button", { name: "Approve", exact: true }).click();
    await reach(service, id, "completed");
    expect(page.url()).toContain(site.origin);
  });

  test("an open page says that its session has ended, and logging out leads to the log-in", async () => {
    const { site, page } = await open();
    await page.goto(site.origin);
    const stream = page.waitForResponse((response) => response.url().includes("mark="));
    await logIn(page, "mine");
    await stream;
    const tokens = site.tokens.splice(0);
    await page.getByRole("alert").getByText("You were logged out.").waitFor();
    site.tokens.push(...tokens);
    await page.reload();
    await logIn(page, "mine");
    await page.getByRole("button", { name: "Log out" }).click();
    await page.waitForURL(`${site.origin}/login`);
    await page.locator("input[name=token]").waitFor();
    expect(await page.evaluate("sessionStorage.getItem('session')")).toBe(null);
    expect(await page.context().cookies()).toEqual([]);
  }, 90_000);
});
