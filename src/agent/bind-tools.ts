import { BaseChatModel, type BindToolsInput } from "@langchain/core/language_models/chat_models";
import { joinStream } from "./models/joined-stream.ts";

type Bound = ReturnType<NonNullable<BaseChatModel["bindTools"]>>;

/** What a model is asked to do with its tools. */
export interface ToolBinding {
  model: BaseChatModel;
  tools: readonly BindToolsInput[];
  /** The provider's own form, or `any`. */
  toolChoice?: unknown;
  /** Further options of the provider, always the same for one agent. */
  options?: Record<string, unknown>;
}

/** Binds tools to a model once per set of tools: turning schemas into a provider's form is not free. */
export class ToolBinder {
  #last: { binding: ToolBinding; bound: Bound } | undefined;

  bind(binding: ToolBinding): Pick<BaseChatModel, "invoke"> {
    const { model, tools, toolChoice, options } = binding;
    if (tools.length === 0 && !options) return model;
    if (!model.bindTools) {
      throw new Error("This model cannot call tools; choose one that can.");
    }
    if (!this.#last || !isSame(this.#last.binding, binding)) {
      // The choice is the provider's own type; who sets it knows the model.
      const choice = toolChoice === undefined ? {} : { tool_choice: toolChoice as string };
      const bound = model.bindTools([...tools], { ...choice, ...options });
      // OpenAI's package makes another model, to which nothing done to the first one applies.
      if (bound instanceof BaseChatModel) joinStream(bound);
      this.#last = { binding, bound };
    }
    return this.#last.bound;
  }
}

/** Tools are told apart as objects: middleware may offer a changed one under the same name. */
function isSame(a: ToolBinding, b: ToolBinding): boolean {
  return (
    a.model === b.model &&
    JSON.stringify(a.toolChoice) === JSON.stringify(b.toolChoice) &&
    (a.options === undefined) === (b.options === undefined) &&
    a.tools.length === b.tools.length &&
    a.tools.every((tool, index) => tool === b.tools[index])
  );
}
