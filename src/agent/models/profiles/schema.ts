/** Schemas for the provider table and the setting `models`. Imports no data: the configuration is read before a handshake. */
import { z } from "zod";

const text = z.string().min(1);
const names = z.array(text);
const count = z.int().positive();
const TYPES = ["image", "pdf", "audio", "video"] as const;
/** Effort of reasoning; `off` switches it off where that is possible. */
export const EFFORTS = ["off", "low", "medium", "high"] as const;

/** Differences between a request as LangChain writes it and as a server takes it. All may be left out. */
export const requestRules = z
  .strictObject({
    drop: names.describe("Members that are not sent."),
    rename: z.record(text, text).describe("Members that have another name."),
    put: z.record(text, z.unknown()).describe("Members that are added unless the request has them."),
    most: z.record(text, count).describe("Largest values of members."),
    systemRole: z.enum(["system", "developer", "user"]).describe("Role of the system prompt."),
    afterTool: z.enum(["any", "notUser"]).describe("Whether a user message may follow a tool result."),
    emptyContent: z
      .enum(["text", "null", "none", "filled"])
      .describe("Content of a reply that has only calls: an empty text, null, no member, or an ellipsis."),
    callIds: z.enum(["any", "nine"]).describe("Ids of calls: any, or nine letters and digits."),
    needsTools: z.boolean().describe("Whether a history with calls needs tools in the request."),
    schema: z
      .enum(["full", "plain", "text"])
      .describe(
        "Schemas of tools: as they are, without patterns and lengths, or as words of the description.",
      ),
    forced: z
      .enum(["yes", "unlessEnabled", "unlessThinking", "unlessOff", "no"])
      .describe("Whether a tool call can be forced, depending on reasoning."),
    marks: z
      .enum(["top", "blocks", "none"])
      .describe("Cache marks of Anthropic's protocol: at the top, in blocks only, or none."),
    markText: z.boolean().describe("Whether text blocks of chat completions get cache marks."),
    thoughts: z
      .strictObject({
        field: z
          .enum([
            "reasoning_content",
            "reasoning",
            "reasoning_details",
            "signature",
            "tags",
            "blocks",
            "none",
          ])
          .describe("Member of a reply, or signatures of calls, tags in the text, blocks, nothing."),
        on: z.enum(["calls", "all"]).optional().describe("Replies with calls, or all."),
        missing: z
          .enum(["empty", "skip", "off"])
          .optional()
          .describe(
            "Stands for reasoning of other models: an empty text, or the signature that skips the check. `off` switches reasoning off while it is missing.",
          ),
      })
      .describe(
        "How reasoning goes back: the field, the replies that have it, and what stands for reasoning of other models.",
      ),
    wire: z.enum(["responses"]).describe("The API that is asked in place of chat completions."),
  })
  .partial();
export type RequestRules = z.output<typeof requestRules>;

/** Members of a request for an effort of reasoning; those of a provider come before those of a family. */
const efforts = z.partialRecord(z.enum(EFFORTS), z.record(text, z.unknown())).optional();

const providerSchema = z.strictObject({
  source: names.min(1),
  /** The protocol by which it is asked without a package of its own; absent: only its package can. */
  wire: z.enum(["chat", "messages"]).optional(),
  /** Its address; `{NAME}` stands for a variable. */
  base: text.optional(),
  /** Variables that name another address; the first that is set counts. */
  baseVariables: names.optional(),
  /** Variables with a key, the usual one first. */
  keys: names.optional(),
  /** Variables with a key that is sent as a bearer token in place of Anthropic's own header. */
  bearerKeys: names.optional(),
  /** Works without a key: always, or only at an address other than its own. */
  keyless: z.enum(["always", "elsewhere"]).optional(),
  /** Variables that name its model. */
  modelVariables: names.optional(),
  /** Beginnings of model names that imply it, as `initChatModel` of LangChain reads them. */
  nameBeginnings: names.optional(),
  headers: z.record(text, text).optional(),
  /** Variable with more headers, a line each as `Name: value`. */
  headersVariable: text.optional(),
  /** Ends of the hosts that are this service, or hosts with a port. */
  hosts: names.optional(),
  /** It runs on a person's own machine, with a window that the machine's memory bounds. */
  local: z.boolean().optional(),
  /** Paths that report the windows of its models: beside its address, or with a slash from the root of the server. */
  asks: names.optional(),
  reasoning: efforts,
  /** LangChain's package, and its versions if the program does not have it. */
  package: z.strictObject({ name: text, versions: text.optional(), chatModel: text }).optional(),
  request: requestRules.optional(),
});
export type Provider = Readonly<z.output<typeof providerSchema>>;

const familySchema = z.strictObject({
  id: text,
  match: text,
  /** Tokens of a request, at the vendor's own service. */
  window: count,
  /** Tokens of an answer. */
  output: count,
  /** Its weights are public: a server may run it with a smaller window. */
  open: z.boolean(),
  media: z.array(z.enum(TYPES)),
  reasoning: efforts,
  request: requestRules.optional(),
  source: names.min(1),
});
export type Family = Readonly<z.output<typeof familySchema>>;

/** A model as a person names it in the setting `models`. */
export const modelEntry = z.strictObject({
  provider: text
    .optional()
    .describe(
      "The service or protocol: `openai` for any server with its chat completions, `anthropic` for its messages. Default: `openai`.",
    ),
  model: text.optional().describe("The model's name there. Default: what follows the colon in `name:model`."),
  baseUrl: text.optional().describe("Address of the service. Default: the provider's."),
  keyVariable: text
    .optional()
    .describe("Environment variable with the key. Default: the provider's, and none at another host."),
  headers: z
    .record(text, z.string())
    .optional()
    .describe(
      "Headers of each request, such as those of a gateway; `${NAME}` stands for a variable of the environment.",
    ),
  window: count
    .optional()
    .describe(
      "Tokens that a request may have. Default: what the server reports, else what is known of the model.",
    ),
  output: count.optional().describe("Tokens that an answer may have."),
  reasoning: z.enum(EFFORTS).optional().describe("Effort of reasoning. Default: the model's own."),
  parameters: z.record(text, z.unknown()).optional().describe("As in `modelParameters`."),
  request: requestRules
    .optional()
    .describe("How requests have to differ for this server. The program learns most of it from refusals."),
});
export type ModelEntry = Readonly<z.output<typeof modelEntry>>;

export const profileTable = z.strictObject({
  date: z.iso.date(),
  providers: z.record(text, providerSchema),
  families: z.array(familySchema),
});
