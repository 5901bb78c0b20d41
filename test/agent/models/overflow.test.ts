import { expect, it } from "vitest";
import { failureFacts, fittingPart } from "../../../src/agent/models/failure.ts";

it.each<[string, number | undefined]>([
  ["prompt is too long: 250000 tokens > 200000 maximum", 0.8],
  [
    "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length",
    18 / 19,
  ],
  [
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 160000 tokens.",
    0.8,
  ],
  ["This model's maximum prompt length is 131072 but the request contains 262144 tokens.", 0.5],
  ["The input token count (1310720) exceeds the maximum number of tokens allowed (1048576).", 0.8],
  ["prompt token count of 160,000 exceeds the limit of 128,000", 0.8],
  ["request (5,000 tokens) exceeds the available context size (4,000 tokens), try increasing it", 0.8],
  ["The decoder prompt (length 40000) is longer than the maximum model length of 32000.", 0.8],
  ["You passed 40000 input tokens. However, the model's context length is only 32000 tokens", 0.8],
  ["Your request exceeded model token limit: 8000 (requested: 10000)", 0.8],
  [
    "Prompt contains 50000 tokens and 0 draft tokens, too large for model with 40000 maximum context length",
    0.8,
  ],
  ["`inputs` tokens + `max_new_tokens` must be <= 8000. Given: 10000 `inputs` tokens and 5 others", 0.8],
  ["Please reduce the length of the messages. Current length is 50000 while limit is 40000", 0.8],
  ["The prompt is too long: 125000, model maximum context length: 100000", 0.8],
  ["the number of input tokens 10000 cannot exceed the total tokens limit 8000 for this model", 0.8],
  ["length of prompt_tokens (10000) must be less than max_seq_len (8000).", 0.8],
  ["Prompt has 10,000 tokens, but the configured context size is 8,000 tokens", 0.8],
  ["Input too long: 250000 input tokens, limit is 200000", 0.8],
  ["maximum context length is 80000 tokens. However, you requested about 100000 tokens", 0.8],
  ["Too many input tokens. Max input tokens: 8000, request input token count: 10000", 0.8],
  ["the input token count is 40000 but model only supports up to 32000.", 0.8],
  ["prompt too long; exceeded max context length by 812 tokens", undefined],
  ["Range of input length should be [1, 129024]", undefined],
  ["Your input exceeds the context window of this model.", undefined],
  ["This model's maximum context length is 128000 tokens.", undefined],
  ["input is too long for the requested model: 10 tokens > 20 maximum", undefined],
])("a request that is too long is known by '%s', and what of it would have fitted", (message, part) => {
  const error = Object.assign(new Error(message), { status: 400 });
  expect(failureFacts(error).reason).toBe("context_overflow");
  const told = fittingPart(error);
  if (part === undefined) expect(told).toBeUndefined();
  else expect(told).toBeCloseTo(part);
});
