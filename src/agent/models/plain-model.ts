/** Looks through what LangChain wraps around chat models: `initChatModel`, `withConfig`, `withRetry`, `bindTools`. */
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import type { RunnableConfig } from "@langchain/core/runnables";
import { byIdentity } from "../../core/by-identity.ts";
import { isObject, memberOf, recordOf } from "../../core/unknown.ts";
import { findExchange, setExchange } from "./exchange.ts";

/** Options of the wrappers, by the model that stands for them. */
const wrappings = new WeakMap<object, RunnableConfig>();

/** The options that a model was wrapped with, for each of its calls. */
export const findWrapping = (model: BaseChatModel): RunnableConfig | undefined => wrappings.get(model);

/**
 * The chat model inside its wrappers, or one of its own for their options: others may use the model without them. Its
 * retries are ours, and tools that were bound before are the agent's to bind.
 */
export const plainModel = byIdentity(async (given: BaseChatModel): Promise<BaseChatModel> => {
  let model: object = given;
  let options: Record<string, unknown> = {};
  for (;;) {
    const inner = await unwrap(model);
    // OpenAI's class has no wrapper: it keeps the options itself.
    const names = inner === undefined ? ["defaultOptions"] : ["config", "kwargs"];
    const own = names.map((name) => recordOf(memberOf(model, name)));
    options = { ...own[0], ...own[1], ...options };
    if (inner === undefined) break;
    model = inner;
  }
  const plain = model as BaseChatModel; // wrappers end at one
  const { tools: _tools, tool_choice: _choice, ...kept } = options;
  if (Object.keys(options).length === 0) return plain;
  const defaultOptions = { value: {}, writable: true, configurable: true };
  const standing = Object.create(plain, { defaultOptions }) as BaseChatModel; // it inherits from one
  wrappings.set(standing, kept);
  const exchange = findExchange(plain);
  return exchange === undefined ? standing : setExchange(standing, exchange);
});

async function unwrap(model: object): Promise<object | undefined> {
  const bound = memberOf(model, "bound");
  // LangChain's binding, in any copy of it.
  if (isObject(bound) && typeof memberOf(model, "_mergeConfig") === "function") return bound;
  const make = memberOf(model, "_getModelInstance");
  const fields = memberOf(model, "_configurableFields");
  // `initChatModel` has these by default, also for a model that is chosen already.
  const isChosen =
    String(fields) === "model,modelProvider" &&
    memberOf(model, "_configPrefix") === "" &&
    memberOf(memberOf(model, "_defaultConfig"), "model") !== undefined;
  // A model that each run may choose again stays wrapped.
  if (typeof make !== "function" || !(isChosen || (Array.isArray(fields) && fields.length === 0)))
    return undefined;
  const made: unknown = await make.call(model);
  return isObject(made) ? made : undefined;
}
