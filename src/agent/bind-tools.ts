import type { BaseChatModel, BindToolsInput } from "@langchain/core/language_models/chat_models";

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
  #last: { model: BaseChatModel; key: string; bound: Bound } | undefined;

  bind({ model, tools, toolChoice, options }: ToolBinding): Pick<BaseChatModel, "invoke"> {
    if (tools.length === 0 && !options) return model;
    if (!model.bindTools) {
      throw new Error("This model cannot call tools; choose one that can.");
    }
    const key = JSON.stringify([tools.map(nameOf), toolChoice ?? null, options !== undefined]);
    if (this.#last?.model !== model || this.#last.key !== key) {
      // The choice is the provider's own type; who sets it knows the model.
      const choice = toolChoice === undefined ? {} : { tool_choice: toolChoice as string };
      this.#last = { model, key, bound: model.bindTools([...tools], { ...choice, ...options }) };
    }
    return this.#last.bound;
  }
}

function nameOf(tool: BindToolsInput): unknown {
  if ("name" in tool) return tool.name;
  return "function" in tool && typeof tool.function === "object" && tool.function && "name" in tool.function
    ? tool.function.name
    : tool;
}
