/** A model for clients of other projects: it speaks the protocols of the providers, and delegates one task to our tools. */
import { createServer } from "node:http";
import { loadSources } from "../../../scripts/sources.mjs";

export const TASK = "List every TODO and write a report.";
/** After this many results of our tools the model gives up. */
const MAX_RESULTS = 12;

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

/** Starts a run, checks it until it has ended, and says how. A client may have to be asked for the tools first. */
function decide({ tools, messages }) {
  const calls = messages.flatMap(({ toolCalls }) => toolCalls.map(({ name }) => name));
  const results = messages.flatMap(({ toolResults }) => toolResults.map(({ text }) => text));
  const call = (name, args) => ({ toolCalls: [{ name, args }] });
  const search = tools.find((name) => /^tool_?search$/i.test(name));
  // Some clients let a tool be called that they found, and list it nowhere.
  const named = (end) => tools.find((name) => name.endsWith(end)) ?? (search && `mcp__deepagent__${end}`);
  const run = named("run_deep_agent");
  if (run === undefined) return { text: "ok" };
  if (!tools.includes(run) && !calls.includes(search))
    return call(search, { query: "run_deep_agent", max_results: 5 });
  if (!calls.some((name) => name.endsWith("run_deep_agent"))) return call(run, { task: TASK });
  const last = results.at(-1) ?? "";
  const ended = /run_[\w-]{20,} (completed|failed|cancelled)/.exec(last);
  if (ended !== null) return { text: ended[0] };
  const id = /run_[\w-]{20,}/.exec(results.join("\n"))?.[0];
  if (id === undefined || results.length > MAX_RESULTS) return { text: `Gave up: ${last}` };
  return call(named("check_deep_agent"), {
    run_id: id,
    after: Number(/\bafter: (\d+)/.exec(last)?.[1] ?? 0),
  });
}

/** Serves the model on this machine. `seen` has the results of our tools in the form that the client gives its model. */
export async function startModel() {
  const seen = [];
  let number = 0;
  const answer = async (incoming, response) => {
    const path = incoming.url.split("?")[0];
    const chunks = await incoming.toArray();
    const [, protocol] = PROTOCOLS.find(([pattern]) => pattern.test(path)) ?? [];
    if (protocol === undefined || incoming.method !== "POST") {
      response.writeHead(404, { "content-type": "application/json" }).end("{}");
      return;
    }
    const body = JSON.parse(Buffer.concat(chunks).toString());
    const request = protocol.read(body, number++);
    // Codex groups the tools of a server.
    const grouped = (body.tools ?? [])
      .filter(({ type }) => type === "namespace")
      .flatMap((group) => group.tools.map(({ name }) => ({ name, namespace: group.name })));
    const reply = decide({ ...request, tools: [...request.tools, ...grouped.map(({ name }) => name)] });
    const last = request.messages.flatMap(({ toolResults }) => toolResults).at(-1);
    if (last !== undefined) seen.push(last.text);
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
  return { url: `http://127.0.0.1:${server.address().port}`, seen, close: () => server.close() };
}
