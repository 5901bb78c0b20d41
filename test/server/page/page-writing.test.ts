import { describe, expect, test } from "vitest";
import { request as httpRequest } from "node:http";
import { databaseFile, mine, openServer, reach, startRun } from "../../runs/support.ts";
import { deferred } from "../../support/harness-deferred.ts";
import { scriptedModel } from "../../support/scripted-model.ts";
import { browser } from "./chromium.ts";
import { linkTo, openPages, visit } from "./support.ts";

const ANSWER = "First <b>words</b> 你好 and the rest of the answer.";

/** A run whose model has written one word, until `rest` is resolved. */
async function writing() {
  const rest = deferred();
  const model = scriptedModel(() => ({ text: ANSWER, pause: rest.promise }));
  const { service } = openServer(databaseFile(), { model });
  const { id } = await startRun(service, "write");
  return { rest, service, id, pages: await openPages(service) };
}

test("a stream has what the agent writes, once, and an empty text when the journal has it", async () => {
  const { rest, service, id, pages } = await writing();
  const { origin, headers } = await visit(linkTo(pages, id, "watch"));
  const texts: { from: number; text: string }[] = [];
  const follow = (path: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const own = { ...headers, accept: "text/event-stream" };
      const request = httpRequest(`${origin}${path}`, { headers: own }, (response) => {
        let all = "";
        response.setEncoding("utf8").on("data", (chunk: string) => {
          all += chunk;
          if (all.includes("event: text")) rest.resolve();
        });
        response.once("close", () => resolve(all));
      });
      request.once("error", reject).end();
    });
  // Another agent of the run is selected there.
  const [own, other] = [follow(`/runs/${id}/work`), follow(`/runs/${id}/work?agent=x`)];
  const [all, none] = await Promise.all([own, other]);
  await reach(service, id, "completed");
  for (const [, data = ""] of all.matchAll(/^event: text\ndata: (.*)$/gm))
    texts.push(JSON.parse(data) as (typeof texts)[number]);
  let shown = "";
  for (const { from, text } of texts.slice(0, -1)) {
    expect(from).toBe(shown.length);
    shown += text;
  }
  expect(shown).toBe(ANSWER);
  expect(texts.at(-1)).toEqual({ from: 0, text: "" });
  expect(none).not.toContain("event: text");
  expect((await mine(service).read.view(id))?.run.answer).toBe(ANSWER);
});

describe("in Chromium", { tags: "chromium" }, () => {
  const open = browser();

  test("a person reads what the agent writes while it does, as text, and then its answer", async () => {
    const { rest, id, pages } = await writing();
    const { page, messages } = await open(linkTo(pages, id, "watch"));
    await page.waitForURL(/\/runs\//);
    const line = page.locator("#writing");
    await line.getByText("First").waitFor();
    expect(await line.locator(".plain").textContent()).toBe("First");
    // Someone who comes later, or again, reads the same.
    await page.reload();
    await line.getByText("First").waitFor();
    rest.resolve();
    await page.getByRole("status").getByText("Completed", { exact: true }).waitFor();
    await expect.poll(() => line.count()).toBe(0);
    expect(await page.locator("b", { hasText: "words" }).count()).toBe(0);
    expect(messages).toEqual([]);
  });
});
