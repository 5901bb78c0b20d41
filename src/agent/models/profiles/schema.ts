/** Schemas for the provider table and the setting `models`. Imports no table: the configuration is read before a handshake. */
import { z } from "zod";

const text = z.string().min(1);
const names = z.array(text);
const count = z.int().positive();
/** Effort of reasoning; `off` switches it off where that is possible. */
export const EFFORTS = ["off", "low", "medium", "high"] as const;

/**
 * Differences between a request as LangChain writes it and as a server takes it. All may be left out; their meanings are
 * in `config/descriptions.json`.
 */
export const requestRules = z
  .strictObject({
    drop: names,
    rename: z.record(text, text),
    put: z.record(text, z.unknown()),
    most: z.record(text, count),
    systemRole: z.enum(["system", "developer", "user"]),
    afterTool: z.enum(["any", "notUser"]),
    emptyContent: z.enum(["text", "null", "none", "filled"]),
    callIds: z.enum(["any", "nine"]),
    needsTools: z.boolean(),
    schema: z.enum(["full", "plain", "text"]),
    forced: z.enum(["yes", "unlessEnabled", "unlessThinking", "unlessOff", "no"]),
    marks: z.enum(["top", "blocks", "none"]),
    markText: z.boolean(),
    thoughts: z.strictObject({
      field: z.enum([
        "reasoning_content",
        "reasoning",
        "reasoning_details",
        "signature",
        "tags",
        "blocks",
        "none",
      ]),
      on: z.enum(["calls", "all"]).optional(),
      missing: z.enum(["empty", "skip", "off"]).optional(),
    }),
    wire: z.enum(["responses"]),
  })
  .partial();
export type RequestRules = z.output<typeof requestRules>;

/** Members of a request for an effort of reasoning; those of a provider come before those of a family. */
const efforts = z.partialRecord(z.enum(EFFORTS), z.record(text, z.unknown())).optional();

const providerSchema = z.strictObject({
  source: names.min(1),
  /** The protocol by which it is asked without a package of its own; absent: only its package can. */
  wire: z.enum(["chat", "messages"]).optional(),
  /** Its models are asked by the responses API if nothing else is set: the newer ones take tools there only. */
  responses: z.boolean().optional(),
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
  reasoning: efforts,
  request: requestRules.optional(),
  source: names.min(1),
});
export type Family = Readonly<z.output<typeof familySchema>>;

/** A model as a person names it in the setting `models`. */
export const modelEntry = z
  .strictObject({
    provider: text,
    model: text,
    baseUrl: text,
    keyVariable: text,
    headers: z.record(text, z.string()),
    window: count,
    output: count,
    reasoning: z.enum(EFFORTS),
    parameters: z.record(text, z.unknown()),
    request: requestRules,
  })
  .partial();
export type ModelEntry = Readonly<z.output<typeof modelEntry>>;

export const profileTable = z.strictObject({
  date: z.iso.date(),
  providers: z.record(text, providerSchema),
  families: z.array(familySchema),
});
