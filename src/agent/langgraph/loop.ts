/** The loop of an agent: a turn of the model, a task for each of its calls, then the next turn. */
import type { BaseMessage } from "@langchain/core/messages";
import { Command, END, Send } from "@langchain/langgraph";
import type { HookName } from "../contracts/middleware.ts";
import type { JumpTarget } from "../contracts/state.ts";
import { callsOf, isReply, isResult } from "../messages/messages.ts";
import { createToolNode } from "./call-task.ts";
import { TOOLS } from "./channels.ts";
import type { AgentDefinition } from "./definition.ts";
import type { AgentNode, CompileOptions, CompiledAgentGraph, GraphNodes } from "./graph.ts";
import { MODEL, compileGraph, hookNode, returnDirect } from "./graph.ts";
import { GOAL_STEPS, JUDGE, goalNodes } from "./goal-nodes.ts";
import { showMessages } from "./outcome.ts";
import { turnsOf } from "./turn.ts";

const BEFORE_AGENT = "before_agent";
const BEFORE_MODEL = "before_model";
const AFTER_MODEL = "after_model";
const AFTER_AGENT = "after_agent";

/** The next place of the agent: one task for each call, another node, or the end. */
type Goto = Send[] | string;

interface Routes {
  /** Hooks that see the reply first, where a layer has such. */
  hooks?: string;
  again: string;
  /** The place after a final answer: the judge of the goal, or the end. */
  answered: string;
  end: string;
}

/** The loop as a graph. Hooks of one kind share a node, which only exists if needed: every node is a checkpoint. */
export function buildGraph(definition: AgentDefinition, options: CompileOptions): CompiledAgentGraph {
  const has = (hook: HookName): boolean => definition.middleware.some((layer) => layer[hook]);
  const { goal } = definition;
  const end = has("afterAgent") ? AFTER_AGENT : END;
  const routes: Routes = {
    again: has("beforeModel") ? BEFORE_MODEL : MODEL,
    answered: goal ? JUDGE : end,
    end,
    ...(has("afterModel") ? { hooks: AFTER_MODEL } : {}),
  };
  const { again, answered } = routes;
  const steps = {
    turn: 2 + Number(has("beforeModel")) + Number(has("afterModel")),
    end: Number(has("afterAgent")) + (goal ? GOAL_STEPS : 0),
  };
  const hooks = (hook: HookName, next: (messages: readonly BaseMessage[]) => Goto): AgentNode => {
    // A hook after the agent that jumps to the end would come back to itself.
    const jumps = hook === "afterAgent" ? { ...routes, end: END, answered: END } : routes;
    return hookNode(definition, hook, next, (target, messages) => jumpFrom(target, messages, jumps));
  };
  const beginning = returnDirect(definition, answered);
  const takeTurn = turnsOf(definition, steps);
  const asking: AgentNode = async (state, config) => {
    const { update, added, streamed, next, jumpTo } = await takeTurn(state, config);
    const onward = (): Goto =>
      jumpTo ? jumpFrom(jumpTo, added, routes) : (routes.hooks ?? nextTasks(added, routes));
    return showMessages(new Command({ update, goto: next ? routes[next] : onward() }), streamed);
  };
  const nodes: GraphNodes = {
    [MODEL]: {
      work: again === MODEL ? beginning(asking) : asking,
      ends: [...new Set([routes.hooks ?? TOOLS, TOOLS, again, answered, end])],
    },
    [TOOLS]: { work: createToolNode(definition), edge: again },
    ...(goal ? goalNodes(definition, goal, routes) : {}),
  };
  const ends = [...new Set([MODEL, again, TOOLS, answered, end])];
  if (has("beforeAgent")) nodes[BEFORE_AGENT] = { work: hooks("beforeAgent", () => again), ends };
  if (has("beforeModel")) nodes[BEFORE_MODEL] = { work: beginning(hooks("beforeModel", () => MODEL)), ends };
  if (has("afterModel"))
    nodes[AFTER_MODEL] = { work: hooks("afterModel", (messages) => nextTasks(messages, routes)), ends };
  if (has("afterAgent")) nodes[AFTER_AGENT] = { work: hooks("afterAgent", () => END), ends: [END] };
  const start = has("beforeAgent") ? BEFORE_AGENT : again;
  return compileGraph({ nodes, start, steps }, definition, options);
}

/** A task for each open call of the newest reply; the next turn if all have ended; else judge or end. */
function nextTasks(messages: readonly BaseMessage[], { again, answered }: Routes): Goto {
  const at = messages.findLastIndex(isReply);
  const calls = callsOf(messages[at]);
  if (calls.length === 0) return answered;
  const results = messages.slice(at).filter(isResult);
  const done = new Set<unknown>(results.map(({ tool_call_id: id }) => id));
  const open = calls.filter(({ id }) => !done.has(id));
  return open.length === 0 ? again : open.map(({ id }) => new Send(TOOLS, { callId: id }));
}

/** The place to which a hook or a layer sends the agent. */
function jumpFrom(target: JumpTarget, messages: readonly BaseMessage[], routes: Routes): Goto {
  if (target === "model") return routes.again;
  return target === "tools" ? nextTasks(messages, routes) : routes.end;
}
