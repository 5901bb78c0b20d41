/** The base of models that are parts of this program. */
import type { BaseChatModelCallOptions, BindToolsInput } from "@langchain/core/language_models/chat_models";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";

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

  override bindTools(tools: BindToolsInput[], options?: Partial<OwnCallOptions>) {
    return this.withConfig({ ...options, tools });
  }
}
