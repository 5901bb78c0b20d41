import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CompositeBackend } from "../../../src/backends/composite/composite.ts";
import { FilesystemBackend } from "../../../src/backends/filesystem/filesystem.ts";
import { StateBackend } from "../../../src/backends/stores/state.ts";
import { isApproval } from "../../../src/runs/run.ts";
import { tool } from "@langchain/core/tools";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  calling,
  callingInTurn,
  databaseFile,
  mine,
  openServer,
  reach,
  startRun,
} from "../../runs/support.ts";
import { filesIn } from "../../support/files-in.ts";
import { browser } from "./chromium.ts";
import { linkTo, openPages, visit } from "./support.ts";

/** A run that asks before it keeps `text`. */
async function keepingRun(text: string) {
  const kept: string[] = [];
  const keep = tool(({ text: given }) => `kept ${kept.push(given)}`, {
    name: "keep",
    description: "Keeps a text.",
    schema: z.object({ text: z.string() }),
  });
  const { service } = openServer(databaseFile(), {
    model: calling({ name: "keep", args: { text } }),
    tools: [keep],
    interruptOn: { keep: true },
  });
  const { id: runId } = await startRun(service, "keep it");
  const view = await reach(service, runId, "input_required");
  return { service, kept, runId, approval: view.requests.filter(isApproval)[0]?.id ?? "" };
}

const LONG = `begin\n${"filler & more\n".repeat(45_000)}HIDDEN <payload>\n${"x".repeat(30_000)} end`;

const hidden = (body: string): Record<string, string> =>
  Object.fromEntries(
    [...body.matchAll(/type="hidden" name="(csrf|request|whole)" value="([^"]*)"/g)].map(
      ([, name = "", value = ""]) => [name, value],
    ),
  );

describe("a call that is too long for the review", () => {
  test("is approved only by the form below all of it", async () => {
    const { service, kept, runId, approval } = await keepingRun(LONG);
    const visitor = await visit(linkTo(await openPages(service), runId, "decide"));
    const review = await visitor.get(`${visitor.path}/review`);
    expect(review.body).not.toMatch(/value="approve(_same)?"/);
    expect(review.body).toContain('value="reject"');
    expect(review.body).toContain("This call is too long to show here");
    const address = /href="([^"]*\/call\?approval=[^"]*)"/.exec(review.body)?.[1] ?? "";
    const whole = await visitor.get(address.replaceAll("&#38;", "&"));
    expect(whole.body).toContain("HIDDEN &#60;payload&#62;");
    expect(whole.body.split("filler &#38; more\n")).toHaveLength(45_001);
    expect(whole.body).toContain(`${"x".repeat(30_000)} end`);
    const { whole: proof = "", ...fields } = hidden(whole.body);
    expect(fields["request"]).toBe(approval);
    for (const decision of ["approve", "approve_same"]) {
      for (const wrong of ["", "x", proof.slice(1)]) {
        const refused = await visitor.post(`${visitor.path}/reply`, { ...fields, whole: wrong, decision });
        expect(refused.status).toBe(422);
        expect(refused.body).toContain("this page showed only a part of the call");
      }
    }
    expect(kept).toEqual([]);
    const approved = await visitor.post(`${visitor.path}/reply`, {
      ...fields,
      whole: proof,
      decision: "approve",
    });
    expect(approved.status).toBe(303);
    await reach(service, runId, "completed");
    expect(kept).toEqual([LONG]);
  });

  test("is not approved by an edit that changes nothing", async () => {
    const text = "x".repeat(25_000);
    const { service, kept, runId } = await keepingRun(text);
    const visitor = await visit(linkTo(await openPages(service), runId, "decide"));
    const fields = { ...(await visitor.form()), decision: "edit" };
    const edit = (given: string) =>
      visitor.post(`${visitor.path}/reply`, { ...fields, edited_args: JSON.stringify({ text: given }) });
    expect((await edit(text)).status).toBe(422);
    expect((await edit("short")).status).toBe(303);
    await reach(service, runId, "completed");
    expect(kept).toEqual(["short"]);
  });

  test("the proof of one session is worth nothing in another, nor for another call", async () => {
    const first = await keepingRun(LONG);
    const pages = await openPages(first.service);
    const [one, other] = [
      await visit(linkTo(pages, first.runId, "decide")),
      await visit(linkTo(pages, first.runId, "decide")),
    ];
    const address = `${one.path}/call?${new URLSearchParams({ approval: first.approval }).toString()}`;
    const own = hidden((await one.get(address)).body);
    const sent = await other.post(`${other.path}/reply`, { ...own, decision: "approve" });
    expect(sent.status).toBe(422);
    expect((await one.get(`${one.path}/call?approval=none`)).status).toBe(404);
  });

  test("a session that only looks sees all of it and has no form", async () => {
    const { service, runId, approval } = await keepingRun(LONG);
    const visitor = await visit(linkTo(await openPages(service), runId, "watch"));
    const query = new URLSearchParams({ approval }).toString();
    const { body } = await visitor.get(`${visitor.path}/call?${query}`);
    expect(body).toContain("HIDDEN &#60;payload&#62;");
    expect(body).not.toContain('name="decision"');
  });
});

test("a change of a long file is shown as a diff to its end, and approved there", async () => {
  const folder = filesIn();
  const before = Array.from({ length: 2400 }, (_, at) => `line ${at} 検潮所`);
  const after = before.map((line, at) => (at % 2 === 0 ? line : `${line}, changed`));
  writeFileSync(join(folder, "a.txt"), before.join("\n"));
  const file_path = "/workspace/a.txt";
  const { service } = openServer(databaseFile(), {
    model: callingInTurn(
      [{ name: "read_file", args: { file_path } }],
      [{ name: "write_file", args: { file_path, content: after.join("\n") } }],
    ),
    backend: new CompositeBackend(StateBackend, {
      "/workspace/": new FilesystemBackend({ rootDir: folder, virtualMode: true }),
    }),
    interruptOn: { write_file: true },
  });
  const { id: runId } = await startRun(service, "change every second line");
  await reach(service, runId, "input_required");
  const visitor = await visit(linkTo(await openPages(service), runId, "decide"));
  const review = (await visitor.get(`${visitor.path}/review`)).body;
  expect(review).toContain("Open it in full");
  expect(review).not.toContain('value="approve"');
  const [, address = ""] = /href="([^"]*\/call\?approval=[^"]*)"/.exec(review) ?? [];
  const { body } = await visitor.get(address.replaceAll("&#38;", "&"));
  const rows = ["a", "d", "c"].map((look) => body.split(`<tr class="${look}">`).length - 1);
  expect(rows).toEqual([1200, 1200, 1200]);
  expect(body).not.toContain('class="part-name"');
  const sent = await visitor.post(`${visitor.path}/reply`, { ...hidden(body), decision: "approve" });
  expect(sent.status).toBe(303);
  await reach(service, runId, "completed");
  expect(readFileSync(join(folder, "a.txt"), "utf8")).toBe(after.join("\n"));
});

describe("in Chromium", { tags: "chromium" }, () => {
  const open = browser({});

  test("a long call is approved after its end was on the screen, or on a second press", async () => {
    const text = Object.fromEntries(Array.from({ length: 150 }, (_, at) => [`line${at}`, at]));
    const { service, kept, runId } = await keepingRun(JSON.stringify(text).replaceAll(",", ",\n"));
    const view = await mine(service).read.view(runId);
    expect(view?.requests.filter(isApproval)[0]?.preview.isPart).toBeUndefined();
    const pages = await openPages(service);
    const { page } = await open(linkTo(pages, runId, "decide"));
    await page.setViewportSize({ width: 700, height: 500 });
    const approve = page.locator("button[value=approve]");
    await approve.waitFor();
    await page.keyboard.press("a");
    await page.getByText("was not on the screen yet").waitFor();
    expect(kept).toEqual([]);
    await page.locator("[data-end]").scrollIntoViewIfNeeded();
    await approve.click();
    await reach(service, runId, "completed");
    expect(kept).toHaveLength(1);
  });
});
