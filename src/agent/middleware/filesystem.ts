import type { ToolMessage } from "@langchain/core/messages";
import { Command, isCommand } from "@langchain/langgraph";
import type { BackendSource, FilesUpdate } from "../../backends/backend.ts";
import { resolveBackend } from "../../backends/resolve.ts";
import { canExecute, jobsOf } from "../../tools/execute.ts";
import { fileTools } from "../../tools/index.ts";
import type { FileToolOptions } from "../../tools/options.ts";
import { toAgentTool, toolMessagesOf } from "../agent-tool.ts";
import { evictLargeResult } from "../eviction.ts";
import { FILES_PROMPT } from "../prompts.ts";
import { backendRuntime, threadFiles } from "../step.ts";
import { type AgentRuntime, appendSystemPrompt, type Middleware } from "./middleware.ts";

/** Options of the file tools and of what happens to their results. */
export interface FilesystemOptions extends FileToolOptions {
  /** Results above this many tokens go into a file; `null`: never. Default 20,000. */
  evictTokens?: number | null;
  /** Replaces the built-in text in the system prompt; `null`: none. */
  systemPrompt?: string | null;
}

const DEFAULT_EVICT_TOKENS = 20_000;

/** Files: the tools, how to use them, and large results moved out of the conversation. */
export function filesystemMiddleware(backend: BackendSource, options: FilesystemOptions = {}): Middleware {
  const tools = fileTools(options).map((spec) => toAgentTool(spec));
  const evictTokens = options.evictTokens === undefined ? DEFAULT_EVICT_TOKENS : options.evictTokens;
  const prompt = options.systemPrompt === undefined ? FILES_PROMPT : options.systemPrompt;
  const resolve = (runtime: AgentRuntime) =>
    resolveBackend(backend, backendRuntime(runtime, threadFiles(runtime)));
  return {
    name: "FilesystemMiddleware",
    tools,
    wrapModelCall: async (request, next) => {
      const own = await resolve(request.runtime);
      const isUsable = { execute: canExecute(own), job: jobsOf(own) !== undefined };
      const offered = request.tools.filter(({ name }) => isUsable[name as keyof typeof isUsable] ?? true); // other names are looked up in vain
      const withTools = { ...request, tools: offered };
      return next(prompt === null ? withTools : appendSystemPrompt(withTools, prompt));
    },
    wrapToolCall: async (request, next) => {
      const outcome = await next(request);
      if (evictTokens === null || request.toolCall.name === "read_file") return outcome;
      const update: FilesUpdate = {};
      for (const message of toolMessagesOf(outcome)) {
        const evicted = await evictLargeResult(message, await resolve(request.runtime), evictTokens);
        Object.assign(update, evicted);
      }
      return Object.keys(update).length === 0 ? outcome : withFiles(outcome, update);
    },
  };
}

function withFiles(outcome: ToolMessage | Command, files: FilesUpdate): Command {
  if (!isCommand(outcome)) return new Command({ update: { messages: [outcome], files } });
  const update = Array.isArray(outcome.update) ? Object.fromEntries(outcome.update) : outcome.update;
  const before: unknown = update?.["files"];
  return new Command({
    ...(outcome.goto ? { goto: outcome.goto } : {}),
    update: { ...update, files: { ...(before as FilesUpdate | undefined), ...files } }, // our channel's own updates
  });
}
