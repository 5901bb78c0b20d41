import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { type AIMessage, type BaseMessage, HumanMessage, SystemMessage } from "@langchain/core/messages";
import { StateSchema } from "@langchain/langgraph";
import type { BackendSource } from "../../backends/backend.ts";
import { contentOf } from "../../backends/file-data.ts";
import { sanitizeToolCallId } from "../../backends/paths.ts";
import { resolveBackend } from "../../backends/resolve.ts";
import { errorMessage } from "../../core/errors.ts";
import type { Logger } from "../../core/logger.ts";
import { currentRun, spentBy } from "../limits/limits.ts";
import { SPENT } from "../limits/meter.ts";
import { ModelAwaited } from "../models/client-model.ts";
import { modelFailure } from "../models/failure.ts";
import { answeredBy, emitModelCalled } from "../models/reply.ts";
import { SUMMARY_PROMPT } from "../prompts.ts";
import { latest } from "../state.ts";
import { agentPath, backendRuntime, meterOf, threadFiles } from "../step.ts";
import {
  type ContextLimits,
  type ContextSize,
  cutIndex,
  defaultLimits,
  isOver,
} from "../summarization/plan.ts";
import { tokensOfAll, tokensOfText } from "../summarization/plan.ts";
import { transcript } from "../summarization/transcript.ts";
import { type Compaction, compactedView, sinceId } from "../summarization/view.ts";
import type { Middleware, ModelHandler, ModelRequest } from "./middleware.ts";

export interface SummarizationOptions {
  /** Default: 85 % of the model's window, or 170,000 tokens when that is unknown. */
  trigger?: ContextSize | readonly ContextSize[];
  /** What stays as it is. Default: 10 % of the window, or 6 messages. */
  keep?: ContextSize;
  /** Writes the summaries. Default: the agent's model. */
  model?: BaseChatModel;
  /** Replaces the built-in instructions. */
  prompt?: string;
  /** Folder for the full text of what was summarized. Default `/conversation_history`. */
  historyPathPrefix?: string;
  /** Shortens long file contents in old tool arguments before anything is summarized. Default true. */
  truncateArgs?: boolean;
}

interface Setup extends SummarizationOptions {
  backend: BackendSource;
  log: Logger;
}

/**
 * Keeps a conversation within the model's window. When it grows over the limit, old tool arguments are
 * shortened first; if that is not enough, everything before the newest part is saved to a file and
 * replaced by a summary. What the model sees changes at these moments only, so that in between each
 * request begins with the bytes of the one before. The thread's own messages are never changed.
 */
export function summarizationMiddleware(setup: Setup): Middleware {
  return {
    name: "SummarizationMiddleware",
    stateSchema: new StateSchema({ _summarization: latest<Compaction>({}) }),
    wrapModelCall: async (request, next) => {
      const compaction = (request.state["_summarization"] as Compaction | undefined) ?? {}; // our channel
      const limits = limitsFor(setup, request.model);
      const view = compactedView(request.messages, compaction);
      if (!isOver(limits, requestTokens(request, view), view.length)) {
        return sendOrCompact(request, view, compaction, limits, next, setup);
      }
      return next({ ...request, messages: await compact(request, compaction, limits, setup, false) });
    },
  };
}

/** Sends a request; when the provider says that it is too long, compacts once and sends it again. */
async function sendOrCompact(
  request: ModelRequest,
  view: BaseMessage[],
  compaction: Compaction,
  limits: ContextLimits,
  next: ModelHandler,
  setup: Setup,
): Promise<AIMessage> {
  try {
    return await next({ ...request, messages: view });
  } catch (error) {
    if (modelFailure(error).code !== "context_overflow") throw error;
    setup.log.warn("context_overflow", { messages: view.length });
    return next({ ...request, messages: await compact(request, compaction, limits, setup, true) });
  }
}

function limitsFor({ trigger, keep }: SummarizationOptions, model: BaseChatModel): ContextLimits {
  const { maxInputTokens } = model.profile;
  const defaults = defaultLimits(maxInputTokens);
  return {
    trigger: trigger === undefined ? defaults.trigger : [trigger].flat(),
    keep: keep ?? defaults.keep,
    maxInputTokens,
  };
}

function requestTokens(request: ModelRequest, view: readonly BaseMessage[]): number {
  const tools = request.tools.reduce(
    (sum, { name, description }) => sum + tokensOfText(name + description),
    0,
  );
  return tokensOfText(request.systemPrompt) + tools + tokensOfAll(view);
}

/** Shortens, and summarizes when that is not enough or `force` asks for it; gives the new view. */
async function compact(
  request: ModelRequest,
  before: Compaction,
  limits: ContextLimits,
  setup: Setup,
  force: boolean,
): Promise<BaseMessage[]> {
  const { messages } = request;
  const kept = sinceId(messages, before.keptFrom);
  let cut = cutIndex(kept, limits);
  while (cut > 0 && !kept[cut]?.id) cut -= 1; // the cut is stored as a message id
  const firstKept = kept[cut];
  const shortened: Compaction = { ...before, ...(firstKept?.id ? { fullFrom: firstKept.id } : {}) };
  if (setup.truncateArgs !== false && !force) {
    const view = compactedView(messages, shortened);
    if (!isOver(limits, requestTokens(request, view), view.length)) {
      request.updateState({ _summarization: shortened });
      return view;
    }
  }
  if (cut === 0 || !firstKept?.id) return compactedView(messages, before);
  const summary = await summarize(request, before, kept.slice(0, cut), setup);
  if (summary === undefined) return compactedView(messages, before);
  const after: Compaction = { keptFrom: firstKept.id, summary };
  request.updateState({ _summarization: after });
  return compactedView(messages, after);
}

/** Saves the messages, then has them summarized; `undefined` when that fails twice: nothing is cut then. */
async function summarize(
  request: ModelRequest,
  before: Compaction,
  messages: readonly BaseMessage[],
  setup: Setup,
): Promise<string | undefined> {
  const text = transcript(messages);
  const path = await saveHistory(request, text, setup);
  if (path === undefined) return undefined;
  const model = setup.model ?? request.model;
  const earlier = before.summary ? `Summary of what came before:\n\n${before.summary}\n\n` : "";
  for (let attempt = 1; attempt <= 2; attempt += 1) {
    try {
      const { signal } = request.runtime;
      const reply = await model.invoke(
        [new SystemMessage(setup.prompt ?? SUMMARY_PROMPT), new HumanMessage(`${earlier}${text}`)],
        signal ? { signal } : {},
      );
      count(reply, request, model);
      if (reply.text.trim() !== "") return summaryText(reply.text, path, request);
    } catch (error) {
      if (request.runtime.signal?.aborted || error instanceof ModelAwaited) throw error;
      setup.log.warn("summary_failed", { attempt, problem: errorMessage(error) });
    }
  }
  return undefined;
}

/** What the summary cost belongs to the agent: it counts towards its limits, also after a restart. */
function count(reply: AIMessage, request: ModelRequest, model: BaseChatModel): void {
  const { runtime, messages } = request;
  const meter = meterOf(runtime, {});
  const told = answeredBy(reply, model);
  emitModelCalled(told, runtime, { prices: meter.limits.prices, purpose: "summary" });
  const spent = spentBy(told, meter.limits);
  meter.add(spent);
  request.updateState({ [SPENT]: { run: currentRun(messages).id, ...spent } });
}

function summaryText(summary: string, path: string, { state }: ModelRequest): string {
  const todos = state.todos.map(({ content, status }) => `- [${status}] ${content}`);
  const list = todos.length > 0 ? `\n\nTodo list at this point:\n${todos.join("\n")}` : "";
  return `[Summary of the conversation so far. Its full text is in ${path}; read the part you need there.]\n\n${summary.trim()}${list}`;
}

/** Appends to the thread's history file; gives its path, or `undefined` when it could not be written. */
async function saveHistory(request: ModelRequest, text: string, setup: Setup): Promise<string | undefined> {
  const { runtime } = request;
  const backend = await resolveBackend(setup.backend, backendRuntime(runtime, threadFiles(runtime)));
  const owner = [runtime.threadId ?? "thread", ...agentPath(runtime).map(({ callId }) => callId)].join("-");
  const path = `${setup.historyPathPrefix ?? "/conversation_history"}/${sanitizeToolCallId(owner)}.md`;
  const { data } = await backend.readRaw(path);
  const known = data ? contentOf(path, data) : undefined;
  const before = known?.ok && known.content.kind === "text" ? `${known.content.text}\n` : "";
  // Saved before the model call of this summary was broken off: the task has started again.
  if (before.endsWith(`${text}\n`)) return path;
  const written = await backend.write(path, before + text, { mode: "overwrite" });
  if (written.error !== undefined) {
    setup.log.warn("history_not_saved", { path, error: written.error });
    return undefined;
  }
  if (written.filesUpdate) request.updateState({ files: written.filesUpdate });
  return path;
}
