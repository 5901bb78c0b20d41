/** Binds tools to a model, with their schemas in the form that the model's provider takes. */
import { AIMessage, AIMessageChunk } from "@langchain/core/messages";
import type { BaseChatModel, BindToolsInput } from "@langchain/core/language_models/chat_models";
import { mergeConfigs } from "@langchain/core/runnables";
import { isStructuredTool } from "@langchain/core/utils/function_calling";
import { toJsonSchema } from "@langchain/core/utils/json_schema";
import { byIdentity } from "../../core/by-identity.ts";
import { ConfigurationError, orElse } from "../../core/errors.ts";
import { canonicalJson } from "../../core/json.ts";
import { joinStreams } from "./joined-stream.ts";
import { findWrapping } from "./plain-model.ts";
import { assembleReply, modelName } from "./reply.ts";
import classes from "../messages/model-classes.json" with { type: "json" };
import texts from "./texts.json" with { type: "json" };
import { type SentSchema, geminiSchema, sentSchema } from "./tool-schema.ts";

export interface ToolBinding {
  model: BaseChatModel;
  tools: readonly BindToolsInput[];
  /** The provider's own form, or `any`. */
  toolChoice?: unknown;
  /** Further options of the provider, always the same for one agent. */
  options?: Record<string, unknown>;
}

/** A model with its tools, and the ways back to the arguments that a tool knows, by its name. */
interface BoundModel {
  bound: Pick<BaseChatModel, "invoke">;
  restores: ReadonlyMap<unknown, SentSchema["restore"] | undefined>;
}

/** Binds tools to a model once per set of tools: turning schemas into a provider's form is not free. */
export class ToolBinder {
  #last: ({ binding: ToolBinding } & BoundModel) | undefined;

  bind(binding: ToolBinding): Pick<BaseChatModel, "invoke"> {
    const wrapping = findWrapping(binding.model);
    const { bound, restores } = this.#bind(binding);
    return {
      invoke: async (input, config) => {
        const given = await bound.invoke(input, wrapping ? mergeConfigs(wrapping, config) : config);
        const reply = AIMessageChunk.isInstance(given) ? assembleReply(given) : given;
        for (const call of (AIMessage.isInstance(reply) && reply.tool_calls) || [])
          // Restoring keeps an object an object.
          call.args = (restores.get(call.name)?.(call.args) ?? call.args) as typeof call.args;
        return reply;
      },
    };
  }

  #bind(binding: ToolBinding): BoundModel {
    const { model, tools, options } = binding;
    if (tools.length === 0 && !options) return { bound: joinStreams(model), restores: new Map() };
    if (!this.#last || !isSameBinding(this.#last.binding, binding))
      this.#last = { binding, ...boundModel(binding) };
    return this.#last;
  }
}

function boundModel({ model, tools, toolChoice, options }: ToolBinding): BoundModel {
  if (!model.bindTools) throw new ConfigurationError("model_without_tools", texts.cannotCallTools);
  const names = `${model._llmType()} ${model.getName()} ${modelName(model)}`;
  // Also the model of a service that speaks another protocol.
  const isGemini = classes.some(
    ({ schema, named }) => schema === "gemini" && new RegExp(named, "i").test(names),
  );
  const sent = tools.map(isGemini ? forGemini : forOthers);
  // The choice is the provider's own type, chosen for this model.
  const choice = toolChoice === undefined ? {} : { tool_choice: toolChoice as string };
  const own = sent.map(({ tool }) => tool);
  const restores = sent.map(({ tool, restore }) => [Reflect.get(tool, "name") as unknown, restore] as const);
  return { bound: joinStreams(model.bindTools(own, { ...choice, ...options })), restores: new Map(restores) };
}

const forOthers = byIdentity((tool: BindToolsInput) => sentTool(tool));
const forGemini = byIdentity((tool: BindToolsInput) => sentTool(tool, geminiSchema));

/** Returns the tool itself if its schema can be sent unchanged. A provider's own tools are plain objects. */
function sentTool(tool: BindToolsInput, narrow?: typeof geminiSchema) {
  if (!isStructuredTool(tool)) return { tool };
  const given: unknown = orElse(() => toJsonSchema(tool.schema), undefined);
  if (given === undefined) return { tool }; // a schema without that form is for the provider's package to refuse
  const { schema, restore } = sentSchema(given, narrow);
  if (canonicalJson(schema) === canonicalJson(given)) return { tool };
  const changed = Object.create(tool, { schema: { value: schema, enumerable: true } }) as typeof tool; // it inherits from it
  return { tool: changed, restore };
}

/** Tools are compared as objects: middleware may offer a changed one under the same name. */
const isSameBinding = (a: ToolBinding, b: ToolBinding): boolean =>
  a.model === b.model &&
  JSON.stringify(a.toolChoice) === JSON.stringify(b.toolChoice) &&
  (a.options === undefined) === (b.options === undefined) &&
  a.tools.length === b.tools.length &&
  a.tools.every((tool, index) => tool === b.tools[index]);
