import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import type { AIMessage } from "@langchain/core/messages";
import type { Attributes, Context, Span, SpanOptions, Tracer } from "@opentelemetry/api";
import { type Clock, steadyClock } from "../core/clock.ts";
import { isAbortError } from "../core/errors.ts";
import type { AgentEvent, AgentPath } from "./events.ts";
import { reportedModel } from "./limits/limits.ts";
import { modelFailure } from "./models/failure.ts";
import { modelName } from "./models/reply.ts";
import type { ModelTrace, RunTrace } from "./step.ts";

type OpenTelemetry = typeof import("@opentelemetry/api");

export interface TracedRun {
  agent: string;
  threadId?: string | undefined;
  runId?: string | undefined;
}

let known: Promise<OpenTelemetry | undefined> | undefined;

/**
 * OpenTelemetry spans of one graph at work, when the process has registered a tracer: the run, its model
 * calls, tool calls and subagents, named by the conventions for generative AI. Spans tell names, tokens and
 * how things ended; no arguments, results or texts. `undefined` when nobody listens.
 */
export async function startTrace(
  run: TracedRun,
  clock: Clock = steadyClock(),
): Promise<RunSpans | undefined> {
  const api = await (known ??= import("@opentelemetry/api").catch(() => undefined));
  if (api === undefined) return undefined;
  const tracer = api.trace.getTracer("deepagent-mcp");
  const root = tracer.startSpan(`invoke_agent ${run.agent}`, {
    startTime: clock(),
    attributes: {
      ...operation("invoke_agent"),
      "gen_ai.agent.name": run.agent,
      ...(run.threadId === undefined ? {} : { "gen_ai.conversation.id": run.threadId }),
      ...(run.runId === undefined ? {} : { "deepagent.run.id": run.runId }),
    },
  });
  return root.isRecording() ? new RunSpans(api, tracer, root, clock) : undefined;
}

interface AgentSpan {
  span: Span;
  context: Context;
}

class RunSpans implements RunTrace {
  readonly #api: OpenTelemetry;
  readonly #tracer: Tracer;
  readonly #root: Span;
  readonly #clock: Clock;
  readonly #agents = new Map<string, AgentSpan>();
  /** By agent and call id. */
  readonly #tools = new Map<string, Span>();
  readonly #models = new Set<Span>();

  constructor(api: OpenTelemetry, tracer: Tracer, root: Span, clock: Clock) {
    this.#api = api;
    this.#tracer = tracer;
    this.#root = root;
    this.#clock = clock;
    this.#agents.set(keyOf([]), this.#agentSpan(root));
  }

  tell(event: AgentEvent): void {
    switch (event.kind) {
      case "tool_started":
        return this.#toolStarted(event);
      case "tool_finished":
        return this.#toolFinished(event);
      case "subagent_started":
        this.#agent(event.agent);
        return;
      case "subagent_finished":
        return this.#subagentFinished(event);
      case "approval_requested":
        this.#root.setAttribute("deepagent.run.waits_for_approval", true);
        this.#agent(event.agent).span.addEvent(event.kind, {}, this.#clock());
        return;
      case "compacted":
      case "warning":
        this.#agent(event.agent).span.addEvent(event.kind, {}, this.#clock());
        return;
      default:
    }
  }

  /** A model is called now. */
  modelCall(agent: AgentPath, model: BaseChatModel): ModelTrace {
    const name = modelName(model);
    const span = this.#child(this.#agent(agent).context, `chat ${name}`, {
      kind: this.#api.SpanKind.CLIENT,
      attributes: {
        ...operation("chat"),
        "gen_ai.provider.name": providerOf(model),
        "gen_ai.request.model": name,
      },
    });
    this.#models.add(span);
    const close = (): void => {
      if (this.#models.delete(span)) span.end(this.#clock());
    };
    return {
      answered: (reply) => {
        span.setAttributes(answerAttributes(reply));
        close();
      },
      failed: (error) => {
        if (isAbortError(error)) this.#mark(span, "cancelled");
        else if (error instanceof Error && error.name !== "ModelAwaited")
          this.#mark(span, modelFailure(error).code);
        close();
      },
    };
  }

  fail(error: unknown): void {
    const code: unknown = error instanceof Error ? Reflect.get(error, "code") : undefined;
    const isStopped = isAbortError(error);
    this.#mark(this.#root, typeof code === "string" ? code : isStopped ? "cancelled" : "error");
  }

  /** Ends what is still open: the work it stands for has stopped. */
  end(): void {
    const now = this.#clock();
    for (const span of [...this.#models, ...this.#tools.values()]) span.end(now);
    for (const { span } of [...this.#agents.values()].toReversed()) span.end(now);
    this.#models.clear();
    this.#tools.clear();
    this.#agents.clear();
  }

  #toolStarted({ agent, callId, tool }: Extract<AgentEvent, { kind: "tool_started" }>): void {
    const key = callKey(agent, callId);
    if (this.#tools.has(key)) return;
    const attributes = {
      ...operation("execute_tool"),
      "gen_ai.tool.name": tool,
      "gen_ai.tool.call.id": callId,
      "gen_ai.tool.type": "function",
    };
    this.#tools.set(key, this.#child(this.#agent(agent).context, `execute_tool ${tool}`, { attributes }));
  }

  #toolFinished({ agent, callId, status }: Extract<AgentEvent, { kind: "tool_finished" }>): void {
    const key = callKey(agent, callId);
    this.#close(this.#tools.get(key), status, "tool_error");
    this.#tools.delete(key);
  }

  #subagentFinished({ agent, status }: Extract<AgentEvent, { kind: "subagent_finished" }>): void {
    this.#close(this.#agents.get(keyOf(agent))?.span, status, "subagent_failed");
    this.#agents.delete(keyOf(agent));
  }

  /** The span of an agent; of a subagent that was started before a pause, a new one. */
  #agent(path: AgentPath): AgentSpan {
    const found = this.#agents.get(keyOf(path));
    if (found) return found;
    const above = path.slice(0, -1);
    const { callId = "", name = "" } = path.at(-1) ?? {};
    const call = this.#tools.get(callKey(above, callId));
    const parent = call === undefined ? this.#agent(above).context : this.#contextOf(call);
    const attributes = { ...operation("invoke_agent"), "gen_ai.agent.name": name };
    const made = this.#agentSpan(this.#child(parent, `invoke_agent ${name}`, { attributes }));
    this.#agents.set(keyOf(path), made);
    return made;
  }

  #agentSpan(span: Span): AgentSpan {
    return { span, context: this.#contextOf(span) };
  }

  #contextOf(span: Span): Context {
    return this.#api.trace.setSpan(this.#api.context.active(), span);
  }

  #child(parent: Context, name: string, options: SpanOptions): Span {
    return this.#tracer.startSpan(name, { ...options, startTime: this.#clock() }, parent);
  }

  #close(span: Span | undefined, status: "success" | "error", problem: string): void {
    if (span && status === "error") this.#mark(span, problem);
    span?.end(this.#clock());
  }

  #mark(span: Span, problem: string): void {
    span.setAttribute("error.type", problem);
    span.setStatus({ code: this.#api.SpanStatusCode.ERROR });
  }
}

function answerAttributes(reply: AIMessage): Attributes {
  const { usage_metadata: usage, response_metadata: told } = reply;
  const reason: unknown = told["stop_reason"] ?? told["finish_reason"];
  const { cache_read, cache_creation } = usage?.input_token_details ?? {};
  return {
    "gen_ai.response.model": reportedModel(reply),
    ...(typeof reason === "string" ? { "gen_ai.response.finish_reasons": [reason] } : {}),
    ...(usage
      ? {
          "gen_ai.usage.input_tokens": usage.input_tokens,
          "gen_ai.usage.output_tokens": usage.output_tokens,
        }
      : {}),
    ...(cache_read === undefined ? {} : { "gen_ai.usage.cache_read.input_tokens": cache_read }),
    ...(cache_creation === undefined ? {} : { "gen_ai.usage.cache_creation.input_tokens": cache_creation }),
  };
}

/** Where the conventions name a provider otherwise than LangChain does. */
const PROVIDERS: Readonly<Record<string, string>> = {
  amazon_bedrock: "aws.bedrock",
  azure: "azure.ai.openai",
  google_genai: "gcp.gemini",
  google_vertexai: "gcp.vertex_ai",
  mistral: "mistral_ai",
  xai: "x_ai",
};

function providerOf(model: BaseChatModel): string {
  const { ls_provider: named = model._llmType() } = model.getLsParams({});
  return PROVIDERS[named] ?? named;
}

const operation = (name: string): Attributes => ({ "gen_ai.operation.name": name });
const keyOf = (path: AgentPath): string => JSON.stringify(path.map(({ callId }) => callId));
const callKey = (path: AgentPath, callId: string): string => JSON.stringify([keyOf(path), callId]);
