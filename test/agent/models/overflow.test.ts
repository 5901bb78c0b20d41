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
