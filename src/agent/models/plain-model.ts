/** Looks through what LangChain wraps around chat models: `initChatModel`, `withConfig`, `withRetry`, `bindTools`. */
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import type { RunnableConfig } from "@langchain/core/runnables";
import { isObject, isRecord, recordOf } from "../../core/unknown.ts";

/** Options of the wrappers, by the model inside. */
const wrappings = new WeakMap<object, RunnableConfig>();

/** The options that a model was wrapped with, for each of its calls. */
export const findWrapping = (model: BaseChatModel): RunnableConfig | undefined => wrappings.get(model);

/** The chat model inside its wrappers. Its retries are ours, and tools that were bound before are the agent's to bind. */
export async function plainModel(given: BaseChatModel): Promise<BaseChatModel> {
  let model: object = given;
  let options: Record<string, unknown> = {};
  for (;;) {
    const {
      tools: _tools,
      tool_choice: _choice,
      ...own
    } = {
      ...recordOf(Reflect.get(model, "config")),
      ...recordOf(Reflect.get(model, "kwargs")),
    };
    const inner = await unwrap(model);
    if (inner === undefined) break;
    options = { ...own, ...options };
    model = inner;
  }
  if (model === given) return given;
  const known = wrappings.get(model);
  // One model may be wrapped twice, each time with other options.
  if (known !== undefined && JSON.stringify(known) !== JSON.stringify(options))
    model = Object.assign(Object.create(Object.getPrototypeOf(model) as object) as object, model);
  wrappings.set(model, options);
  return model as BaseChatModel; // wrappers end at one
}

async function unwrap(model: object): Promise<object | undefined> {
  const bound: unknown = Reflect.get(model, "bound");
  // LangChain's binding, in any copy of it.
  if (isObject(bound) && typeof Reflect.get(model, "_mergeConfig") === "function") return bound;
  const make: unknown = Reflect.get(model, "_getModelInstance");
  const fields: unknown = Reflect.get(model, "_configurableFields");
  // A model that each run may choose again stays wrapped.
  if (typeof make !== "function" || !Array.isArray(fields) || fields.length > 0) return undefined;
  const made: unknown = await make.call(model);
  return isRecord(made) || isObject(made) ? made : undefined;
}
