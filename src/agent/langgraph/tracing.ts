/** OpenTelemetry spans of a run, and the `traceparent` by which a run stays in one trace over several processes. */
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import type { AIMessage } from "@langchain/core/messages";
import type { Attributes, Context, Span, SpanContext, SpanOptions, Tracer } from "@opentelemetry/api";
import { type Clock, monotonicClock, systemClock } from "../../core/clock.ts";
import { defined } from "../../core/unknown.ts";
import { codeOf, isAbortError, isParked } from "../../core/errors.ts";
import type { AgentPath } from "../contracts/state.ts";
import type { AgentEvent } from "../contracts/events.ts";
import type { ModelTrace, RunTrace } from "../contracts/middleware.ts";
import { modelFailure } from "../models/failure.ts";
import { reportedModel } from "../budget/prices.ts";
import { readFinishReason, modelName } from "../models/reply.ts";
import table from "./provider-names.json" with { type: "json" };

type OpenTelemetry = typeof import("@opentelemetry/api");

interface TracedRun {
  agent: string;
  threadId?: string | undefined;
  runId?: string | undefined;
  /** The first span of a run that continues here, as a W3C `traceparent`. */
  begunIn?: string | undefined;
}

let known: Promise<OpenTelemetry | undefined> | undefined;

/**
 * OpenTelemetry spans of a graph, its model calls, tool calls and subagents, by the conventions for generative AI. They
 * hold names, tokens and outcomes, but no texts. A run that continues, in any process, stays in its trace, below its
 * first span; within the span of its caller it has a link to that. `traceparent` begins a later part of the run.
 */
export async function startTrace(run: TracedRun): Promise<{ trace?: RunSpans; traceparent?: string }> {
  if (!isTracing()) return {};
  const api = await (known ??= import("@opentelemetry/api").catch(() => undefined));
  if (api === undefined) return {};
  const tracer = api.trace.getTracer("deepagent-mcp");
  // The system's time now, and from then on by the monotonic clock: differences of these times count.
  const begun = systemClock() - monotonicClock();
  const clock: Clock = () => begun + monotonicClock();
  const before = spanOf(run.begunIn);
  const active = api.context.active();
  const isOwn = before === undefined || api.trace.getSpan(active) !== undefined;
  const root = tracer.startSpan(
    `invoke_agent ${run.agent}`,
    {
      startTime: clock(),
      attributes: {
        ...operation("invoke_agent"),
        "gen_ai.agent.name": run.agent,
        ...conversation(run),
        ...defined({ "deepagent.run.id": run.runId, "deepagent.run.resumed": before && true }),
      },
      ...(before !== undefined && isOwn ? { links: [{ context: before }] } : {}),
    },
    isOwn ? active : api.trace.setSpanContext(active, before),
  );
  const own = root.spanContext();
  const { traceId, spanId, traceFlags } = own;
  const flags = traceFlags.toString(16).padStart(2, "0");
  const traceparent =
    run.begunIn ?? (api.isSpanContextValid(own) ? `00-${traceId}-${spanId}-${flags}` : undefined);
  return {
    ...(root.isRecording() && { trace: new RunSpans(api, tracer, root, run, clock) }),
    ...defined({ traceparent }),
  };
}

/** True if the process may have a tracer. Loads nothing. */
export const isTracing = (): boolean => Symbol.for("opentelemetry.js.api.1") in globalThis;

const conversation = ({ threadId }: TracedRun): Attributes => defined({ "gen_ai.conversation.id": threadId });

type AgentSpan = { span: Span; context: Context };

class RunSpans implements RunTrace {
  readonly #api: OpenTelemetry;
  readonly #tracer: Tracer;
  readonly #root: Span;
  readonly #clock: Clock;
  readonly #agents = new Map<string, AgentSpan>();
  /** By agent and call id. */
  readonly #tools = new Map<string, Span>();
  readonly #models = new Set<Span>();
  readonly #conversation: Attributes;

  constructor(api: OpenTelemetry, tracer: Tracer, root: Span, run: TracedRun, clock: Clock) {
    this.#api = api;
    this.#tracer = tracer;
    this.#root = root;
    this.#clock = clock;
    this.#conversation = conversation(run);
    this.#agents.set(keyOf([]), { span: root, context: this.#contextOf(root) });
  }

  tell(event: AgentEvent): void {
    if (!this.#agents.has(keyOf([]))) return;
    switch (event.kind) {
      case "tool_started": {
        const { agent, callId, tool, recalled } = event;
        const key = callKey(agent, callId);
        if (this.#tools.has(key)) return;
        const attributes = {
          ...operation("execute_tool"),
          "gen_ai.tool.name": tool,
          "gen_ai.tool.call.id": callId,
          "gen_ai.tool.type": "function",
          ...defined({ "deepagent.tool.recalled": recalled }),
        };
        const { context } = this.#agent(agent);
        return void this.#tools.set(key, this.#child(context, `execute_tool ${tool}`, { attributes }));
      }
      case "tool_finished": {
        const key = callKey(event.agent, event.callId);
        this.#close(this.#tools.get(key), event.status, "tool_error");
        return void this.#tools.delete(key);
      }
      case "subagent_started":
        return void this.#agent(event.agent);
      case "subagent_finished": {
        const key = keyOf(event.agent);
        this.#close(this.#agents.get(key)?.span, event.status, "subagent_failed");
        return void this.#agents.delete(key);
      }
      case "approval_requested":
      case "compacted":
      case "model_retry":
      case "warning":
        if (event.kind === "approval_requested")
          this.#root.setAttribute("deepagent.run.waits_for_approval", true);
        this.#agent(event.agent).span.addEvent(event.kind, {}, this.#clock());
        return;
      default:
    }
  }

  modelCall(agent: AgentPath, model: BaseChatModel): ModelTrace {
    if (!this.#agents.has(keyOf([]))) return { answered: () => undefined, failed: () => undefined };
    const name = modelName(model);
    const { ls_provider: named = model._llmType() } = model.getLsParams({});
    const span = this.#child(this.#agent(agent).context, `chat ${name}`, {
      kind: this.#api.SpanKind.CLIENT,
      attributes: {
        ...operation("chat"),
        ...this.#conversation,
        "gen_ai.provider.name": PROVIDERS[named] ?? named,
        "gen_ai.request.model": name,
      },
    });
    this.#models.add(span);
    const close = (describe: () => void): void => {
      if (!this.#models.delete(span)) return;
      describe();
      span.end(this.#clock());
    };
    return {
      answered: (reply) => close(() => span.setAttributes(answerAttributes(reply))),
      failed: (error) =>
        close(() => {
          if (isAbortError(error)) this.#mark(span, "cancelled");
          else if (error instanceof Error && error.name !== "ModelAwaited")
            this.#mark(span, modelFailure(error).code);
        }),
    };
  }

  /** Ends the open spans, once. `signal`: that of a run that may have been stopped, or parked to continue elsewhere. */
  end(error?: unknown, signal?: AbortSignal): void {
    if (!this.#agents.has(keyOf([]))) return;
    const isCancelled = (signal?.aborted ?? isAbortError(error)) && !isParked(signal);
    if (isParked(signal)) this.#root.setAttribute("deepagent.run.parked", true);
    else if (error !== undefined)
      this.#mark(this.#root, isCancelled ? "cancelled" : (codeOf(error) ?? "_OTHER"));
    const now = this.#clock();
    const [root, ...below] = [...this.#agents.values()].map(({ span }) => span);
    const open = [...this.#models, ...this.#tools.values(), ...below.toReversed()];
    if (isCancelled) for (const span of open) this.#mark(span, "cancelled");
    for (const span of [...open, root]) span?.end(now);
    this.#models.clear();
    this.#tools.clear();
    this.#agents.clear();
  }

  /** The span of an agent. A subagent that started before a pause gets a new one. */
  #agent(path: AgentPath): AgentSpan {
    const found = this.#agents.get(keyOf(path));
    if (found) return found;
    const above = path.slice(0, -1);
    const { callId = "", name = "" } = path.at(-1) ?? {};
    const call = this.#tools.get(callKey(above, callId));
    const parent = call === undefined ? this.#agent(above).context : this.#contextOf(call);
    const attributes = { ...operation("invoke_agent"), ...this.#conversation, "gen_ai.agent.name": name };
    const span = this.#child(parent, `invoke_agent ${name}`, { attributes });
    const made = { span, context: this.#contextOf(span) };
    this.#agents.set(keyOf(path), made);
    return made;
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
  const reason = readFinishReason(reply);
  const { cache_read, cache_creation } = usage?.input_token_details ?? {};
  const model = reportedModel(reply);
  const id: unknown = told["id"];
  return defined({
    "gen_ai.response.model": model === "" ? undefined : model,
    "gen_ai.response.id": typeof id === "string" ? id : undefined,
    "gen_ai.response.finish_reasons": reason === undefined ? undefined : [reason],
    "gen_ai.usage.input_tokens": usage?.input_tokens,
    "gen_ai.usage.output_tokens": usage?.output_tokens,
    "gen_ai.usage.cache_read.input_tokens": cache_read,
    "gen_ai.usage.cache_creation.input_tokens": cache_creation,
  });
}

/** Providers that the conventions name differently from LangChain. */
const PROVIDERS: Readonly<Record<string, string>> = table;

const operation = (name: string): Attributes => ({ "gen_ai.operation.name": name });
const keyOf = (path: AgentPath): string => JSON.stringify(path.map(({ callId }) => callId));
const callKey = (path: AgentPath, callId: string): string => JSON.stringify([keyOf(path), callId]);

/** Reads the W3C's form: version, trace, span, flags. */
function spanOf(traceparent = ""): SpanContext | undefined {
  const form = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;
  const [, traceId, spanId = "", flags = ""] = form.exec(traceparent) ?? [];
  if (traceId === undefined) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
}
