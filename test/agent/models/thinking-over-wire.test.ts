import { ChatAnthropic, type ChatAnthropicInput } from "@langchain/anthropic";
import { toolStrategy } from "langchain";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { type WireReply, WIRE_KEY } from "../../support/wire-server.ts";
import { PROVIDERS, wireThread, type WireThread } from "../../support/wire-thread.ts";

const degrees = z.object({ degrees: z.number() });
const answer = (id: string): WireReply => ({
  thinking: "Cold.",
  toolCalls: [{ id, name: "structured_response", args: { degrees: -3 } }],
});
const ls = { thinking: "Hm.", toolCalls: [{ id: "l", name: "ls", args: {} }] };

/** A model that thinks may not be forced to call a tool. */
test.each<[string, ChatAnthropicInput["thinking"], WireReply[], number]>([
  ["at once", { type: "enabled", budget_tokens: 1024 }, [ls, answer("a")], 2],
  ["adaptively", { type: "adaptive" }, [ls, answer("a")], 2],
  [
    "when reminded",
    { type: "enabled", budget_tokens: 1024 },
    [ls, { thinking: "So.", text: "-3" }, answer("a")],
    3,
  ],
  [
    "when reminded thrice, once after an empty answer",
    { type: "enabled", budget_tokens: 1024 },
    [
      ls,
      { thinking: "So.", text: "-3" },
      { thinking: "Hm." },
      { thinking: "Well.", text: "Cold." },
      answer("a"),
    ],
    5,
  ],
  [
    "as text",
    { type: "enabled", budget_tokens: 1024 },
    [ls, { thinking: "So.", text: '```json\n{ "degrees": -3 }\n```' }],
    2,
  ],
])("a model that thinks answers in form: %s", async (_how, thinking = { type: "disabled" }, steps, calls) => {
  const options = { model: "claude-sonnet-4-5-20250929", apiKey: WIRE_KEY, maxTokens: 4096, maxRetries: 0 };
  const made: WireThread = await wireThread(PROVIDERS[0], [...steps, answer("b")], () => ({
    model: new ChatAnthropic({ ...options, anthropicApiUrl: made.server.url, thinking }),
    responseFormat: toolStrategy(degrees.meta({ title: "structured_response" })),
  }));
  onTestFinished(() => made.server.close());
  const events = await made.go();
  expect(made.server.refusals).toEqual([]);
  expect(events.at(-1)).toMatchObject({ kind: "finished", structured: { degrees: -3 } });
  expect(made.server.requests).toHaveLength(calls);
  const tokens = events.flatMap((event) => (event.kind === "model_called" ? [event.usage.outputTokens] : []));
  expect(tokens).toHaveLength(2);
  expect(tokens[1]).toBe((tokens[0] ?? 0) * (calls - 1));
  await made.goOn();
});

test("a model that thinks and never gives the structured answer fails the run", async () => {
  const text = { thinking: "So.", text: "It is cold." };
  const options = { model: "claude-sonnet-4-5-20250929", apiKey: WIRE_KEY, maxTokens: 4096, maxRetries: 0 };
  const made: WireThread = await wireThread(PROVIDERS[0], [text, text, text, text], () => ({
    model: new ChatAnthropic({
      ...options,
      anthropicApiUrl: made.server.url,
      thinking: { type: "enabled", budget_tokens: 1024 },
    }),
    responseFormat: degrees,
  }));
  onTestFinished(() => made.server.close());
  await expect(made.go()).rejects.toMatchObject({
    code: "no_structured_response",
    message: expect.stringContaining('It said: "It is cold."'),
  });
  expect(made.server.requests).toHaveLength(4);
  expect(made.server.refusals).toEqual([]);
});

// ggml-org/llama.cpp#27217: `required` is accepted and not enforced, and the model writes up to the limit.
test.each(PROVIDERS)("$protocol: a choice that is not kept is not forced again", async (protocol) => {
  const made: WireThread = await wireThread(
    protocol,
    [{ text: "Ha ha ha ha", truncated: true }, { text: '{"degrees": -3}' }],
    { responseFormat: toolStrategy(degrees.meta({ title: "structured_response" })) },
  );
  onTestFinished(() => made.server.close());
  const events = await made.go();
  expect(events.at(-1)).toMatchObject({ kind: "finished", structured: { degrees: -3 } });
  const forced = made.server.requests.map(({ body }) =>
    /any|required|ANY/.test(JSON.stringify(body["tool_choice"] ?? body["toolConfig"] ?? "")),
  );
  expect(forced).toEqual([true, false]);
});
