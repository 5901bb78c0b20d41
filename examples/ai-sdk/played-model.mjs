import { MockLanguageModelV4 } from "ai/test";

const USAGE = {
  inputTokens: { total: 0, noCache: 0, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 0, text: 0, reasoning: 0 },
};

/** A model that answers what `reply` says to a prompt, so that the example runs without a key and checks itself. */
export const playedModel = (reply) =>
  new MockLanguageModelV4({
    doGenerate: async ({ prompt }) => {
      const { text, tool, input } = reply(prompt);
      const call = { toolCallId: `call_${prompt.length}`, toolName: tool, input: JSON.stringify(input) };
      return {
        content: [tool === undefined ? { type: "text", text } : { type: "tool-call", ...call }],
        finishReason: { unified: tool === undefined ? "stop" : "tool-calls", raw: undefined },
        usage: USAGE,
        warnings: [],
      };
    },
  });

/** Texts of the results of tools that the model has been shown. */
export const resultsIn = (prompt) =>
  prompt
    .flatMap(({ role, content }) => (role === "tool" ? content : []))
    .map(({ output }) => output.value[0].text);
