import { BaseCallbackHandler } from "@langchain/core/callbacks/base";

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
}

export const streamAnswers: BaseCallbackHandler = new StreamAnswers();
