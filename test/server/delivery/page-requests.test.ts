import { isApproval } from "../../../src/runs/run.ts";
import { expect, test } from "vitest";
import { silentLogger } from "../../../src/core/logger.ts";
import type { RunService } from "../../../src/runs/service.ts";
import { createPageLinks } from "../../../src/server/contracts/deps.ts";
import { mine, note, reach } from "../../runs/support.ts";
import { CLIENT_KINDS, type Browser, type FormAnswer, type PageRequest } from "../../support/clients.ts";
import { visit } from "../page/support.ts";
import { approvalRuns, connect, depsFor, questionRuns, type DepsOptions } from "../support.ts";
import { overMemory } from "../tasks/raw.ts";

const OPENED: FormAnswer = { action: "accept" };
const BRIEFLY = { config: { delivery: { window: 3 } } };

const withPage = (service: RunService, options: DepsOptions = {}) =>
  depsFor(service, { page: true, ...options });

/** Presses a button of the page for every approval it shows. */
async function press(url: string, decision: string): Promise<void> {
  const visitor = await visit(url);
  const { body } = await visitor.get(visitor.path);
  for (const [, approval = ""] of body.matchAll(/data-approval="([^"]*)"/g)) {
    await visitor.post(`${visitor.path}/reply`, { request: approval, decision });
  }
}

function browsing(act: (page: PageRequest) => FormAnswer | Promise<FormAnswer>) {
  const pages: (PageRequest & { elicitationId?: string })[] = [];
  const browser: Browser = async (page) => {
    pages.push(page);
    return act(page);
  };
  return { pages, browser };
}

test.each(CLIENT_KINDS)("%s: the person decides on the page that the client opens", async (kind) => {
  const { service, notes } = approvalRuns(note("a"), note("b"));
  const { pages, browser } = browsing(async ({ url }) => {
    await press(url, "approve");
    return OPENED;
  });
  const client = await connect(withPage(service), { kind, browser });
  const result = await client.call("run_deep_agent", { task: "note a and b" });
  expect(result.structured).toMatchObject({ status: "completed" });
  expect(notes.toSorted()).toEqual(["a", "b"]);
  expect(pages.length).toBeGreaterThan(0);
  expect(pages[0]?.message).toMatch(/waits for your decision.*\n- main agent, note: /);
  const [run] = await mine(service).read.list({ limit: 1 });
  const view = await mine(service).read.view(run?.id ?? "");
  expect(view?.requests.filter(isApproval).every(({ decidedBy }) => decidedBy === "page")).toBe(true);
  if (kind !== "v2-modern") expect(client.completed).toEqual(pages.map(({ elicitationId }) => elicitationId));
});

test.each(CLIENT_KINDS)("%s: opening the page approves nothing", async (kind) => {
  const { service, notes } = approvalRuns(note("a"));
  const { pages, browser } = browsing(() => ({ action: "accept", content: { decision: "approve" } }));
  const client = await connect(withPage(service, BRIEFLY), { kind, browser });
  const result = await client.call("run_deep_agent", { task: "note a" });
  expect(result).toMatchObject({ isError: false, structured: { status: "input_required" } });
  expect(result.text).toContain("it opens the page for them");
  // The address is for the client alone.
  expect(JSON.stringify(result.raw)).not.toContain("/open#");
  expect(pages).toHaveLength(1);
  expect(notes).toEqual([]);
  const id = String(result.structured["run_id"]);
  await press(pages[0]?.url ?? "", "reject");
  expect((await reach(service, id, "completed")).requests.filter(isApproval)).toMatchObject([
    { status: "rejected" },
  ]);
});

test.each(CLIENT_KINDS)("%s: a page that is not opened is asked again by a check", async (kind) => {
  const { service, notes } = approvalRuns(note("a"));
  const answers: FormAnswer["action"][] = ["decline", "accept"];
  const { pages, browser } = browsing(async ({ url }) => {
    const action = answers[pages.length - 1] ?? "cancel";
    if (action === "accept") await press(url, "approve");
    return { action };
  });
  const client = await connect(withPage(service), { kind, browser });
  const { structured } = await client.call("run_deep_agent", { task: "note a" });
  expect(structured).toMatchObject({ status: "input_required" });
  const id = String(structured["run_id"]);
  await client.call("check_deep_agent", { run_id: id });
  await reach(service, id, "completed");
  expect(notes).toEqual(["a"]);
  expect(new Set(pages.map(({ url }) => url)).size).toBe(2);
});

test.each(CLIENT_KINDS)("%s: where no page can be served the call gives a handle", async (kind) => {
  const { service } = approvalRuns(note("a"));
  const { pages, browser } = browsing(() => OPENED);
  const client = await connect(depsFor(service), { kind, browser });
  const { structured, text } = await client.call("run_deep_agent", { task: "note a" });
  expect(structured).toMatchObject({ status: "input_required" });
  expect(text).toContain("cannot show an approval form");
  const broken = { ...withPage(service), page: createPageLinks(failing, silentLogger) };
  const other = await connect(broken, { kind, browser });
  const again = await other.call("check_deep_agent", { run_id: structured["run_id"] });
  expect(again).toMatchObject({ isError: false, structured: { status: "input_required" } });
  expect(pages).toEqual([]);
});

const failing = (): Promise<never> => Promise.reject(new Error("no port"));

test.each(["form", "page"] as const)("clients of both are asked by %s, as configured", async (ask) => {
  for (const kind of CLIENT_KINDS) {
    const { service, notes } = approvalRuns(note("a"));
    const forms: string[] = [];
    const person = ({ message }: { message: string }): FormAnswer => {
      forms.push(message);
      return { action: "accept", content: { decision: "approve" } };
    };
    const { pages, browser } = browsing(async ({ url }) => {
      await press(url, "approve");
      return OPENED;
    });
    const client = await connect(withPage(service, { config: { delivery: { ask } } }), {
      kind,
      person,
      browser,
    });
    await client.call("run_deep_agent", { task: "note a" });
    expect(notes).toEqual(["a"]);
    expect([forms.length, pages.length]).toEqual(ask === "form" ? [1, 0] : [0, 1]);
  }
});

test("a task asks under one key until it is answered, and anew when the page was not opened", async () => {
  const { service, notes } = approvalRuns(note("a"));
  const rpc = await overMemory(withPage(service));
  const capabilities = { elicitation: { url: {} }, extensions: { "io.modelcontextprotocol/tasks": {} } };
  const started = await rpc("tools/call", { name: "run_deep_agent", arguments: { task: "x" } }, capabilities);
  const taskId = String(started.result?.["taskId"]);
  await reach(service, taskId, "input_required");
  const get = async () => (await rpc("tasks/get", { taskId }, capabilities)).result;
  const asked = async () => {
    const result = await get();
    return result?.["inputRequests"] as Record<string, { params: { mode: string; url: string } }>;
  };
  const first = await asked();
  expect(await asked()).toEqual(first);
  const key = Object.keys(first)[0] ?? "";
  const request = first[key];
  expect(request?.params.mode).toBe("url");
  await rpc("tasks/update", { taskId, inputResponses: { [key]: { action: "cancel" } } }, capabilities);
  const second = await asked();
  expect(Object.keys(second)).not.toEqual(Object.keys(first));
  expect(Object.values(second)).toEqual([request]);
  expect(await get()).toMatchObject({ statusMessage: expect.stringContaining("the page was not opened") });
  const [again = ""] = Object.keys(second);
  await rpc("tasks/update", { taskId, inputResponses: { [again]: OPENED } }, capabilities);
  expect(await asked()).toEqual({});
  expect(await get()).toMatchObject({ statusMessage: expect.stringContaining("The page was opened") });
  expect((await mine(service).read.view(taskId))?.run.status).toBe("input_required");
  await press(request?.params.url ?? "", "approve");
  await reach(service, taskId, "completed");
  expect(notes).toEqual(["a"]);
});

test.each(CLIENT_KINDS)("%s: a question is answered on the page", async (kind) => {
  const { service } = questionRuns({
    kind: "interrupt",
    value: "Which seat?",
  });
  const { pages, browser } = browsing(async () => {
    const [question] = await mine(service).read.pending(1);
    const { runId = "", id = "" } = question ?? {};
    await mine(service).requests.answer(
      runId,
      { requestId: id, answer: { type: "value", value: "12A" } },
      "page",
    );
    return OPENED;
  });
  const client = await connect(withPage(service), { kind, browser });
  const { structured } = await client.call("run_deep_agent", { task: "book" });
  expect(structured).toMatchObject({ status: "completed", answer: '{"type":"value","value":"12A"}' });
  expect(pages).toHaveLength(1);
  expect(pages[0]?.message).toMatch(
    /waits for your answer\. The page shows all of it:\n- The main agent uses a tool that asks: Which seat\?/,
  );
});
