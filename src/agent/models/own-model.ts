/** The base of models that are parts of this program. */
import type { BaseLanguageModelInput } from "@langchain/core/language_models/base";
import type { BaseChatModelCallOptions, BindToolsInput } from "@langchain/core/language_models/chat_models";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import type { AIMessageChunk } from "@langchain/core/messages";
import type { Runnable } from "@langchain/core/runnables";

interface OwnCallOptions extends BaseChatModelCallOptions {
  tools?: BindToolsInput[];
}

/** A model that is named by its type, and whose calls get the bound tools as an option. */
export abstract class OwnModel extends BaseChatModel<OwnCallOptions> {
  constructor() {
    super({});
  }

  override getName(): string {
    return this._llmType();
  }

  override bindTools(
    tools: BindToolsInput[],
    options?: Partial<OwnCallOptions>,
  ): Runnable<BaseLanguageModelInput, AIMessageChunk, OwnCallOptions> {
    return this.withConfig({ ...options, tools });
  }
}
