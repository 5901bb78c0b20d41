import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import type { ToolCall } from "@langchain/core/messages/tool";
import type { InteropZodObject } from "@langchain/core/utils/types";
import type { ProviderStrategy, ToolStrategy, TypedToolStrategy } from "langchain";
import { z } from "zod";
import { ConfigurationError } from "../core/errors.ts";
import { currentRun } from "./limits/limits.ts";
import { answerInText, callFor, hasCalls, NoStructuredResponse } from "./structured-text.ts";

/** A JSON schema of an object. */
export type JsonSchemaFormat = { type: "object"; properties?: Record<string, unknown> } & Record<
  string,
  unknown
>;

/** The form of an agent's final answer: a schema, or how LangChain is to ask for it. */
export type ResponseFormat =
  | InteropZodObject
  | JsonSchemaFormat
  | TypedToolStrategy
  | ToolStrategy
  | ProviderStrategy;

/** How a model is asked for the structured answer. */
export type Strategy =
  | { kind: "tool"; tools: ReadonlyMap<string, ToolStrategy> }
  | { kind: "provider"; strategy: ProviderStrategy };

/** What a reply means for the structured answer. */
export type Settled = {
  /** Follow the reply: results of calls that were answers, and the closing message. */
  messages: BaseMessage[];
  structuredResponse?: unknown;
};

const DEFAULT_NAME = "structured_response";
/** Answers of one run that do not fit, before it is given up. */
const MAX_MISFITS = 5;

/** Asks for the final answer in a given form, and takes it out of the model's replies. */
export class StructuredResponse {
  readonly #format: ResponseFormat;
  readonly #byModel = new WeakMap<BaseChatModel, Promise<Strategy>>();

  constructor(format: ResponseFormat) {
    this.#format = format;
  }

  /** A schema alone is asked for natively where the model's profile says that it can, else as a tool call. */
  async strategyFor(model: BaseChatModel): Promise<Strategy> {
    let strategy = this.#byModel.get(model);
    if (!strategy) this.#byModel.set(model, (strategy = chooseStrategy(this.#format, model)));
    return strategy;
  }

  /**
   * Checks the reply of a model that was asked with `strategy`. `missing`: it ends without the answer.
   *
   * @throws NoStructuredResponse when the model has given answers that do not fit too often.
   */
  async settle(
    reply: AIMessage,
    strategy: Strategy,
    before: readonly BaseMessage[],
  ): Promise<Settled | "missing"> {
    if (hasCalls(reply)) {
      return strategy.kind === "tool" ? settleCalls(reply, strategy.tools, before) : { messages: [] };
    }
    const structuredResponse = answerInText(reply, strategy);
    return structuredResponse === undefined ? "missing" : { messages: [], structuredResponse };
  }
}

/** What is bound to the model besides the agent's tools, and what it is told besides. */
export function bindingOf(
  strategy: Strategy,
  model: BaseChatModel,
): {
  tools: Array<ToolStrategy["tool"]>;
  toolChoice?: "any";
  options?: Record<string, unknown>;
  /** What to tell the model beforehand, where calls cannot be forced. */
  notice?: string;
} {
  if (strategy.kind === "tool") {
    const tools = [...strategy.tools.values()].map(({ tool }) => tool);
    return isThinking(model) ? { tools, notice: callFor(strategy) } : { tools, toolChoice: "any" };
  }
  const { schema, strict } = strategy.strategy;
  const name = typeof schema["title"] === "string" ? schema["title"] : DEFAULT_NAME;
  return {
    tools: [],
    // Each provider reads its own key and leaves the others alone.
    options: {
      response_format: { type: "json_schema", json_schema: { name, schema, strict } },
      outputConfig: { format: { type: "json_schema", schema } },
      responseSchema: schema,
    },
  };
}

/** Anthropic's models cannot be made to call a tool while they think. */
function isThinking(model: BaseChatModel): boolean {
  const thinking: unknown = "thinking" in model ? model.thinking : undefined;
  if (typeof thinking !== "object" || thinking === null || !("type" in thinking)) return false;
  return thinking.type === "enabled" || thinking.type === "adaptive";
}

/** Names of the tools that the answer may be given by; none where the provider is to ask for it itself. */
export function answerToolNames(format: ResponseFormat): string[] {
  const strategies: readonly unknown[] = Array.isArray(format) ? format : [format];
  return strategies.flatMap((item) => {
    // Told apart by their fields: LangChain is not loaded before the first model call.
    if (hasName(item) && "tool" in item) return [item.name];
    if (item instanceof z.ZodType) return [titleOf(item.meta())];
    const isForProvider = typeof item === "object" && item !== null && "strict" in item && "schema" in item;
    return isForProvider ? [] : [titleOf(item)];
  });
}

const hasName = (item: unknown): item is { name: string } =>
  typeof item === "object" && item !== null && "name" in item && typeof item.name === "string";

const titleOf = (item: unknown): string =>
  typeof item === "object" && item !== null && "title" in item && typeof item.title === "string"
    ? item.title
    : DEFAULT_NAME;

async function chooseStrategy(format: ResponseFormat, model: BaseChatModel): Promise<Strategy> {
  const { ProviderStrategy: Provider, ToolStrategy: Tool } = await import("langchain");
  if (format instanceof Provider) return { kind: "provider", strategy: format };
  const given = Array.isArray(format) ? format : [format];
  if (given.length > 0 && given.every((item) => item instanceof Tool)) return toolStrategies(given);
  if (Array.isArray(format) || format instanceof Tool) {
    throw new ConfigurationError(
      "INVALID_RESPONSE_FORMAT",
      "A list of response formats holds tool strategies only.",
    );
  }
  const schema = await titled(format);
  return model.profile.structuredOutput === true
    ? { kind: "provider", strategy: Provider.fromSchema(schema) }
    : toolStrategies([Tool.fromSchema(schema)]);
}

/** The JSON schema with a title, which becomes the tool's name: the same in every process. */
async function titled(format: InteropZodObject | JsonSchemaFormat): Promise<Record<string, unknown>> {
  const { toJsonSchema } = await import("@langchain/core/utils/json_schema");
  return { title: DEFAULT_NAME, ...toJsonSchema(format) };
}

const toolStrategies = (strategies: readonly ToolStrategy[]): Strategy => ({
  kind: "tool",
  tools: new Map(strategies.map((strategy) => [strategy.name, strategy])),
});

async function settleCalls(
  reply: AIMessage,
  tools: ReadonlyMap<string, ToolStrategy>,
  before: readonly BaseMessage[],
): Promise<Settled> {
  const calls = reply.tool_calls ?? [];
  const answers = calls.filter(({ name }) => tools.has(name));
  const [answer] = answers;
  const strategy = tools.get(answer?.name ?? "");
  if (!answer || !strategy) return { messages: [] };
  if (calls.length > 1) {
    const text = "The final answer was not taken: give it once, alone, when all other calls are done.";
    return { messages: answers.map((call) => resultOf(call, text, "error")) };
  }
  try {
    const structuredResponse = strategy.parse(answer.args);
    const text = JSON.stringify(structuredResponse);
    const closing = strategy.options?.toolMessageContent ?? text;
    return { messages: [resultOf(answer, text, "success"), new AIMessage(closing)], structuredResponse };
  } catch (error) {
    const text = await retryText(error, strategy);
    if (misfits(before, tools) + 1 < MAX_MISFITS) return { messages: [resultOf(answer, text, "error")] };
    const what = `The model gave ${MAX_MISFITS} answers that do not have the form of ${strategy.name}. The last one: ${text}`;
    throw new NoStructuredResponse(what, JSON.stringify(answer.args), { cause: error });
  }
}

/** Answers of this run that were refused. */
const misfits = (messages: readonly BaseMessage[], tools: ReadonlyMap<string, unknown>): number =>
  currentRun(messages).messages.filter(
    (message) =>
      ToolMessage.isInstance(message) && message.status === "error" && tools.has(message.name ?? ""),
  ).length;

/** What the model is told about an answer that does not fit, as the strategy's options say. */
async function retryText(error: unknown, { name, options }: ToolStrategy): Promise<string> {
  const handle = options?.handleError ?? true;
  if (handle === false || !(error instanceof Error)) {
    throw new NoStructuredResponse(`The model's ${name} does not have the form asked for.`, "", {
      cause: error,
    });
  }
  if (handle === true) return error.message;
  // Parsing throws LangChain's parsing error, which such a function takes.
  return typeof handle === "string" ? handle : handle(error as Parameters<typeof handle>[0]);
}

const resultOf = ({ id = "", name }: ToolCall, content: string, status: "success" | "error"): ToolMessage =>
  new ToolMessage({ content, name, tool_call_id: id, status });
