import { expect, test } from "vitest";
import type { WireReply, WireRequest } from "../../support/wire-server.ts";
import { PROVIDERS, type Step, wireThread } from "../../support/wire-thread.ts";

const [anthropic, chat, responses] = PROVIDERS;
const lastText = ({ messages }: WireRequest): string => messages.at(-1)?.text ?? "";
const write =
  '<tool_call>{"name": "write_file", "arguments": {"file_path": "/a.md", "content": "a"}}</tool_call>';
const done = { kind: "finished", answer: "Done" };

/** The end of a run whose model answers with these steps, the requests, and the texts that were told meanwhile. */
async function run(steps: readonly Step[], provider: (typeof PROVIDERS)[number] = chat) {
  const said: string[] = [];
  const { go, goOn, server, agent } = await wireThread(provider, steps);
  const last = (await go({ say: (text) => void said.push(text) })).at(-1);
  const { files } = await agent().snapshot("t1");
  return { said, last, requests: server.requests, files: Object.keys(files), goOn };
}

test.each([
  ["Hermes", chat, write],
  ["Hermes", anthropic, write],
  ["Hermes", responses, write],
  [
    "Qwen3-Coder",
    chat,
    "<function=write_file><parameter=file_path>\n/a.md\n</parameter><parameter=content>\na\n</parameter></function>",
  ],
  [
    "GLM",
    chat,
    "<tool_call>write_file<arg_key>file_path</arg_key><arg_value>/a.md</arg_value><arg_key>content</arg_key><arg_value>a</arg_value></tool_call>",
  ],
  ["bare JSON", chat, '{"name": "write_file", "parameters": {"file_path": "/a.md", "content": "a"}}'],
  ["Gemma", chat, '```tool_code\nprint(write_file(file_path="/a.md", content="a"))\n```'],
])("a call as text of %s is made, and is not shown", async (_, provider, markup) => {
  const { files, last, requests, said, goOn } = await run(
    [{ text: `I write.\n\n${markup}`, pieceLength: 3 }, { text: "Done" }],
    provider,
  );
  expect(last).toEqual(done);
  expect(files).toEqual(["/a.md"]);
  const [, second] = requests;
  expect(second?.messages.at(-2)).toMatchObject({
    role: "assistant",
    text: "I write.",
    toolCalls: [{ name: "write_file", args: { file_path: "/a.md", content: "a" } }],
  });
  const texts = ["I write.", "Done"];
  expect(said.filter((text) => !texts.some((whole) => whole.startsWith(text.trim())))).toEqual([]);
  await goOn();
});

test("values of tagged parameters take the form of the tool's schema", async () => {
  const read =
    "<function=read_file><parameter=file_path>/a.md</parameter><parameter=limit>1</parameter></function>";
  const { last, requests } = await run([{ text: write }, { text: read }, { text: "Done" }]);
  expect(last).toEqual(done);
  const [result] = requests.at(-1)?.messages.at(-1)?.toolResults ?? [];
  expect(result?.text).toContain("a");
  expect(result?.text).not.toMatch(/^Error/);
});

test.each([
  "<think>hm</think>\n\nDone",
  "hm\n</think>\n\nDone",
  "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Done",
])("thoughts as text are not in the answer: %j", async (text) => {
  const { last, said, requests, goOn } = await run([{ text, pieceLength: 3 }]);
  expect(last).toEqual(done);
  expect(said.at(-1)).toBe("Done");
  await goOn();
  const sent = requests.at(-1)?.messages.map((message) => message.text);
  expect(sent).toContain("Done");
  expect(sent?.filter((one) => one.includes("hm\n") || one.includes("hm<"))).toEqual([]);
});

test("thoughts before a real call leave the text", async () => {
  const calls = [{ name: "ls", args: { path: "/" } }];
  const { last, requests } = await run([
    { text: "<think>hm</think>I look.", toolCalls: calls },
    { text: "Done" },
  ]);
  expect(last).toEqual(done);
  expect(requests[1]?.messages.at(-2)).toMatchObject({ text: "I look.", toolCalls: calls });
});

test.each<[string, WireReply, RegExp]>([
  [
    "cut",
    { text: `Now.\n${write.slice(0, 60)}`, truncated: true },
    /^Your tool call was incomplete.*output tokens/,
  ],
  [
    "unreadable",
    { text: '<tool_call>{"name": "ls", "arguments": {path}}</tool_call>' },
    /^Your tool call was incomplete/,
  ],
  [
    "announced",
    { text: "I will now list.", finishReason: "tool_calls" },
    /^Your reply announced a tool call/,
  ],
])("a call that is %s is asked for again", async (_, reply, prompt) => {
  const { last, requests, files } = await run([reply, { text: write }, { text: "Done" }]);
  expect(last).toEqual(done);
  expect(lastText(requests[1]!)).toMatch(prompt);
  expect(files).toEqual(["/a.md"]);
});

test("a call that stays incomplete is not the answer", async () => {
  const broken = "<tool_call>{path}</tool_call>";
  await expect(run([{ text: broken }, { text: broken }])).rejects.toMatchObject({ code: "no_answer" });
  const { last, requests } = await run([{ text: broken }, { text: `That is all.\n${broken}` }]);
  expect(last).toEqual({ kind: "finished", answer: "That is all." });
  expect(requests).toHaveLength(2);
});

test("a malformed call is asked for again, twice", async () => {
  const malformed = { finishReason: "MALFORMED_FUNCTION_CALL" };
  const { last, requests } = await run([malformed, malformed, { text: "Done" }]);
  expect(last).toEqual(done);
  expect(lastText(requests[2]!)).toMatch(/^Your tool call was malformed/);
  await expect(run([malformed, malformed, malformed])).rejects.toMatchObject({ code: "no_answer" });
});

test("a text that names tools in code is the answer", async () => {
  const text = `It writes\n\`\`\`\n${write}\n\`\`\``;
  expect((await run([{ text }])).last).toEqual({ kind: "finished", answer: text });
});

const refused = (failed_generation: string): WireReply => ({
  status: 400,
  message: "Failed to call a function. Please adjust your prompt.",
  code: "tool_use_failed",
  details: { failed_generation },
});

test("a call that its provider could not read is read, or asked for again at once", async () => {
  const call = '<function=write_file{"file_path": "/a.md", "content": "a"}</function>';
  const read = await run([refused(call), { text: "Done" }]);
  expect(read).toMatchObject({ last: done, files: ["/a.md"] });
  expect(read.requests).toHaveLength(2);
  const asked = await run([refused("<function=ls{"), refused(""), { text: "Done" }]);
  expect(asked.last).toEqual(done);
  expect(asked.requests).toHaveLength(3);
  await expect(run([refused(""), refused(""), refused("")])).rejects.toMatchObject({
    code: "model_stream_broken",
  });
});
