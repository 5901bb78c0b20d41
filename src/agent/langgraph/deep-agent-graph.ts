import { randomUUID } from "node:crypto";
import { inspect } from "node:util";
import { type BaseMessageLike, coerceMessageLikeToMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import type { BaseCheckpointSaver, BaseStore, StateSnapshot } from "@langchain/langgraph";
import {
  Command,
  CompiledStateGraph,
  isCommand,
  isGraphInterrupt,
  isInterrupted,
} from "@langchain/langgraph";
import { ConfigurationError } from "../../core/errors.ts";
import { fill, oneLine } from "../../core/text.ts";
import { isObject, defined } from "../../core/unknown.ts";
import { checkEdit } from "../calls/check.ts";
import type { AgentPath, AgentState } from "../contracts/state.ts";
import type { ValidatedArgs } from "../contracts/middleware.ts";
import type { HitlResponse } from "../contracts/question.ts";
import type { AgentFacts, AgentGraph } from "./definition.ts";
import {
  checkpointerOf,
  closeAbandonedCalls,
  closeCallsAtLimit,
  finishedCalls,
  isInStep,
} from "./close-open-calls.ts";
import { answersById, withSharedInterrupt, withSharedTask } from "./shared-interrupt.ts";
import { isTracing, startTrace } from "./tracing.ts";
import { type Scratchpad, CHECKPOINTER_KEY, RESUMING_KEY } from "./internals.ts";
import { SCRATCHPAD_KEY, SIGNALS_KEY, STREAM_KEY, graphFailure } from "./internals.ts";
import { Meter } from "../budget/meter.ts";
import type { EditCheck, OpenInterrupt } from "./open-interrupts.ts";
import { answerProblem, resumeValue, openInterrupts } from "./open-interrupts.ts";
import { INTERNAL_CHANNELS, TOOLS } from "./channels.ts";
import { agentRuntime, contextOf, expectFanOut, meterOf, withContext } from "./step-of-task.ts";
import { isWatched, outsideOfTask, runWithoutStream } from "./untraced-node.ts";
import texts from "./texts.json" with { type: "json" };

type Base = CompiledStateGraph<AgentState, Partial<AgentState>>;
type Input = Parameters<Base["_streamIterator"]>[0];
type Options = Parameters<Base["_streamIterator"]>[1];
type Drawing = Awaited<ReturnType<Base["getGraphAsync"]>>;
type Chunks = ReturnType<Base["_streamIterator"]>;

/** Everything LangGraph makes a compiled graph of; `withConfig` copies a graph by its own fields. */
type Fields = { facts: AgentFacts } & ConstructorParameters<
  typeof CompiledStateGraph<AgentState, Partial<AgentState>, "__start__">
>[0];

/** The compiled graph of an agent: LangGraph's, which takes each answer for the interrupt that it was meant for. */
export class DeepAgentGraph
  extends CompiledStateGraph<AgentState, Partial<AgentState>>
  implements AgentGraph
{
  readonly facts: AgentFacts;

  constructor(fields: Fields) {
    super(fields);
    this.facts = fields.facts;
  }

  /** The graph itself, under the name by which agents of LangChain and deepagents have theirs. */
  get graph(): this {
    return this;
  }

  get subagentNames(): readonly string[] {
    return this.facts.subagents?.subagents.map(({ name }) => name) ?? [];
  }

  /** Checks a call that a person changed by the rules of its agent; `undefined`: that was not built here. */
  checkCall(agent: AgentPath, name: string, args: unknown): ValidatedArgs | undefined {
    const [first, ...rest] = agent;
    if (!first) return checkEdit(this.facts, name, args);
    const runnable = this.facts.subagents?.find(first.name)?.runnable;
    return runnable instanceof DeepAgentGraph ? runnable.checkCall(rest, name, args) : undefined;
  }

  /** Requests of foreign graphs do not name their agent. */
  readonly #checkEdit: EditCheck = ({ agent }, ...edit) => agent && this.checkCall(agent, ...edit);

  static from(graph: Pick<Base, "builder">, facts: AgentFacts): DeepAgentGraph {
    // LangGraph copies its graphs in this way itself; the fields are those its constructor takes.
    return new DeepAgentGraph({ ...graph, facts } as unknown as Fields);
  }

  keptBy(checkpointer: BaseCheckpointSaver, store?: BaseStore): DeepAgentGraph {
    return Object.assign(DeepAgentGraph.from(this, this.facts), { checkpointer, ...defined({ store }) });
  }

  /** The graph for drawing. A gate is the beginning of a tool task, and is shown as a step of its own. */
  override async getGraphAsync(config?: Parameters<Base["getGraphAsync"]>[0]): Promise<Drawing> {
    return this.#withGate(await super.getGraphAsync(config));
  }

  override getGraph(config?: Parameters<Base["getGraph"]>[0]): ReturnType<Base["getGraph"]> {
    return this.#withGate(super.getGraph(config));
  }

  #withGate(graph: Drawing): Drawing {
    const tools = graph.nodes[TOOLS];
    if (!this.facts.isGated || !tools) return graph;
    const gate = graph.addNode(tools.data, "approval");
    graph.edges = graph.edges.map((edge) => (edge.target === TOOLS ? { ...edge, target: gate.id } : edge));
    graph.addEdge(gate, tools);
    return graph;
  }

  override async *_streamIterator(input: Input, given?: Options): Chunks {
    const configurable = ownConfigurable(given?.configurable);
    const options: NonNullable<Options> = { ...given, configurable };
    const all = this.#configurable(options);
    // LangGraph's rejected writes in the background could not be caught.
    if (checkpointerOf(all, this) && !all["thread_id"])
      throw new ConfigurationError("THREAD_ID_REQUIRED", texts.threadNeeded);
    // With other fields alone, LangGraph would start an agent without any message.
    const isKnown = isObject(input) && Object.keys(input).some((name) => Object.hasOwn(this.channels, name));
    if (input !== null && input !== undefined && !isCommand(input) && !isKnown)
      throw new ConfigurationError("INVALID_INPUT", fill(texts.unknownInput, oneLine(inspect(input), 100)));
    let checked = input;
    if (!isCommand(input)) checked = await this.#withFinishedCalls(withMessageIds(input), options);
    else if (input.resume !== undefined && checkpointerOf(all, this)) {
      const { update, goto } = input;
      const resume = answersById(input.resume, await this.#open(options), this.#checkEdit);
      checked = new Command({ resume, ...defined({ update, goto }) });
    }
    // Counts the use of this graph against its own limits and those of the graphs above it.
    const meter = new Meter(this.facts.limits, contextOf({ configurable }).meter);
    const chunks = this.#traced(checked, { ...options, configurable: withContext(configurable, { meter }) });
    const modes = [options.streamMode ?? this.streamMode].flat();
    const showsInterrupts = modes.includes("values") || modes.includes("updates");
    const isInside = configurable[CHECKPOINTER_KEY] !== undefined;
    yield* showsInterrupts && !isInside ? withSharedInterrupt(chunks, () => this.#open(options)) : chunks;
  }

  override async getState(...[config, options]: Parameters<Base["getState"]>): Promise<StateSnapshot> {
    return this.#shown(await super.getState(config, options), config);
  }

  override async *getStateHistory(
    ...[config, options]: Parameters<Base["getStateHistory"]>
  ): AsyncIterableIterator<StateSnapshot> {
    for await (const state of super.getStateHistory(config, options)) yield this.#shown(state, config);
  }

  /** A state of the thread with one interrupt for all calls that wait for approval. */
  async #shown(state: StateSnapshot, { configurable = {} }: RunnableConfig): Promise<StateSnapshot> {
    const isInside = configurable[CHECKPOINTER_KEY] !== undefined;
    if (isInside || !state.tasks.some(({ interrupts }) => interrupts.length > 0)) return state;
    return withSharedTask(state, await this.#open({ configurable: state.config.configurable }));
  }

  async #open(options: Options): Promise<OpenInterrupt[]> {
    const configurable = this.#configurable(options);
    const checkpointer = checkpointerOf(configurable, this);
    return checkpointer ? openInterrupts(checkpointer, configurable) : [];
  }

  #configurable(options: Options): Record<string, unknown> {
    return { ...this.config?.configurable, ...options?.configurable };
  }

  /** Reports to the tracer of the process, if it has one. A graph below another one belongs to its trace. */
  async *#traced(input: Input, options: NonNullable<Options>): Chunks {
    const configurable = this.#configurable(options);
    const { trace: above, tracePlace: place } = contextOf({ configurable });
    if (above) return yield* this.#endingAtLimits(input, options);
    const { threadId, runId } = agentRuntime({ configurable });
    const begunIn = isTracing() ? await place?.before() : undefined;
    const { trace, traceparent } = await startTrace({ agent: this.getName(), threadId, runId, begunIn });
    if (traceparent !== undefined && begunIn === undefined) await place?.began(traceparent);
    const own = trace ? { ...options, configurable: withContext(options.configurable, { trace }) } : options;
    const { signal } = options;
    // An aborted stream is not read any further, so the code behind the loop would not run.
    const stop = (): void => trace?.end(signal?.reason, signal);
    signal?.addEventListener("abort", stop);
    try {
      yield* this.#endingAtLimits(input, own);
      trace?.end();
    } catch (error) {
      trace?.end(graphFailure(error), signal);
      throw error;
    } finally {
      signal?.removeEventListener("abort", stop);
      trace?.end();
    }
  }

  /** Ends a graph in order when a limit stops an agent while calls wait for a person: they are cancelled. */
  async *#endingAtLimits(input: Input, options: NonNullable<Options>): Chunks {
    const { configurable } = options;
    const meter = meterOf({ configurable }, this.facts.limits);
    const place = { ...(configurable?.[SCRATCHPAD_KEY] as Scratchpad | undefined) }; // LangGraph changes it
    const isRepeated = (place.subgraphCounter ?? 0) > 0; // its thread is elsewhere
    if (!meter.hasTotals || isRepeated) return yield* super._streamIterator(input, options);
    const questions: Array<Awaited<ReturnType<Chunks["next"]>>["value"]> = [];
    let pause: unknown;
    try {
      for await (const chunk of super._streamIterator(input, options)) {
        // Callers of `invoke` see by its result whether the graph waits.
        if (options.streamMode === "values" && isInterrupted(chunk)) questions.push(chunk);
        else yield chunk;
      }
    } catch (error) {
      if (!isGraphInterrupt(error)) throw error;
      pause = error; // of a graph inside another one
    }
    const limit = (await contextOf({ configurable }).hasAnswers?.()) ? undefined : meter.stop;
    if (limit && (await closeCallsAtLimit(this, this.#configurable(options), limit))) {
      const resuming = {
        ...configurable,
        [RESUMING_KEY]: true,
        ...("subgraphCounter" in place ? { [SCRATCHPAD_KEY]: place } : {}),
      };
      return yield* super._streamIterator(null, { ...options, configurable: resuming });
    }
    yield* questions;
    if (pause !== undefined) throw pause;
  }

  get loopStart(): string {
    const edges: Iterable<readonly [string, string]> = this.builder.edges;
    return [...edges].find(([from]) => from === TOOLS)?.[1] ?? "";
  }

  /**
   * Works inside a task of another graph, and passes its state to `reached` after each step if it is watched, else at its
   * end. LangGraph's `stream` does so through more streams, which take a good part of each step's time.
   */
  async workInside(...[config, input, reached]: Parameters<AgentGraph["workInside"]>): Promise<void> {
    // Its own configuration counts, not that of the agent that delegates.
    const given = { ...config, ...defined({ recursionLimit: this.config?.recursionLimit }) };
    const work = async (options: RunnableConfig): Promise<void> => {
      // A graph that a limit may end while it waits continues as another graph.
      if (!isWatched(config) && !new Meter(this.facts.limits).hasTotals) {
        const channels = [this.streamChannelsAsIs].flat();
        return runWithoutStream((how) => this._streamIterator(input, how), options, channels, reached);
      }
      for await (const state of this._streamIterator(input, { ...options, streamMode: "values" }))
        reached(state);
    };
    await outsideOfTask(() => withOwnSignal(given, work));
  }

  /**
   * The answers that fit open interrupts. The others were taken before, or leave their interrupts open. An edit to a call
   * that cannot be made any more, because a tool has changed or gone, denies the call.
   */
  async fittingAnswers(
    configurable: Record<string, unknown>,
    answers: Readonly<Record<string, unknown>>,
  ): Promise<Record<string, unknown>> {
    if (typeof this.checkpointer !== "object") return { ...answers };
    const open = await openInterrupts(this.checkpointer, configurable);
    const fitting = open.flatMap((interrupt): Array<[string, unknown]> => {
      const { [interrupt.id]: answer } = answers;
      if (answer === undefined || answerProblem(interrupt, answer, () => undefined) !== undefined) return [];
      const problem = answerProblem(interrupt, answer, this.#checkEdit);
      if (problem === undefined) return [[interrupt.id, resumeValue(interrupt, answer)]];
      // It denies the call even if a person may not reject it.
      const message = `Error: A person changed this call to one that cannot run. ${problem}`;
      const denial: HitlResponse = { decisions: [{ type: "reject", message, expired: true }] };
      return [[interrupt.id, denial]];
    });
    return Object.fromEntries(fitting);
  }

  /** A new message for a thread that stopped in the middle of a step. */
  async #withFinishedCalls(input: Input, options: Options): Promise<Input> {
    const configurable = this.#configurable(options);
    const isKeptHere =
      configurable[CHECKPOINTER_KEY] === undefined && configurable["thread_id"] !== undefined;
    if (typeof this.checkpointer !== "object" || !isKeptHere || !hasMessages(input)) return input;
    if (!(await isInStep(this.checkpointer, configurable))) return input;
    if (configurable["checkpoint_id"] === undefined) await closeAbandonedCalls(this, configurable, undefined);
    const { messages, ...rest } = await finishedCalls(this.checkpointer, configurable);
    return { ...rest, ...input, messages: [...messages, ...[input.messages].flat()] };
  }
}

const hasMessages = (input: unknown): input is { messages: unknown } =>
  isObject(input) && !isCommand(input) && "messages" in input;

/** Adds an id to each message of an input, by which it can be moved into a file or cut off. */
function withMessageIds<Input>(input: Input): Input {
  if (!hasMessages(input)) return input;
  const messages = [input.messages].flat().map((given) => {
    const message = coerceMessageLikeToMessage(given as BaseMessageLike); // LangGraph refuses all else
    // A message is stored by the fields that it was made from.
    if (message.id === undefined) message.lc_kwargs["id"] = message.id = randomUUID();
    return message;
  });
  return { ...input, messages };
}

/**
 * Does `work` with a signal of its own: each step of each graph of a run listens on the shared one, and whoever begins
 * or ends to listen looks through all who do.
 */
async function withOwnSignal(
  config: RunnableConfig,
  work: (config: RunnableConfig) => Promise<void>,
): Promise<void> {
  const signals = config.configurable?.[SIGNALS_KEY] as { externalAbortSignal?: AbortSignal } | undefined; // LangGraph's shape
  const shared = signals?.externalAbortSignal;
  if (!shared || shared.aborted) return work(config);
  const own = new AbortController();
  const abort = (): void => own.abort(shared.reason);
  expectFanOut(shared);
  expectFanOut(own.signal);
  shared.addEventListener("abort", abort);
  try {
    const ownSignals = { ...signals, externalAbortSignal: own.signal };
    await work({ ...config, configurable: { ...config.configurable, [SIGNALS_KEY]: ownSignals } });
  } finally {
    shared.removeEventListener("abort", abort);
  }
}

/** The part that LangGraph uses of the stream that it hands to graphs inside a task. */
interface GraphStream {
  readonly modes: ReadonlySet<string>;
  push(chunk: [namespace: string[], mode: string, payload: unknown, ...others: unknown[]]): void;
}

/** `configurable` of a graph. Its steps reach the stream of the graph around it, if it has one, without internals. */
function ownConfigurable(given: Record<string, unknown> = {}): Record<string, unknown> {
  const { checkpoint_id: _outer, ...inner } = given;
  // With the checkpoint of the graph around it, LangGraph would repeat finished calls.
  const configurable = given[CHECKPOINTER_KEY] === undefined ? { ...given } : inner;
  const stream = configurable[STREAM_KEY] as GraphStream | undefined; // LangGraph's
  if (!stream) return configurable;
  const { modes } = stream;
  const push: GraphStream["push"] = ([namespace, mode, payload, ...others]) =>
    stream.push([namespace, mode, VISIBLE[mode]?.(payload) ?? payload, ...others]);
  return { ...configurable, [STREAM_KEY]: { modes, push } satisfies GraphStream };
}

/** A checkpoint has `values`; a task has its `input`, and when it ended the writes as its `result`. */
const stepOf = (step: unknown): unknown =>
  mapped(mapped(step, ["values", "input"], withoutInternals), ["result"], (result) =>
    Array.isArray(result) ? result.filter(isVisible) : withoutInternals(result),
  );

const isVisible = (write: unknown): boolean => !(Array.isArray(write) && INTERNAL_CHANNELS.has(write[0]));

const withoutInternals = (state: unknown): unknown =>
  isRecord(state) ? Object.fromEntries(Object.entries(state).filter(isVisible)) : state;

/** Applies `change` to those of these members that the value has. */
function mapped(given: unknown, names: readonly string[], change: (value: unknown) => unknown): unknown {
  if (!isRecord(given)) return given;
  const changed = names.filter((name) => name in given).map((name) => [name, change(given[name])]);
  return { ...given, ...Object.fromEntries(changed) };
}

/** Messages and other objects of classes are left as they are. */
const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;

/** Makes the payload of a chunk visible, in the form that LangGraph has for each mode. */
const VISIBLE: Readonly<Record<string, (payload: unknown) => unknown>> = {
  values: withoutInternals,
  updates: (payload) =>
    mapped(payload, Object.keys(Object(payload)), (update) =>
      Array.isArray(update) ? update.map(withoutInternals) : withoutInternals(update),
    ),
  debug: (payload) => mapped(payload, ["payload"], stepOf),
  checkpoints: stepOf,
  tasks: stepOf,
};
