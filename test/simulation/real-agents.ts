/** The agents of the second tier: those of the product, on LangGraph, with a model that makes the moves of a table. */
import { HumanMessage, AIMessage, type BaseMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { tool } from "@langchain/core/tools";
import { z } from "zod";
import { backgroundTasksMiddleware, buildAgent } from "../../src/agent/agent.ts";
import { createCheckpointer } from "../../src/storage/sqlite/checkpoints/checkpointer.ts";
import { DurableSaver } from "../../src/storage/sqlite/checkpoints/saver.ts";
import {
  type ScriptedReply,
  type ScriptedRequest,
  type ScriptedToolCall,
  scriptedModel,
} from "../support/scripted-model.ts";
import { emptyCheckpoints } from "./driver.ts";
import { type Move, REPLY, movesFor } from "./moves.ts";
import { type Place, later } from "./virtual-machine.ts";
import type { Agents, World } from "./world.ts";

/** Checkpoints whose results come late, and never to a killed server. */
class LateSaver extends DurableSaver {
  override put(...args: Parameters<DurableSaver["put"]>) {
    return late(super.put(...args));
  }

  override putWrites(...args: Parameters<DurableSaver["putWrites"]>) {
    return late(super.putWrites(...args));
  }

  override async getTuple(...args: Parameters<DurableSaver["getTuple"]>) {
    await later();
    return super.getTuple(...args);
  }
}

const late = async <T>(result: Promise<T>): Promise<T> => {
  await result.catch(() => undefined);
  await later();
  return result;
};

/** Several moves are the calls of one reply. */
const CALLS_AT_ONCE = 2;

export function realAgents(world: World): Agents {
  const database = emptyCheckpoints();
  createCheckpointer(database);
  /** The conversations of the agents, as their models last saw them, with the run of each main agent. */
  const seen = new Map<string, { runId: string; messages: readonly BaseMessage[] }>();
  /** `rootId`: the run, with its background runs, whose agents ask. */
  const modelFor = (rootId: string) =>
    scriptedModel(async ({ messages }) => {
      await later(world.draw() * 400);
      const [task] = messages.filter((message) => HumanMessage.isInstance(message));
      const name = task?.text.split("\n")[0] ?? "";
      seen.set(`${rootId} ${name}`, { runId: name.startsWith("child") ? "" : rootId, messages });
      return { ...replyFor(name, messages), usage: REPLY };
    });
  const act = tool(
    async ({ key }: { key: string }, config: RunnableConfig) => {
      await later(world.draw() * 300);
      world.act(`${config.configurable?.["thread_id"]} ${key}`);
      await later(world.draw() * 300);
      return `did ${key}`;
    },
    { name: "act", description: "Acts outside.", schema: z.object({ key: z.string() }) },
  );
  const savers = new Map<string, LateSaver>();
  const saverAt = ({ name }: Place): LateSaver => {
    const saver = savers.get(name) ?? new LateSaver(database);
    savers.set(name, saver);
    return saver;
  };
  return {
    // A real reply is estimated at more tokens than these worlds have.
    isLimited: false,
    agentAt: async (place, { id, parent }) =>
      buildAgent({
        checkpointer: saverAt(place),
        model: modelFor(parent?.runId ?? id),
        tools: [act],
        askUser: true,
        interruptOn: { act: { when: ({ args }) => String(args["key"]).endsWith("?") } },
        middleware: [backgroundTasksMiddleware()],
      }),
    checkpointsAt: saverAt,
    // Only the meter of a thread knows; the journal is compared with the rows.
    tokensOf: () => 0,
    messages: () =>
      [...seen.values()].flatMap(({ runId, messages }) =>
        messages
          .filter((message) => HumanMessage.isInstance(message))
          .map((message) => ({
            text: message.text,
            from: message.additional_kwargs["lc_source"] === "report" ? message.text : undefined,
            runId,
          })),
      ),
    close: () => database.close(),
  };
}

function replyFor(task: string, messages: ScriptedRequest["messages"]): ScriptedReply {
  const moves = movesFor(task, false).filter((move) => move !== "wait");
  const replies = messages.filter((message) => AIMessage.isInstance(message)).length;
  const next = moves.slice(replies * CALLS_AT_ONCE, (replies + 1) * CALLS_AT_ONCE);
  if (next.length === 0) return { text: "done" };
  const toolCalls = next.map((move, index) => callFor(move, task, replies * CALLS_AT_ONCE + index));
  return { toolCalls };
}

function callFor(move: Move, task: string, number: number): ScriptedToolCall {
  const key = `${task}.${number}`;
  if (move === "ask") return { id: key, name: "ask_user", args: { question: `Which? ${key}` } };
  if (move === "child") {
    const description = `child ${task.replace(/^\w+ /, "")}.${number}`;
    return { id: key, name: "start_async_task", args: { description, subagent_type: "general-purpose" } };
  }
  return { id: key, name: "act", args: { key: move === "approve" ? `${key}?` : key } };
}
