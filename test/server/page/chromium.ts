/** A browser for the tests of one file, and what people with a small screen or no eyes would meet in its pages. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import axe from "axe-core";
import { type BrowserContext, type Page, chromium } from "playwright-core";
import { afterAll, beforeAll } from "vitest";
import { cleanUpWith } from "../../runs/support.ts";
import { browserPath } from "../../support/programs.ts";

export interface OpenedPage {
  page: Page;
  /** Messages of the console: refusals of the policy and errors of scripts among them. */
  messages: string[];
}

/** Opens pages, once the tests of this file have begun. */
export function browser(
  options: Parameters<typeof chromium.launchPersistentContext>[1] = {},
): (address: string) => Promise<OpenedPage> {
  let context: BrowserContext;
  let profile: string;
  beforeAll(async () => {
    profile = mkdtempSync(join(tmpdir(), "deepagent-chromium-"));
    const args = ["--no-sandbox", "--disable-background-networking"];
    context = await chromium.launchPersistentContext(profile, {
      executablePath: browserPath(),
      args,
      ...options,
    });
  });
  afterAll(async () => {
    await context.close();
    rmSync(profile, { recursive: true, force: true, maxRetries: 20 });
  });
  return async (address) => {
    const page = await context.newPage();
    cleanUpWith(() => page.close());
    const messages: string[] = [];
    page.on("console", (message) => messages.push(message.text()));
    page.on("pageerror", (error) => messages.push(error.message));
    await page.goto(address);
    return { page, messages };
  };
}

interface Violation {
  id: string;
  nodes: { html: string }[];
}

/** The width of a window, and the colours that its person likes. */
export type Look = readonly [width: number, colorScheme: "light" | "dark"];
export const LOOKS: readonly Look[] = [
  [1280, "light"],
  [390, "dark"],
];

/** What is wrong with the page as it is now, in a wide and a narrow window. Scripts of tests pass by its policy. */
export async function problemsOf(page: Page, looks = LOOKS): Promise<string[]> {
  const found: string[] = [];
  for (const [width, colorScheme] of looks) {
    await page.setViewportSize({ width, height: 800 });
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    const sideways = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
    if (sideways > 0) found.push(`at ${width}: ${sideways} px sideways`);
    if (await page.evaluate("typeof axe === 'undefined'")) await page.evaluate(axe.source);
    const { violations } = await page.evaluate<{ violations: Violation[] }>(
      `axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"] })`,
    );
    for (const { id, nodes } of violations) {
      found.push(`at ${width}: ${id} ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`);
    }
  }
  return found;
}
