import type { BaseMessage, HumanMessage } from "@langchain/core/messages";
import type { BackendSource, FilesUpdate } from "../../backends/backend.ts";
import { listRoots } from "../../backends/runtime.ts";
import { type Logger, silentLogger } from "../../core/logger.ts";
import { canExecute, backgroundJobs } from "../../tools/execute.ts";
import { fileTools } from "../../tools/index.ts";
import type { FileToolOptions } from "../../tools/options.ts";
import { specTool } from "../calls/tool.ts";
import type { CallResult, Middleware, ModelRequest } from "../contracts/middleware.ts";
import { foldMessages } from "../messages/messages.ts";
import {
  HISTORY_FOLDER,
  type KeepingPlace,
  evictLargeMessage,
  evictLargeResult,
  isTooLarge,
  largeMessages,
} from "../messages/kept-texts.ts";
import { commandsPrompt, filesPrompt } from "../messages/prompts.ts";
import { appendSystemPrompt } from "../messages/system-prompt.ts";

export interface FilesystemOptions extends FileToolOptions {
  /** Results above this many tokens go into a file; `null`: never. Default 20,000. */
  evictTokens?: number | null;
  /**
   * A person's message above this many tokens goes into a file before the model first sees it, and is shown
   * as its beginning, its end and the file's path; `null`: never. Default 50,000.
   */
  humanEvictTokens?: number | null;
  /** Replaces the built-in text in the system prompt; `null`: none. */
  systemPrompt?: string | null;
}

/** Files: the tools, how to use them, and large texts moved into files (people's messages into `historyFolder`). */
export function filesystemMiddleware(
  backend: BackendSource,
  options: FilesystemOptions = {},
  { historyFolder = HISTORY_FOLDER, log = silentLogger }: { historyFolder?: string; log?: Logger } = {},
): Middleware {
  const tools = fileTools(options).map((spec) => specTool(spec));
  const { evictTokens = 20_000, humanEvictTokens = 50_000 } = options;
  const placeOf = async (request: Pick<ModelRequest, "runtime" | "state">): Promise<KeepingPlace> => {
    const { step } = request.runtime;
    return { backend: await step.backend(backend, request.state, log), files: step.files };
  };
  return {
    name: "FilesystemMiddleware",
    tools,
    wrapModelCall: async (request, next) => {
      const place = await placeOf(request);
      const isUsable = {
        execute: canExecute(place.backend),
        job: backgroundJobs(place.backend) !== undefined,
        delete: place.backend.delete !== undefined,
      };
      const offered = request.tools.filter(({ name }) => isUsable[name as keyof typeof isUsable] ?? true); // other names are looked up in vain
      const large = humanEvictTokens === null ? [] : largeMessages(request.messages, humanEvictTokens);
      const fitting = await withoutLargeMessages(request, large, place, historyFolder);
      const withTools = { ...fitting, tools: offered };
      if (options.systemPrompt === null) return next(withTools);
      const prompt = options.systemPrompt ?? filesPrompt(await listRoots(place.backend));
      const isOffered = offered.some(({ name }) => name === "execute");
      const commands = isOffered && canExecute(place.backend) ? [commandsPrompt(place.backend)] : [];
      return next(appendSystemPrompt(withTools, [prompt, ...commands].join("\n\n")));
    },
    wrapCall: async (request, next) => {
      const result = await next(request);
      if (evictTokens === null || request.isInner || request.toolCall.name === "read_file") return result;
      const files: FilesUpdate = {};
      const shorten = async (one: CallResult): Promise<CallResult> => {
        if (!isTooLarge(one, evictTokens)) return one;
        const place = await placeOf(request);
        const { short, kept } = await evictLargeResult(request.toolCall, one, place, evictTokens);
        Object.assign(files, kept?.update);
        return short;
      };
      const own = await shorten(result);
      const further: CallResult[] = [];
      for (const one of result.further ?? []) further.push(await shorten(one));
      const update = { ...own.update, files: { ...own.update?.files, ...files } };
      return { ...own, further, ...(Object.keys(files).length > 0 && { update }) };
    },
  };
}

/** The request as this and all later ones show it: the state takes the short messages with the reply. */
async function withoutLargeMessages(
  request: ModelRequest,
  large: readonly HumanMessage[],
  place: KeepingPlace,
  folder: string,
): Promise<ModelRequest> {
  const short: BaseMessage[] = [];
  for (const message of large) {
    const evicted = await evictLargeMessage(message, place, folder);
    if (!evicted) continue;
    short.push(evicted.message);
    request.updateState({ messages: [evicted.message], files: evicted.kept.update });
  }
  if (short.length === 0) return request;
  const messages = foldMessages(request.messages, [short]);
  return { ...request, messages, state: { ...request.state, messages } };
}
