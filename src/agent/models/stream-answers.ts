import { BaseCallbackHandler } from "@langchain/core/callbacks/base";
import { AIMessage } from "@langchain/core/messages";
import type { LLMResult } from "@langchain/core/outputs";

/**
 * Makes a chat model stream every answer, also one that is asked for in one piece: the limits on waiting
 * then apply to the start of an answer and to silence in it, not to its length.
 *
 * The providers' own `streaming` option is not used: with it, OpenAI's package counts tokens with a
 * vocabulary that it downloads from a third party in the middle of the call.
 */
class StreamAnswers extends BaseCallbackHandler {
  override readonly name: string = "deepagent_stream_answers";
  readonly lc_prefer_streaming: boolean = true;
  override awaitHandlers = true;

  /** Keeps why the answer ended: of an answer put together from its pieces, LangChain drops it. */
  override handleLLMEnd({ generations }: LLMResult): void {
    for (const { generationInfo, ...generation } of generations.flat()) {
      const reason: unknown = generationInfo?.["finish_reason"];
      if (reason === undefined || !("message" in generation)) continue;
      if (AIMessage.isInstance(generation.message))
        generation.message.response_metadata["finish_reason"] ??= reason;
    }
  }
}

export const streamAnswers: BaseCallbackHandler = new StreamAnswers();
