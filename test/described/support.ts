import { type BaseMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { z } from "zod";
export { filesIn as folder } from "../support/files-in.ts";

/** What the tools answered, in the order of the calls. */
export const results = (messages: readonly BaseMessage[]): string[] =>
  messages.filter((message) => ToolMessage.isInstance(message)).map(({ text }) => text);

export const said = (content: string) => ({ messages: [{ role: "user", content }] });

export const tavilySearch = tool(({ query }) => `결과: ${query}`, {
  name: "tavily_search",
  description: "웹 검색을 수행합니다.",
  schema: z.object({ query: z.string(), max_results: z.number().default(3) }),
});

export const thinkTool = tool(() => "생각이 기록되었습니다.", {
  name: "think_tool",
  description: "전략적 사고를 위한 도구입니다.",
  schema: z.object({ reflection: z.string() }),
});
