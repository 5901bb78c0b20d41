import type { BaseLanguageModelInput } from "@langchain/core/language_models/base";
import {
  BaseChatModel,
  type BaseChatModelCallOptions,
  type BindToolsInput,
} from "@langchain/core/language_models/chat_models";
import type { AIMessageChunk, BaseMessage } from "@langchain/core/messages";
import type { ModelProfile } from "@langchain/core/language_models/profile";
import type { ChatResult } from "@langchain/core/outputs";
import type { Runnable } from "@langchain/core/runnables";
import { DeepAgentError, RunFailure } from "../../core/errors.ts";
import { oneLine } from "../../core/text.ts";
import { answeredMessage, type SamplingReply, type SamplingRequest, samplingRequest } from "./sampling.ts";

/** Where model calls are answered by somebody else's model: for a run, by the clients of its principal. */
export interface ModelLender {
  /**
   * The reply to a request. The same request has the same reply however often it is asked for, also after
   * a crash. `undefined`: nobody answers now, and the agent is to wait without holding anything.
   */
  reply(request: SamplingRequest, signal: AbortSignal | undefined): Promise<SamplingReply | undefined>;
}

/** Value of the interrupt of a model call that waits for a client to lend its model. */
export const MODEL_AWAITED = "model_awaited";

/** Nobody lends a model now: the agent stops where it is, and asks again when it goes on. */
export class ModelAwaited extends DeepAgentError {
  constructor() {
    super("model_awaited", "No client lends its model now.");
  }
}

interface ClientCallOptions extends BaseChatModelCallOptions {
  tools?: BindToolsInput[];
}

/** The model of the client, through MCP sampling. Tokens are not known: clients do not tell them. */
export class ClientModel extends BaseChatModel<ClientCallOptions> {
  readonly #lender: ModelLender;

  constructor(lender: ModelLender) {
    super({});
    this.#lender = lender;
  }

  override _llmType(): string {
    return "client";
  }

  override getName(): string {
    return "client";
  }

  /** What sampling can carry. */
  override get profile(): ModelProfile {
    return { imageInputs: true, audioInputs: true, videoInputs: false, pdfInputs: false };
  }

  override bindTools(
    tools: BindToolsInput[],
    options?: Partial<ClientCallOptions>,
  ): Runnable<BaseLanguageModelInput, AIMessageChunk, ClientCallOptions> {
    return this.withConfig({ ...options, tools });
  }

  /** @throws ModelAwaited when nobody answers now, RunFailure when the client would not or could not. */
  override async _generate(messages: BaseMessage[], options: this["ParsedCallOptions"]): Promise<ChatResult> {
    const request = samplingRequest(messages, {
      ...(options.tools === undefined ? {} : { tools: options.tools }),
      toolChoice: options.tool_choice,
    });
    const reply = await this.#lender.reply(request, options.signal);
    if (reply === undefined) throw new ModelAwaited();
    if (reply.kind === "declined") {
      const message = `The client did not lend its model: ${oneLine(reply.message, 300)}. Allow it there and start again, or configure another model or a fallback model.`;
      throw new RunFailure("model_unavailable", message);
    }
    const message = answeredMessage(reply);
    return { generations: [{ text: message.text, message }] };
  }
}
