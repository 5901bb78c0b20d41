import { describe, expect, test } from "vitest";
import { failureFacts, modelFailure } from "../../../src/agent/models/failure.ts";
import words from "../../../src/agent/models/profiles/words.json" with { type: "json" };
import { mediaRefusal } from "../../../src/agent/models/media-limits.ts";
import type { RefusalKind } from "../../../src/agent/models/provider-words.ts";

/** An error as the packages of OpenAI and Anthropic make it. */
const refused = (status: number | undefined, message: string, members: object = {}): Error =>
  Object.assign(new Error(message), { status, error: { message, ...members } });

type Case = readonly [status: number, message: string, members?: object];

const CASES: Readonly<Record<RefusalKind, readonly Case[]>> = {
  overflow: [
    [400, "prompt is too long: 250000 tokens > 200000 maximum"],
    [400, "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"],
    [400, "This model's maximum context length is 4096 tokens, however you requested 5000 tokens"],
    [400, "request (8021 tokens) exceeds the available context size (4096 tokens), try increasing it"],
    [500, "Context size has been exceeded."],
    [400, "You passed 40000 input tokens. However, the model's context length is only 32768 tokens"],
    [400, "max_tokens must be at least 1, got -7121."],
    [400, "The prompt (total length 40163) is too long to fit into the model (context length 32768)."],
    [400, "Input length (40000 tokens) exceeds the maximum allowed length (32762 tokens)."],
    [
      400,
      "Unable to submit request because the input token count is 40000 but model only supports up to 32768.",
    ],
    [400, "Input Tokens Exceeded: Number of input tokens exceeds maximum length."],
    [
      413,
      "Request body too large for gpt-4o model. Max size: 8000 tokens.",
      { code: "tokens_limit_reached" },
    ],
    [400, "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4098."],
    [422, "`inputs` must have less than 1024 tokens. Given: 2000"],
    [400, "Range of input length should be [1, 129024]"],
    [400, "the prompt is longer than the context length currently available to the model"],
    [400, "prompt too long; exceeded max context length by 40 tokens"],
    [400, "Prompt has 70,000 tokens, but the configured context size is 65,536 tokens"],
    [400, "length of prompt_tokens (99000) must be less than max_seq_len (65536)."],
    [400, "The number of tokens to keep from the initial prompt is greater than the context length"],
    [400, "the number of input tokens 9000 cannot exceed the total tokens limit 8192 for this model"],
    [400, "Input too long: 210000 input tokens, limit is 200000"],
    [400, "string too long. Expected a string with maximum length 10485760, but got one with 12000000."],
    [400, "Prompt too big", { code: "1261" }],
    [400, "litellm.ContextWindowExceededError: litellm.BadRequestError"],
    [413, "Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 21000"],
    [413, "status code (no body)"],
    [400, "Provider returned error", { metadata: { raw: '{"message":"prompt is too long"}' } }],
    [400, "输入长度超过限制"],
  ],
  quota: [
    [429, "You exceeded your current quota, please check your plan and billing details."],
    [400, "Your credit balance is too low to access the API."],
    [400, "You have reached your specified API usage limits. You will regain access on 2027-02-01."],
    [429, "Extra usage is required for long context requests.", { type: "rate_limit_error" }],
    [402, "Anything at all"],
    [429, "Not enough money", { code: "billing_hard_limit_reached" }],
    [429, "Insufficient balance or no resource package. Please recharge.", { code: "1113" }],
    [429, "Usage limit reached for 5 hour. Your limit will reset at 2027-08-01 12:00:00", { code: "1308" }],
    [429, "Your account is suspended", { type: "exceeded_current_quota_error" }],
    [400, "Access denied, please make sure your account is in good standing.", { code: "Arrearage" }],
    [403, "The free tier of the model has been exhausted.", { code: "AllocationQuota.FreeTierOnly" }],
    [403, "Your team has used all available credits or reached its monthly spending limit."],
    [403, "Sorry, your account balance is insufficient", { code: 30001 }],
    [403, "Your newly created team doesn't have any credits or licenses yet."],
    [412, "Account is suspended, possibly due to reaching the monthly spending limit."],
    [400, "Budget has been exceeded! Current cost: 10.0, Max budget: 10.0"],
    [403, "用户额度不足", { code: "insufficient_user_quota" }],
    [429, "Quota exceeded for metric: free_tier_requests, limit: 0\nPlease retry in 34.07s."],
    [429, "Please retry in 34s.", { details: [{ violations: [{ quotaId: "RequestsPerDayPerProject" }] }] }],
  ],
  rate: [
    [429, "You exceeded your current quota. Metric: free_tier_requests, limit: 10\nPlease retry in 34.07s."],
    [429, "Request too large for gpt-5 on tokens per min (TPM): Limit 30000, Requested 41000."],
    [429, "Requests rate limit exceeded, please try again later.", { code: "limit_requests" }],
    [429, "Too many tokens, please wait before trying again.", { code: "ThrottlingException" }],
    [403, "You have exceeded a secondary rate limit. Please wait a few minutes."],
    [429, "No deployments available for selected model, Try again in 5 seconds."],
    [400, "rate limit", { code: "base_resp_1002" }],
    [429, "Slow down", { status: "RESOURCE_EXHAUSTED" }],
  ],
  busy: [
    [529, "Overloaded", { type: "overloaded_error" }],
    [503, "The model is overloaded. Please try again later.", { status: "UNAVAILABLE" }],
    [424, "Model is not ready for inference. Wait and try your request again."],
    [429, "Capacity temporarily exceeded, please try again."],
    [429, "We're experiencing high traffic right now! Please try again soon."],
    [500, "server cluster under high load (2064)"],
    [503, "Model x is currently loading"],
    [400, "Server overloaded, please try again later"],
  ],
  fault: [
    [500, "Something went wrong", { type: "api_error" }],
    [400, "unknown error, 794", { code: "base_resp_1000" }],
    [500, "We had a problem", { code: "server_error" }],
  ],
  call: [
    [400, "Failed to call a function. See 'failed_generation'.", { code: "tool_use_failed" }],
    [400, "Parsing failed. The model generated output that could not be parsed."],
    [500, `error parsing tool call: raw='{"path": "a' , err=unexpected end of JSON input`],
    [500, "Failed to parse input at pos 240: <tool_call>"],
  ],
  media: [
    [400, "Could not process image"],
    [404, "No endpoints found that support image input"],
    [500, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"],
    [500, "this model is missing data required for image input"],
    [500, "Failed to process inputs: image: unknown format"],
    [500, "unsupported content[].type"],
    [400, "Model only support text input"],
    [400, "messages.content.type is invalid, allowed values: ['text']"],
    [400, "Qwen3-Coder is not a multimodal model"],
    [400, "At most 0 image(s) may be provided in one request."],
    [400, "Multimodal input is not supported for this model"],
    [400, "unknown variant `image_url`, expected `text`"],
    [400, "missing required Copilot-Vision-Request header for vision requests"],
    [413, "image exceeds 5 MB maximum: 6000000 bytes > 5242880 bytes"],
  ],
  unsupported: [
    [404, "No endpoints found that support tool use."],
    [404, "No endpoints found that support the provided 'tool_choice' value."],
    [404, "No endpoints found matching your data policy."],
    [404, "This model is only supported in v1/responses and not in v1/chat/completions."],
    [400, "registry.ollama.ai/library/gemma:2b does not support tools"],
    [400, `"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set`],
    [500, "tools param requires --jinja flag"],
    [500, "failed to parse grammar"],
    [400, "Thinking mode does not support this tool_choice"],
    [400, "Function calling is not enabled for this model"],
    [400, "Unsupported parameter: 'max_tokens' is not supported with this model."],
    [500, "model requires more system memory (10.0 GiB) than is available (7.0 GiB)"],
  ],
  model: [
    [404, "The model `x` does not exist."],
    [400, "x/y is not a valid model ID"],
    [400, "Model Not Exist"],
    [400, "Unknown Model, please check the model code.", { code: "1211" }],
    [404, "No endpoints found for x/y."],
    [400, "The provided model identifier is invalid."],
    [400, "The model `x-70b` has been decommissioned and is no longer supported."],
    [403, "The model `gpt-9` does not exist or you do not have access to it."],
    [404, "models/x-001 is not found for API version v1beta, or is not supported for generateContent."],
    [404, "No models loaded. Please load a model in the developer page."],
    [400, "Invalid model name passed in model=x."],
    [500, "model 'qwen3' not found, try pulling it first"],
    [400, "The requested model is not supported.", { code: "model_not_supported" }],
  ],
  key: [
    [400, "API key not valid. Please pass a valid API key.", { status: "INVALID_ARGUMENT" }],
    [400, "Bad request", { details: [{ reason: "API_KEY_INVALID" }] }],
    [400, "Incorrect API key provided: ***."],
    [400, "Your organization must be verified to stream this model."],
    [400, "login fail: Please carry the API secret key", { code: "base_resp_1004" }],
    [403, "The security token included in the request is expired"],
    [400, "User location is not supported for the API use."],
    [500, "Invalid API Key"],
  ],
};
const ALL = Object.entries(CASES).flatMap(([kind, cases]) =>
  cases.map(([status, message, members = {}]) => [kind, status, message, members] as const),
);

/** The reason of a run that ends by it, whether it is tried again, and words of the advice. */
const MEANING: Readonly<Record<RefusalKind, readonly [reason: string, retryable: boolean, advice: RegExp]>> =
  {
    overflow: ["context_overflow", false, /Start a new thread, split the task/],
    quota: ["model_rate_limited", false, /Check the account's billing/],
    rate: ["model_rate_limited", true, /Wait .* and continue the run/],
    busy: ["model_unavailable", true, /Try again later|Wait a little/],
    fault: ["model_unavailable", true, /Try again later/],
    call: ["model_stream_broken", true, /Continue in the same thread/],
    media: ["model_error", false, /convert it, or choose a model that takes it/],
    unsupported: ["model_error", false, /Choose another model or endpoint/],
    model: ["model_not_found", false, /Check the name after the colon/],
    key: ["model_auth", false, /Check the provider's API key/],
  };

describe("a refusal", () => {
  test.each(ALL)("is one of %s: %i %s", (kind, status, message, members) => {
    const error = refused(status, message, members);
    const [reason, retryable, advice] = MEANING[kind as RefusalKind]; // a key of the table
    expect(failureFacts(error)).toMatchObject({ kind, retryable, quota: kind === "quota" });
    // A status for requests that come too fast counts more than an overload.
    const isTooFast = kind === "busy" && status === 429;
    expect(modelFailure(error)).toMatchObject({
      code: isTooFast ? "model_rate_limited" : reason,
      message: expect.stringMatching(advice) as string,
    });
    expect(mediaRefusal(error)?.isSure ?? false).toBe(kind === "media");
  });

  test.each<[number, string, object?]>([
    [400, "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens"],
    [400, "Range of max_tokens should be [1, 8192]"],
    [400, "Invalid 'input[2].id': string too long. Expected a string with maximum length 64"],
    [400, "messages.3: tool_use ids were found without tool_result blocks immediately after: call_1"],
    [400, "Invalid value for 'tools': maximum number of tools is 128"],
    [400, "messages.0: text is required"],
    [400, "Invalid context: id"],
    [400, "temperature: may only be set to 1 when thinking is enabled"],
    [400, "tools.0.custom.input_schema: JSON schema is invalid"],
    [400, "The response was filtered", { code: "content_filter" }],
    [400, "Unknown parameter: 'context_length'"],
    [502, "Bad gateway"],
  ])("has no known cause: %i %s", (status, message, members) => {
    const error = refused(status, message, members);
    expect(failureFacts(error).kind).toBeUndefined();
    expect(modelFailure(error).message).toContain(message);
  });

  test.each([
    [401, "Something", "model_auth"],
    [404, "Something", "model_not_found"],
    [429, "Something", "model_rate_limited"],
    [422, "Something", "model_error"],
    [503, "Something", "model_unavailable"],
    [401, "The API is overloaded", "model_auth"],
  ])("without an exact cause is read by its status: %i %s", (status, message, reason) => {
    expect(failureFacts(refused(status, message)).reason).toBe(reason);
  });

  test("of Bedrock's package has its status and its name", () => {
    const error = Object.assign(new Error("No."), {
      name: "AccessDeniedException",
      $metadata: { httpStatusCode: 403 },
    });
    expect(failureFacts(error)).toMatchObject({ status: 403, kind: "key", reason: "model_auth" });
  });
});

test("the table has rows with a source and words, of known causes only", () => {
  for (const { kind, rows } of words.refusals) {
    expect(Object.keys(CASES)).toContain(kind);
    for (const row of rows) {
      expect(row.source).not.toBe("");
      expect("text" in row || "code" in row).toBe(true);
    }
  }
});
