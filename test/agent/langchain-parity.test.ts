import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { createAgent, createMiddleware } from "langchain";
import { expect, test } from "vitest";
import { z } from "zod";
import { createDeepAgent } from "../../src/agent/build/create-deep-agent.ts";
import { repairHistory } from "../../src/agent/messages/mend.ts";
import { scriptedModel } from "../support/scripted-model.ts";

const HOOKS = ["beforeAgent", "beforeModel", "afterModel", "afterAgent"] as const;
const TARGETS = [undefined, "model", "tools", "end"] as const;
type Hook = (typeof HOOKS)[number];
type Target = (typeof TARGETS)[number];

const note = tool(({ text }: { text: string }) => `noted ${text}`, {
  name: "note",
  description: "Notes a text.",
  schema: z.object({ text: z.string() }),
});
const noting = (id: string) => ({ id, name: "note", args: { text: id } });

/** A middleware with every hook, which tells what it saw; `hook` jumps, the first time it runs. */
function witness(trace: string[], hook: Hook, target: Target) {
  type Seen = { jumps: number; messages: BaseMessage[] };
  type Told = { context: { who?: string; tone?: string } };
  const tell = (place: string, { jumps, messages }: Seen, { context }: Told): void => {
    // LangChain gives wrappers of tools the context as it was passed, without the schema's defaults.
    const tone = place.startsWith("wrapToolCall") ? "" : context.tone;
    trace.push([place, jumps, messages.length, context.who, tone].join(" ").trimEnd());
  };
  const made = (place: Hook) => ({
    canJumpTo: ["model" as const, "tools" as const, "end" as const],
    hook: (state: Seen, runtime: Told) => {
      tell(place, state, runtime);
      if (place !== hook || target === undefined || state.jumps > 0) return undefined;
      const call = new AIMessage({ id: `by ${place}`, content: "", tool_calls: [noting("jumped")] });
      return { jumpTo: target, jumps: 1, ...(target === "tools" ? { messages: [call] } : {}) };
    },
  });
  return createMiddleware({
    name: "Witness",
    stateSchema: z.object({ jumps: z.number().default(0) }),
    contextSchema: z.object({ who: z.string(), tone: z.string().default("calm") }),
    beforeAgent: made("beforeAgent"),
    beforeModel: made("beforeModel"),
    afterModel: made("afterModel"),
    afterAgent: made("afterAgent"),
    wrapModelCall: async (request, next) => {
      tell("wrapModelCall", request.state, request.runtime);
      return next(request);
    },
    wrapToolCall: async (request, next) => {
      tell(`wrapToolCall ${request.toolCall.id}`, request.state, request.runtime);
      const result = await next(request);
      return ToolMessage.isInstance(result)
        ? new ToolMessage({
            ...result.lc_kwargs,
            content: `${result.text}!`,
            tool_call_id: result.tool_call_id,
          })
        : result;
    },
  });
}

/**
 * A jump goes to the first hook before the model, or after the agent, as LangChain documents it; its agent
 * for JavaScript passes over that hook here.
 */
const MORE: ReadonlyMap<string, string> = new Map([
  ["beforeAgent model", "beforeModel 1 1 jane calm"],
  ["beforeModel model", "beforeModel 1 1 jane calm"],
  ["afterModel model", "beforeModel 1 2 jane calm"],
  ["afterAgent model", "beforeModel 1 5 jane calm"],
  ["beforeModel end", "afterAgent 1 1 jane calm"],
]);

interface Result {
  jumps: number;
  messages: BaseMessage[];
}

test.each(HOOKS.flatMap((hook) => TARGETS.map((target) => [hook, target] as const)))(
  "LangChain's middleware does the same here as in LangChain's agent: %s jumps to %s",
  async (hook, target) => {
    const observed = async (
      run: (parts: {
        model: ReturnType<typeof scriptedModel>;
        middleware: ReturnType<typeof witness>;
      }) => Promise<Result>,
    ) => {
      const trace: string[] = [];
      const model = scriptedModel(({ call }) =>
        call === 0 ? { toolCalls: [noting("one"), noting("two")] } : { text: `end ${call}` },
      );
      const state = await run({ model, middleware: witness(trace, hook, target) });
      // The thread keeps the results of one step in any order; models see them in that of the calls.
      const messages = repairHistory(state.messages).map((message) => [
        message.type,
        message.text,
        AIMessage.isInstance(message) ? message.tool_calls?.map(({ id }) => id) : undefined,
        ToolMessage.isInstance(message) ? message.tool_call_id : undefined,
      ]);
      return { trace, messages, jumps: state.jumps };
    };
    const input = { messages: [new HumanMessage("go")] };
    const config = { context: { who: "jane" } };
    const theirs = await observed(async ({ model, middleware }) =>
      createAgent({ model, tools: [note], middleware: [middleware] }).invoke(input, config),
    );
    const ours = await observed(async ({ model, middleware }) => {
      const state: unknown = await createDeepAgent({
        model,
        tools: [note],
        middleware: [middleware],
      }).invoke(input, config as never);
      return state as Result; // the middleware's own channel is not in the type of the agent
    });
    const more = MORE.get(`${hook} ${target}`);
    if (more !== undefined) expect(ours.trace).toContain(more);
    expect({ ...ours, trace: ours.trace.filter((line) => line !== more) }).toEqual(theirs);
  },
);
