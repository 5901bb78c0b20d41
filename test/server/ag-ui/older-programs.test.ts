/**
 * Programs whose protocol has no interrupts, such as `@ag-ui/client` 0.0.40 to 0.0.53 and CopilotKit before 1.61.2. They
 * answer by the result of a tool of the front end, or by a command behind the event `on_interrupt`.
 */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { entry } from "../auth/support.ts";
import { openHome } from "../../support/harness.ts";
import { answersOf, play } from "../../support/harness-brain.ts";
import { serveHttp } from "../../support/harness-http-process.ts";

type Sent = Record<string, unknown> & { type: string };

const writing = (id: string, name: string, content = "hi") => ({
  id,
  name: "write_file",
  args: { file_path: `/workspace/${name}.md`, content },
});

/** A server, and a program that keeps its messages like the clients and knows no more than they did. */
async function program() {
  const both = [writing("c1", "a"), writing("c2", "b")];
  const told = (line: string) => (thought: Parameters<typeof answersOf>[0]) => ({
    text: `${line}: ${answersOf(thought).at(-1)?.text}`,
  });
  const { env, workspace } = await openHome({
    think: play({
      "write both": [{ text: "I write.", toolCalls: both }, { text: "Nothing is open." }],
      "write much": [{ toolCalls: [writing("c1", "a", "line\n".repeat(3000))] }, told("Ended")],
      ask: [
        { toolCalls: [{ id: "c1", name: "ask_user", args: { question: "Which color?" } }] },
        told("Ended"),
      ],
      write: [{ toolCalls: [writing("c1", "a")] }, told("Ended")],
    }),
  });
  const file = join(workspace, "..", "config.json");
  const tokens = [entry("one", "one"), entry("two", "two"), entry("looks", "one", ["run", "read"])];
  writeFileSync(file, JSON.stringify({ http: { tokens, agUi: true } }));
  const { url } = await serveHttp({ env: { ...env, DEEPAGENT_CONFIG: file } }, []);
  const open = (threadId = crypto.randomUUID()) => {
    const messages: object[] = [];
    const run = async (more: object = {}, token = "one"): Promise<Sent[]> => {
      const input = { threadId, runId: crypto.randomUUID(), tools: [], context: [], state: {}, messages };
      const response = await fetch(url.replace("/mcp", "/ag-ui"), {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
        body: JSON.stringify({ ...input, forwardedProps: {}, ...more }),
      });
      const lines = (await response.text()).split("\n").filter((line) => line.startsWith("data: "));
      return lines.map((line) => JSON.parse(line.slice(6)) as Sent); // as the endpoint writes it
    };
    const say = (content: string, more?: object, token?: string) => {
      messages.push({ id: crypto.randomUUID(), role: "user", content });
      return run(more, token);
    };
    /** Adds results of tools, by the ids of their calls, and runs again. */
    const answer = (results: Readonly<Record<string, string>>, more: object = TOOLS, token?: string) => {
      for (const [toolCallId, content] of Object.entries(results))
        messages.push({ id: crypto.randomUUID(), role: "tool", toolCallId, content });
      return run(more, token);
    };
    return { run, say, answer, threadId };
  };
  const exists = (name: string): boolean => existsSync(join(workspace, `${name}.md`));
  return { open, exists };
}

const PARAMETERS = { type: "object", properties: {} };
const TOOLS = {
  tools: [{ name: "other" }, { name: "answer_request", description: "d", parameters: PARAMETERS }],
};

const texts = (events: readonly Sent[]): string =>
  events.map(({ delta }) => (typeof delta === "string" ? delta : "")).join("");
const errors = (events: readonly Sent[]): unknown[] =>
  events.flatMap(({ type, message }) => (type === "RUN_ERROR" ? [message] : []));

/** Calls of the front end's tool: ids, and arguments. */
const asked = (events: readonly Sent[]) =>
  events
    .filter(({ toolCallName }) => toolCallName === "answer_request")
    .map(({ toolCallId }) => {
      const args = events.find((one) => one.type === "TOOL_CALL_ARGS" && one["toolCallId"] === toolCallId);
      const read = JSON.parse(String(args?.["delta"])) as { message: string; responseSchema: object };
      return { ...read, id: String(toolCallId) };
    });

const legacy = (events: readonly Sent[]): string[] =>
  events.flatMap(({ name, value }) => (name === "on_interrupt" ? [String(value)] : []));

test("results of the front end's tool decide the calls that it was shown, and each counts once", async () => {
  const { open, exists } = await program();
  const { say, answer } = open();
  const first = await say("write both", TOOLS);
  const calls = asked(first);
  expect(calls.map(({ message }) => /\/workspace\/.\.md/.exec(message)?.[0]).toSorted()).toEqual([
    "/workspace/a.md",
    "/workspace/b.md",
  ]);
  // Clients that know interrupts would want them answered as such.
  expect(first.at(-1)).toMatchObject({ type: "RUN_FINISHED" });
  expect(first.at(-1)).not.toHaveProperty("outcome");
  expect(legacy(first)).toEqual([]);
  const [a, b] = [
    calls.find(({ message }) => message.includes("a.md")),
    calls.find(({ message }) => message.includes("b.md")),
  ];
  // An answer that cannot be read costs nothing.
  const odd = await answer({ [String(a?.id)]: "Error: the form was closed" });
  expect(errors(odd)).toHaveLength(1);
  expect([exists("a"), exists("b")]).toEqual([false, false]);
  const last = await answer({ [String(a?.id)]: '{"approved":true}', [String(b?.id)]: '"reject"' });
  expect(texts(last)).toContain("Nothing is open.");
  expect(last.at(-1)).toMatchObject({ outcome: { type: "success" } });
  expect([exists("a"), exists("b")]).toEqual([true, false]);
  const again = await answer({ [String(b?.id)]: '"approve"' });
  expect(errors(again)).toEqual(["Nothing in this thread waits for an answer. Send a new message."]);
  expect(exists("b")).toBe(false);
});

test("an answer counts for the request that was shown to its principal, and for no other", async () => {
  const { open, exists } = await program();
  const [one, other] = [open(), open()];
  const [shown] = asked(await one.say("write", TOOLS));
  const [foreign] = asked(await other.say("write", TOOLS, "two"));
  const [request = "", nonce = "", signature = ""] =
    shown?.id.split(/\.(?=[\w-]{8}\.)|\.(?=[\w-]{22}$)/) ?? [];
  const wrong = [
    String(foreign?.id),
    request,
    `${request}.${"A".repeat(8)}.${signature}`,
    `${request}.${nonce}.${"A".repeat(22)}`,
  ];
  for (const id of wrong) {
    const command = { resume: { decision: "approve" }, interruptEvent: { id } };
    const events = await one.run({ ...TOOLS, forwardedProps: { command } });
    // It is asked again, by a call with an id of its own.
    expect([id, asked(events).length, asked(events)[0]?.id === shown?.id]).toEqual([id, 1, false]);
  }
  const looks = await one.answer({ [String(shown?.id)]: "approve" }, TOOLS, "looks");
  expect(errors(looks)).toHaveLength(1);
  const stranger = await open(one.threadId).answer({ [String(shown?.id)]: "approve" }, TOOLS, "two");
  expect(errors(stranger)).toEqual(["Nothing in this thread waits for an answer. Send a new message."]);
  expect(exists("a")).toBe(false);
  expect(texts(await one.answer({ [String(shown?.id)]: "true" }))).toContain("Ended: Successfully wrote");
});

test("a call that a form cannot show is decided elsewhere, and the answer says where", async () => {
  const { open, exists } = await program();
  const { say, answer } = open();
  const [shown] = asked(await say("write much", TOOLS));
  expect(shown?.message).toContain("This form is too small to show the whole call");
  expect(JSON.stringify(shown?.responseSchema)).not.toContain('"approve"');
  const refused = await answer({ [String(shown?.id)]: '{"approved":true}' });
  expect(errors(refused)).toEqual([expect.stringContaining("approve")]);
  expect(exists("a")).toBe(false);
  const rejected = await answer({ [String(shown?.id)]: '{"decision":"reject","message":"too much"}' });
  expect(texts(rejected)).toContain("Ended:");
  expect(exists("a")).toBe(false);
});

test("a command behind the event on_interrupt decides, and a text says where else one can", async () => {
  const { open, exists } = await program();
  const { say, run } = open();
  const first = await say("write");
  const [value = ""] = legacy(first);
  expect(first.at(-1)).toMatchObject({ outcome: { type: "interrupt" } });
  expect(texts(first)).toContain("If this program shows no form, open the page of the server");
  const command = (one: object) => run({ forwardedProps: { interrupts: false, command: one } });
  expect(errors(await command({ resume: "approve" }))).toEqual([expect.stringContaining("interruptEvent")]);
  // The client of CopilotKit before 1.61.2 would refuse to answer an interrupt in this way.
  const odd = await command({ resume: "whatever", interruptEvent: value });
  expect(errors(odd)).toHaveLength(1);
  expect(exists("a")).toBe(false);
  const second = await command({ resume: "approve", interruptEvent: value });
  expect(texts(second)).toContain("Ended: Successfully wrote");
  expect(exists("a")).toBe(true);
});

test("questions are answered by one value, by the members of the form, and with the id in the answer", async () => {
  const { open } = await program();
  const answers = (id: string): object[] => [
    { resume: "blue", interruptEvent: { id } },
    { resume: '{"answer":"blue"}', interruptEvent: JSON.stringify({ id }) },
    { resume: { interruptId: id, answer: "blue" } },
  ];
  for (const index of [0, 1, 2]) {
    const { say, run } = open();
    const first = await say("ask me", { forwardedProps: { interrupts: false } });
    expect(first.at(-1)).not.toHaveProperty("outcome");
    const [value = ""] = legacy(first);
    const { id, message } = JSON.parse(value) as { id: string; message: string };
    expect(message).toContain("Which color?");
    expect(texts(await run({ forwardedProps: { command: answers(id)[index] } }))).toContain("blue");
  }
});
