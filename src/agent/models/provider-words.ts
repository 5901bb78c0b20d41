/** Words of providers: with which they refuse a request, and with which they end an answer. */

/** The cause that a refusal names. */
export type RefusalKind =
  /** The request is longer than the model reads. */
  | "overflow"
  /** Money or a plan is used up: waiting does not help. */
  | "quota"
  /** Too many requests or tokens for now. */
  | "rate"
  /** Too much work for the provider for now. */
  | "busy"
  /** A fault of the provider. */
  | "fault"
  /** The model wrote a call that its provider could not read. */
  | "call"
  /** A picture, recording or document cannot be taken. */
  | "media"
  /** The model or its route lacks a feature that the request needs. */
  | "unsupported"
  /** The name of the model is not known, or no longer. */
  | "model"
  /** The key is wrong, or may not do this. */
  | "key";

/**
 * The causes in the order in which they are looked for; the first match decides. Exact words come before vague ones. In
 * a row, `text` is looked for in the message of a refusal, and `code` in each of its codes and types.
 */
const REFUSALS: ReadonlyArray<
  readonly [
    kind: RefusalKind,
    rows: ReadonlyArray<readonly [source: string, text: RegExp | undefined, code?: RegExp]>,
  ]
> = [
  // Codes for money are exact, whatever the text adds. Gemini's limit of 0 comes with a pause, as if it passed.
  [
    "quota",
    [
      ["OpenAI, DashScope, new-api", undefined, /^insufficient_(?:user_)?(?:quota|balance|credits?|funds)/i],
      ["OpenAI, Anthropic, LiteLLM", undefined, /^(?:billing_\w+|budget_exceeded|usage_limit_\w+)$/i],
      ["Moonshot, Copilot, Google", undefined, /^exceeded_current_quota|^quota_exceeded$|PerDay/i],
      ["DashScope", undefined, /^(?:Arrearage|AllocationQuota\.\w+|\w+BillOverdue|CommodityNotPurchased)$/i],
      ["Zhipu, SiliconFlow", undefined, /^(?:1113|1304|1308|1309|131[01]|30001)$/],
      ["MiniMax", undefined, /^base_resp_(?:1008|2056)$/],
      [
        "any",
        undefined,
        /^(?:payment_required|not_enough_balance|out_of_credits|credits?_|spend_limit|spending_limit)/i,
      ],
      ["Gemini", /limit: 0(?![.\d])/i],
    ],
  ],
  // A limit for a short time names the time or a short pause, and often a quota, tokens or a plan too.
  [
    "rate",
    [
      ["OpenAI, Groq, Azure", /\b(?:tokens?|requests?|images?) per (?:second|min|minute|hour|day)\b/i],
      ["OpenAI, SiliconFlow, MiniMax", /\b[TRI]P[SMD]\b/],
      ["Gemini, LiteLLM", /\b(?:again|retry) (?:in|after) (?:about )?\d[\d.]* ?(?:ms|s|m)/i],
      ["Bedrock", /too many tokens(?: per \w+)?, please wait|^throttling error/i],
    ],
  ],
  // Texts for money name requests and tokens too, never the window.
  [
    "quota",
    [
      ["Anthropic", /credit balance|specified \w+ usage limits|\bextra usage\b|\busage credits?\b/i],
      [
        "OpenAI, Gemini, Moonshot",
        /exceeded your current quota|your plan and billing|billing (?:hard )?limit/i,
      ],
      ["OpenAI, Together", /check your billing|navigate to billing|billing details/i],
      [
        "DeepSeek, Zhipu, MiniMax",
        /insufficient[_ ](?:account )?(?:balance|quota|credits?|funds)|\brecharge\b/i,
      ],
      ["SiliconFlow, Novita", /balance (?:is )?(?:insufficient|too low|not enough|negative|exhausted)/i],
      ["DashScope", /in good standing|\bin arrears\b|overdue payment/i],
      [
        "DashScope",
        /\bfree (?:tier|quota|trial|credits?)\b.{0,60} (?:exhausted|used up|exceeded|expired|over)\b/i,
      ],
      [
        "OpenRouter, Vercel",
        /\b(?:more|any|enough|out of|no|add|purchase|buy) (?:\w+ )?credits\b(?! to unlock)/i,
      ],
      ["xAI, Hugging Face", /\b(?:used|spent|exhausted|exceeded) (?:\S+ ){1,4}credits\b/i],
      [
        "Together, Fireworks",
        /\bcredits? (?:limit |have |has |been |are |is )*(?:exceeded|exhausted|depleted|used up)/i,
      ],
      ["Copilot", /\byou have no quota\b|premium requests? (?:allowance|limit)/i],
      ["Zhipu, Claude's and ChatGPT's plans", /\busage limit\b|\b(?:5|five)[- ]hours? limit/i],
      [
        "xAI, Fireworks",
        /\b(?:spend|spending|monthly|weekly|budget) (?:\w+ ){0,2}(?:limit|quota|cap|credits|allowance)\b/i,
      ],
      ["LiteLLM", /budget has been exceeded|\bover budget\b|exceeded (?:\w+ )?budget|\bkey limit exceeded/i],
      ["plans", /\b(?:plan|subscription|package) (?:has |is |has been )?(?:expired|exhausted|used up)/i],
      ["in Chinese: balance or quota used up, pay in", /余额不足|额度不足|额度已用|欠费|充值/],
    ],
  ],
  // Before missing features: texts about the window also name unsupported lengths.
  [
    "overflow",
    [
      [
        "Anthropic",
        /input length and `?max_tokens`? exceed|request exceeds the maximum size/i,
        /^request_too_large$/i,
      ],
      [
        "OpenAI",
        /maximum (?:context|prompt) length|tokens exceed the configured limit/i,
        /^context_length_exceeded$/i,
      ],
      ["OpenAI", /string too long\. expected a string with maximum length \d{7}/i],
      ["LangChain, LiteLLM", undefined, /^context_?overflow(?:_?error)?$|^ContextWindowExceeded/i],
      [
        "Copilot, GitHub",
        /request body too large for\b/i,
        /max_prompt_tokens_exceeded|^tokens_limit_reached$/i,
      ],
      ["Gemini", /token count.{0,20} exceeds|token count is [\d,]+ but (?:the )?model only supports/i],
      ["Gemini, proxies", /payload (?:size exceeds|too large)|request entity too large/i],
      [
        "Bedrock",
        /input tokens exceeded|number of input tokens exceeds|too many input tokens|max input tokens: /i,
      ],
      ["Cohere", /too many tokens: |total number of tokens in the prompt cannot exceed/i],
      [
        "any",
        /\b(?:has|have|contains?|in|with) too many (?:input )?tokens\b|more than (?:the )?max(?:imum)? tokens|too many tokens in\b/i,
      ],
      [
        "any",
        /\btoken limit exceeded\b|\bcontext[ _]?(?:length|window|size|limit)(?: limit)?[ _]?(?:is |was |has been )?exceeded/i,
      ],
      [
        "llama.cpp, Ollama, SGLang, Cloudflare, Moonshot",
        /\bexceed(?:s|ed|ing)? (?:the |this )?(?:model(?:'s)? |maximum |max |available |allowed |total |supported )*(?:context|prompt|input|tokens?)[ _]?(?:length|window|size|limit|tokens)\b|exceeds? the maximum allowed length/i,
      ],
      ["MiniMax", /\bcontext window exceeds/i],
      ["Volcengine", /tokens of image and text exceed|input length [\d,]+ exceeds/i],
      [
        "Zhipu, TensorRT-LLM",
        /prompt exceeds max length|\b(?:prompt|input) length.{0,60} (?:should not|must not|cannot) exceed/i,
        /^1261$/,
      ],
      ["llama.cpp", /input is too large to process/i, /^exceed_context_size/i],
      [
        "any",
        /\b(?:prompt|input|context|conversation|messages?)(?: \([^()]{0,60}\))? (?:is |are )?too long\b/i,
        /^(?:prompt|input)_too_long$/i,
      ],
      [
        "vLLM, SGLang, Ollama",
        /longer than the (?:maximum |model'?s? |allowed )*(?:model length|context length|input length|context)/i,
      ],
      ["vLLM, LM Studio", /context length (?:is|of) only|max_tokens\S{0,3} must be at least 1, got -/i],
      [
        "LM Studio",
        /greater than the context length|context the overflows|reached context length of|\bn_keep\b/i,
      ],
      ["servers on small machines", /configured context (?:size|length|window)/i],
      [
        "Together, text-generation-inference",
        /\binputs\b`? (?:tokens \+ `?max_new_tokens`? must be|must have less than)|input must (?:be|have) less than [\d,]+ tokens/i,
      ],
      ["DashScope", /range of input length should be/i],
      ["SiliconFlow, TensorRT-LLM", /(?:less than|exceeds?|greater than) (?:the )?max_(?:seq|input)_len/i],
      ["Mistral", /too large for model with [\d,]+ maximum/i],
      ["Groq, Cerebras", /reduce the length of the (?:messages|input|prompt)/i],
      ["Databricks", /(?:prompt|input) (?:is )?longer than (?:the )?(?:model|maximum)/i],
      ["in Chinese: too long, over the longest", /(?:输入|上下文|提示词).{0,10}(?:超长|过长|超过|超出)/],
    ],
  ],
  // A model is asked again for a call that its provider could not read, whatever status reports it.
  [
    "call",
    [
      [
        "Groq",
        /failed_generation|tool call validation failed/i,
        /^(?:tool_use|json_validate|output_parse)_failed$/i,
      ],
      [
        "Ollama, llama.cpp",
        /\bpars(?:e|ing) (?:the )?(?:tool|function) calls?\b|failed to parse input at pos/i,
      ],
      ["Groq, Gemini", /generated output that could not be parsed/i, /^malformed_function_call$/i],
    ],
  ],
  // Media before features: a run continues without the picture that a model cannot take.
  [
    "media",
    [
      [
        "Anthropic, also through Bedrock and Vertex",
        /could not process (?:image|pdf|document)|image cannot be empty|(?:image|document|pdf)\.source\./i,
      ],
      [
        "Anthropic",
        /does not match the provided media type|image appears to be|dimensions exceed max|image exceeds \S+ MB/i,
      ],
      ["Anthropic", /password protected|PDF specified was not valid|PDF pages may be|too many images/i],
      [
        "OpenAI, Azure",
        /unsupported image|invalid[_ ]image|invalid base64|image data you provided|is not a valid image/i,
        /^(?:image_parse_error|invalid_image\w*)$/i,
      ],
      [
        "OpenAI",
        /image_parse_error|failed to (?:load|decode|process|download|fetch) (?:the )?(?:image|audio|video|media)/i,
      ],
      [
        "servers with OpenAI's protocol",
        /support(?:s|ed|ing)? (?:for )?(?:the )?(?:image|vision|audio|video|files?\b|multi-?modal|media)/i,
      ],
      [
        "DeepSeek, OpenAI",
        /image_url|input_image|input_file|input_audio|video_url|input (?:image|audio|video)/i,
      ],
      [
        "llama.cpp, SGLang, xAI, Mistral",
        /\b(?:images?|audio|video|vision|multi-?modal|media|pictures?|pdfs?)(?: (?:content|data|blocks?|parts?|urls?|types?|modality|inputs?))* (?:is|are) (?:not|only) (?:supported|allowed|enabled|available|accepted|permitted)/i,
      ],
      [
        "Ollama, llama.cpp",
        /\b(?:image|audio|video|vision|multi-?modal) (?:inputs?|projector|encoder|capabilit)|image: unknown format|illegal base64|\bmmproj\b|unsupported content\[\]\.type/i,
      ],
      ["vLLM, SGLang", /not (?:a )?multi-?modal\b|at most \d+ (?:image|audio|video|file)|unknown part type/i],
      [
        "Volcengine, Zhipu, mlx-lm",
        /\b(?:only|just) (?:supports? |accepts? |takes? )?'?text'?(?: |-)(?:inputs?|content|is|messages?|models?|parts?)|\btext-only\b/i,
      ],
      ["Zhipu, MiniMax", /allowed values: \['text'\]|\bno vision\b/i],
      ["Copilot", /copilot-vision-request/i],
      [
        "DashScope",
        /per data-uri item|media resource|image length and width|unexpected item type in content|image format is/i,
      ],
      [
        "Gemini",
        /unsupported mime ?type|process input image|provided image is not valid|document has no pages|mime type must be/i,
      ],
      [
        "Bedrock",
        /(?:image|document) (?:format|content|bytes)|max pixels|sanitize image|pdf (?:file )?(?:is|was) not valid/i,
      ],
    ],
  ],
  // Routes without a feature answer 404, as for unknown names, and some servers 500.
  [
    "unsupported",
    [
      [
        "OpenRouter",
        /no endpoints (?:found|available)(?: that| which)? (?:support|can|match|handle|matching|supporting)/i,
      ],
      ["OpenRouter", /no (?:allowed )?providers (?:are )?available|data policy/i],
      [
        "OpenAI",
        /only supported in v1\/|not supported in the v1\/|not a chat model/i,
        /^unsupported_(?:parameter|value|feature)$/i,
      ],
      ["OpenAI, Groq", /\bunsupported (?:parameter|value|role|feature)|is not supported with this model/i],
      [
        "Ollama, DeepSeek, Bedrock, Qwen",
        /(?:\bnot|n't) (?:currently )?support(?: the| this| any)?(?: provided)? (?:\W?tool|\W?function|forced|stream|system|developer|json|structured|\W?response_format|thinking|reasoning|parallel|prefill|assistant)/i,
      ],
      [
        "vLLM, Together, Cerebras",
        /\b(?:tools?|tool[_ ]choice|functions?|streaming|thinking|reasoning|json mode|response_format|structured outputs?)\S{0,3}(?: (?:use|calls?|calling|messages?|roles?|parameters?))? (?:is|are) not (?:currently )?(?:supported|enabled|allowed|available)/i,
      ],
      ["vLLM, llama.cpp", /requires? --[a-z]|\bgrammar\b|initialize samplers/i],
      ["Ollama", /requires more system memory/i],
      ["Bedrock", /on-demand throughput/i],
    ],
  ],
  // Before keys: the same sentence often adds that the key may lack the right to the model.
  [
    "model",
    [
      [
        "OpenAI, Anthropic, Bedrock",
        undefined,
        /^(?:not_found(?:_error)?|model_(?:not_found|not_supported|decommissioned|not_available)|DeploymentNotFound|ResourceNotFoundException|ModelNotFound\w*)$/i,
      ],
      ["Zhipu, SiliconFlow", undefined, /^(?:1211|20012)$/],
      [
        "vLLM, Ollama, DeepSeek, Gemini",
        /(?<!\S)[`'"(]?models?\S* (?:\S+ ){0,3}(?:not (?:found|exist|a valid|valid|deployed|loaded|recogni[sz]ed|available (?:in|for|to|on))|no longer|deprecated|decommissioned|retired|unknown)\b/i,
      ],
      ["OpenRouter", /is not a valid model|supported (?:API )?model names are|no endpoints found for\b/i],
      [
        "Zhipu, LiteLLM, Perplexity, Mistral",
        /\b(?:unknown|invalid|no such|unsupported|unrecogni[sz]ed) model\b|\binvalid model name\b/i,
      ],
      [
        "Copilot, Hugging Face",
        /requested model (?:\S+ )?is not (?:supported|available)|\bmodel is not supported\b/i,
      ],
      ["Bedrock", /model identifier is invalid|end of its life/i],
      ["Azure", /deployment (?:for this resource )?does not exist/i],
      ["LM Studio", /no models? loaded|try pulling it first/i],
      ["in Chinese: the model does not exist", /模型.{0,20}不存在/],
    ],
  ],
  // Some refuse a key with 400.
  [
    "key",
    [
      [
        "OpenAI, Anthropic, Google",
        undefined,
        /authentication|permission_(?:error|denied)|^invalid_api_key$|^API_KEY_|^unauthori[sz]ed$|^unauthenticated$/i,
      ],
      [
        "Bedrock",
        /security token|could not load credentials/i,
        /^(?:AccessDenied|UnrecognizedClient|ExpiredToken|InvalidSignature)(?:Exception)?$|^CredentialsProviderError$/i,
      ],
      ["MiniMax", /\blogin fail/i, /^base_resp_(?:1004|2049)$/],
      ["xAI, OpenAI", /\b(?:invalid|incorrect|missing|wrong|no|expired|bad) (?:x-)?api[ _-]?key\b/i],
      [
        "Gemini",
        /\bapi[ _-]?key\b(?: (?:is|was|has|provided|been|header))* (?:not (?:valid|authori[sz]ed|allowed)|invalid|expired|missing|required|revoked|disabled|incorrect)/i,
      ],
      ["OpenAI, Anthropic", /organization (?:must be verified|has been disabled)|verify organization/i],
      ["Gemini", /location is not supported|unsupported country/i, /^unsupported_country/i],
      [
        "LiteLLM, OpenRouter",
        /\b(?:auth|access|oauth|bearer|session) ?token (?:is |has |has been )?(?:expired|invalid|missing|revoked)|no auth credentials/i,
      ],
      ["new-api", /无效的令牌|未提供令牌/],
    ],
  ],
  // Last: these words are common in refusals for other causes.
  [
    "rate",
    [
      [
        "OpenAI, Anthropic, Bedrock",
        undefined,
        /rate_?limit|too_?many_?requests|throttl|resource_?exhausted|request_?limit/i,
      ],
      ["DashScope, Zhipu", undefined, /^limit_\w+$|^130[23]$/],
      ["MiniMax", undefined, /^base_resp_(?:1002|1039|1041|2045)$/],
      [
        "any",
        /\brate[- ]?limit|too many (?:concurrent )?requests|\bthrottl|\bconcurren(?:t|cy)\b|\bquota (?:\w+ ){0,2}(?:exceeded|exhausted)/i,
      ],
      ["in Chinese: too often, too many at once", /请求过于频繁|频率|并发/],
    ],
  ],
  [
    "busy",
    [
      ["Anthropic, Moonshot, Cerebras", undefined, /overloaded|queue_exceeded|capacity|slow_down/i],
      ["Google, Bedrock", undefined, /^unavailable$|service_?unavailable|ModelNotReady/i],
      ["Zhipu, Mistral, Cloudflare, MiniMax", undefined, /^(?:1305|1312|3505|3040|base_resp_2064)$/],
      [
        "Gemini, Zhipu",
        /\boverloaded\b|\b(?:over|at) capacity\b|\bcapacity (?:temporarily )?(?:exceeded|reached)/i,
      ],
      [
        "Azure, Cerebras, MiniMax",
        /\b(?:high|heavy|peak) (?:demand|load|traffic)\b|\b(?:server|service|system|model) (?:is )?(?:currently )?(?:too )?busy\b/i,
      ],
      ["Bedrock, Hugging Face", /\bnot ready\b|(?:currently|still) loading|loading model|model is loading/i],
      ["proxies", /temporarily unavailable|no healthy (?:upstream|deployment)|warming up/i],
      ["in Chinese: too many visits, busy", /访问量过大|繁忙/],
    ],
  ],
  [
    "fault",
    [
      [
        "OpenAI, Anthropic",
        undefined,
        /(?:api|server|timeout)_error|^internal(?:_error|_failure)?$|^deadline_exceeded$/i,
      ],
      ["Bedrock", undefined, /^(?:InternalServer|Model(?:Timeout|Error|StreamError))(?:Exception)?$/i],
      ["MiniMax", undefined, /^base_resp_(?:1000|1001|1013|1024|1033)$/],
    ],
  ],
];

/**
 * The cause that a refusal names; `undefined` if its words are not known. Two statuses take precedence: 402 is about
 * money, and after 413 the request must become smaller, even if the message names a limit of tokens per minute. Only a
 * picture can be too large by itself.
 */
export function refusalKind(
  codes: readonly string[],
  text: string,
  status?: number,
): RefusalKind | undefined {
  const [said] =
    REFUSALS.find(([, rows]) =>
      rows.some(([, words, code]) => words?.test(text) || codes.some((word) => code?.test(word))),
    ) ?? [];
  if (status === 402) return "quota";
  return status === 413 && said !== "media" ? "overflow" : said;
}

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
