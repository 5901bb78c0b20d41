import { isQuestion } from "../../../src/runs/run.ts";
import { describe, expect, test } from "vitest";
import { pageAnswer } from "../../../src/server/page/read-answer.ts";
import type { Field, Question } from "../../../src/tools/request.ts";
import {
  ME,
  mine,
  calling,
  callingInTurn,
  databaseFile,
  openServer,
  reach,
  startRun,
} from "../../runs/support.ts";
import { browser, problemsOf } from "./chromium.ts";
import { ASKED_AT, QUESTIONS, askingRun } from "./question-runs.ts";
import { linkTo, openPages, visit } from "./support.ts";
import { aQuestion } from "../support.ts";

/** A run that waits for the answer to a question of its agent. */
async function asking(args: object, clock?: () => number) {
  const call = { name: "ask_user", args: { question: "Which colour?", ...args } };
  const { service } = openServer(
    databaseFile(),
    { model: calling(call), askUser: true },
    clock === undefined ? {} : { clock },
  );
  const { id: runId } = await startRun(service, "paint");
  const questions = (await reach(service, runId, "input_required")).requests.filter(isQuestion);
  return { service, runId, question: questions[0]?.id ?? "" };
}

const open = (question: Question) => aQuestion({ question });
const sent = (fields: Record<string, string>) => new URLSearchParams({ act: "answer", ...fields });

describe("the form of a question", () => {
  const fields: Question = {
    kind: "ask",
    text: "?",
    fields: [
      { name: "a", type: "choice", options: ["1", "0"], many: true, other: true },
      { name: "b", type: "number", required: true },
    ],
  };

  test("gives options by their places, and other words beside them", () => {
    const form = sent({ "v0-other": "  more ", v1: "2,5" });
    form.append("v0", "0");
    form.append("v0", "other");
    expect(pageAnswer(open(fields), form)).toEqual({
      ok: true,
      answer: { type: "fields", values: { a: ["1", "more"], b: "2,5" } },
    });
  });

  test("counts other words whose box is not ticked, where nothing else is", () => {
    expect(pageAnswer(open(fields), sent({ "v0-other": "more", v1: "2" }))).toMatchObject({
      answer: { values: { a: ["more"] } },
    });
  });

  test("names every field that does not fit", () => {
    const two: Question = {
      ...fields,
      fields: [...fields.fields, { name: "c", type: "yes_no", required: true }],
    };
    expect(pageAnswer(open(two), sent({ v1: "ten" }))).toEqual({
      ok: false,
      problem: "Nothing was sent: 2 answers do not fit.",
      fields: new Map([
        ["b", "'b' must be a number."],
        ["c", "'c' is missing."],
      ]),
    });
  });

  test.each([
    [{ act: "decline", message: " no " }, { answer: { type: "decline", message: "no" } }],
    [{ act: "opened" }, { answer: { type: "opened" } }],
    [{ v0: "a\r\nb" }, { answer: { type: "value", value: "a\nb" } }],
    [
      { as: "json", v0: "[1" },
      { problem: expect.stringMatching(/^The answer is not JSON: in line 1, column 3, /) },
    ],
    [{ as: "json", v0: " 5" }, { answer: { type: "value", value: 5 } }],
    [{ v0: " " }, { problem: "Write an answer, or decline." }],
    [{ act: "" }, { problem: "No answer was sent. Press one of the buttons." }],
  ])("%j is read as %j", (given, read) => {
    expect(pageAnswer(open({ kind: "interrupt", value: "?" }), sent(given))).toMatchObject(read);
  });
});

test("a form that is sent twice, or too late, says what became of the question", async () => {
  const { service, runId, question } = await asking({ wait_minutes: 5 }, () => ASKED_AT);
  const pages = await openPages(service, () => ASKED_AT);
  const visitor = await visit(linkTo(pages, runId, "decide"));
  const send = (fields: Record<string, string>) =>
    visitor.post(`/runs/${runId}/reply`, { request: question, ...fields });
  expect((await visitor.get(`/runs/${runId}/review`)).body).toContain("If there is no answer by");
  expect((await send({ act: "answer", v0: "blue" })).status).toBe(303);
  for (const v0 of ["blue", "red"]) {
    const again = await send({ act: "answer", v0 });
    expect(again.status).toBe(422);
    expect(again.body).toContain("This question has already been answered (page).");
  }
  const unknown = await visitor.post(`/runs/${runId}/reply`, { request: "none", act: "decline" });
  expect(unknown.body).toContain("There is no such request in this run.");
  await reach(service, runId, "completed");
});

test("an answer after the expiry reaches the agent as a message", async () => {
  let now = ASKED_AT;
  const ask = (question: string, more = {}) => ({ name: "ask_user", args: { question, ...more } });
  const model = callingInTurn([ask("Which colour?", { wait_minutes: 5 })], [ask("And the size?")]);
  const { service } = openServer(databaseFile(), { model, askUser: true }, { clock: () => now });
  const { id: runId } = await startRun(service, "paint");
  const [first] = (await reach(service, runId, "input_required")).requests.filter(isQuestion);
  const visitor = await visit(linkTo(await openPages(service, () => now), runId, "decide"));
  now += 5 * 60_000;
  await expect
    .poll(async () => (await mine(service).read.view(runId))?.requests.filter(isQuestion).length)
    .toBe(2);
  const late = await visitor.post(`/runs/${runId}/reply`, {
    request: first?.id ?? "",
    act: "answer",
    v0: "blue",
  });
  expect(late.body).toContain("It reads yours as a message at its next step.");
  const review = (await visitor.get(`/runs/${runId}/review`)).body;
  expect(review).toContain("Nobody answered in time");
  expect(review).toContain("And the size?");
});

test("a form of another server begins with the values that it suggests", async () => {
  const fields: Field[] = [
    { name: "seat", type: "choice", options: ["w", "a"], labels: ["Window", "Aisle"], suggested: "a" },
    { name: "meal", type: "yes_no", suggested: false },
    { name: "bags", type: "number", suggested: 2 },
  ];
  const form = { kind: "elicitation", server: "airline", message: "?", mode: "form", fields } as const;
  const { service, runId } = await askingRun([form]);
  const visitor = await visit(linkTo(await openPages(service), runId, "decide"));
  const { body } = await visitor.get(`/runs/${runId}/review`);
  const inputs = [...body.matchAll(/<input[^>]*name="v\d"[^>]*>/g)].map(([input]) =>
    input.replaceAll(/\s+/g, " "),
  );
  expect(inputs.filter((input) => input.includes(" checked"))).toEqual([
    expect.stringContaining('name="v0" value="1"'),
    expect.stringContaining('name="v1" value="no"'),
  ]);
  expect(inputs.at(-1)).toContain('value="2"');
});

test("who only looks sees the question and where to answer it, and no form", async () => {
  const { service, runId } = await askingRun(QUESTIONS);
  const visitor = await visit(linkTo(await openPages(service), runId, "watch"));
  const { body } = await visitor.get(`/runs/${runId}/review`);
  expect(body).toContain("Question from MCP server <code>pager</code>");
  expect(body).toMatch(/one or more of: Saturday, Sunday, Public holidays/);
  expect(body).toContain(`deepagent-mcp runs open ${runId}`);
  expect(body).not.toContain('method="post"');
  const refused = await visitor.post(`/runs/${runId}/reply`, { request: "q1", act: "decline" });
  expect(refused.status).toBe(403);
  expect(
    (await mine(service).read.view(runId))?.requests
      .filter(isQuestion)
      .every(({ status }) => status === "pending"),
  ).toBe(true);
});

describe("in Chromium", { tags: "chromium" }, () => {
  const visitPage = browser({ locale: "en-GB", timezoneId: "UTC", reducedMotion: "reduce" });
  const HULL = {
    fields: [
      { name: "colour", title: "Colour", options: ["Red", "Signal blue"], other: true },
      { name: "days", title: "Days off", options: ["Saturday", "Sunday"], many: true, optional: true },
      { name: "coats", title: "Coats", type: "number" },
      { name: "name", title: "Paint the name?", type: "yes_no" },
      { name: "notes", title: "Anything else", optional: true },
    ],
  };

  test("a person answers every field; a wrong one comes back with what was typed", async () => {
    const { service, runId } = await asking(HULL);
    const { page, messages } = await visitPage(linkTo(await openPages(service), runId, "decide"));
    const own = page.locator(".ask");
    await own.getByRole("heading", { name: "Which colour?" }).waitFor();
    await own.locator("input[data-other]").fill("gold 金");
    await own.getByLabel("Sunday").check();
    await own.getByLabel("Coats").fill("two");
    await own.getByLabel("No", { exact: true }).check();
    await own.getByLabel("Anything else").fill("dry\nbefore rain");
    // The return key in a field sends nothing.
    await own.getByLabel("Coats").press("Enter");
    await own.getByRole("button", { name: "Send answer" }).click();
    await own.getByRole("alert").getByText("'Coats' must be a number.").waitFor();
    expect(
      await own.getByLabel("Coats").evaluate((field) => field === field.ownerDocument.activeElement),
    ).toBe(true);
    expect(await own.locator("input[data-other]").inputValue()).toBe("gold 金");
    expect(await own.getByLabel("Sunday").isChecked()).toBe(true);
    expect(await own.getByLabel("Anything else").inputValue()).toBe("dry\nbefore rain");
    await own.getByLabel("Coats").fill("2");
    await own.getByLabel("Coats").press("Control+Enter");
    await page.getByRole("status").getByText("Completed", { exact: true }).waitFor();
    const [question] = (await mine(service).read.view(runId))?.requests.filter(isQuestion) ?? [];
    expect(question).toMatchObject({
      status: "answered",
      decidedBy: "page",
      answer: {
        values: { colour: "gold 金", days: ["Sunday"], coats: 2, name: false, notes: "dry\nbefore rain" },
      },
    });
    await page.getByRole("link", { name: "Review" }).click();
    await page.getByText(/Answered on the page.*colour: gold 金/).waitFor();
    expect(messages.filter((message) => !message.includes("422"))).toEqual([]);
  });

  test("all missing answers are named at once, in words of the page, and fields are as wide as their answers", async () => {
    const { service, runId } = await asking(HULL);
    const { page } = await visitPage(linkTo(await openPages(service), runId, "decide"));
    const own = page.locator(".ask");
    await own.getByRole("button", { name: "Send answer" }).click();
    await own.getByText("Nothing was sent: 3 answers do not fit.").waitFor();
    for (const name of ["Colour", "Coats", "Paint the name?"])
      expect(await own.getByText(`'${name}' is missing.`).count()).toBe(1);
    expect((await own.getByLabel("Coats").boundingBox())?.width).toBeLessThanOrEqual(200);
    expect((await own.getByLabel("Anything else").boundingBox())?.height).toBeLessThan(40);
  });

  test("what is typed and ticked outlasts other answers; declining needs no answer", async () => {
    const { service, runId } = await askingRun(QUESTIONS);
    const { page } = await visitPage(linkTo(await openPages(service), runId, "decide"));
    const own = page.locator(".ask").first();
    await own.getByLabel("Red").check();
    await own.getByLabel("Saturday").check();
    await own.getByLabel("Coats").fill("3");
    await mine(service).requests.answer(runId, { requestId: "q1", answer: { type: "decline" } }, "terminal");
    await expect.poll(() => page.locator(".ask").count()).toBe(QUESTIONS.length - 1);
    expect(await own.getByLabel("Red").isChecked()).toBe(true);
    expect(await own.getByLabel("Saturday").isChecked()).toBe(true);
    expect(await own.getByLabel("Coats").inputValue()).toBe("3");
    await own.focus();
    await page.keyboard.press("x");
    await own.getByLabel("Reason").fill("you choose");
    await own.getByLabel("Reason").press("Control+Enter");
    await expect.poll(() => page.locator(".ask").count()).toBe(QUESTIONS.length - 2);
    const [question] = (await mine(service).read.view(runId))?.requests.filter(isQuestion) ?? [];
    expect(question?.answer).toEqual({ type: "decline", message: "you choose" });
  });

  test("questions of every kind stay plain text and fit every window", { tags: ["long"] }, async () => {
    const { service, runId } = await askingRun(QUESTIONS);
    const pages = await openPages(service, () => ASKED_AT);
    const { page, messages } = await visitPage(pages.link({ principal: ME, purpose: "decide" }));
    await page.waitForURL(pages.address);
    await page.locator(".needs-list").getByText("pager asks: Where should the test message go?").waitFor();
    await page.getByText("7 requests need your attention").waitFor();
    expect(await problemsOf(page)).toEqual([]);
    for (const path of [`/runs/${runId}/review`, `/runs/${runId}/work`, "/review"]) {
      await page.goto(new URL(path, pages.address).href);
      await page.locator("main").waitFor();
      expect(await problemsOf(page)).toEqual([]);
    }
    const all = page.locator(".ask");
    const told = all.nth(1);
    await told.getByText("**No** markup <b>acts</b> here, and [no link](https://example.org).").waitFor();
    await told.getByText("turned\\u202earound, zero\\u200bwidth").waitFor();
    expect(await page.locator("main .ask :is(b, a[href*='example.org'])").count()).toBe(2);
    const address = all.nth(5);
    expect(await address.locator("dd").first().innerText()).toMatch(
      /^xn--gthub-cta\.com · reads as .* · https$/,
    );
    expect(await address.locator(".kv").innerText()).toContain("mcp.other.example (a different host)");
    const link = address.getByRole("link", { name: "Open xn--gthub-cta.com" });
    expect(await link.getAttribute("rel")).toBe("noopener noreferrer");
    await address.getByRole("button", { name: "Done, I opened it" }).click();
    await expect.poll(() => page.locator(".ask").count()).toBe(6);
    const [foreign, unsafe] = [page.locator(".ask").nth(4), page.locator(".ask").nth(5)];
    expect(await unsafe.getByRole("button").allInnerTexts()).toEqual(["Skip this question"]);
    expect(await unsafe.getByRole("link").filter({ hasText: "Open" }).count()).toBe(0);
    await foreign.getByLabel("Recipient").fill("nobody");
    await foreign.getByLabel("Yes").check();
    await foreign.getByRole("button", { name: "Send to pager" }).click();
    await foreign.getByText("'Recipient' must be an email address.").first().waitFor();
    await foreign.getByLabel("Recipient").fill("a@example.org");
    await foreign.getByRole("button", { name: "Send to pager" }).click();
    await expect.poll(() => page.locator(".ask").count()).toBe(5);
    const { requests } = (await mine(service).read.view(runId)) ?? { requests: [] };
    expect(requests.map(({ status }) => status).filter((status) => status === "answered")).toHaveLength(2);
    expect(messages.filter((message) => !message.includes("422"))).toEqual([]);
  });
});
