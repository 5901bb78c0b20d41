import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import {
  type McpServer,
  type RequestPermissionResponse,
  RequestError,
  methods,
} from "@agentclientprotocol/sdk";
import { expect, test } from "vitest";
import { filesIn } from "../../support/files-in.ts";
import { toyServer } from "../../agent/mcp-tools/toy-server.ts";
import { openHome } from "../../support/harness.ts";
import { answersOf, play } from "../../support/harness-brain.ts";
import { program } from "../../support/harness-stdio.ts";
import { type EditorOptions, type StartedEditor, saidBy, startEditor } from "./editor.ts";

const { session } = methods.agent;
const TASK = "Where does an alarm get lost?";
const allow = async (): Promise<RequestPermissionResponse> => ({
  outcome: { outcome: "selected", optionId: "approve" },
});

interface Place {
  cwd: string;
  env: Record<string, string>;
  open(options?: Partial<EditorOptions>): Promise<StartedEditor>;
}

function newPlace(): Place {
  const home = filesIn();
  const cwd = mkdtempSync(join(home, "project-"));
  writeFileSync(join(cwd, "notes.md"), "An alarm gets lost when the pager is off.\n");
  const { PATH = "" } = process.env;
  const env = { PATH, HOME: home, DEEPAGENT_MODEL: "offline", DEEPAGENT_DATA_DIR: join(home, "data") };
  return { cwd, env, open: (options = {}) => startEditor({ env, ...options }) };
}

const begin = async ({ agent }: StartedEditor, cwd: string): Promise<string> =>
  (await agent.request(session.new, { cwd, mcpServers: [] })).sessionId;
const ask = ({ agent }: StartedEditor, sessionId: string, text: string) =>
  agent.request(session.prompt, { sessionId, prompt: [{ type: "text", text }] });

test("a prompt is a run: its plan, calls, changes and answer are shown, and the person decides", async () => {
  const { cwd, open } = newPlace();
  const editor = await open({ permission: allow });
  expect(editor.initialized).toMatchObject({
    protocolVersion: 1,
    agentCapabilities: { loadSession: true, sessionCapabilities: { list: {} } },
  });
  const sessionId = await begin(editor, cwd);
  const { stopReason } = await ask(editor, sessionId, TASK);
  expect(stopReason).toBe("end_turn");
  const report = join(cwd, "deepagent-report.md");
  expect(readFileSync(report, "utf8")).toContain("alarm");
  expect(editor.asked).toHaveLength(1);
  const [{ toolCall, options } = { toolCall: undefined, options: [] }] = editor.asked;
  expect(toolCall).toMatchObject({
    kind: "edit",
    status: "pending",
    locations: [{ path: report }],
    content: [
      { type: "content" },
      { type: "diff", path: report, oldText: null, newText: expect.stringContaining("# Report") },
    ],
  });
  expect(options.map(({ kind }) => kind)).toEqual([
    "allow_once",
    "allow_always",
    "allow_always",
    "reject_once",
  ]);
  const { updates } = editor;
  expect(updates.filter(({ sessionUpdate }) => sessionUpdate === "plan").at(-1)).toMatchObject({
    entries: expect.arrayContaining([expect.objectContaining({ status: "completed" })]),
  });
  expect(updates).toContainEqual(
    expect.objectContaining({
      sessionUpdate: "tool_call",
      kind: "read",
      title: expect.stringContaining("read_file /workspace/notes.md"),
      locations: [{ path: join(cwd, "notes.md") }],
    }),
  );
  // The approved call keeps its entry.
  const ofCall = updates.filter(
    (update) => "toolCallId" in update && update.toolCallId === toolCall?.toolCallId,
  );
  expect(ofCall).toMatchObject([
    { sessionUpdate: "tool_call", status: "pending" },
    { sessionUpdate: "tool_call_update", status: "in_progress" },
    { status: "completed" },
    { content: [{ type: "diff" }] },
  ]);
  await editor.until(() => saidBy(updates).includes("The full report is in /workspace/deepagent-report.md."));

  const listed = await editor.agent.request(session.list, { cwd });
  expect(listed.sessions).toMatchObject([{ sessionId, cwd, title: TASK }]);
});

test("an option of the editor saves the rule that it names", async () => {
  const { cwd, env, open } = newPlace();
  const always = async (): Promise<RequestPermissionResponse> => ({
    outcome: { outcome: "selected", optionId: "approve_always_1" },
  });
  const editor = await open({ permission: always });
  const sessionId = await begin(editor, cwd);
  await ask(editor, sessionId, TASK);
  expect(editor.asked[0]?.options.find(({ optionId }) => optionId === "approve_always_1")).toEqual({
    optionId: "approve_always_1",
    kind: "allow_always",
    name: expect.stringMatching(/^Always allow Edit\(\/deepagent-report\.md\): Create and change the file /),
  });
  expect(existsSync(join(cwd, "deepagent-report.md"))).toBe(true);
  const listed = await promisify(execFile)(process.execPath, [await program(), "rules", "list"], { env });
  expect(listed.stdout).toMatch(/Edit\(\/deepagent-report\.md\)[^]* acp, in run /);
});

test("a killed agent continues its run when the session is loaded again, and asks again", async () => {
  const { cwd, open } = newPlace();
  const first = await open();
  const sessionId = await begin(first, cwd);
  ask(first, sessionId, TASK).catch(() => undefined);
  await first.until(() => first.asked.length > 0);
  await first.kill();

  const second = await open({ permission: allow });
  await second.agent.request(session.load, { sessionId, cwd, mcpServers: [] });
  expect(second.updates[0]).toMatchObject({
    sessionUpdate: "user_message_chunk",
    content: { type: "text", text: TASK },
  });
  expect(saidBy(second.updates)).toContain("Looking into the folders");
  await second.until(() => saidBy(second.updates).includes("The full report is in"));
  expect(second.asked[0]?.toolCall.toolCallId).toBe(first.asked[0]?.toolCall.toolCallId);
  // The next prompt continues the conversation.
  expect(await ask(second, sessionId, "And who is told?")).toEqual({ stopReason: "end_turn" });
  const { sessions } = await second.agent.request(session.list, {});
  expect(sessions).toHaveLength(1);
});

test("a cancelled prompt cancels its run, and a rejected call has failed", { tags: "long" }, async () => {
  const { cwd, open } = newPlace();
  const editor = await open();
  const sessionId = await begin(editor, cwd);
  const prompted = ask(editor, sessionId, TASK);
  await editor.until(() => editor.asked.length > 0);
  await editor.agent.notify(session.cancel, { sessionId });
  expect(await prompted).toEqual({ stopReason: "cancelled" });

  const rejecting = await open({
    permission: async () => ({ outcome: { outcome: "selected", optionId: "reject" } }),
  });
  const other = await begin(rejecting, cwd);
  expect(await ask(rejecting, other, TASK)).toEqual({ stopReason: "end_turn" });
  const [asked] = rejecting.asked;
  expect(rejecting.updates).toContainEqual(
    expect.objectContaining({ toolCallId: asked?.toolCall.toolCallId, status: "failed" }),
  );
});

test("a decision in another place takes the question of the editor back", { tags: "long" }, async () => {
  const { cwd, env, open } = newPlace();
  const editor = await open();
  const sessionId = await begin(editor, cwd);
  const prompted = ask(editor, sessionId, TASK);
  await editor.until(() => editor.asked.length > 0);
  const answer = [await program(), "runs", "answer", "last", "--approve"];
  await promisify(execFile)(process.execPath, answer, { cwd, env });
  expect(await prompted).toEqual({ stopReason: "end_turn" });
  await editor.until(() => editor.takenBack() === 1);
  expect(existsSync(join(cwd, "deepagent-report.md"))).toBe(true);
});

const lastAnswer = (thought: Parameters<typeof answersOf>[0]): { text: string } => ({
  text: answersOf(thought).at(-1)?.text ?? "",
});

const QUESTION = { id: "c1", name: "ask_user", args: { question: "Which colour?" } };

/** An agent that asks a question first, then gives the answer to it. */
const asking = () => openHome({ think: play({ paint: [{ toolCalls: [QUESTION] }, lastAnswer] }) });

test("a question is asked in a form of the editor", async () => {
  const { workspace, env } = await asking();
  const editor = await startEditor({
    env,
    capabilities: { elicitation: { form: {} } },
    form: async (request) => {
      expect(request).toMatchObject({ mode: "form", message: expect.stringContaining("Which colour?") });
      return { action: "accept", content: { answer: "blue" } };
    },
  });
  const sessionId = await begin(editor, workspace);
  expect(await ask(editor, sessionId, "paint")).toEqual({ stopReason: "end_turn" });
  await editor.until(() => saidBy(editor.updates) === "The person answered: blue");
});

test("without forms a question ends the turn, and the next message answers it", async () => {
  const { workspace, env } = await asking();
  const editor = await startEditor({ env });
  const sessionId = await begin(editor, workspace);
  expect(await ask(editor, sessionId, "paint")).toEqual({ stopReason: "end_turn" });
  await editor.until(() => /Which colour\?\s+Your next message is the answer\./.test(saidBy(editor.updates)));
  expect(await ask(editor, sessionId, "green")).toEqual({ stopReason: "end_turn" });
  await editor.until(() => saidBy(editor.updates).endsWith("The person answered: green"));
});

test("agents use the MCP servers of the editor, and ask before they write", { tags: "long" }, async () => {
  const toy = await toyServer();
  const { workspace, env } = await openHome({
    think: play({
      store: [{ toolCalls: [{ id: "c1", name: "my-toy__store", args: { word: "ebb" } }] }, lastAnswer],
    }),
  });
  const servers: McpServer[] = [{ name: "my toy", command: toy.command ?? "", args: [...toy.args], env: [] }];
  const first = await startEditor({ env });
  const { sessionId } = await first.agent.request(session.new, { cwd: workspace, mcpServers: servers });
  ask(first, sessionId, "store").catch(() => undefined);
  await first.until(() => first.asked.length > 0);
  await first.kill();
  expect(toy.effects()).toEqual([]);

  const second = await startEditor({ env, permission: allow });
  await second.agent.request(session.load, { sessionId, cwd: workspace, mcpServers: servers });
  await second.until(() => saidBy(second.updates).includes("stored ebb"));
  expect(toy.effects()).toEqual(["ebb"]);
});

test("a failed run is an error with its reason", async () => {
  const { workspace, env } = await openHome({ think: play({}) });
  const editor = await startEditor({ env: { ...env, OPENAI_API_KEY: "wrong", ANTHROPIC_API_KEY: "wrong" } });
  const sessionId = await begin(editor, workspace);
  await expect(ask(editor, sessionId, "work")).rejects.toMatchObject({
    code: -32603,
    data: { reason: "model_auth" },
  });
});

test("can1357/oh-my-pi#7722, 1jehuang/jcode#887: odd MCP servers cost no session, and are named once", async () => {
  const { cwd, open } = newPlace();
  const editor = await open({ permission: allow });
  const mcpServers = [
    { name: "bare", command: "no-such-program" },
    { name: "pairs", command: "no-such-program", args: null, env: { KEY: "value" } },
    { name: "web", url: "http://127.0.0.1:1/mcp" },
    { name: "!", command: "x", args: [], env: [] },
    { name: "bare", command: "x", args: [], env: [] },
  ];
  const opened = await editor.agent.request("session/new", { cwd, mcpServers });
  const { sessionId } = opened as { sessionId: string }; // its type is not known by this name
  await ask(editor, sessionId, TASK);
  await editor.agent.request("session/new", { cwd });
  const said = saidBy(editor.updates);
  expect(said.match(/The MCP server '.*? of the editor is left out: .*(?=_)/g)).toEqual([
    "The MCP server 'bare' of the editor is left out: another one has its name.",
  ]);
});

test("bad input gets an error that says what to do", async () => {
  const { cwd, open } = newPlace();
  const editor = await open();
  const { agent } = editor;
  const problemOf = (request: Promise<unknown>): Promise<RequestError> =>
    request.then(
      () => Promise.reject(new Error("no error")),
      (error: RequestError) => error,
    );
  const sessionId = await begin(editor, cwd);
  const errors = await Promise.all([
    problemOf(agent.request(session.new, { cwd: "relative", mcpServers: [] })),
    problemOf(agent.request(session.new, { cwd: join(cwd, "missing"), mcpServers: [] })),
    problemOf(agent.request(session.load, { cwd, sessionId: "thr_unknown", mcpServers: [] })),
    problemOf(ask(editor, "thr_unknown", TASK)),
    problemOf(ask(editor, sessionId, "  ")),
    problemOf(
      agent.request(session.prompt, {
        sessionId,
        prompt: [{ type: "image", data: "", mimeType: "image/png" }],
      }),
    ),
    problemOf(agent.request("session/prompt", { sessionId: 1 })),
    problemOf(ask(editor, sessionId, "x".repeat(900_000))),
    problemOf(agent.request("no/such_method", {})),
  ]);
  expect(errors.map(({ code, message }) => [code, message.replace(cwd, "CWD")])).toMatchInlineSnapshot(`
    [
      [
        -32602,
        "The session was not opened: cwd must be an absolute path, not relative.",
      ],
      [
        -32602,
        "The session was not opened: CWD/missing does not exist or cannot be opened.",
      ],
      [
        -32002,
        "There is no such session. session/list names those of the folder; session/new begins one.",
      ],
      [
        -32002,
        "There is no such session. session/list names those of the folder; session/new begins one.",
      ],
      [
        -32602,
        "The prompt is empty. Write what the agent is to do.",
      ],
      [
        -32602,
        "The prompt has a part of type "image", which this agent does not read. Send text, links to files or texts.",
      ],
      [
        -32602,
        "Invalid params",
      ],
      [
        -32600,
        "Invalid request: the message must not exceed 786432 bytes; put long texts into a file and name it",
      ],
      [
        -32601,
        ""Method not found": no/such_method",
      ],
    ]
  `);
  const line = new Promise<string>((resolve) => {
    editor.process.stdout.on("data", (data: Buffer) => resolve(String(data)));
  });
  editor.process.stdin.write("no json\n");
  expect(JSON.parse(await line)).toMatchObject({ id: null, error: { code: -32700 } });
});
