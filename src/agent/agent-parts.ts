import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import type { SystemMessage } from "@langchain/core/messages";
import type { BackendSource } from "../backends/backend.ts";
import type { Logger } from "../core/logger.ts";
import type { AgentTool } from "./agent-tool.ts";
import type { ArgumentsCheck } from "./arguments-check.ts";
import type { AgentLimits } from "./limits/limits.ts";
import type { Middleware } from "./middleware/middleware.ts";
import type { ReplyCache } from "./models/reply-cache.ts";
import type { Permissions } from "./permissions.ts";
import type { StructuredResponse } from "./structured.ts";
import type { SubagentRunner } from "./subagents.ts";

/** Everything the nodes of one agent's graph share; put together by `createDeepAgent`. */
export interface AgentParts {
  readonly name: string;
  /** Resolved on the first call: construction loads no provider. */
  readonly model: () => Promise<BaseChatModel>;
  readonly systemMessage: SystemMessage;
  readonly tools: ReadonlyMap<string, AgentTool>;
  readonly middleware: readonly Middleware[];
  readonly backend: BackendSource;
  /** Where texts that left the conversation are kept. */
  readonly keptFolders: readonly string[];
  readonly subagents: SubagentRunner | undefined;
  /** The form of the final answer, where one is asked for. */
  readonly structured: StructuredResponse | undefined;
  /** Replies to earlier requests, where they are to be used again. */
  readonly cache: ReplyCache | undefined;
  /** Rules for paths, where there are any. */
  readonly permissions: Permissions | undefined;
  /** The forms that edits of calls have to have, by tool. */
  readonly editForms: ReadonlyMap<string, ArgumentsCheck>;
  readonly limits: AgentLimits;
  readonly log: Logger;
  /** Names of all state channels. */
  readonly channels: string[];
  /** Names of those that fold what is written into what they hold. */
  readonly folding: ReadonlySet<string>;
}
