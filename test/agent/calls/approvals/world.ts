import { join } from "node:path";
import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import type { PendingWrite } from "@langchain/langgraph-checkpoint";
import { z } from "zod";
import { type Agent, buildAgent } from "../../../../src/agent/agent.ts";
import { createDeepAgent } from "../../../../src/agent/build/create-deep-agent.ts";
import type { Middleware } from "../../../../src/agent/contracts/middleware.ts";
import type { SubagentRunnable } from "../../../../src/agent/langgraph/definition.ts";
import type { MortalProcess, StoredEffects } from "../../../support/mortal-process.ts";
import { scriptedModel, type ScriptedModel } from "../../../support/scripted-model.ts";
import { type Call, DEPTH, toolCallsOf } from "./batch.ts";
import { filesIn } from "../../../support/files-in.ts";

/** What outlives processes: the checkpoints, the log of effects, and what happened outside. */
export class World {
  readonly runs: Array<{ key: string; value: string }> = [];
  /** One entry for each reply of a model: `start` or `end`, and which agent's. */
  readonly replies: string[] = [];
  /** Each agent's messages, as they were when it ended. */
  readonly histories = new Map<string, BaseMessage[]>();
  /** What ran, or was thought, although its result was in a checkpoint. */
  readonly repeated: string[] = [];
  readonly #stored = new Set<string>();
  readonly effects: StoredEffects = new Map();
  readonly #folder = filesIn();

  /** An agent as a new process makes it. */
  agentOf(process: MortalProcess): Agent {
    const common = {
      tools: [...["gated", "free", "swap"].map((name) => this.#effect(name, process)), this.#look(process)],
      interruptOn: { gated: true, swap: true, write_file: true },
      generalPurpose: false,
      middleware: [this.#witness(process)],
      model: this.#model(process),
    };
    const worker = { description: "works", systemPrompt: "Work.", middleware: common.middleware };
    // A fork has the middleware of the agent.
    const twin = { name: "twin", mode: "fork" as const, description: "works", systemPrompt: "Work." };
    const compiled = createDeepAgent(common) as unknown as SubagentRunnable; // its type states its channels
    return buildAgent({
      ...common,
      checkpointer: process.checkpointer(join(this.#folder, "checkpoints.db"), (writes) =>
        this.#store(writes),
      ),
      limits: { subagentDepth: DEPTH },
      subagents: [
        { name: "worker", ...worker },
        twin,
        { name: "compiled", description: "works", runnable: compiled },
      ],
    });
  }

  #model(process: MortalProcess): ScriptedModel {
    return scriptedModel(({ messages }) =>
      process.trace(() => {
        const { calls, prefix, isDone } = planIn(messages);
        const reply = `${isDone ? "end" : "start"} ${prefix}`;
        this.replies.push(reply);
        this.#expectNew(reply);
        return { text: reply, toolCalls: isDone ? [] : toolCallsOf(calls, prefix) };
      }),
    );
  }

  #store(writes: PendingWrite[]): void {
    for (const message of writes.flatMap(([channel, value]) =>
      channel === "messages" ? [value].flat() : [],
    )) {
      if (ToolMessage.isInstance(message)) this.#stored.add(message.tool_call_id);
      if (AIMessage.isInstance(message)) this.#stored.add(message.text);
    }
  }

  #expectNew(key: string): void {
    if (this.#stored.has(key)) this.repeated.push(key);
  }

  #effect(name: string, process: MortalProcess) {
    const schema = z.object({ key: z.string(), value: z.enum(["asked", "changed", "swapped"]) });
    const run = (args: z.infer<typeof schema>) =>
      process.trace(() => {
        this.runs.push(args);
        this.#expectNew(args.key);
        return `did ${args.key}`;
      });
    return tool(run, { name, description: name, schema });
  }

  #look(process: MortalProcess) {
    const schema = z.object({ key: z.string(), value: z.string() });
    const invoke = (args: unknown) =>
      process.trace(() => {
        const { key, value } = schema.parse(args);
        this.runs.push({ key, value });
        this.#expectNew(key);
        return `saw ${key}`;
      });
    return { name: "look", description: "look", kind: "read" as const, schema, invoke };
  }

  /** Sees the thread as it is kept, before anything mends what the model sees; changes calls of `swap`. */
  #witness(process: MortalProcess): Middleware {
    return {
      name: "Witness",
      wrapModelCall: async (request, next) => {
        const reply = await next(request);
        const { messages } = request.state;
        if (!process.isEnded && reply.tool_calls?.length === 0)
          this.histories.set(planIn(messages).prefix, messages);
        return reply;
      },
      wrapToolCall: (request, next) => {
        const { name, args } = request.toolCall;
        if (name !== "swap" || args["value"] !== "asked") return next(request);
        return next({ ...request, toolCall: { ...request.toolCall, args: { ...args, value: "swapped" } } });
      },
    };
  }
}

/** The newest task in a conversation, and whether its calls have results. */
function planIn(messages: readonly BaseMessage[]): { calls: Call[]; prefix: string; isDone: boolean } {
  const at = messages.findLastIndex((message) => HumanMessage.isInstance(message));
  const plan = JSON.parse(messages[at]?.text ?? "") as { calls: Call[]; prefix: string }; // written by `toolCallsOf` or the test
  return { ...plan, isDone: messages.slice(at).some((message) => ToolMessage.isInstance(message)) };
}
