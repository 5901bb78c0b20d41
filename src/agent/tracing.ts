import type { Attributes, Context, Span, SpanStatusCode, Tracer } from "@opentelemetry/api";
import { type Clock, systemClock } from "../core/clock.ts";
import type { AgentEvent, AgentPath } from "./events.ts";

type OpenTelemetry = typeof import("@opentelemetry/api");
type ErrorStatus = SpanStatusCode.ERROR;

export interface TracedRun {
  threadId: string;
  runId: string;
}

/**
 * Passes events on, and makes OpenTelemetry spans of them when the process has registered a tracer: the
 * run, its model calls, tool calls and subagents, named by the conventions for generative AI. Spans tell
 * names, tokens and how things ended; no arguments, results or texts.
 */
export async function* traceEvents(
  events: AsyncIterable<AgentEvent>,
  run: TracedRun,
  clock: Clock = systemClock,
): AsyncGenerator<AgentEvent> {
  const spans = await startSpans(run, clock);
  if (spans === undefined) return yield* events;
  try {
    for await (const event of events) {
      spans.tell(event);
      yield event;
    }
  } catch (error) {
    spans.fail(error);
    throw error;
  } finally {
    spans.end();
  }
}

/** `undefined` when nobody listens: without the package, or without a tracer that records. */
async function startSpans(run: TracedRun, clock: Clock): Promise<RunSpans | undefined> {
  const api = await import("@opentelemetry/api").catch(() => undefined);
  if (api === undefined) return undefined;
  const tracer = api.trace.getTracer("deepagent-mcp");
  const root = tracer.startSpan("invoke_agent deepagent", {
    startTime: clock(),
    attributes: {
      ...operation("invoke_agent"),
      "gen_ai.agent.name": "deepagent",
      "gen_ai.conversation.id": run.threadId,
      "deepagent.run.id": run.runId,
    },
  });
  return root.isRecording() ? new RunSpans(api, tracer, root, clock) : undefined;
}

interface AgentSpan {
  span: Span;
  context: Context;
  /** When the agent last had all it needed to call its model. */
  ready: number;
}

class RunSpans {
  readonly #api: OpenTelemetry;
  readonly #tracer: Tracer;
  readonly #root: Span;
  readonly #clock: Clock;
  readonly #agents = new Map<string, AgentSpan>();
  /** By agent and call id. */
  readonly #tools = new Map<string, Span>();

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
      case "model_called":
        return this.#modelCalled(event);
      case "approval_requested":
      case "compacted":
      case "warning":
        this.#agent(event.agent).span.addEvent(event.kind, {}, this.#clock());
        return;
      case "paused":
        this.#root.setAttribute("deepagent.run.waits_for_approval", true);
        return;
      default:
    }
  }

  fail(error: unknown): void {
    const code: unknown = error instanceof Error ? Reflect.get(error, "code") : undefined;
    this.#root.setAttribute("error.type", typeof code === "string" ? code : "error");
    this.#root.setStatus({ code: this.#errorStatus() });
  }

  /** Ends what is still open: the work it stands for has stopped. */
  end(): void {
    const now = this.#clock();
    for (const span of this.#tools.values()) span.end(now);
    for (const { span } of [...this.#agents.values()].toReversed()) span.end(now);
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
    };
    this.#tools.set(key, this.#child(this.#agent(agent).context, `execute_tool ${tool}`, attributes));
  }

  #toolFinished({ agent, callId, status }: Extract<AgentEvent, { kind: "tool_finished" }>): void {
    const key = callKey(agent, callId);
    this.#close(this.#tools.get(key), status);
    this.#tools.delete(key);
    this.#agent(agent).ready = this.#clock();
  }

  #subagentFinished({ agent, status }: Extract<AgentEvent, { kind: "subagent_finished" }>): void {
    this.#close(this.#agents.get(keyOf(agent))?.span, status);
    this.#agents.delete(keyOf(agent));
  }

  /** Nothing is told when a call begins: it is when its agent had everything it waited for. */
  #modelCalled({ agent, model, usage }: Extract<AgentEvent, { kind: "model_called" }>): void {
    const caller = this.#agent(agent);
    const attributes = {
      ...operation("chat"),
      "gen_ai.response.model": model,
      "gen_ai.usage.input_tokens": usage.inputTokens,
      "gen_ai.usage.output_tokens": usage.outputTokens,
      "gen_ai.usage.cache_read.input_tokens": usage.cachedInputTokens,
    };
    const now = this.#clock();
    this.#child(caller.context, `chat ${model}`, attributes, caller.ready).end(now);
    caller.ready = now;
  }

  /** The span of an agent; of a subagent that was started before a pause, a new one. */
  #agent(path: AgentPath): AgentSpan {
    const known = this.#agents.get(keyOf(path));
    if (known) return known;
    const above = path.slice(0, -1);
    const { callId = "", name = "" } = path.at(-1) ?? {};
    const call = this.#tools.get(callKey(above, callId));
    const parent = call === undefined ? this.#agent(above).context : this.#contextOf(call);
    const attributes = { ...operation("invoke_agent"), "gen_ai.agent.name": name };
    const made = this.#agentSpan(this.#child(parent, `invoke_agent ${name}`, attributes));
    this.#agents.set(keyOf(path), made);
    return made;
  }

  #agentSpan(span: Span): AgentSpan {
    return { span, context: this.#contextOf(span), ready: this.#clock() };
  }

  #contextOf(span: Span): Context {
    return this.#api.trace.setSpan(this.#api.context.active(), span);
  }

  #child(parent: Context, name: string, attributes: Attributes, startTime: number = this.#clock()): Span {
    return this.#tracer.startSpan(name, { attributes, startTime }, parent);
  }

  #close(span: Span | undefined, status: "success" | "error"): void {
    if (status === "error") span?.setStatus({ code: this.#errorStatus() });
    span?.end(this.#clock());
  }

  #errorStatus(): ErrorStatus {
    return this.#api.SpanStatusCode.ERROR;
  }
}

const operation = (name: string): Attributes => ({ "gen_ai.operation.name": name });
const keyOf = (path: AgentPath): string => JSON.stringify(path.map(({ callId }) => callId));
const callKey = (path: AgentPath, callId: string): string => JSON.stringify([keyOf(path), callId]);
