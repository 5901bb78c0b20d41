import { InMemoryStore, MemorySaver } from "@langchain/langgraph";
import { beforeEach, describe, expect, test } from "vitest";
import { type Agent, type AgentEvent, buildAgent, type DeepAgentParams } from "../../../src/agent/agent.ts";
import { OfflineModel } from "../../../src/agent/models/offline/offline-model.ts";
import { CompositeBackend } from "../../../src/backends/composite/composite.ts";
import { StateBackend } from "../../../src/backends/stores/state.ts";
import { StoreBackend } from "../../../src/backends/stores/langgraph-store.ts";
import { collect, paused, toolMessages } from "../../support/run-agent.ts";

const FILES: Record<string, string> = {
  "/README.md": "# Harbour\n\nPredicts tides for the harbour.\n",
  "/.env": "TIDE_KEY=sk-secret-tide-value\n",
  "/src/tides.ts":
    "import { waves } from './waves.ts';\n\nexport function predictTide(hour: number) {\n  return waves(hour);\n}\n",
  "/src/waves.ts": "// TODO: shallow water\nexport const waves = (hour: number) => Math.sin(hour);\n",
  "/docs/tides.md": "# Tides\n\nA tide is predicted from waves.\n",
  "/node_modules/tide/index.js": "module.exports = 'tide from a dependency';\n",
};

let store: InMemoryStore;
let workspace: StoreBackend;

beforeEach(async () => {
  store = new InMemoryStore();
  workspace = new StoreBackend({ store, namespace: ["workspace"] });
  for (const [path, content] of Object.entries(FILES)) await workspace.write(path, content);
});

function agentOn(params: DeepAgentParams = {}, mounts: Record<string, StoreBackend> = {}): Agent {
  const memories = new StoreBackend({ store, namespace: ["memories"] });
  const routes = { "/workspace/": workspace, "/memories/": memories, ...mounts };
  return buildAgent({
    model: new OfflineModel(),
    backend: new CompositeBackend(new StateBackend(), routes),
    store,
    checkpointer: new MemorySaver(),
    ...params,
  });
}

const task = "How is the tide predicted, and where is `predictTide` defined?";

function answerOf(events: readonly AgentEvent[]): string {
  const last = events.at(-1);
  if (last?.kind !== "finished") throw new Error(`expected an end, got ${JSON.stringify(last)}`);
  return last.answer;
}

const read = async (backend: StoreBackend, path: string): Promise<string | undefined> =>
  (await backend.read(path)).content as string | undefined;

describe("a task on a workspace", () => {
  test("plans, sends a subagent to each area at once, reports, remembers and answers", async () => {
    const events = await collect(agentOn(), { kind: "task", task });
    const started = events.filter((event) => event.kind === "subagent_started");
    expect(started).toHaveLength(3);
    const firstEnd = events.findIndex(({ kind }) => kind === "subagent_finished");
    expect(events.slice(0, firstEnd).filter(({ kind }) => kind === "subagent_started")).toHaveLength(3);
    expect(events.filter((event) => event.kind === "tool_finished" && event.status === "error")).toEqual([]);

    const report = await read(workspace, "/deepagent-report.md");
    expect(report).toContain("It is not a language model");
    expect(report).toContain("/workspace/src/tides.ts:3 `export function predictTide(hour: number) {`");
    expect(report).toContain("/workspace/src/waves.ts:1 `// TODO: shallow water`");
    expect(report).toContain("/workspace/docs/tides.md:3");

    const answer = answerOf(events);
    expect(answer).toContain("not a language model");
    expect(answer).toContain("The full report is in /workspace/deepagent-report.md.");
    expect(answer).toContain("/workspace/src/tides.ts:3");
    expect(answer).toContain("Noted for later conversations in /memories/offline-notes.md.");

    const todos = events.filter((event) => event.kind === "todos").at(-1)?.todos;
    expect(todos?.map(({ status }) => status)).toEqual(Array(4).fill("completed"));
  });

  test("every citation of the report is a line of a file", async () => {
    await collect(agentOn(), { kind: "task", task });
    const report = (await read(workspace, "/deepagent-report.md")) ?? "";
    const citations = [...report.matchAll(/^- \/workspace(\/\S+):(\d+) `(.*)`$/gm)];
    expect(citations.length).toBeGreaterThan(6);
    for (const [, path = "", line = "", text = ""] of citations) {
      expect(FILES[path]?.split("\n")[Number(line) - 1]?.trim()).toBe(text);
    }
  });

  test("neither dependencies nor secrets get into report or answer", async () => {
    const events = await collect(agentOn(), { kind: "task", task });
    const everything = `${await read(workspace, "/deepagent-report.md")}${answerOf(events)}`;
    expect(everything).not.toContain("dependency");
    expect(everything).not.toContain("sk-secret");
    expect(everything).not.toContain(".env");
  });

  test("a second task in the thread keeps the first report, reads its notes and adds to them", async () => {
    const agent = agentOn();
    await collect(agent, { kind: "task", task });
    const first = await read(workspace, "/deepagent-report.md");
    const second = await collect(agent, { kind: "task", task: "Find open TODOs" }, { runId: "run_2" });
    expect(answerOf(second)).toContain("The full report is in /workspace/deepagent-report-2.md.");
    expect(answerOf(second)).toContain(`From my notes, earlier tasks here:\n- "${task}"`);
    expect(answerOf(second)).toContain("/workspace/src/waves.ts:1");
    expect(await read(workspace, "/deepagent-report.md")).toBe(first);
    const notes = await read(new StoreBackend({ store, namespace: ["memories"] }), "/offline-notes.md");
    expect(notes?.match(/^- /gm)).toHaveLength(2);
  });

  test("the same task gives the same calls, ids included", async () => {
    const ids = async (threadId: string) => {
      const agent = agentOn({ interruptOn: { write_file: true } });
      await collect(agent, { kind: "task", task }, { threadId });
      return (await toolMessages(agent, threadId)).map(({ tool_call_id: id }) => id);
    };
    const first = await ids("a");
    expect(new Set(first).size).toBe(first.length);
    expect(await ids("b")).toEqual(first);
  });
});

describe("a write that a person decides on", () => {
  const gated = () =>
    agentOn({
      interruptOn: {
        write_file: { when: ({ args }) => String(args["file_path"]).startsWith("/workspace/") },
      },
    });

  test("rejected: nothing is written, the agent goes on and answers with the report itself", async () => {
    const agent = gated();
    const [request] = paused(await collect(agent, { kind: "task", task }));
    expect(request?.request.actionRequests[0]?.args).toMatchObject({
      file_path: "/workspace/deepagent-report.md",
    });
    const answers = {
      [request!.id]: { decisions: [{ type: "reject" as const, message: "Not into my repo, please." }] },
    };
    const events = await collect(agent, { kind: "resume", answers });
    const answer = answerOf(events);
    expect(answer).toContain(
      "Writing /workspace/deepagent-report.md was rejected (Not into my repo, please.)",
    );
    expect(answer).toContain("# Report:");
    expect(answer).toContain("/workspace/src/tides.ts:3");
    expect(answer).not.toContain("The full report is in");
    expect(answer).toContain("/memories/offline-notes.md");
    expect(await read(workspace, "/deepagent-report.md")).toBeUndefined();
    const notes = await read(new StoreBackend({ store, namespace: ["memories"] }), "/offline-notes.md");
    expect(notes).toContain("no report file");
  });

  test("edited: the answer names the path that was written", async () => {
    const agent = gated();
    const [request] = paused(await collect(agent, { kind: "task", task }));
    const editedAction = {
      name: "write_file",
      args: { file_path: "/workspace/notes/tides.md", content: "short" },
    };
    const answers = { [request!.id]: { decisions: [{ type: "edit" as const, editedAction }] } };
    const answer = answerOf(await collect(agent, { kind: "resume", answers }));
    expect(answer).toContain("The full report is in /workspace/notes/tides.md.");
    expect(await read(workspace, "/notes/tides.md")).toBe("short");
  });

  test("approved: the report is written once", async () => {
    const agent = gated();
    const [request] = paused(await collect(agent, { kind: "task", task }));
    const answers = { [request!.id]: { decisions: [{ type: "approve" as const }] } };
    expect(answerOf(await collect(agent, { kind: "resume", answers }))).toContain("The full report is in");
    expect(await read(workspace, "/deepagent-report.md")).toContain("# Report");
    expect(await read(workspace, "/deepagent-report-2.md")).toBeUndefined();
  });
});

describe("circumstances", () => {
  test("no workspace: says so and changes nothing", async () => {
    const agent = buildAgent({ model: new OfflineModel(), checkpointer: new MemorySaver() });
    const events = await collect(agent, { kind: "task", task });
    expect(answerOf(events)).toContain("no folder is mounted at /workspace/");
    expect(events.some(({ kind }) => kind === "subagent_started" || kind === "file_changed")).toBe(false);
  });

  test("an empty workspace: says so and changes nothing", async () => {
    workspace = new StoreBackend({ store, namespace: ["empty"] });
    const events = await collect(agentOn(), { kind: "task", task });
    expect(answerOf(events)).toContain("/workspace/ has no files that I could examine");
    expect(events.some(({ kind }) => kind === "file_changed")).toBe(false);
  });

  test("a task that forbids changes gets its report as the answer", async () => {
    const events = await collect(agentOn(), {
      kind: "task",
      task: "Where is the tide computed? Do not change anything.",
    });
    expect(answerOf(events)).toContain("The task forbids changes");
    expect(answerOf(events)).toContain("# Report:");
    expect(events.some(({ kind }) => kind === "file_changed")).toBe(false);
  });

  test("without the planning tool and without memories it works all the same", async () => {
    const agent = buildAgent({
      model: new OfflineModel(),
      backend: new CompositeBackend(new StateBackend(), { "/workspace/": workspace }),
      checkpointer: new MemorySaver(),
      todos: false,
    });
    const events = await collect(agent, { kind: "task", task });
    expect(answerOf(events)).toContain("The full report is in");
    expect(answerOf(events)).not.toContain("memories");
  });

  test("without subagents it examines the files itself", async () => {
    const agent = agentOn({ generalPurpose: false });
    const answer = answerOf(await collect(agent, { kind: "task", task }));
    expect(answer).toContain("/workspace/src/tides.ts:3 `export function predictTide(hour: number) {`");
  });

  test("many folders and files: at most six areas, and all files are counted", async () => {
    for (let folder = 0; folder < 12; folder += 1) {
      for (let file = 0; file <= folder; file += 1)
        await workspace.write(`/part${folder}/f${file}.ts`, "tide\n");
    }
    const events = await collect(agentOn(), { kind: "task", task });
    expect(events.filter(({ kind }) => kind === "subagent_started")).toHaveLength(6);
    expect(answerOf(events)).toContain("I examined 82 files in 6 areas");
  });

  test("one large folder is cut into its parts", async () => {
    workspace = new StoreBackend({ store, namespace: ["mono"] });
    for (let n = 0; n < 30; n += 1) await workspace.write(`/packages/p${n % 3}/f${n}.ts`, "tide\n");
    const events = await collect(agentOn(), { kind: "task", task });
    const places = events.flatMap((event) =>
      event.kind === "subagent_started" ? (/^Examine (\S+)/.exec(event.description)?.[1] ?? []) : [],
    );
    expect(places.sort()).toEqual(["packages/p0/", "packages/p1/", "packages/p2/"]);
  });

  test.each([
    ["German", "Finde heraus, wie die Gezeiten (waves) berechnet werden"],
    ["Japanese", "waves の計算方法を調べてください"],
    ["no words", "?!"],
  ])("a task in %s is worked on", async (_language, text) => {
    const events = await collect(agentOn(), { kind: "task", task: text });
    expect(answerOf(events)).toContain("The full report is in");
    if (text.includes("waves")) expect(answerOf(events)).toContain("/workspace/src/waves.ts:2");
  });
});
