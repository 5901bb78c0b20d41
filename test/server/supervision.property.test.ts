/** A caller adds supervision and never removes it: every way to choose something for a run, against every setting. */
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { parseAgentFile } from "../../src/agent/build/agent-files.ts";
import type { StartChoices } from "../../src/runs/choices.ts";
import type { StartRequest } from "../../src/runs/ports.ts";
import type { Run } from "../../src/runs/run.ts";
import type { ScheduleRequest } from "../../src/runs/schedule.ts";
import { goalOf } from "../../src/server/acp/prompt.ts";
import { agUiEndpoint } from "../../src/server/ag-ui/ag-ui.ts";
import { CODEX_TOOLS } from "../../src/server/tools/codex.ts";
import { SERVER_TOOLS } from "../../src/server/tools/tools.ts";
import { backgroundTaskTools } from "../../src/tools/background-tasks.ts";
import { taskTool } from "../../src/tools/task.ts";
import { ME, mine, databaseFile, openServer } from "../runs/support.ts";
import { attempts } from "../support/effort.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { logIn, openSite } from "./page/log-in-support.ts";
import { openPages, visit } from "./page/support.ts";
import { connect, depsFor } from "./support.ts";

/** Effect of a choice: none on supervision, one of what the operator allows, never above a limit, or only adding. */
type Effect = "none" | "allowed" | "lowers" | "adds";

/** Every field of a start. A new one does not compile without a row. */
const START: Readonly<Record<keyof Omit<StartRequest, "isOperators">, Effect>> = {
  task: "none",
  threadId: "none",
  newThreadId: "none",
  idempotencyKey: "none",
  askedAt: "none",
  by: "none",
  folder: "allowed",
  clientFolders: "allowed",
  model: "allowed",
  limits: "lowers",
  goal: "adds",
  changes: "adds",
};
const SCHEDULE: Readonly<Record<keyof Omit<ScheduleRequest, "isOperators">, Effect>> = {
  task: "none",
  expression: "none",
  name: "none",
  timeZone: "none",
  catchUp: "none",
  catchUpLimit: "none",
  overlap: "none",
  environment: "none",
  folder: "allowed",
  model: "allowed",
  limits: "lowers",
  goal: "adds",
  changes: "adds",
};

/** Arguments of tools that clients call, and of tools with which agents start others: a new one needs a row. */
const ARGUMENTS: Readonly<Record<string, Readonly<Record<string, Effect>>>> = {
  run_deep_agent: {
    task: "none",
    thread_id: "none",
    goal: "adds",
    changes: "adds",
    folder: "allowed",
    idempotency_key: "none",
    wait_seconds: "none",
  },
  // Unknown arguments of Codex, such as its approval policy, are left out; its sandbox chooses nothing.
  codex: { prompt: "none", cwd: "none", model: "allowed", "developer-instructions": "none", sandbox: "none" },
  "codex-reply": { prompt: "none", threadId: "none", conversationId: "none" },
  check_deep_agent: { run_id: "none", after: "none", offset: "none", wait_seconds: "none" },
  // Listed only where the operator sets `approvals.allowModelAnswers`.
  answer_deep_agent: {
    run_id: "none",
    approval_id: "none",
    decision: "allowed",
    edited_args: "allowed",
    message: "none",
  },
  cancel_deep_agent: { run_id: "none", reason: "none" },
  read_agent_file: { path: "none", run_id: "none", offset: "none", limit: "none", piece: "none" },
  search_memories: { query: "none", limit: "none" },
  task: { description: "none", subagent_type: "none" },
  start_async_task: { description: "none", subagent_type: "none" },
  check_async_task: { task_id: "none" },
  update_async_task: { task_id: "none", message: "none" },
  cancel_async_task: { task_id: "none" },
  list_async_tasks: {},
};

/** Fields of a subagent file of the workspace that are read; its model is one that the operator named. */
const AGENT_FILE: Readonly<Record<string, Effect>> = {
  name: "none",
  description: "none",
  systemPrompt: "none",
  model: "allowed",
  modelAlias: "allowed",
  tools: "lowers",
  disallowedTools: "lowers",
};

test("every argument of every tool that begins or steers a run has a row", () => {
  const schemas = [
    ...[...SERVER_TOOLS, ...CODEX_TOOLS].map(({ name, input }) => [name, input.shape] as const),
    ...[...backgroundTaskTools, taskTool({ subagents: [] })].map(
      ({ name, schema }) => [name, schema.shape] as const,
    ),
  ];
  const found = Object.fromEntries(schemas.map(([name, shape]) => [name, Object.keys(shape).sort()]));
  const known = Object.entries(ARGUMENTS).map(([name, effects]) => [name, Object.keys(effects).sort()]);
  expect(found).toEqual(Object.fromEntries(known));
});

const MODELS = ["a:main", "b:small", "c:other"];
const ways = fc.constantFrom("direct", "propose");
const limits = fc.record(
  { tokens: fc.integer({ min: 1, max: 9 }), toolCalls: fc.integer({ min: 1, max: 9 }) },
  { requiredKeys: [] },
);

/** The operator's settings, of which a run may choose some. */
const settings = fc.record({
  changes: ways,
  limits,
  models: fc.subarray(MODELS, { minLength: 1 }).map((specs) => specs.map((spec) => ({ spec }))),
});

const choices = fc.record(
  {
    changes: ways,
    model: fc.constantFrom(...MODELS, "d:unknown"),
    limits,
    goal: fc.constant(["It is done"]),
    // Names of settings that a caller might hope for.
    approvals: fc.constant({ write: "none", execute: "unsandboxed" }),
    sandbox: fc.constantFrom("danger-full-access", "off"),
    web: fc.constant({ mode: "all" }),
    workspace: fc.constant("/"),
    permissions: fc.constant([]),
    interruptOn: fc.constant({}),
  },
  { requiredKeys: [] },
);
const HOPED_FOR = ["approvals", "sandbox", "web", "workspace", "permissions", "interruptOn"];
type Choices = Partial<Record<string, unknown>>;

/** One server whose settings a property changes. */
async function served() {
  let offered: StartChoices = { models: [], limits: {} };
  const { service } = openServer(
    databaseFile(),
    { model: scriptedModel(() => ({ text: "done" })) },
    { concurrentRuns: 0, model: "a:main", choices: () => offered, openRuns: 1e6 },
  );
  const deps = depsFor(service, { config: { codexTools: true, workspace: "/nowhere" } });
  const mcp = await connect(deps, { kind: "v1" });
  const site = await openSite(service, {}, { agUi: agUiEndpoint(deps) });
  const caller = await logIn(site.origin, "mine");
  const pages = await openPages(service);
  const operator = await visit(pages.link({ principal: ME, purpose: "decide" }));
  let number = 0;
  const fields = (given: Choices): Record<string, string> => {
    const { changes = "", model = "", goal = [], limits: own = {} } = given as Record<string, never>;
    const counts = Object.entries(own).map(([name, count]) => [name, String(count)]);
    return { changes, model, goal: [goal].flat().join("\n"), ...Object.fromEntries(counts) };
  };
  const scheduled = async (visitor: Pick<typeof operator, "post">, given: Choices): Promise<void> => {
    const times = { expression: "@daily", timeZone: "UTC", catchUp: "one", catchUpLimit: "1" };
    await visitor.post("/schedules/add", { task: "go", name: "s", ...times, ...fields(given) });
    for (const { id } of await mine(service).schedules.list()) {
      await mine(service).schedules.runNow(id);
      await mine(service).schedules.remove(id);
    }
  };
  /** Ways of a caller to start a run, each with all the choices that it has, and some that it has not. */
  const callers: Readonly<Record<string, (given: Choices) => Promise<unknown>>> = {
    service: async (given) => mine(service).control.start({ task: "go", ...given }),
    run_deep_agent: async ({ changes, goal, ...rest }) => {
      const args = { task: "go", wait_seconds: 0, idempotency_key: `${(number += 1)}` };
      const own = Object.fromEntries(Object.entries({ changes, goal }).filter(([, value]) => value));
      await mcp.call("run_deep_agent", { ...args, ...own, ...(number % 3 === 0 ? rest : {}) });
    },
    codex: async ({ changes, approvals, sandbox, model }) =>
      mcp.call("codex", {
        prompt: `go ${(number += 1)}`,
        changes,
        "approval-policy": approvals,
        sandbox,
        model,
      }),
    page: async (given) => caller.post("/start", { task: "go", ...fields(given), isOperators: "true" }),
    schedule: async (given) => scheduled(caller, { ...given, isOperators: true }),
    "AG-UI": async (given) => {
      const runId = `${(number += 1)}`;
      const body = { threadId: runId, runId, messages: [{ id: "m", role: "user", content: "go" }] };
      const response = await fetch(`${site.origin}/ag-ui`, {
        method: "POST",
        headers: { authorization: "Bearer mine", "content-type": "application/json" },
        body: JSON.stringify({ ...body, ...given, forwardedProps: given, state: given, context: [] }),
      });
      await response.text();
    },
  };
  /** The run that was started, which is cancelled: some ways wait for its end. */
  const startedBy = async (work: () => Promise<unknown>): Promise<Run | undefined> => {
    const newest = async (): Promise<string | undefined> =>
      (await mine(service).read.list({ limit: 1 }))[0]?.id;
    const before = await newest();
    let isOver = false;
    const worked = work().finally(() => (isOver = true));
    await expect.poll(async () => isOver || (await newest()) !== before).toBe(true);
    const id = await newest();
    if (id === undefined || id === before) return undefined;
    const run = (await mine(service).read.view(id))?.run;
    await mine(service).control.cancel(id, "seen");
    await worked;
    return run;
  };
  const set = (given: StartChoices): void => void (offered = given);
  return { service, callers, operator, fields, scheduled, startedBy, set };
}

/** Names what of a run is less supervised than the operator wants it. */
function problemsOf(run: Run, { changes, models, limits: most }: StartChoices): string[] {
  const { model, limits: own = {} } = run;
  return [
    ...(changes === "propose" && run.changes !== "propose" ? ["changes"] : []),
    ...(model !== undefined && !models.some(({ spec }) => spec === model) ? ["model"] : []),
    ...(["tokens", "toolCalls"] as const).filter((name) => (own[name] ?? 0) > (most[name] ?? Infinity)),
    ...HOPED_FOR.filter((name) => name in run),
  ];
}

test("whatever a caller chooses, its run is at least as supervised as the operator wants it", async () => {
  const { callers, startedBy, set } = await served();
  for (const [way, start] of Object.entries(callers)) {
    await fc.assert(
      fc.asyncProperty(settings, choices, async (offered, given) => {
        set(offered);
        const run = await startedBy(async () => start(given));
        if (run === undefined) return;
        expect(problemsOf(run, offered)).toEqual([]);
        // What a caller adds is kept, where its way has the choice.
        if (given.changes === "propose" && !/codex|AG-UI/.test(way)) expect(run.changes).toBe("propose");
        if (given.goal !== undefined && way !== "codex") expect(run.goal).toEqual(given.goal);
      }),
      attempts(160),
    );
    set({ changes: "propose", limits: {}, models: [{ spec: "a:main" }] });
    expect((await startedBy(async () => start({ changes: "direct" })))?.changes, way).toBe("propose");
  }
});

test("a person who operates the server chooses as they like; continuing a run adds nothing to that", async () => {
  const { service, operator, fields, scheduled, startedBy, set } = await served();
  set({ models: [{ spec: "a:main" }], limits: {}, changes: "propose" });
  const direct = { changes: "direct" };
  const started = await startedBy(async () => operator.post("/start", { task: "go", ...fields(direct) }));
  expect(started).not.toHaveProperty("changes");
  expect(await startedBy(async () => scheduled(operator, direct))).not.toHaveProperty("changes");
  const id = started?.id ?? "";
  for (const [form, task] of [
    ["continue", "more"],
    ["again", ""],
  ] as const) {
    const next = await startedBy(async () => operator.post(`/runs/${id}/${form}`, { task }));
    expect(next, form).toMatchObject({ changes: "propose", threadId: started?.threadId });
  }
  const added = await mine(service).schedules.add({
    task: "x",
    expression: "@daily",
    isOperators: true,
    changes: "direct",
  });
  const schedule = added.ok ? added.schedule : undefined;
  expect(schedule).toMatchObject(direct);
  // A caller that changes the task takes over no choice of the operator.
  const edited = await mine(service).schedules.edit(schedule?.id ?? "", { task: "y" });
  expect(edited.ok && edited.schedule).not.toHaveProperty("changes");
});

test("a tool call that wants direct changes is told that they are reviewed", async () => {
  const { service, set } = await served();
  set({ models: [{ spec: "a:main" }], limits: {}, changes: "propose" });
  const client = await connect(depsFor(service), { kind: "v1" });
  const { text } = await client.call("run_deep_agent", { task: "go", changes: "direct", wait_seconds: 0 });
  expect(text).toContain("`direct` was not used");
});

test("the page of a server that reviews changes offers direct ones to its operator alone", async () => {
  const { service, operator, set } = await served();
  set({ models: [{ spec: "a:main" }], limits: {}, changes: "propose" });
  const { origin } = await openSite(service);
  const caller = await logIn(origin, "mine");
  for (const path of ["/", "/schedules"]) {
    expect((await operator.get(path)).body, path).toContain("Edit files directly");
    expect((await caller.get(path)).body, path).not.toContain("Edit files directly");
    set({ models: [{ spec: "a:main" }], limits: {}, changes: "direct" });
    expect((await caller.get(path)).body, path).toContain("Propose changes");
    set({ models: [{ spec: "a:main" }], limits: {}, changes: "propose" });
  }
});

test("a program that speaks ACP gives a goal, and a subagent file what the table has", () => {
  fc.assert(
    fc.property(choices, (given) => {
      expect(goalOf({ _meta: { "deepagent-mcp": given, ...given } })).toEqual({ ok: true, goal: given.goal });
      const lines = Object.entries(given).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
      const text = ["---", "name: x", "description: y", "tools: Read", ...lines, "---", "Do it."].join("\n");
      const read = parseAgentFile("/x.md", text);
      // A restriction in another form, such as a list of permissions: the file is left out.
      if (!read.ok) expect(Object.keys(given)).toContain("permissions");
      const named = Object.keys(read.ok ? read.described : {});
      expect(named.filter((name) => !Object.hasOwn(AGENT_FILE, name))).toEqual([]);
    }),
  );
  expect([START.changes, SCHEDULE.changes]).toEqual(["adds", "adds"]);
});
