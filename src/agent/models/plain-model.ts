/** Looks through what LangChain wraps around chat models: `initChatModel`, `withConfig`, `withRetry`, `bindTools`. */
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import type { RunnableConfig } from "@langchain/core/runnables";
import { isObject, recordOf } from "../../core/unknown.ts";

/** Options of the wrappers, by the model inside. */
const wrappings = new WeakMap<object, RunnableConfig>();

/** The options that a model was wrapped with, for each of its calls. */
export const findWrapping = (model: BaseChatModel): RunnableConfig | undefined => wrappings.get(model);

/** The chat model inside its wrappers. Its retries are ours, and tools that were bound before are the agent's to bind. */
export async function plainModel(given: BaseChatModel): Promise<BaseChatModel> {
  let model: object = given;
  let options: Record<string, unknown> = {};
  for (;;) {
    const [bound, merge, make, fields] = [
      "bound",
      "_mergeConfig",
      "_getModelInstance",
      "_configurableFields",
    ].map((name) => Reflect.get(model, name) as unknown);
    // LangChain's classes, in any copy of it. A model that each run may choose again stays wrapped.
    const isChosen = typeof make === "function" && Array.isArray(fields) && fields.length === 0;
    const inner: unknown =
      typeof merge === "function" ? bound : isChosen ? await Reflect.apply(make, model, []) : undefined;
    if (!isObject(inner)) break;
    const { config, kwargs } = recordOf({ ...model });
    const { tools: _tools, tool_choice: _choice, ...own } = { ...recordOf(config), ...recordOf(kwargs) };
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
