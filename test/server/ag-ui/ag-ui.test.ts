import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { HttpAgent, type RunAgentResult } from "@ag-ui/client";
import { EventType, type Interrupt } from "@ag-ui/core";
import { expect, test } from "vitest";
import { entry } from "../auth/support.ts";
import { openHome } from "../../support/harness.ts";
import { answersOf, play } from "../../support/harness-brain.ts";
import { deferred } from "../../support/harness-deferred.ts";
import { findings, met } from "../../support/judge.ts";
import { serveHttp } from "../../support/harness-http-process.ts";

async function serve(env: Record<string, string>, args: readonly string[] = ["--ag-ui"]) {
  const { child, url } = await serveHttp({ env }, args);
  const kill = async (): Promise<void> => {
    child.process.kill("SIGKILL");
    await child.exited;
  };
  return { url: url.replace("/mcp", "/ag-ui"), kill };
}

type Interrupts = readonly Interrupt[];

/** Runs the agent once, and gives the types of its events, what it waits for, and its messages. */
async function run(agent: HttpAgent, parameters: Parameters<HttpAgent["runAgent"]>[0] = {}) {
  const types: string[] = [];
  let outcome: unknown;
  let error: unknown;
  const result: RunAgentResult | undefined = await agent
    .runAgent(parameters, {
      onEvent: ({ event }) => {
        types.push(event.type);
        if (event.type === EventType.RUN_FINISHED) outcome = event["outcome"];
        if (event.type === EventType.RUN_ERROR) error = event["message"];
      },
    })
    .catch(() => undefined);
  const interrupts = (outcome as { interrupts?: Interrupts } | undefined)?.interrupts ?? [];
  const texts = (result?.newMessages ?? []).map(({ content }) => content);
  return { types, outcome, interrupts, error, texts };
}

const agentAt = ({ url }: { url: string }, headers: Record<string, string> = {}): HttpAgent =>
  new HttpAgent({ url, headers });
const user = (content: string) => ({ id: crypto.randomUUID(), role: "user" as const, content });

const writing = () =>
  openHome({
    think: play({
      "write it": [
        {
          text: "I write.",
          toolCalls: [
            { id: "c1", name: "write_file", args: { file_path: "/workspace/a.md", content: "hi" } },
          ],
        },
        (thought) => ({ text: `Done: ${answersOf(thought).at(-1)?.text}` }),
        { text: "Nothing more." },
      ],
    }),
  });

test("a front end saves a rule that was offered, and no other", async () => {
  const { env, workspace } = await writing();
  const agent = agentAt(await serve(env));
  agent.addMessage(user("write it"));
  const { interrupts } = await run(agent);
  expect(interrupts[0]?.responseSchema).toMatchObject({
    properties: { rule: { oneOf: [{ const: "Edit(/a.md)" }] } },
  });
  const decide = (rule: string) => {
    const payload = { decision: "approve_always", rule };
    const entry = { interruptId: interrupts[0]?.id ?? "", status: "resolved" as const, payload };
    return run(agent, { resume: [entry] });
  };
  expect((await decide("Bash(*)")).error).toContain("This rule is not offered");
  expect(existsSync(join(workspace, "a.md"))).toBe(false);
  expect((await decide("Edit(/a.md)")).outcome).toEqual({ type: "success" });
  expect(existsSync(join(workspace, "a.md"))).toBe(true);
});

test("a front end sees a run, decides on what it waits for, and continues the thread", async () => {
  const { env, workspace } = await writing();
  const agent = agentAt(await serve(env));
  agent.addMessage(user("write it"));
  const first = await run(agent);
  expect(first.interrupts).toMatchObject([
    {
      reason: "approval",
      message: expect.stringContaining("/workspace/a.md"),
      responseSchema: {
        properties: { decision: { enum: ["approve", "approve_same", "approve_always", "edit", "reject"] } },
      },
    },
  ]);
  expect(first.types).toContain("TEXT_MESSAGE_CONTENT");
  expect(existsSync(join(workspace, "a.md"))).toBe(false);

  const [interrupt] = first.interrupts;
  const resume = [
    { interruptId: interrupt?.id ?? "", status: "resolved" as const, payload: { decision: "approve" } },
  ];
  const second = await run(agent, { resume });
  expect(second.outcome).toEqual({ type: "success" });
  expect(second.types).toEqual(expect.arrayContaining(["TOOL_CALL_START", "TOOL_CALL_RESULT", "CUSTOM"]));
  expect(second.texts.at(-1)).toBe("Done: Successfully wrote to '/workspace/a.md'");
  expect(existsSync(join(workspace, "a.md"))).toBe(true);

  agent.addMessage(user("and now"));
  const third = await run(agent);
  expect([third.error, third.texts]).toEqual([undefined, ["Nothing more."]]);
});

test("words are sent as they are written, each once, also where a stream ends and another one continues", async () => {
  const [halfLook, halfAnswer] = [deferred(), deferred()];
  const looks = "I look around in the folder, and then I write down what I have found. ".repeat(8).trim();
  const write = { id: "c1", name: "write_file", args: { file_path: "/workspace/a.md", content: "hi" } };
  const answer = "It is written, and nothing else was changed.";
  const asks = { text: looks, toolCalls: [write], pieceLength: 20, rest: halfLook.promise };
  const answers = { text: answer, pieceLength: 5, rest: halfAnswer.promise };
  const { env } = await openHome({ think: play({ "write it": [asks, answers] }) });
  const agent = agentAt(await serve(env));
  agent.addMessage(user("write it"));
  let words = "";
  agent.subscribe({
    onTextMessageContentEvent: ({ event }) => {
      words += event.delta;
      // The model continues once its first half has arrived here.
      if (words.length > 10) halfLook.resolve();
      if (words.length > looks.length + 10) halfAnswer.resolve();
    },
  });
  const first = await run(agent);
  const said = (): unknown[] =>
    agent.messages.flatMap(({ role, content }) => (role === "assistant" && content ? [content] : []));
  expect(said()).toEqual([looks]);
  const ends = first.types.filter((type) => type === "TEXT_MESSAGE_END");
  expect(ends).toHaveLength(1);
  expect(first.types.filter((type) => type === "TEXT_MESSAGE_CONTENT").length).toBeGreaterThan(0);
  const interruptId = first.interrupts[0]?.id ?? "";
  const resume = [{ interruptId, status: "resolved" as const, payload: { decision: "approve" } }];
  const second = await run(agent, { resume });
  expect(second.outcome).toEqual({ type: "success" });
  expect(words).toBe(looks + answer);
  expect(said()).toEqual([looks, answer]);
});

test("what waits is answered after the server was killed", async () => {
  const { env, workspace } = await writing();
  const first = await serve(env);
  const agent = agentAt(first);
  agent.addMessage(user("write it"));
  const [interrupt] = (await run(agent)).interrupts;
  await first.kill();
  agent.url = (await serve(env)).url;
  const resume = [
    { interruptId: interrupt?.id ?? "", status: "resolved" as const, payload: { decision: "reject" } },
  ];
  expect((await run(agent, { resume })).outcome).toEqual({ type: "success" });
  expect(existsSync(join(workspace, "a.md"))).toBe(false);
});

test("a front end gives a goal, and gets the findings of each round", async () => {
  const { env } = await openHome({
    think: play({
      "Judge this work.": [
        { toolCalls: (findings(met).toolCalls ?? []).map((call) => ({ id: "f1", ...call })) },
      ],
      write: [{ text: "It is written." }],
    }),
  });
  const agent = agentAt(await serve(env));
  agent.addMessage(user("write"));
  const wrong = await run(agent, { forwardedProps: { goal: "It is written" } });
  expect(wrong.error).toBe("forwardedProps.goal must be a list of texts, the criteria.");
  const custom: unknown[] = [];
  const { unsubscribe } = agent.subscribe({
    onCustomEvent: ({ event: { name, value } }) => void custom.push({ name, value: value as unknown }),
  });
  const judged = await run(agent, { forwardedProps: { goal: ["It is written"] } });
  unsubscribe();
  expect(judged.outcome).toEqual({ type: "success" });
  expect(custom).toMatchObject([
    { name: "goal_judged", value: { round: 1, verdicts: [{ criterion: "It is written", verdict: "met" }] } },
    { name: "goal_ended", value: { outcome: "met" } },
  ]);
});

/** Types of events that `@ag-ui/core` 0.0.40 to 0.0.58 have: their clients break off a stream with another one. */
const OLDER_TYPES =
  /^(RUN_(STARTED|FINISHED|ERROR)|TEXT_MESSAGE_(START|CONTENT|END)|TOOL_CALL_(START|ARGS|END|RESULT)|STATE_SNAPSHOT|CUSTOM)$/;

const PROGRAMS: ReadonlyArray<[which: string, asked: object, takesThem: boolean]> = [
  ["of 1.0", { protocolVersion: "1.0" }, true],
  ["of a later version", { protocolVersion: "2.1" }, true],
  ["that asks for them", { forwardedProps: { subagentEvents: true } }, true],
  ["before 1.0", {}, false],
  ["with a number as its version", { protocolVersion: 1 }, true],
  ["with an odd version", { protocolVersion: "draft", forwardedProps: { subagentEvents: "no" } }, false],
];

test("programs before 1.0 get CUSTOM events about subagents, unless they ask for others", async () => {
  const task = { description: "look", subagent_type: "general-purpose" };
  const delegates = { toolCalls: [{ id: "c1", name: "task", args: task }] };
  const { env } = await openHome({
    think: play({ delegate: [delegates, { text: "All done." }], look: [{ text: "Seen." }] }),
  });
  const { url } = await serve(env);
  for (const [which, asked, takesThem] of PROGRAMS) {
    const threadId = crypto.randomUUID();
    const answer = await post(url, { ...INPUT, threadId, ...asked, messages: [user("delegate")] });
    const events = (await answer.text())
      .split("\n")
      .filter((line) => line.startsWith("data: "))
      .map((line) => JSON.parse(line.slice(6)) as Record<string, unknown>); // as the endpoint writes it
    const newer = events.map(({ type }) => type).filter((type) => !OLDER_TYPES.test(String(type)));
    expect([which, newer]).toEqual([which, takesThem ? ["SUBAGENT_STARTED", "SUBAGENT_FINISHED"] : []]);
    const subagentRunId = expect.stringContaining(":c1") as string;
    const custom = [
      { name: "subagent_started", value: { subagentRunId, name: "general-purpose", description: "look" } },
      { name: "subagent_finished", value: { subagentRunId, result: "Seen." } },
    ];
    const found = events.filter(({ name }) => String(name).startsWith("subagent_"));
    expect([which, found]).toMatchObject([which, takesThem ? [] : custom]);
  }
});

test("bad input gets one clear error, and without the setting there is no endpoint", async () => {
  const { env } = await writing();
  const served = await serve(env);
  const post = (body: string, type = "application/json") =>
    fetch(served.url, { method: "POST", body, headers: { "content-type": type } });
  expect((await post("{}")).status).toBe(400);
  expect((await post("{}", "text/plain")).status).toBe(415);
  expect((await fetch(served.url)).status).toBe(405);
  const empty = agentAt(served);
  expect((await run(empty)).error).toBe("The last message must be one of the user with a text.");
  const resume = [{ interruptId: "x", status: "resolved" as const, payload: {} }];
  empty.addMessage(user("x"));
  const body = { threadId: "t", runId: "r", messages: [], tools: [], context: [], resume };
  expect(await (await post(JSON.stringify(body))).text()).toContain(
    "Nothing in this thread waits for an answer.",
  );
  const without = await serve(env, []);
  expect((await fetch(without.url, { method: "POST", body: "{}" })).status).toBe(404);
});

const CALLED = { toolCalls: [{ id: "x", type: "function", function: { name: "a", arguments: "{}" } }] };

const ODD: Record<string, object> = {
  "agno-agi/agno#5520: no id": { messages: [{ role: "user", content: "write it" }] },
  "odd messages before the last": {
    messages: [
      { id: "1", role: "assistant", content: null, ...CALLED },
      { id: "2", role: "tool", content: { a: 1 } },
      { id: "3", role: "data" },
      null,
      { id: "4", role: "user", content: "write it", name: null },
    ],
  },
  "fields that are null, or of another form where they are not read": {
    parentRunId: null,
    resume: null,
    forwardedProps: null,
    tools: [{ name: "a" }],
    context: [{ description: "d", value: { a: 1 } }],
  },
};

test("the last message is the task, whatever else is odd", async () => {
  const { env } = await writing();
  const { url } = await serve(env);
  for (const [what, odd] of Object.entries(ODD)) {
    const answer = await post(url, {
      ...INPUT,
      threadId: crypto.randomUUID(),
      messages: [user("write it")],
      ...odd,
    });
    expect([what, answer.status, await answer.text()]).toEqual([
      what,
      200,
      expect.stringContaining("I write."),
    ]);
  }
});

test("the same thread of another principal is another one", async () => {
  const { env, workspace } = await writing();
  const file = join(workspace, "..", "config.json");
  const tokens = ["one", "two"].map((name) => entry(`token-of-${name}`, name));
  writeFileSync(file, JSON.stringify({ http: { tokens, agUi: true } }));
  const served = await serve({ ...env, DEEPAGENT_CONFIG: file }, []);
  const as = (name: string) =>
    new HttpAgent({ url: served.url, threadId: "t", headers: { authorization: `Bearer token-of-${name}` } });
  const one = as("one");
  one.addMessage(user("write it"));
  const [interrupt] = (await run(one)).interrupts;
  const resume = [
    { interruptId: interrupt?.id ?? "", status: "resolved" as const, payload: { decision: "approve" } },
  ];
  const other = await post(served.url, { ...INPUT, resume }, { authorization: "Bearer token-of-two" });
  expect(await other.text()).toContain("Nothing in this thread waits for an answer.");
  expect((await post(served.url, INPUT)).status).toBe(401);
  expect(existsSync(join(workspace, "a.md"))).toBe(false);
});

const INPUT = { threadId: "t", runId: "r", messages: [], tools: [], context: [] };
const post = (url: string, body: object, headers: Record<string, string> = {}) =>
  fetch(url, {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "content-type": "application/json", ...headers },
  });
