/**
 * Models for clients of other projects. The client's model speaks the protocols of the providers, and delegates one task
 * to our tools; the agent's model, below `/agent`, does it.
 */
import { createServer } from "node:http";
import { loadSources } from "../../../scripts/sources.mjs";

const LINE = "x".repeat(62);
const count = (length) =>
  Array.from({ length }, (_, index) => `L${String(index + 1).padStart(4, "0")} ${LINE}`);
export const ANSWER = count(870).join("\n");
export const FILE = `${count(1000).join("\n")}\n`;

/**
 * The task of each run, and what the agent's model does: `call`, one call and then `text`, or an error. `file`: the
 * client's model reads a file.
 */
export const SCENARIOS = {
  approval: {
    task: "List every TODO and write a report.",
    call: { name: "write_file", args: { file_path: "/workspace/deepagent-report.md", content: "No TODO." } },
    text: "The report is in /workspace/deepagent-report.md.",
  },
  answer: { task: "Count at length.", text: ANSWER },
  file: { file: "/workspace/long.txt" },
  failure: { task: "Fail.", error: "The model refuses this request." },
  question: {
    task: "Ask which colour.",
    call: { name: "ask_user", args: { question: "Which colour should it have?" } },
    text: "It gets the colour that was chosen.",
  },
};
/** After this many results of our tools the model gives up. */
const MAX_RESULTS = 40;

const { anthropic, openaiChat, openaiResponses } = await loadSources(
  ["anthropic", "openai", "responses"]
    .map((name) => `export * from "./test/support/wire-server-${name}.ts";`)
    .join("\n"),
);

/** The part of Google's protocol that Gemini CLI needs. */
const gemini = {
  read: ({ contents = [], tools = [] }, number) => ({
    number,
    tools: tools.flatMap(({ functionDeclarations = [] }) => functionDeclarations.map(({ name }) => name)),
    messages: contents.map(({ parts = [] }) => ({
      toolCalls: parts.flatMap(({ functionCall }) => functionCall ?? []),
      toolResults: parts
        .filter(({ functionResponse }) => functionResponse)
        .map(({ functionResponse }) => ({ text: JSON.stringify(functionResponse.response) })),
    })),
  }),
  body: (_request, { text, toolCalls = [] }) => {
    const parts = [...(text ? [{ text }] : []), ...toolCalls.map((functionCall) => ({ functionCall }))];
    return {
      candidates: [{ content: { role: "model", parts }, finishReason: "STOP", index: 0 }],
      usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
    };
  },
  events: (request, answer) => [`data: ${JSON.stringify(gemini.body(request, answer))}\n\n`],
};

const PROTOCOLS = [
  [/\/v1\/messages$/, anthropic],
  [/\/chat\/completions$/, openaiChat],
  [/\/responses$/, openaiResponses],
  [/:(streamG|g)enerateContent$/, gemini],
];

/** Carries a scenario out with our tools, and says how it ended. A client may have to be asked for the tools first. */
export function decide({ task, file }, { tools, messages }) {
  const calls = messages.flatMap(({ toolCalls }) => toolCalls.map(({ name }) => name));
  const results = messages.flatMap(({ toolResults }) => toolResults.map(({ text }) => text));
  const call = (name, args) => ({ toolCalls: [{ name, args }] });
  const search = tools.find((name) => /^tool_?search$/i.test(name));
  // Some clients let a tool be called that they found, and list it nowhere.
  const named = (end) => tools.find((name) => name.endsWith(end)) ?? (search && `mcp__deepagent__${end}`);
  const first = file === undefined ? "run_deep_agent" : "read_agent_file";
  const tool = named(first);
  if (tool === undefined) return { text: "ok" };
  if (!tools.includes(tool) && !calls.includes(search)) return call(search, { query: first, max_results: 5 });
  const args = file === undefined ? { task } : { path: file };
  if (!calls.some((name) => name.endsWith(first))) return call(tool, args);
  const last = results.at(-1) ?? "";
  if (results.length > MAX_RESULTS) return { text: `Gave up: ${last.slice(0, 300)}` };
  if (file !== undefined) {
    const offset = /continue with offset=(\d+)/.exec(last)?.[1];
    return offset === undefined
      ? { text: "Read the file." }
      : call(tool, { ...args, offset: Number(offset) });
  }
  const all = results.join("\n");
  const id = /run_[\w-]{20,}/.exec(all)?.[0];
  if (id === undefined) return { text: `Gave up: ${last.slice(0, 300)}` };
  const offset = /call check_deep_agent with run_id \S+ and offset (\d+)/.exec(last)?.[1];
  const ended = /run_[\w-]{20,} (completed|failed|cancelled)/.exec(all);
  if (ended !== null && offset === undefined) return { text: ended[0] };
  const after = Number(/\bafter: (\d+)/.exec(last)?.[1] ?? 0);
  return call(named("check_deep_agent"), {
    run_id: id,
    ...(offset === undefined ? { after } : { offset: Number(offset) }),
  });
}

/** The reply of the agent's model. */
function work({ call, text, error }, { messages }) {
  if (error !== undefined) return undefined;
  const isDone = call === undefined || messages.some(({ toolResults }) => toolResults.length > 0);
  return isDone ? { text } : { toolCalls: [call] };
}

/**
 * Serves both models on this machine. `begin` starts a scenario; `seen` has the results of our tools in the form that the
 * client gives its model.
 */
export async function startModel() {
  const seen = [];
  // Also answers whoever checks the model.
  let scenario = { text: "ok" };
  let number = 0;
  const answer = async (incoming, response) => {
    const path = incoming.url.split("?")[0];
    const chunks = await incoming.toArray();
    const [, protocol] = PROTOCOLS.find(([pattern]) => pattern.test(path)) ?? [];
    const refuse = (status, message) =>
      response
        .writeHead(status, { "content-type": "application/json" })
        .end(JSON.stringify({ error: { message, type: "invalid_request_error" } }));
    if (protocol === undefined || incoming.method !== "POST") return refuse(404, "not found");
    const body = JSON.parse(Buffer.concat(chunks).toString());
    const request = protocol.read(body, number++);
    const isAgent = path.startsWith("/agent/");
    // Codex groups the tools of a server.
    const grouped = (body.tools ?? [])
      .filter(({ type }) => type === "namespace")
      .flatMap((group) => group.tools.map(({ name }) => ({ name, namespace: group.name })));
    const tools = [...request.tools, ...grouped.map(({ name }) => name)];
    const reply = isAgent ? work(scenario, request) : decide(scenario, { ...request, tools });
    if (reply === undefined) return refuse(400, scenario.error);
    const last = request.messages.flatMap(({ toolResults }) => toolResults).at(-1);
    // A client may send the same request again.
    if (!isAgent && last !== undefined && last.text !== seen.at(-1)) seen.push(last.text);
    const streams = request.stream ?? path.includes("stream");
    let out = streams
      ? protocol.events(request, reply).join("")
      : JSON.stringify(protocol.body(request, reply));
    for (const { name, namespace } of grouped)
      out = out.replaceAll(`"name":"${name}"`, `"name":"${name}","namespace":"${namespace}"`);
    response.writeHead(200, { "content-type": streams ? "text/event-stream" : "application/json" }).end(out);
  };
  const server = createServer((incoming, response) => void answer(incoming, response));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${server.address().port}`;
  const begin = (name) => {
    scenario = SCENARIOS[name];
    seen.length = 0;
  };
  return { url, seen, begin, close: () => server.close() };
}
