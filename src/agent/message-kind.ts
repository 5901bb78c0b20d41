import type { AIMessage, BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";

// Whole threads are looked through at every step: LangChain's own `isInstance`, for values of any kind, takes
// ten times as long as the one property that tells messages apart.

export const isReply = (message: BaseMessage): message is AIMessage => message.type === "ai";

export const isResult = (message: BaseMessage): message is ToolMessage => message.type === "tool";

export const isPerson = (message: BaseMessage): message is HumanMessage => message.type === "human";
