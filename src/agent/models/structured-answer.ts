/** Structured answers: the request to a model, and the check of its answer. */
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import type { ToolCall } from "@langchain/core/messages/tool";
import type { InteropZodObject } from "@langchain/core/utils/types";
import type { ProviderStrategy, ToolStrategy, TypedToolStrategy } from "langchain";
import { z } from "zod";
import { byIdentity } from "../../core/by-identity.ts";
import { ConfigurationError, RunFailure, orElse } from "../../core/errors.ts";
import { fill, oneLine } from "../../core/text.ts";
import { isObject, isRecord, memberOf, parsedJson } from "../../core/unknown.ts";
import { canBeForced } from "./exchange.ts";
import { currentRun } from "../budget/limits.ts";
import texts from "./texts.json" with { type: "json" };

export type JsonSchemaFormat = { type: "object"; properties?: Record<string, unknown> } & Record<
  string,
  unknown
>;

export type AnswerSchema = InteropZodObject | JsonSchemaFormat;

/** The form of an agent's final answer: a schema, several of which one is to fit, or how LangChain is to ask for it. */
export type ResponseFormat =
  | AnswerSchema
  | readonly AnswerSchema[]
  | TypedToolStrategy
  | ToolStrategy
  | ProviderStrategy;

/** The method that asks a model for the structured answer. */
export type Strategy =
  | { kind: "tool"; tools: ReadonlyMap<string, ToolStrategy> }
  | { kind: "provider"; strategy: ProviderStrategy };

/** The answer of a reply. `messages` follow the reply: results of calls that were answers, and the closing message. */
export type Settled = { messages: BaseMessage[]; structuredResponse?: unknown };

const DEFAULT_NAME = "structured_response";
/** Answers of one run that do not fit, before it fails. */
const MAX_MISFITS = 5;

/**
 * Chooses the method by which each model is asked for an answer in this form. A schema alone is asked for natively where
 * the model's profile declares that it can, else as a tool call.
 */
export const strategiesFor = (format: ResponseFormat): ((model: BaseChatModel) => Promise<Strategy>) =>
  byIdentity(async (model): Promise<Strategy> => {
    if (isProviderStrategy(format)) return { kind: "provider", strategy: format };
    const given = formatList(format);
    if (given.every(isToolStrategy)) return toolStrategies(given);
    const { ProviderStrategy: Provider, ToolStrategy: Tool } = await import("langchain");
    const { toJsonSchema } = await import("@langchain/core/utils/json_schema");
    // The title becomes the tool's name: the same in every process.
    const schemas = given.map((item, index) => ({
      title: defaultName(index),
      ...toJsonSchema(item as AnswerSchema), // all else was ruled out
    }));
    const [schema] = schemas;
    if (schema && !Array.isArray(format) && model.profile.structuredOutput === true)
      return { kind: "provider", strategy: Provider.fromSchema(schema) };
    return toolStrategies(schemas.map((item) => Tool.fromSchema(item)));
  });

/**
 * Checks the reply of a model that was asked with `strategy`. `missing`: it ends without the answer.
 *
 * @throws NoStructuredResponse when the model's answers did not fit too often.
 */
export async function settleAnswer(
  reply: AIMessage,
  strategy: Strategy,
  before: readonly BaseMessage[],
  refused: readonly ToolMessage[],
): Promise<Settled | "missing"> {
  if (!hasCalls(reply)) {
    const structuredResponse = answerInText(reply, strategy);
    return structuredResponse === undefined ? "missing" : { messages: [], structuredResponse };
  }
  const { tool_calls: calls = [] } = reply;
  const tools = strategy.kind === "tool" ? strategy.tools : new Map<string, ToolStrategy>();
  const refusedIds = refused.map(({ tool_call_id }) => tool_call_id);
  const answers = calls.filter(({ name, id = "" }) => tools.has(name) && !refusedIds.includes(id));
  const [answer] = answers;
  const asked = answer && tools.get(answer.name);
  if (!asked) return { messages: [] };
  if (calls.length > 1)
    return { messages: answers.map((call) => answerResult(call, texts.answeredTwice, "error")) };
  try {
    const structuredResponse = asked.parse(answer.args);
    const text = JSON.stringify(structuredResponse);
    const closing = asked.options?.toolMessageContent ?? text;
    return { messages: [answerResult(answer, text, "success"), new AIMessage(closing)], structuredResponse };
  } catch (error) {
    const text = await retryText(error, asked);
    const results = currentRun(before).messages.filter((message) => ToolMessage.isInstance(message));
    const misfits = results.filter(({ status, name = "" }) => status === "error" && tools.has(name));
    if (misfits.length + 1 < MAX_MISFITS) return { messages: [answerResult(answer, text, "error")] };
    const what = fill(texts.misfits, MAX_MISFITS, asked.name, text);
    throw new NoStructuredResponse(what, JSON.stringify(answer.args), { cause: error });
  }
}

interface StrategyBinding {
  tools: Array<ToolStrategy["tool"]>;
  toolChoice?: "any";
  options?: Record<string, unknown>;
  /** For the model, if calls cannot be forced. */
  notice?: string;
}

/** Tools, options and notice that are bound to the model besides the agent's tools. */
export function bindStrategy(strategy: Strategy, model: BaseChatModel): StrategyBinding {
  if (strategy.kind === "tool") {
    const tools = [...strategy.tools.values()].map(({ tool }) => tool);
    return canBeForced(model) ? { tools, toolChoice: "any" } : { tools, notice: callFor(strategy) };
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

/**
 * Names of the tools that return the answer; none if the provider asks for it itself.
 *
 * @throws ConfigurationError `INVALID_RESPONSE_FORMAT` for a list that means nothing.
 */
export function answerToolNames(format: ResponseFormat): string[] {
  const given = formatList(format);
  const strategies = given.filter(isToolStrategy);
  if (given.length === 0 || (strategies.length > 0 && strategies.length < given.length))
    throw new ConfigurationError("INVALID_RESPONSE_FORMAT", texts.formatList);
  if (strategies.length > 0) return strategies.map(({ name }) => name);
  if (given.some(isProviderStrategy)) return [];
  return given.map((item, index) => {
    const title = memberOf(item instanceof z.ZodType ? item.meta() : item, "title");
    return typeof title === "string" ? title : defaultName(index);
  });
}

const formatList = (format: ResponseFormat): readonly unknown[] =>
  Array.isArray(format) ? format : [format];

// Strategies are distinguished by their fields: LangChain is not loaded before the first model call, and a
// program may have a copy of its own.
const has = (item: unknown, ...fields: readonly string[]): boolean =>
  isObject(item) && fields.every((field) => field in item);
const isToolStrategy = (item: unknown): item is ToolStrategy => has(item, "name", "tool", "parse");
const isProviderStrategy = (item: unknown): item is ProviderStrategy =>
  has(item, "strict", "schema", "parse");

/** The tool name for a schema without a title; from the second schema on, with its number. */
const defaultName = (index: number): string => (index === 0 ? DEFAULT_NAME : `${DEFAULT_NAME}_${index + 1}`);

const toolStrategies = (strategies: readonly ToolStrategy[]): Strategy => ({
  kind: "tool",
  tools: new Map(strategies.map((strategy) => [strategy.name, strategy])),
});

/** The text for the model about an answer that does not fit, by the strategy's options. */
async function retryText(error: unknown, { name, options }: ToolStrategy): Promise<string> {
  const handle = options?.handleError ?? true;
  if (handle === false || !(error instanceof Error))
    throw new NoStructuredResponse(fill(texts.misfit, name), "", { cause: error });
  if (handle === true) return error.message;
  // Parsing throws LangChain's parsing error, which such a function takes.
  return typeof handle === "string" ? handle : handle(error as Parameters<typeof handle>[0]);
}

const answerResult = ({ id = "", name }: ToolCall, content: string, status: "success" | "error") =>
  new ToolMessage({ content, name, tool_call_id: id, status });

/** The agent ended without an answer in the form that was asked for. */
export class NoStructuredResponse extends RunFailure {
  /** The model's text in its place; may be empty. */
  readonly said: string;

  constructor(what: string, said = "", options?: { cause?: unknown }) {
    const quoted = said === "" ? "" : fill(texts.instead, oneLine(said, 300));
    super("no_structured_response", fill(texts.schemaRemedy, what, quoted), options);
    this.said = said;
  }
}

export const hasCalls = ({ tool_calls = [], invalid_tool_calls = [] }: AIMessage): boolean =>
  tool_calls.length + invalid_tool_calls.length > 0;

/** The structured answer in the text of a reply without calls; `undefined` if there is none. */
export function answerInText(reply: AIMessage, strategy: Strategy): unknown {
  const native: unknown = strategy.kind === "provider" ? strategy.strategy.parse(reply) : undefined;
  const answers = [native, ...jsonCandidates(reply.text).map((text) => fitting(text, strategy))];
  return answers.find((answer) => answer !== undefined);
}

/** Texts that may be the answer: all of it, or the one block of code in it. */
function jsonCandidates(text: string): string[] {
  const blocks: string[] = [];
  let start: number | undefined;
  for (const { 0: fence, index } of text.matchAll(/^[ \t]*```[^\n`]*$/gm)) {
    if (start === undefined) start = index + fence.length;
    else if (fence.trim() === "```") {
      blocks.push(text.slice(start, index));
      start = undefined;
    }
  }
  return [text, ...(blocks.length === 1 ? blocks : [])];
}

function fitting(text: string, strategy: Strategy): unknown {
  if (strategy.kind === "provider") return strategy.strategy.parse(new AIMessage(text));
  const given = parsedJson(text);
  // Arguments of a call are a record.
  if (!isRecord(given)) return undefined;
  const answers = [...strategy.tools.values()].map((one): unknown =>
    orElse(() => one.parse(given), undefined),
  );
  return answers.find((answer) => answer !== undefined);
}

export const reminderFor = (strategy: Strategy): string =>
  strategy.kind === "tool" ? fill(texts.mustBeCall, callFor(strategy)) : texts.mustBeJson;

const callFor = ({ tools }: Extract<Strategy, { kind: "tool" }>): string =>
  fill(texts.callFor, [...tools.keys()].join(" or "));

/** The failure of a run whose model sent `reply` instead of the answer in spite of reminders. */
export function missingAnswer(reply: AIMessage, strategy: Strategy): NoStructuredResponse {
  const form = strategy.kind === "tool" ? `a call of ${[...strategy.tools.keys()].join(" or ")}` : "JSON";
  return new NoStructuredResponse(fill(texts.noStructuredAnswer, form), reply.text.trim());
}
