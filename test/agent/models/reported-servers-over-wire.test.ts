/** Servers as their users reported them in 2026: each run has to end with the answer. */
import { createServer } from "node:http";
import { MemorySaver } from "@langchain/langgraph";
import { expect, test } from "vitest";
import { buildAgent } from "../../../src/agent/agent.ts";
import { type NamedEntries, modelChoice } from "../../../src/agent/models/choose.ts";
import { resolveModel } from "../../../src/agent/models/resolve.ts";
import { addressOf } from "../../support/http-address.ts";
import { collect } from "../../support/run-agent.ts";
import { type Json, list, record } from "../../support/wire-server-protocol.ts";

interface Answer {
  status?: number;
  type?: string;
  text: string;
}

/** A server that answers each request by its body and its number, from 0. */
async function serverWith(answer: (body: Json, number: number) => Answer) {
  const requests: Json[] = [];
  const server = createServer((request, response) => {
    if (request.method !== "POST") return void response.writeHead(404).end();
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const body = record(JSON.parse(Buffer.concat(parts).toString("utf8")));
      requests.push(body);
      const { status = 200, type = "text/event-stream", text } = answer(body, requests.length - 1);
      response.writeHead(status, { "content-type": type }).end(text);
    });
  });
  return { url: await addressOf(server), requests };
}

const data = (event: unknown): string => `data: ${JSON.stringify(event)}\n\n`;
const chunk = (delta: Json, finish: string | null = null): string =>
  data({
    id: "c",
    object: "chat.completion.chunk",
    model: "m",
    choices: [{ index: 0, delta, finish_reason: finish }],
    usage: finish === null ? null : { prompt_tokens: 900, completion_tokens: 9, total_tokens: 909 },
  });
const says = (text: string): Answer => ({
  text: `${chunk({ role: "assistant", content: text })}${chunk({}, "stop")}data: [DONE]\n\n`,
});
const LS = { index: 0, id: "call_1", type: "function", function: { name: "ls", arguments: '{"path":"/"}' } };
const calls = (more: Json = {}): Answer => ({
  text: `${chunk({ role: "assistant", content: "", tool_calls: [LS], ...more })}${chunk({}, "tool_calls")}data: [DONE]\n\n`,
});
const json = (value: unknown, status = 400): Answer => ({
  status,
  type: "application/json",
  text: JSON.stringify(value),
});
const replies = (body: Json): Json[] => list(body["messages"]).filter(({ role }) => role === "assistant");
/** Calls a tool once, and ends with the answer. */
const usual = (body: Json): Answer => (replies(body).length > 0 ? says("FINISHED") : calls());

const event = (type: string, members: Json): string => `event: ${type}\n${data({ type, ...members })}`;
const block = (index: number, start: Json, ...deltas: Json[]): string =>
  [
    event("content_block_start", { index, content_block: start }),
    ...deltas.map((delta) => event("content_block_delta", { index, delta })),
    event("content_block_stop", { index }),
  ].join("");
const message = (blocks: string, stop: string): Answer => ({
  text: [
    event("message_start", {
      message: { id: "m", role: "assistant", content: [], model: "m", usage: { input_tokens: 900 } },
    }),
    blocks,
    event("message_delta", { delta: { stop_reason: stop }, usage: { output_tokens: 9 } }),
    event("message_stop", {}),
  ].join(""),
});
const TEXT = block(0, { type: "text", text: "" }, { type: "text_delta", text: "FINISHED" });
const USE = { type: "tool_use", id: "toolu_1", name: "ls", input: {} };
const ARGS = { type: "input_json_delta", partial_json: '{"path":"/"}' };
const THINKING = block(
  0,
  { type: "thinking", thinking: "" },
  { type: "thinking_delta", thinking: "hm" },
  { type: "signature_delta", signature: "c2lnbmVk" },
);
const blocksOf = (body: Json): Json[] => list(body["messages"]).flatMap(({ content }) => list(content));

interface Row {
  what: string;
  source: string;
  wire?: "anthropic";
  model?: string;
  entry?: NamedEntries[string];
  answer: (body: Json, number: number) => Answer;
  /** Requests of the run. Default: 2 and one that is refused. */
  requests?: number;
}

const ROWS: Row[] = [
  {
    what: "names the refused parameter beside its words only",
    source: "FastAPI servers, such as NVIDIA NIM and vLLM",
    answer: (body) =>
      "stream_options" in body
        ? json(
            {
              detail: [
                {
                  type: "extra_forbidden",
                  loc: ["body", "stream_options"],
                  msg: "Extra inputs are not permitted",
                },
              ],
            },
            422,
          )
        : usual(body),
  },
  {
    what: "names the refused parameter in `param`",
    source: "gateways with OpenAI's errors",
    answer: (body) =>
      "stream_options" in body
        ? json({ error: { message: "Unsupported parameter.", param: "stream_options" } })
        : usual(body),
  },
  {
    what: "refuses a parameter inside a stream that it began",
    source: "Yeachan-Heo/gajae-code#3673, OpenRouter",
    answer: (body) =>
      "stream_options" in body
        ? {
            text: data({
              error: {
                message: "Unknown parameter: stream_options",
                type: "invalid_request_error",
                code: 400,
              },
            }),
          }
        : usual(body),
  },
  {
    what: "refuses a parameter in a stream after an empty piece",
    source: "OpenRouter",
    answer: (body) =>
      "stream_options" in body
        ? {
            text: `${chunk({ role: "assistant", content: "" })}${data({ error: { message: "stream_options is not supported", code: 400 } })}`,
          }
        : usual(body),
  },
  {
    what: "writes a refusal as a line of JSON into the stream",
    source: "googleapis/js-genai#1973, new-api",
    answer: (body) =>
      "stream_options" in body
        ? { text: '{"error":{"message":"Unknown parameter: stream_options","code":400}}\n' }
        : usual(body),
  },
  {
    what: "sends its stream as plain text",
    source: "proxies in front of llama.cpp",
    answer: (body) => ({ ...usual(body), type: "text/plain; charset=utf-8" }),
    requests: 2,
  },
  {
    what: "wants a text beside calls, whatever it is",
    source: "anomalyco/opencode#46577, Kimi",
    answer: (body) =>
      replies(body).some(({ content }) => typeof content !== "string" || content === "")
        ? json({ error: { message: "the message at position 2 with role 'assistant' must not be empty" } })
        : usual(body),
    requests: 5,
  },
  {
    what: "takes no reasoning back, and says so without an error object",
    source: "CherryHQ/cherry-studio#16790",
    model: "house",
    entry: { request: { thoughts: { field: "reasoning_content", on: "all" } } },
    answer: (body) => {
      if (replies(body).some((reply) => "reasoning_content" in reply))
        return json({
          message:
            "messages.2.assistant.reasoning_content: property 'messages.2.assistant.reasoning_content' is unsupported",
          type: "invalid_request_error",
          param: "validation_error",
          code: "wrong_api_format",
        });
      return replies(body).length > 0 ? says("FINISHED") : calls({ reasoning_content: "hm" });
    },
    requests: 3,
  },
  {
    what: "is a gateway that keeps the words of its provider deep inside",
    source: "ding113/claude-code-hub#518",
    wire: "anthropic",
    answer: (body) => {
      if (blocksOf(body).some(({ type }) => type === "thinking"))
        return json({
          type: "error",
          error: {
            type: "request_fail",
            upstream_error: {
              type: "error",
              error: {
                type: "invalid_request_error",
                message: "messages.1.content.0: Invalid `signature` in `thinking` block",
              },
            },
          },
        });
      return blocksOf(body).some(({ type }) => type === "tool_result")
        ? message(TEXT, "end_turn")
        : message(THINKING + block(1, USE, ARGS), "tool_use");
    },
    requests: 3,
  },
  {
    what: "is a gateway that keeps the words of its provider as JSON in a text",
    source: "lbjlaq/Antigravity-Manager#498",
    wire: "anthropic",
    answer: (body) => {
      if (blocksOf(body).some(({ type }) => type === "thinking"))
        return json({
          error: {
            code: 400,
            message: JSON.stringify({
              type: "error",
              error: {
                type: "invalid_request_error",
                message: "messages.1.content.0: Invalid `signature` in `thinking` block",
              },
            }),
            status: "INVALID_ARGUMENT",
          },
        });
      return blocksOf(body).some(({ type }) => type === "tool_result")
        ? message(TEXT, "end_turn")
        : message(THINKING + block(1, USE, ARGS), "tool_use");
    },
    requests: 3,
  },
  {
    what: "thinks unless that is switched off, and then wants the thoughts of all replies",
    source: "ranxianglei/billion-context#146, DeepSeek",
    wire: "anthropic",
    answer: (body) => {
      const isThinking = record(body["thinking"])["type"] !== "disabled";
      if (isThinking && blocksOf(body).some(({ type }) => type === "tool_use"))
        return json({
          error: {
            type: "invalid_request_error",
            message: "The `content[].thinking` in the thinking mode must be passed back to the API.",
          },
        });
      return blocksOf(body).some(({ type }) => type === "tool_result")
        ? message(TEXT, "end_turn")
        : message(block(0, USE, ARGS), "tool_use");
    },
    requests: 3,
  },
  {
    what: "cannot read calls unless it is started with certain options",
    source: "vllm-project/vllm",
    answer: (body) => {
      if (list(body["tools"]).length > 0 && body["tool_choice"] !== "none")
        return json({
          object: "error",
          message: '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
          type: "BadRequestError",
          code: 400,
        });
      const text = '<tool_call>\n{"name": "ls", "arguments": {"path": "/"}}\n</tool_call>';
      return says(replies(body).length > 0 ? "FINISHED" : text);
    },
  },
  {
    what: "begins a line of the stream with a byte order mark, and ends lines with CR and LF",
    source: "IIS and .NET gateways",
    answer: (body) => {
      const { text } = usual(body);
      return { text: `\ufeff${text.replaceAll("\n", "\r\n")}` };
    },
    requests: 2,
  },
  {
    what: "repeats the whole call in a last piece",
    source: "XiaomiMiMo/MiMo-Code#578, oMLX",
    answer: (body) =>
      replies(body).length > 0
        ? says("FINISHED")
        : {
            text: [
              chunk({ role: "assistant", content: "<eos>", tool_calls: [LS] }),
              chunk({ tool_calls: [LS] }, "stop"),
              "data: [DONE]\n\n",
            ].join(""),
          },
    requests: 2,
  },
];

test.each(ROWS)("a server that $what ($source)", async (row) => {
  const { wire = "openai", model: name = "house", entry, answer, requests: count = 3 } = row;
  const { url, requests } = await serverWith(answer);
  const baseUrl = wire === "openai" ? `${url}/v1` : url;
  const models = { own: { provider: wire, model: name, baseUrl, ...entry } };
  const { model } = await resolveModel({ model: "own", env: {}, models });
  const agent = buildAgent({ model, checkpointer: new MemorySaver() });
  const events = await collect(agent, { kind: "task", task: "go" });
  expect(events.at(-1)).toMatchObject({ kind: "finished", answer: "FINISHED" });
  expect(requests).toHaveLength(count);
});

test("a service that only a row of the table describes is asked at its address with its key", async () => {
  const { url, requests } = await serverWith(usual);
  const env = { UPSTAGE_API_KEY: "up_0123456789", UPSTAGE_BASE_URL: `${url}/v1` };
  const { model, name } = await resolveModel({ model: "upstage:solar-pro3", env });
  const agent = buildAgent({ model, checkpointer: new MemorySaver() });
  const events = await collect(agent, { kind: "task", task: "go" });
  expect(events.at(-1)).toMatchObject({ kind: "finished", answer: "FINISHED" });
  expect([name, requests[0]?.["model"]]).toEqual(["upstage:solar-pro3", "solar-pro3"]);
  expect(modelChoice({ model: "upstage:solar-pro3", env: {} })).toMatchObject({
    ok: false,
    keys: ["UPSTAGE_API_KEY"],
  });
});
