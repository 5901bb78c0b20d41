import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage } from "@langchain/core/messages";
import { agentPath, type Scope, traceOf } from "../step.ts";

/** Calls a model, and tells who traces the run when it began and how it ended. */
export async function tracedCall(
  scope: Scope,
  model: BaseChatModel,
  call: () => Promise<unknown>,
): Promise<AIMessage> {
  const trace = traceOf(scope)?.modelCall(agentPath(scope), model);
  try {
    const reply = await call();
    if (!AIMessage.isInstance(reply)) {
      throw new Error("The model answered with something that is not an assistant message.");
    }
    trace?.answered(reply);
    return reply;
  } catch (error) {
    trace?.failed(error);
    throw error;
  }
}
