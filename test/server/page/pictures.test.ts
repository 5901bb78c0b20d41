/**
 * Screens of the page compared with accepted pictures, and with accepted places of their parts.
 *
 * To accept what is different now: `ACCEPT_PICTURES=1 npx vitest run test/server/page/pictures.test.ts`. Look at the
 * pictures before you commit them.
 */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import pixelmatch from "pixelmatch";
import type { Page } from "playwright-core";
import { PNG } from "pngjs";
import { beforeAll, describe, expect, test } from "vitest";
import type { PageServer } from "../../../src/server/contracts/deps.ts";
import { keyOf } from "../../../src/server/views/room/timeline.ts";
import { ME } from "../../runs/support.ts";
import { accessRuns } from "./access-runs.ts";
import { browser } from "./chromium.ts";
import { JUDGED_AT, goalRuns } from "./goal-runs.ts";
import { ASKED_AT, QUESTIONS, askingRun } from "./question-runs.ts";
import { NOW, type SeededRuns, seededRuns } from "./seeded-runs.ts";
import { PROPOSED_AT, proposingRun } from "./proposing-runs.ts";
import { openPages } from "./support.ts";

const ACCEPTS = process.env["ACCEPT_PICTURES"] === "1";
const ACCEPTED = join(import.meta.dirname, "accepted");
/** Not committed. */
const DIFFERENT = join(import.meta.dirname, "different");
const COMMAND = "ACCEPT_PICTURES=1 npx vitest run test/server/page/pictures.test.ts";

/**
 * Pictures are compared as averages of squares of so many pixels, because another antialiasing changes every letter a
 * little. Measured: without positions of glyphs between pixels, at most 0.09 % of the squares of a picture differ (by
 * single pixels 1.6 %); a button of another colour makes 0.3 to 1.5 %, icons that are missing 0.23 %. A hairline of
 * another colour is not seen by this. What moves is found by the places of the parts, in pixels, whatever is drawn.
 */
const SQUARE = 4;
const MAX_DIFFERENT = 0.0012;
const MAX_MOVED = 2;

interface Picture {
  name: string;
  width: 1280 | 390;
  scheme: "light" | "dark";
  path: string;
  /** What to do before it is taken. */
  prepare?: (page: Page) => Promise<void>;
}

const wide = { width: 1280, scheme: "light" } as const;
const phone = { width: 390, scheme: "dark" } as const;

/** Key of the agent of the twelve that works in the background. */
const BACKGROUND = keyOf([{ callId: "call_8", name: "general-purpose" }]);

const picturesOf = ({ twelve, hundred, done, failed, cancelled, queued }: SeededRuns["runs"]): Picture[] => [
  { name: "home", ...wide, path: "/" },
  { name: "home-phone", ...phone, path: "/" },
  { name: "nothing-found", ...phone, scheme: "light", path: "/?q=nothing+has+this" },
  { name: "twelve-agents", ...wide, scheme: "dark", path: `/runs/${twelve}/work` },
  { name: "twelve-agents-phone", ...phone, scheme: "light", path: `/runs/${twelve}/work` },
  { name: "background-agent", ...wide, path: `/runs/${twelve}/work?agent=${BACKGROUND}` },
  {
    name: "background-agent-phone",
    ...phone,
    scheme: "light",
    path: `/runs/${twelve}/work?agent=${BACKGROUND}`,
    prepare: async (page) => {
      await page.locator(".steer summary").first().click();
      await page.locator(".steer textarea").scrollIntoViewIfNeeded();
    },
  },
  { name: "hundred-agents", ...wide, path: `/runs/${hundred}/work` },
  {
    name: "hundred-agents-open",
    ...phone,
    path: `/runs/${hundred}/work`,
    prepare: (page) => page.locator(".tl-fold > summary").click(),
  },
  { name: "review", ...wide, path: `/runs/${twelve}/review` },
  { name: "review-phone", ...phone, path: `/runs/${twelve}/review` },
  { name: "answer", ...wide, path: `/runs/${done}/answer` },
  { name: "answer-phone", ...phone, path: `/runs/${done}/answer` },
  { name: "failed", ...phone, scheme: "light", path: `/runs/${failed}/answer` },
  { name: "cancelled", ...wide, scheme: "dark", path: `/runs/${cancelled}/answer` },
  { name: "queued", ...wide, path: `/runs/${queued}/work` },
  { name: "schedules", ...wide, path: "/schedules" },
  { name: "schedules-phone", ...phone, path: "/schedules" },
  { name: "files", ...wide, scheme: "dark", path: "/files" },
];

describe("the page in Chromium", { tags: "chromium" }, () => {
  const open = browser({ locale: "en-GB", timezoneId: "UTC", reducedMotion: "reduce" });

  /** Compares screens of one server with those that were accepted. */
  const compared = async (
    pages: PageServer,
    now: number,
    pictures: readonly Picture[],
  ): Promise<string[]> => {
    const { page } = await open("about:blank");
    await page.clock.setFixedTime(now);
    await page.goto(pages.link({ principal: ME, purpose: "decide" }));
    await page.waitForURL(pages.address);
    const found: string[] = [];
    for (const picture of pictures) {
      await page.setViewportSize({ width: picture.width, height: 800 });
      await page.emulateMedia({ colorScheme: picture.scheme, reducedMotion: "reduce" });
      await page.goto(new URL(picture.path, pages.address).href);
      await page.locator("main").waitFor();
      await page.evaluate("document.fonts.ready");
      await expect.poll(() => page.locator(UNSHOWN).count()).toBe(0);
      await picture.prepare?.(page);
      found.push(...compare(picture.name, await taken(page), await layoutOf(page)));
    }
    return found;
  };
  const expectNone = (found: readonly string[]): void => {
    const advice = `\nThe new pictures and the differences are in ${relative(process.cwd(), DIFFERENT)}. To accept them: ${COMMAND}`;
    expect(found, found.join("\n") + advice).toEqual([]);
  };
  beforeAll(() => {
    rmSync(DIFFERENT, { recursive: true, force: true });
    mkdirSync(ACCEPTED, { recursive: true });
  });

  test("looks as it was accepted", async () => {
    const { service, runs } = await seededRuns();
    const settings = { folder: "tide-alarms" };
    const pages = await openPages(service, () => NOW, {
      settings,
      folderOf: ({ environment }) => environment,
    });
    expectNone(await compared(pages, NOW, picturesOf(runs)));
  });

  test("shows links and subscriptions as it was accepted", async () => {
    const pages = await openPages(await accessRuns(NOW), () => NOW);
    const looks = [wide, { ...wide, scheme: "dark" }, phone, { ...phone, scheme: "light" }] as const;
    const names = ["access", "access-dark", "access-phone", "access-phone-light"];
    const pictures = looks.map((look, at) => ({ name: names[at] ?? "", ...look, path: "/access" }));
    expectNone(await compared(pages, NOW, pictures));
  });

  test("shows a goal as it was accepted", async () => {
    const { service, asked, ended } = await goalRuns();
    const pages = await openPages(service, () => JUDGED_AT);
    const looks = [
      { name: "goal-work", ...wide, path: `/runs/${asked}/work` },
      { name: "goal-work-phone", ...phone, path: `/runs/${asked}/work` },
      { name: "goal-answer", ...wide, path: `/runs/${ended}/answer` },
      { name: "goal-answer-phone", ...phone, path: `/runs/${ended}/answer` },
    ];
    expectNone(await compared(pages, JUDGED_AT, looks));
  });

  test("shows a proposed change as it was accepted", async () => {
    const { service, runId } = await proposingRun();
    const now = PROPOSED_AT + 600_000;
    const pages = await openPages(service, () => now, { folderOf: () => "tide-alarms" });
    const path = `/runs/${runId}/review`;
    const prepare = (page: Page) => page.locator("[data-conflict]").first().scrollIntoViewIfNeeded();
    const looks = [
      { name: "proposed", ...wide, path },
      { name: "proposed-phone", ...phone, path },
      { name: "proposed-conflict", ...wide, path, prepare },
      { name: "proposed-conflict-phone", ...phone, path, prepare },
    ];
    expectNone(await compared(pages, now, looks));
  });

  test("asks questions as it was accepted", async () => {
    const found: string[] = [];
    const names = ["agent", "text", "tool", "form", "server", "address", "no-address"];
    for (const [index, name] of names.entries()) {
      const { service, runId } = await askingRun(QUESTIONS.slice(index, index + 1));
      const pages = await openPages(service, () => ASKED_AT);
      const path = `/runs/${runId}/review`;
      const looks = [
        { name: `question-${name}`, ...wide, path },
        { name: `question-${name}-phone`, ...phone, path },
      ];
      found.push(...(await compared(pages, ASKED_AT, looks)));
    }
    expectNone(found);
  });
});

/** Texts that the script has not formatted or coloured yet. */
const UNSHOWN = ":is(md-text, code-text, diff-text):not([data-mounted])";

/** Characters that fonts of the machine would have to draw are replaced, because they differ in size, too. */
const REPLACE_FOREIGN = `for (const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT); walker.nextNode();) {
  const { data } = walker.currentNode;
  const replaced = data.replace(/[\\u0590-\\u06ff\\u3040-\\u9fff\\uac00-\\ud7a3\\uff00-\\uffef\\u{1f000}-\\u{1ffff}]/gu, "x").replace(/[\\u200d\\ufe0f]/gu, "");
  if (replaced !== data) walker.currentNode.data = replaced;
}`;

async function taken(page: Page): Promise<Buffer> {
  await page.evaluate(REPLACE_FOREIGN);
  return page.screenshot({ animations: "disabled", caret: "hide" });
}

/** Where the parts are that people orient themselves by, one in a line. */
const LAYOUT = `[...document.querySelectorAll("header, nav, main, aside, h1, h2, h3, .panel, .btn, .field, .tl-row, .run-row, .diff")]
  .filter((element) => element.checkVisibility() && !element.closest("[class=hide]"))
  .slice(0, 120)
  .map((element) => {
    const { x, y, width, height } = element.getBoundingClientRect();
    const name = [element.localName, ...element.classList].join(".");
    return [name, ...[x, y, width, height].map(Math.round)].join(" ");
  })
  .join("\\n") + "\\n"`;

const layoutOf = (page: Page): Promise<string> => page.evaluate<string>(LAYOUT);

/** What is different from what was accepted; stores the new ones, as accepted ones if they are to be. */
function compare(name: string, picture: Buffer, layout: string): string[] {
  const [image, places] = [join(ACCEPTED, `${name}.png`), join(ACCEPTED, `${name}.txt`)];
  if (ACCEPTS || !existsSync(image)) {
    writeFileSync(image, packed(picture));
    writeFileSync(places, layout);
    return ACCEPTS ? [] : [`${name}: there was no accepted picture; now this one is there`];
  }
  const moved = movedParts(readFileSync(places, "utf8"), layout).map((part) => `${name}: ${part}`);
  const changed = changedSquares(PNG.sync.read(readFileSync(image)), PNG.sync.read(picture));
  const isChanged = changed === undefined || changed.share > MAX_DIFFERENT;
  if (!isChanged && moved.length === 0) return [];
  mkdirSync(DIFFERENT, { recursive: true });
  writeFileSync(join(DIFFERENT, `${name}.png`), picture);
  if (changed !== undefined)
    writeFileSync(join(DIFFERENT, `${name}.difference.png`), PNG.sync.write(changed.shown));
  const share =
    changed === undefined ? "has another size" : `${(100 * changed.share).toFixed(3)} % of it changed`;
  return [...(isChanged ? [`${name}: ${share}`] : []), ...moved];
}

function changedSquares(accepted: PNG, picture: PNG): { share: number; shown: PNG } | undefined {
  if (accepted.width !== picture.width || accepted.height !== picture.height) return undefined;
  const [before, after] = [averaged(accepted), averaged(picture)];
  const { width, height } = before;
  const shown = new PNG({ width, height });
  const count = pixelmatch(before.data, after.data, shown.data, width, height, { threshold: 0.15 });
  return { share: count / (width * height), shown };
}

function averaged({ width, height, data }: PNG): PNG {
  const small = new PNG({ width: Math.floor(width / SQUARE), height: Math.floor(height / SQUARE) });
  // Loops alone: this reads a million numbers for each picture.
  for (let at = 0; at < small.data.length; at += 1) {
    const [x, y] = [Math.floor(at / 4) % small.width, Math.floor(at / 4 / small.width)];
    let sum = 0;
    for (let row = 0; row < SQUARE; row += 1) {
      const begin = 4 * ((y * SQUARE + row) * width + x * SQUARE) + (at % 4);
      for (let one = 0; one < SQUARE; one += 1) sum += data[begin + 4 * one] ?? 0;
    }
    small.data[at] = sum / SQUARE ** 2;
  }
  return small;
}

function movedParts(accepted: string, layout: string): string[] {
  const [before, after] = [accepted, layout].map((text) =>
    text
      .trimEnd()
      .split("\n")
      .map((line) => line.split(" ")),
  );
  if (before === undefined || after === undefined || before.length !== after.length) {
    return [`${after?.length} parts, and not ${before?.length}`];
  }
  return after.flatMap((part, index) => {
    const was = before[index] ?? [];
    const isSame = part.every((value, place) =>
      place === 0 ? value === was[0] : Math.abs(Number(value) - Number(was[place])) <= MAX_MOVED,
    );
    return isSame ? [] : [`${part.join(" ")} was ${was.join(" ")}`];
  });
}

/** Without transparency, as small as PNG makes it. */
const packed = (picture: Buffer): Buffer =>
  PNG.sync.write(PNG.sync.read(picture), { colorType: 2, deflateLevel: 9, filterType: -1 });
