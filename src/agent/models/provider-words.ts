/** Words of providers for two events that have no code of their own: a request that is too long, and a broken answer. */

/** Texts for a request that is longer than the model reads, with a public report or page that quotes each. */
const OVERFLOW: ReadonlyArray<readonly [source: string, text: RegExp]> = [
  ["Anthropic, errors", /prompt is too long|input length and `?max_tokens`? exceed/i],
  ["OpenAI, error codes; vLLM", /maximum (?:context|prompt) length|exceeds? the context window/i],
  ["vLLM, serving engine", /longer than the (?:maximum model length|model'?s context length)/i],
  ["SGLang, tokenizer manager", /exceeds? the maximum allowed length|is longer than the model'?s context/i],
  ["llama.cpp, server", /exceeds? the available context size|context size has been exceeded/i],
  ["LM Studio", /when context the overflows|with context length of only/i],
  ["Ollama", /input length exceeds (?:the )?(?:maximum )?context length|exceeds? (?:the )?context length/i],
  ["Moonshot", /exceeded model token limit/i],
  ["MiniMax", /context window exceeds limit/i],
  ["Zhipu", /prompt exceeds max length/i],
  ["Together; text-generation-inference", /`?inputs`? tokens \+ `?max_new_tokens`? must be/i],
  ["Gemini", /(?:input )?token count.{0,20} exceeds/i],
  ["Bedrock", /input is too long|too many (?:input )?tokens in (?:the )?(?:prompt|request)/i],
  ["Mistral", /too large for model with \d+ maximum context length/i],
  ["Cohere", /too many tokens: (?:total|size limit)/i],
  ["Groq, Cerebras", /reduce the length of the messages|context window (?:is )?exceeded/i],
  [
    "Databricks; OpenRouter",
    /(?:prompt|input) (?:is )?longer than (?:the )?(?:model|maximum)|context_length/i,
  ],
];

/** True if a provider refused a request because it is too long. */
export const saysOverflow = (text: string): boolean => OVERFLOW.some(([, words]) => words.test(text));

/**
 * Reasons by which answers end that are whole, cut at a limit, or refused. Any other one means that the answer broke
 * off: `error`, DeepSeek's `insufficient_system_resource`, Zhipu's `network_error`, `abort` of vLLM.
 */
const ENDS: ReadonlySet<string> = new Set(
  [
    "stop length tool_calls function_call content_filter completed incomplete end_turn max_tokens",
    "stop_sequence tool_use pause_turn refusal guardrail_intervened model_context_window_exceeded",
    "content_filtered compaction max_output_tokens eos eos_token stop_str stop_token model_length",
    "complete tool_call load unload sensitive end done finished success unknown other unspecified null",
    "finish_reason_unspecified safety recitation language blocklist prohibited_content spii",
    "malformed_function_call unexpected_tool_call too_many_tool_calls image_safety endturn stopsequence",
    "maxtokens tooluse",
  ].flatMap((line) => line.split(" ")),
);

/** True if an answer that ended for this reason is whole, or as whole as it will be. LangChain joins repeated reasons. */
export function isEnd(reason: string): boolean {
  const said = reason.toLowerCase();
  return [...ENDS].some((end) => end.repeat(said.length / end.length) === said);
}
