// One server for several folders: who chooses them, and what belongs to them.
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { ListRootsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { pathToFileURL } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { isApproval } from "../../src/runs/run.ts";
import type { StartRequest } from "../../src/runs/ports.ts";
import { folderName } from "../../src/app/settings.ts";
import type { Run } from "../../src/runs/run.ts";
import type { PrincipalRuns, RunService } from "../../src/runs/service.ts";
import { openPages, visit } from "../server/page/support.ts";
import { entry } from "../server/auth/support.ts";
import { openParts } from "../support/folders.ts";
import { type Home, connect, openHome } from "../support/harness.ts";
import { type Line, play } from "../support/harness-brain.ts";
import { httpConnector, serveHttp } from "../support/harness-http-process.ts";
import { program, stdioCommand } from "../support/harness-stdio.ts";
import { writeFile } from "./support.ts";

const WRITE: Line[] = [{ toolCalls: [writeFile("/workspace/note.md", "written\n")] }, { text: "done" }];
const DIRECT = { DEEPAGENT_APPROVALS_WRITE: "none" };

/** A home with the folders `code/api` and `code/web`, and another place beside them. */
async function openFolders(env: Record<string, string> = {}, lines: Record<string, Line[]> = { "": WRITE }) {
  const home = await openHome({ think: play(lines) });
  const root = dirname(home.workspace);
  for (const name of ["code/api", "code/web", "code/.hidden", "elsewhere"])
    mkdirSync(join(root, name), { recursive: true });
  symlinkSync(join(root, "elsewhere"), join(root, "code/link"));
  Object.assign(home.env, { DEEPAGENT_FOLDERS: "~/code/*" }, env);
  return { home, root, at: (path: string) => join(root, path) };
}

async function openRuns({ env }: Home) {
  const parts = openParts(env);
  onTestFinished(() => parts.close());
  const service = await parts.deps.runs();
  return {
    runs: service.as({ principal: "local" }),
    close: () => parts.close(),
    service: service as RunService,
  };
}

async function ended(runs: PrincipalRuns, runId: string) {
  for await (const event of runs.watch.events(runId, { after: 0, signal: AbortSignal.timeout(20_000) }))
    if (["approval_requested", "question_asked"].includes(event.kind)) break;
  const view = await runs.read.view(runId);
  if (view === undefined) throw new Error("the run is gone");
  return view;
}

async function start(runs: PrincipalRuns, request: Partial<StartRequest>) {
  const outcome = await runs.control.start({ task: "write", ...request });
  if (!outcome.ok) return { message: outcome.message, view: undefined };
  return { message: undefined, view: await ended(runs, outcome.run.id) };
}

test("a run works in the folder that it names, by path or by name, and otherwise in the workspace", async () => {
  const { home, at } = await openFolders(DIRECT);
  const { runs } = await openRuns(home);
  const { view } = await start(runs, { folder: "api" });
  expect(view?.run.status).toBe("completed");
  expect(readFileSync(at("code/api/note.md"), "utf8")).toBe("written\n");
  await start(runs, { folder: `${at("code/web")}/` });
  expect(existsSync(at("code/web/note.md"))).toBe(true);
  expect(existsSync(join(home.workspace, "note.md"))).toBe(false);
  await start(runs, {});
  expect(existsSync(join(home.workspace, "note.md"))).toBe(true);
  expect((await runs.agents.readiness()).folders).toEqual([home.workspace, at("code/api"), at("code/web")]);
});

test("every other folder is refused, with the list", async () => {
  const { home, at } = await openFolders(DIRECT);
  const { runs } = await openRuns(home);
  const others = [
    "elsewhere",
    "code/link",
    "code",
    "code/.hidden",
    "code/api/..",
    "code/nothing",
    "data",
    ".",
  ];
  for (const folder of [...others.map(at), "link", "../api", "~/code/api", "/", ""]) {
    const { message } = await start(runs, { folder });
    expect(message, folder).toMatch(/none of the folders that runs may work in/);
    expect(message).toContain(`${home.workspace}, ${at("code/api")}, ${at("code/web")}`);
  }
  writeFileSync(at("code/file"), "");
  expect((await start(runs, { folder: "file" })).message).toMatch(/none of the folders/);
  mkdirSync(at("code/web/api"));
  Object.assign(home.env, { DEEPAGENT_FOLDERS: `~/code/*:~/code/web/api` });
  const { runs: more } = await openRuns(home);
  const { message } = await start(more, { folder: "api" });
  expect(message).toContain(`several folders end with api. Name the whole path.`);
  expect(message).toContain(`${at("code/api")}, ${at("code/web/api")}.`);
});

test("a folder inside another one counts only while it is a folder itself", async () => {
  const { home, at } = await openFolders({ ...DIRECT, DEEPAGENT_FOLDERS: "~/code/*:~/code/api/part" });
  mkdirSync(at("code/api/part"));
  const { runs } = await openRuns(home);
  expect((await start(runs, { folder: "part" })).view?.run.status).toBe("completed");
  rmSync(at("code/api/part"), { recursive: true });
  symlinkSync(at("elsewhere"), at("code/api/part"));
  for (const folder of ["part", at("code/api/part"), at("elsewhere")])
    expect((await start(runs, { folder })).message, folder).toMatch(/none of the folders/);
  expect(existsSync(at("elsewhere/note.md"))).toBe(false);
});

test("a server without the setting has one folder, which may be named", async () => {
  const { home, at } = await openFolders({ ...DIRECT, DEEPAGENT_FOLDERS: "" });
  const { runs } = await openRuns(home);
  expect((await start(runs, { folder: home.workspace })).view?.run.status).toBe("completed");
  expect((await start(runs, { folder: at("code/api") })).message).toContain(
    `Choose one of: ${home.workspace}.`,
  );
  expect((await runs.agents.readiness()).folders).toBeUndefined();
});

test("a conversation keeps its folder", async () => {
  const { home, at } = await openFolders(DIRECT, { "": [...WRITE, { text: "more" }, { text: "more" }] });
  const { runs } = await openRuns(home);
  const threadId = (await start(runs, { folder: "api" })).view?.run.threadId ?? "";
  const { view } = await start(runs, { task: "more", threadId });
  expect(view?.run).toMatchObject({ status: "completed", threadId });
  expect((await start(runs, { task: "more", threadId, folder: "api" })).view).toBeDefined();
  const { message } = await start(runs, { task: "more", threadId, folder: "web" });
  expect(message).toContain(`this conversation works in the folder ${at("code/api")}, and keeps it`);
  expect(existsSync(at("code/web/note.md"))).toBe(false);
});

test("approvals, rules and proposed changes belong to the folder of their run, also after a restart", async () => {
  const { home, at } = await openFolders();
  const first = await openRuns(home);
  const view = (await start(first.runs, { folder: "api" })).view;
  const [approval] = (view?.requests ?? []).filter(isApproval);
  expect(approval?.status).toBe("pending");
  await first.close();
  // Whoever opens the server again continues the run, though nobody names its folder.
  const { runs } = await openRuns(home);
  const runId = view?.run.id ?? "";
  const rules = [...(approval?.ruled?.offers?.[0]?.rules ?? [])];
  const given = { requestId: approval?.id ?? "", answer: { type: "approve_always" as const, rules } };
  expect(await runs.requests.answer(runId, given, "page")).toMatchObject({ ok: true });
  for await (const _ of runs.watch.events(runId, { after: 0, signal: AbortSignal.timeout(20_000) }));
  expect(readFileSync(at("code/api/note.md"), "utf8")).toBe("written\n");
  expect(await runs.rules.list()).toMatchObject([{ folder: at("code/api") }]);
  // The rule of one folder allows nothing in another.
  const other = (await start(runs, { folder: "web" })).view;
  expect(other?.run.status).toBe("input_required");
  await runs.control.cancel(other?.run.id ?? "", "enough");

  const { view: proposed } = await start(runs, { folder: "web", changes: "propose" });
  const proposing = proposed?.run.id ?? "";
  await runs.control.cancel(proposing, "reviewed later");
  expect(existsSync(at("code/web/note.md"))).toBe(false);
  const applied = await runs.changes.review(proposing, { apply: { "note.md": "all" } }, "test");
  expect(applied).toMatchObject({ ok: true });
  expect(readFileSync(at("code/web/note.md"), "utf8")).toBe("written\n");
});

test("notes about the project and about the person are told apart, and runs are found by folder", async () => {
  const { home, at } = await openFolders(DIRECT, { "": [{ text: "done" }] });
  const { runs } = await openRuns(home);
  for (const folder of ["api", "web", "api"]) await start(runs, { folder, task: `in ${folder}` });
  await start(runs, { task: "at home" });
  const [prompt = "", other = ""] = home.brain.thoughts.map(({ request }) => JSON.stringify(request));
  expect(prompt).toMatch(/Notes about this project belong below `\/memories\/projects\/api-[0-9a-f]{8}`/);
  expect(other).toMatch(/\/memories\/projects\/web-[0-9a-f]{8}/);
  const found = async (folder: string) => {
    const list = await runs.read.summaries({ folder }, { limit: 9 });
    return list.map(({ task }) => task).toSorted();
  };
  expect(await found("api")).toEqual(["in api", "in api"]);
  expect(await found("workspace")).toEqual(["at home"]);
  for (const none of ["ap", "ap_", "%", "code", "pi", at("code/api")])
    expect(await found(none), none).toEqual([]);
});

test("the page starts runs and schedules in a folder, and shows the runs of one", async () => {
  const { home, at } = await openFolders(DIRECT);
  const { runs, service } = await openRuns(home);
  const folderOf = ({ environment }: Pick<Run, "environment">) => folderName(environment);
  const pages = await openPages(service, undefined, { settings: { folder: "workspace" }, folderOf });
  const { get, post } = await visit(pages.link({ principal: "local", purpose: "decide" }));
  const form = (await get("/")).body;
  expect([...form.matchAll(/name="folder"\s+value="([^"]*)"/g)].map(([, value]) => value)).toEqual([
    "",
    at("code/api"),
    at("code/web"),
  ]);
  for (const folder of [at("code/api"), at("code/web"), ""]) {
    const started = await post("/start", { task: `in ${folder}`, folder });
    expect(started.status).toBe(303);
    await ended(runs, String(started.headers["location"]).slice("/runs/".length));
  }
  expect(existsSync(at("code/api/note.md"))).toBe(true);
  const refused = await post("/start", { task: "in vain", folder: at("elsewhere") });
  expect(refused.status).toBe(422);
  expect(refused.body).toContain("none of the folders that runs may work in");
  expect(refused.body).toContain("in vain");
  const list = (await get("/?folder=api")).body;
  expect(list).toContain(`in ${at("code/api")}`);
  expect(list).not.toContain(`in ${at("code/web")}`);
  expect(list).toMatch(/status=failed&(?:#38;|amp;)?folder=api/);
  const schedule = {
    task: "daily",
    expression: "0 7 * * *",
    timeZone: "UTC",
    catchUp: "one",
    catchUpLimit: "1",
  };
  expect((await post("/schedules/add", { ...schedule, folder: at("code/web") })).status).toBe(303);
  expect((await post("/schedules/add", { ...schedule, folder: at("elsewhere") })).status).toBe(422);
  const [added] = await runs.schedules.list();
  expect(folderOf({ environment: added?.environment ?? "" })).toBe("web");
  const now = await runs.schedules.runNow(added?.id ?? "");
  expect((await ended(runs, now.ok ? now.run.id : "")).run.environment).toContain("code/web");
});

test("a client's own folder counts: the variable of its project, or its roots", async () => {
  const { home, at } = await openFolders(DIRECT);
  const variables = { ...home.env, CLAUDE_PROJECT_DIR: at("code/web") };
  const client = await connect(stdioCommand([process.execPath, await program()], variables), "v2-modern");
  expect((await client.call("run_deep_agent", { task: "write" })).structured["status"]).toBe("completed");
  expect(existsSync(at("code/web/note.md"))).toBe(true);

  const rooted = new Client({ name: "rooted", version: "1" }, { capabilities: { roots: {} } });
  const roots = [at("elsewhere"), at("code/api")].map((path) => ({ uri: pathToFileURL(path).href }));
  rooted.setRequestHandler(ListRootsRequestSchema, () => ({ roots }));
  await rooted.connect(stdioCommand([process.execPath, await program()], home.env).first());
  onTestFinished(() => rooted.close());
  await rooted.callTool({ name: "run_deep_agent", arguments: { task: "write" } });
  expect(existsSync(at("code/api/note.md"))).toBe(true);
  expect(existsSync(at("elsewhere/note.md"))).toBe(false);
});

test("over HTTP each principal has the folders that the operator granted", async () => {
  const { home, at } = await openFolders(DIRECT);
  const tokens = ["alice", "bob"].map((principal) => entry(`${principal}-token`, principal));
  const config = join(dirname(home.workspace), "config.json");
  const principalFolders = { alice: [at("code/api")] };
  writeFileSync(config, JSON.stringify({ http: { tokens }, principalFolders }));
  const { url } = await serveHttp({ env: { ...home.env, DEEPAGENT_CONFIG: config } });
  const call = async (name: string, folder: string) => {
    const client = await connect(httpConnector(url, `${name}-token`), "v2-modern");
    return client.call("run_deep_agent", { task: "write", folder });
  };
  expect((await call("alice", "api")).structured["status"]).toBe("completed");
  expect(existsSync(at("code/api/note.md"))).toBe(true);
  const wrong = await call("alice", at("code/web"));
  expect(wrong.text).toContain("Choose one of: workspace, api.");
  expect(wrong.text).not.toContain(home.workspace);
  expect((await call("bob", "api")).text).toContain("none of the folders that runs may work in");
});
