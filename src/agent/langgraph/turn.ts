import { randomUUID } from "node:crypto";
import type { AIMessage, BaseMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { interrupt, isGraphBubbleUp } from "@langchain/langgraph";
import { ownTurn } from "../../core/concurrency.ts";
import { DeepAgentError, errorMessage } from "../../core/errors.ts";
import type { AgentState, JumpTarget, StateUpdate } from "../contracts/state.ts";
import type { ModelRequest } from "../contracts/middleware.ts";
import { isEmptyReply, noAnswer } from "../models/answers.ts";
import { expectedTokens } from "../compaction/compaction.ts";
import { foldMessages, textOf } from "../messages/messages.ts";
import { type Strategy, missingAnswer, settleAnswer } from "../models/structured-answer.ts";
import type { AgentDefinition } from "./definition.ts";
import { composeModelCall, finishRequest } from "../layers/compose.ts";
import { MODEL_AWAITED, ModelAwaited } from "../models/client-model.ts";
import { modelFailure } from "../models/failure.ts";
import { tellModelCalled, safeReply, withoutRequest } from "../models/reply.ts";
import { ToolBinder } from "../models/tool-binder.ts";
import { askModel } from "./ask-model.ts";
import { type Reached, reportRequest, stopMessage } from "../budget/limits.ts";
import { type Deadline, type Meter, type TurnSteps, mergeUpdates, withDeadline } from "../budget/meter.ts";
import { annotatedReports, editedReplies } from "./channels.ts";
import { readingInbox } from "./reading-inbox.ts";
import { agentPath, agentRuntime, contextOf, meterOf, stepOf, taskStep } from "./step-of-task.ts";

interface Turned {
  update: StateUpdate;
  added: readonly BaseMessage[];
  streamed: readonly BaseMessage[];
  /** `end`: the run has ended. `again`: the reply is empty, and a limit forbids another call of the model. */
  next?: "end" | "again";
  /** The place to which a layer sends the agent. */
  jumpTo?: JumpTarget | undefined;
}

/** One turn: reads the inbox, asks the model through all layers, mends the reply. At a limit it ends with a report. */
export function turnsOf(
  definition: AgentDefinition,
  steps: TurnSteps,
): (state: AgentState, config: RunnableConfig) => Promise<Turned> {
  const binder = new ToolBinder();
  return readingInbox(async (before, config) => {
    // A model that answers at once would otherwise never let the event loop turn.
    await ownTurn();
    const edited = editedReplies(before);
    const annotated: BaseMessage[] = [...edited, ...annotatedReports(before)];
    const told = annotated.length > 0 ? foldMessages(before.messages, [annotated]) : before.messages;
    const meter = meterOf(config, definition.limits);
    await meter.lookElsewhere(contextOf(config).budget);
    meter.load({ ...before, messages: told });
    const near = meter.nearLimit(told);
    if (near) annotated.push(near);
    const messages = near ? [...told.slice(0, -1), near] : told;
    const state = { ...before, messages };
    const turn: Turn = { definition, binder, state, meter, config };
    const { recursionLimit } = definition;
    // LangGraph enforces a limit that the program set there.
    const isOwnLimit = config.recursionLimit === recursionLimit;
    const reached =
      meter.reached(messages) ??
      (isOwnLimit ? meter.outOfSteps(stepOf(config), steps, recursionLimit) : undefined);
    if (reached) return stoppedAt(reached, turn, await lastReport(turn, reached));
    const answer = await askAllLayers(turn);
    if (answer === undefined) return stoppedAt(meter.reached(messages) ?? meter.timeOver(), turn);
    const { updates, strategy } = answer;
    const { reply, refused } = safeReply(answer.reply, messages, {
      name: definition.author,
      tools: definition.tools.keys(),
    });
    updates.push(meter.spentUpdate(messages), { messages: refused });
    const settled = strategy && (await settleAnswer(reply, strategy, messages, refused));
    if (settled && settled !== "missing") updates.push(settled);
    const { jumpTo, messages: others = [], ...update } = mergeUpdates(updates);
    const added = [reply, ...others];
    const turned: Turned = {
      update: { ...update, messages: [...annotated, ...added] },
      added,
      streamed: [...edited, reply],
      jumpTo,
    };
    const isMissing = strategy ? settled === "missing" : isEmptyReply(reply);
    if (isMissing && !jumpTo) {
      // A limit that forbids another call of the model ends the run in order, with its messages so far.
      if (meter.reached([...messages, reply])) return { ...turned, next: "again" };
      throw strategy ? missingAnswer(reply, strategy) : noAnswer(reply);
    }
    definition.subagents?.tellQueued(reply, definition, config);
    const isAnswer = !strategy && !jumpTo && (reply.tool_calls ?? []).length === 0;
    return isAnswer ? withEndCheck(turned, { ...turn, state: { ...state, ...update, messages } }) : turned;
  });
}

/** Sends an agent that is about to end to one more turn, if something is open and its limits allow it. */
function withEndCheck(turned: Turned, { definition, state, meter }: Turn): Turned {
  const told = definition.endCheck?.(state);
  const messages = [...state.messages, ...turned.added];
  if (told === undefined || meter.reached(messages) !== undefined) return turned;
  const update = { ...turned.update, messages: [...(turned.update.messages ?? []), told] };
  return { ...turned, update, added: [...turned.added, told], jumpTo: "model" };
}

function stoppedAt(
  reached: Reached,
  { state, config }: Turn,
  { reply: report, updates = [] }: Partial<Answer> = {},
): Turned {
  const isNested = agentPath(config).length > 0;
  const stop = stopMessage(reached, state.messages, { id: randomUUID(), isNested, report });
  const update = mergeUpdates([...updates, { messages: [stop] }]);
  return { update, added: [stop], streamed: [], next: "end" };
}

interface Turn {
  definition: AgentDefinition;
  binder: ToolBinder;
  state: AgentState;
  meter: Meter;
  config: RunnableConfig;
}

interface Answer {
  reply: AIMessage;
  /** Changes of the thread that layers make together with the reply. */
  updates: StateUpdate[];
  strategy: Strategy | undefined;
}

/** Calls the model through all layers and counts its use. Returns undefined if no tokens, money or time are left. */
async function askAllLayers(
  { definition, binder, state, meter, config }: Turn,
  report?: string,
): Promise<Answer | undefined> {
  const time = withDeadline(config.signal, meter.remainingMs);
  const timed = { ...config, ...(time.signal ? { signal: time.signal } : {}) };
  let strategy: Strategy | undefined;
  const call = composeModelCall(definition.middleware, async (request) => {
    if (meter.isUsedUp) throw new UsedUp(); // by a summary that a layer made
    strategy = report === undefined ? await definition.structured?.(request.model) : undefined;
    const finish = (sent: ModelRequest) => finishRequest(definition.middleware, sent);
    const { cache, log } = definition;
    return askModel(request, { strategy, binder, finish, cache, meter, report, config: timed, log });
  });
  const updates: StateUpdate[] = [];
  let release = (): void => undefined;
  try {
    const reply = await answered(async () => {
      const { systemMessage, tools, providerTools } = definition;
      const all = [...tools.values()].map((tool) => tool.offered);
      const { middleware } = definition;
      const offered = middleware.reduce((kept, layer) => layer.selectTools?.(kept, state) ?? kept, all);
      const request: Omit<ModelRequest, "updateState"> = {
        model: await definition.model(),
        messages: state.messages,
        systemMessage,
        systemPrompt: textOf(systemMessage),
        // LangChain's middleware knows the provider's tools too, and passes them on.
        tools: [...offered, ...(providerTools as unknown as ModelRequest["tools"])],
        state,
        runtime: agentRuntime(timed),
      };
      release = await meter.reserve(() => expectedTokens(request), time.signal, contextOf(config).budget);
      if (meter.isUsedUp) return undefined;
      return call({ ...request, updateState: (update) => void updates.push(update) });
    }, time);
    if (reply === undefined) return undefined;
    withoutRequest(reply);
    tellModelCalled(reply, taskStep(config));
    meter.count(reply);
    return { reply, updates, strategy };
  } finally {
    release();
  }
}

/** Asks for a report at a limit, without tools. `undefined`: nothing is left for it, or the model does not answer. */
async function lastReport(turn: Turn, reached: Reached): Promise<Answer | undefined> {
  if (turn.meter.isUsedUp) return undefined;
  try {
    return await askAllLayers(turn, reportRequest(reached));
  } catch (error) {
    if (isGraphBubbleUp(error) || turn.config.signal?.aborted) throw error;
    const message = `The model did not report at the limit. ${errorMessage(error)}`;
    taskStep(turn.config).tell({ kind: "warning", message });
    return undefined;
  }
}

/** Ends a turn whose layers used up the rest of a limit before its reply was requested. */
class UsedUp extends Error {}

/**
 * Turns a provider's error into a failure of the run, after all wrappers had their chance to handle it. Only the signal
 * marks a cancelled run: a provider's own timeout has the same name. `undefined`: a limit of the run is used up.
 */
async function answered(
  call: () => Promise<AIMessage | undefined>,
  time: Deadline,
): Promise<AIMessage | undefined> {
  try {
    return await call();
  } catch (error) {
    if (time.isOver() || error instanceof UsedUp) return undefined;
    // The task ends here. When the graph continues, the task starts again from its top and asks once more.
    if (error instanceof ModelAwaited) return interrupt(MODEL_AWAITED);
    if (isGraphBubbleUp(error) || time.signal?.aborted || error instanceof DeepAgentError) throw error;
    const failure = modelFailure(error);
    // An error of the program itself is logged where it ends the run.
    throw failure.code === "internal" ? error : failure;
  }
}
