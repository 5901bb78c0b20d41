import { ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { createMiddleware } from "langchain";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { Middleware, ToolCallRequest } from "../../../src/agent/contracts/middleware.ts";
import { paused } from "../../support/run-agent.ts";
import { agentWith, answer, approve, call, go, ran, shownIn, task, texts } from "./approvals/asking.ts";

const own = ({ toolCall }: ToolCallRequest, content: string): ToolMessage =>
  new ToolMessage({ content, name: toolCall.name, tool_call_id: toolCall.id ?? "" });

/** Begins the call, changed to one that needs approval, and answers without waiting for it. */
const hasty: Middleware = {
  name: "Hasty",
  wrapToolCall: async (request, next) => {
    void next({ ...request, toolCall: { ...request.toolCall, args: { n: 10 } } });
    return own(request, "started");
  },
};
const gated = { interruptOn: { act: { when: ({ args }: { args: { n?: unknown } }) => args.n === 10 } } };

describe("a layer that does not wait for the call", () => {
  it.each([0, 3])("does not end it while a person is asked, with %i slow layers within", async (slow) => {
    const within = Array.from({ length: slow }, (_, index): Middleware => ({
      name: `Slow ${index}`,
      wrapToolCall: async (request, next) => {
        await new Promise((resolve) => setImmediate(resolve));
        return next(request);
      },
    }));
    const agent = agentWith({ middleware: [hasty, ...within], ...gated });
    const [open] = paused(await go(agent, [call("a")]));
    expect(shownIn(open)?.args).toEqual({ n: 10 });
    expect(ran).toEqual([]);
    const events = await answer(agent, open, approve);
    expect(events.at(-1)).toMatchObject({ kind: "finished" });
    expect([await texts(agent), ran]).toEqual([["started"], ["act 10"]]);
  });

  it("does not end it while a subagent waits", async () => {
    const forgetting: Middleware = {
      name: "Forgetting",
      wrapToolCall: async (request, next) => {
        void next(request);
        return own(request, "started");
      },
    };
    const subagents = [{ name: "worker", description: "d", systemPrompt: "p" }];
    const agent = agentWith({ middleware: [forgetting], subagents });
    const [open] = paused(await go(agent, [task("t", [call("a")])]));
    expect(shownIn(open)?.toolCallId).toBe("a");
    await answer(agent, open, approve);
    expect([await texts(agent), ran]).toEqual([["started"], ["act 1"]]);
  });

  it("ends it while the tool is at work, as a layer with a time limit does", async () => {
    const endless = tool(() => new Promise<string>(() => undefined), {
      name: "endless",
      description: "never ends",
      schema: z.object({}),
    });
    const limited = createMiddleware({
      name: "Limited",
      wrapToolCall: async (request, next) => {
        const late = new Promise<void>((resolve) => setImmediate(() => setImmediate(resolve)));
        const message = new ToolMessage({ content: "too slow", tool_call_id: request.toolCall.id ?? "" });
        return Promise.race([next(request), late.then(() => message)]);
      },
    });
    const agent = agentWith({ tools: [endless], interruptOn: {}, middleware: [limited] });
    await go(agent, [{ id: "a", name: "endless", args: {} }]);
    expect(await texts(agent)).toEqual(["too slow"]);
  });
});

it("a layer has one wrapper of calls", () => {
  const both: Middleware = { ...hasty, wrapCall: (request, next) => next(request) };
  expect(() => agentWith({ middleware: [both] })).toThrow("Hasty has wrapCall and wrapToolCall");
});
