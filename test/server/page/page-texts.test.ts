import { isApproval } from "../../../src/runs/run.ts";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import type { RunService } from "../../../src/runs/service.ts";
import { mine, databaseFile, openServer, reach, startRun } from "../../runs/support.ts";
import { scriptedModel } from "../../support/scripted-model.ts";
import { parsed } from "../content/parsed.ts";
import { browser, problemsOf } from "./chromium.ts";
import { linkTo, openPages, visit } from "./support.ts";

const BEFORE = "const a = 1;\nif (a)\u200b return;\t\n// <b>end</b>\n";
const ANSWER = `# Result

It *works*, says [the page](https://a.example/b) and <img src=x onerror="document.title='owned'">.

- [x] done

\`\`\`ts
export const hidden = "\u202e<script>document.title='owned'</script>"; // kept
\`\`\`
`;

/** A run that writes two files, asks before it changes them, and answers in Markdown. */
async function editing(): Promise<{ service: RunService; id: string }> {
  const files = ["/a.ts", "/b.ts"];
  const args = { old_string: "const a = 1;", new_string: "const a = 2; \t" };
  const replies = [
    { toolCalls: files.map((path) => ({ name: "write_file", args: { file_path: path, content: BEFORE } })) },
    { toolCalls: files.map((path) => ({ name: "edit_file", args: { file_path: path, ...args } })) },
  ];
  const model = scriptedModel(
    ({ messages }) => replies[messages.filter(({ type }) => type === "ai").length] ?? { text: ANSWER },
  );
  const { service } = openServer(databaseFile(), { model, interruptOn: { edit_file: true } });
  const { id } = await startRun(service, "edit them");
  await expect
    .poll(async () => (await mine(service).read.view(id))?.requests.filter(isApproval).length)
    .toBe(2);
  return { service, id };
}

async function approve(service: RunService, id: string, path: string): Promise<void> {
  const view = await mine(service).read.view(id);
  const approval = view?.requests.filter(isApproval).find(({ args }) => args["file_path"] === path);
  await mine(service).requests.answer(
    id,
    { requestId: approval?.id ?? "", answer: { type: "approve" } },
    "test",
  );
}

async function approved({ service, id }: { service: RunService; id: string }): Promise<void> {
  await approve(service, id, "/a.ts");
  await approve(service, id, "/b.ts");
  await reach(service, id, "completed");
}

/** The text of each diff that the server sends. */
const diffsIn = (body: string): string[] =>
  [...body.matchAll(/<diff-text[^]*?<\/diff-text>/g)].map(([diff]) => parsed(diff).text);

const coloured = (page: Page, element: string) =>
  page.locator(`${element}[data-mounted] .hk`).first().waitFor();

describe("texts in Chromium", { tags: "chromium" }, () => {
  const open = browser();

  test("are formatted and coloured without a violation of the policy", async () => {
    const run = await editing();
    await approved(run);
    const link = linkTo(await openPages(run.service), run.id, "watch");
    const { page, messages } = await open(link);
    await page.waitForURL(/\/runs\//);
    await page.goto(`${page.url().replace(/\/(review|work).*/, "")}/answer`);
    const answer = page.getByRole("article", { name: "Answer" });
    await answer.getByRole("heading", { name: "Result" }).waitFor();
    await coloured(page, "md-text code-text");
    await page.locator("details.file summary").first().click();
    await coloured(page, "diff-text");
    expect(await answer.getByRole("link").getAttribute("href")).toBe("https://a.example/b");
    expect(await answer.locator("pre").textContent()).toContain("\\u202e<script>");
    expect(await answer.getByText("<img src=x").count()).toBe(1);
    const source = answer.getByRole("button", { name: "Source" });
    await source.click();
    expect(await answer.locator("pre").textContent()).toBe(ANSWER.replace("\u202e", "\\u202e"));
    expect(await source.getAttribute("aria-pressed")).toBe("true");
    await source.click();
    await coloured(page, "md-text code-text");
    expect(await page.locator("img, main script").count()).toBe(0);
    expect(await page.title()).not.toBe("owned");
    expect(await problemsOf(page)).toEqual([]);
    expect(messages).toEqual([]);
  });

  test("that wait for approval are whole and marked before the script, which changes nothing in them", async () => {
    const { service, id } = await editing();
    const pages = await openPages(service);
    const visitor = await visit(linkTo(pages, id, "watch"));
    const [sent] = diffsIn((await visitor.get(`${visitor.path}/review`)).body);
    expect(sent).toContain("return;");
    expect(sent).toContain("\\u200b");
    expect(sent).toContain("·→");
    const { page, messages } = await open(linkTo(pages, id, "decide"));
    await coloured(page, "[data-approval] diff-text");
    const shown = page.locator("[data-approval]", { hasText: "/a.ts" }).locator("diff-text");
    expect(await shown.textContent()).toBe(sent);
    // An update of the screen leaves it as it is.
    await page.evaluate("for (const text of document.querySelectorAll('diff-text')) text.wasThere = true");
    await approve(service, id, "/b.ts");
    await expect.poll(() => page.locator("[data-approval]").count()).toBe(1);
    expect(await shown.textContent()).toBe(sent);
    expect(await page.evaluate("document.querySelector('diff-text').wasThere")).toBe(true);
    await coloured(page, "[data-approval] diff-text");
    expect(messages).toEqual([]);
  });

  test("are shown as they were written where the rest of the script does not come", async () => {
    const run = await editing();
    await approved(run);
    const { page } = await open("about:blank");
    await page.route(/\/assets\/(markdown|code)\.js$/, (route) => route.abort());
    await page.goto(linkTo(await openPages(run.service), run.id, "watch"));
    const text = page.locator("md-text");
    await text.getByText("It *works*").waitFor();
    expect((await text.textContent())?.trim()).toBe(ANSWER.trim().replace("\u202e", "\\u202e"));
  });
});
