import { isApproval } from "../../../src/runs/run.ts";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { build } from "esbuild";
import { chromium, type Browser, type Frame, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RunService } from "../../../src/runs/service.ts";
import { cleanUpWith, mine, note, reach } from "../../runs/support.ts";
import { browserPath } from "../../support/programs.ts";
import { approvalRuns, depsFor, inMemory } from "../support.ts";

const URI = "ui://deepagent/run";
const APPS = { "io.modelcontextprotocol/ui": { mimeTypes: ["text/html;profile=mcp-app"] } };
const VIEW = "deepagent-mcp/view";

async function connect(
  service: RunService,
  extensions: Record<string, Record<string, string[]>> = APPS,
  mode: "legacy" | { pin: string } = "legacy",
): Promise<Client> {
  const client = new Client(
    { name: "test", version: "1" },
    { capabilities: { extensions }, versionNegotiation: { mode } },
  );
  await client.connect(inMemory(depsFor(service)).modern());
  cleanUpWith(() => client.close());
  return client;
}

const start = (client: Client, task: string, wait = 20) =>
  client.callTool({ name: "run_deep_agent", arguments: { task, wait_seconds: wait } });

const idOf = ({ structuredContent }: { structuredContent?: unknown }): string =>
  (structuredContent as { run_id: string }).run_id; // the shape its output schema promises

describe.each(["legacy", { pin: "2026-07-28" }] as const)("for a client of %j", (mode) => {
  test("the app is declared, linked from the tool, listed and read", async () => {
    const client = await connect(approvalRuns().service, APPS, mode);
    expect(client.getServerCapabilities()?.extensions).toMatchObject({ "io.modelcontextprotocol/ui": {} });
    const linked = (await client.listTools()).tools.filter(({ _meta }) => _meta?.["ui"] !== undefined);
    expect(linked.map(({ name, _meta }) => [name, _meta?.["ui"]])).toEqual([
      ["run_deep_agent", { resourceUri: URI }],
    ]);
    const listed = (await client.listResources()).resources.find(({ uri }) => uri === URI);
    expect(listed).toMatchObject({ mimeType: "text/html;profile=mcp-app" });
    const [content] = (await client.readResource({ uri: URI })).contents;
    expect(content).toMatchObject({
      uri: URI,
      mimeType: "text/html;profile=mcp-app",
      _meta: { ui: { csp: {} } },
    });
    // Its script has names of namespaces and schemes; what stands around it leads nowhere.
    const markup = JSON.stringify(content).replace(/<script>.*<\/script>/, "");
    expect(markup).not.toMatch(/https?:\/\//);
    expect(markup).toContain("</html>");
  });

  test("results carry the picture only to those who can show it", async () => {
    const { service } = approvalRuns(note("a"));
    const shown = await start(await connect(service, APPS, mode), "note <b>this</b>");
    expect(shown._meta?.[VIEW]).toContain("note &#60;b&#62;this&#60;/b&#62;");
    expect(shown._meta?.[VIEW]).toContain("This view is read-only");
    expect(shown._meta?.[VIEW]).not.toMatch(/<form|<button|<a /);
    const plain = await start(await connect(service, {}, mode), "note that");
    expect(plain._meta?.[VIEW]).toBeUndefined();
  });
});

/** For all that the browser does: as long as for a whole test. */
const PATIENCE_MS = 300_000;

// Without a browser there is nothing to test here; what does not need one is tested above.
describe("in a host", { tags: "chromium" }, () => {
  let browser: Browser;
  let host: string;

  beforeAll(async () => {
    const args = ["--no-sandbox"];
    browser = await chromium.launch({ executablePath: browserPath(), args, timeout: PATIENCE_MS });
    const entry = join(import.meta.dirname, "host.js");
    const { outputFiles } = await build({ entryPoints: [entry], bundle: true, format: "iife", write: false });
    host = outputFiles[0]?.text ?? "";
  });
  afterAll(() => browser.close());

  interface Shown {
    page: Page;
    frame: Frame;
    calls: unknown[];
    requests: string[];
  }

  /** The app in a host that may call tools, or not. */
  async function show(client: Client, capabilities: object, theme = "dark"): Promise<Shown> {
    const page = await browser.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    cleanUpWith(() => page.close());
    const calls: unknown[] = [];
    const requests: string[] = [];
    page.on("request", (request) => void requests.push(request.url()));
    await page.exposeFunction("callTool", async (params: { name: string; arguments: object }) => {
      calls.push(params);
      return client.callTool({ name: params.name, arguments: { ...params.arguments } });
    });
    await page.addScriptTag({ content: host });
    const [content] = (await client.readResource({ uri: URI })).contents;
    const html = content !== undefined && "text" in content ? content.text : "";
    await page.evaluate(
      `show(${[html, capabilities, { theme }].map((part) => JSON.stringify(part)).join()})`,
    );
    const frame = page.frames().find((candidate) => candidate !== page.mainFrame());
    if (frame === undefined) throw new Error("the host has no frame");
    return { page, frame, calls, requests };
  }

  const tell = (page: Page, what: "sendToolInput" | "sendToolResult", params: object) =>
    page.evaluate(`bridge.${what}(${JSON.stringify(params)})`);

  const theme = (frame: Frame) => frame.evaluate("document.documentElement.dataset.theme");

  test("it shows the run, follows it to its end without asking anybody, and loads nothing", async () => {
    const { service, notes } = approvalRuns(note("a"));
    const client = await connect(service);
    const { page, frame, calls, requests } = await show(client, { serverTools: {} });
    await tell(page, "sendToolInput", { arguments: { task: "note it" } });
    await frame.getByText("note it").waitFor();
    const result = await start(client, "note it");
    await tell(page, "sendToolResult", result);
    await frame.getByText("Needs you", { exact: true }).waitFor();
    await frame.getByText("This view is read-only").waitFor();
    expect(await frame.locator("button, a, form").count()).toBe(0);
    expect(await theme(frame)).toBe("dark");
    const [approval] = (await mine(service).read.view(idOf(result)))?.requests.filter(isApproval) ?? [];
    await mine(service).requests.answer(
      idOf(result),
      { requestId: approval?.id ?? "", answer: { type: "approve" } },
      "test",
    );
    await reach(service, idOf(result), "completed");
    await frame.getByRole("status").getByText("Completed", { exact: true }).waitFor();
    expect(notes).toEqual(["a"]);
    expect(calls).not.toEqual([]);
    for (const call of calls) {
      expect(call).toEqual({
        name: "check_deep_agent",
        arguments: { run_id: idOf(result), wait_seconds: 0 },
      });
    }
    expect(requests.filter((url) => !/^(about:|data:|blob:)/.test(url))).toEqual([]);
    const sizes = await page.evaluate<number[]>("seen.sizes");
    expect(Math.max(...sizes)).toBeGreaterThan(100);
  });

  test("where the host calls no tools for it, it is a still picture", async () => {
    const { service } = approvalRuns(note("a"));
    const client = await connect(service);
    const { page, frame, calls } = await show(client, {}, "light");
    await tell(page, "sendToolResult", await start(client, "note it"));
    await frame.getByText("Needs you", { exact: true }).waitFor();
    expect(calls).toEqual([]);
    expect(await theme(frame)).toBe("light");
  });

  test("a refusal is told, and text of a model is not run", async () => {
    const { service } = approvalRuns(note("a"));
    const client = await connect(service);
    const { page, frame } = await show(client, { serverTools: {} });
    const text = `<img src=x onerror="document.title='run'">No such thread`;
    await tell(page, "sendToolResult", { content: [{ type: "text", text }], isError: true });
    await frame.getByText("No such thread").waitFor();
    await tell(page, "sendToolResult", await start(client, text));
    await frame.getByRole("heading", { level: 1 }).waitFor();
    expect(await frame.evaluate("document.title")).toBe("Deep agent run");
    expect(await frame.locator("img").count()).toBe(0);
  });
});
