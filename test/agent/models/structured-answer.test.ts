import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import { providerStrategy, toolStrategy } from "langchain";
import { describe, expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import { buildAgent } from "../../../src/agent/agent.ts";
import { createDeepAgent } from "../../../src/agent/build/create-deep-agent.ts";
import type { ResponseFormat } from "../../../src/agent/models/structured-answer.ts";
import { ConfigurationError, RunFailure } from "../../../src/core/errors.ts";
import { collect, toolMessages } from "../../support/run-agent.ts";
import { scriptedModel, type ScriptedReplyFunction } from "../../support/scripted-model.ts";

const weather = z.object({ city: z.string(), degrees: z.number() });
const jsonSchema = {
  type: "object",
  title: "weather",
  properties: { city: { type: "string" }, degrees: { type: "number" } },
  required: ["city", "degrees"],
} as const;
const answer = { city: "Riga", degrees: -3 };
const input = { messages: [new HumanMessage("go")] };

/** Calls whatever tool is offered last, which is the one for the answer, with these arguments in turn. */
const answering = (...tries: Array<Record<string, unknown>>): ScriptedReplyFunction => {
  let next = 0;
  return ({ tools }) => ({ toolCalls: [{ name: tools.at(-1) ?? "", args: tries[next++] ?? {} }] });
};

describe("a structured response", () => {
  it.each([
    ["a zod schema", weather, "structured_response"],
    ["a JSON schema", jsonSchema, "weather"],
    ["a tool strategy", toolStrategy(weather.meta({ title: "forecast" })), "forecast"],
  ])("asked for with %s is a tool call that ends the run", async (_form, responseFormat, name) => {
    const model = scriptedModel(answering(answer));
    const state = await createDeepAgent({ model, responseFormat }).invoke(input);
    expect(state.structuredResponse).toEqual(answer);
    expect(model.requests).toHaveLength(1);
    expect(model.requests[0]?.tools.at(-1)).toBe(name);
    expect(state.messages.map((message) => message.type)).toEqual(["human", "ai", "tool", "ai"]);
    expect(state.messages.at(-1)?.text).toBe(JSON.stringify(answer));
  });

  it("is given by the provider where the strategy says so", async () => {
    const model = scriptedModel(() => ({ text: JSON.stringify(answer) }));
    const state = await createDeepAgent({ model, responseFormat: providerStrategy(weather) }).invoke(input);
    expect(state.structuredResponse).toEqual(answer);
    expect(model.requests[0]?.tools).not.toContain("structured_response");
  });

  it.each([
    ["alone", JSON.stringify(answer)],
    ["in a block of code", `Here it is:\n\n\`\`\`json\n${JSON.stringify(answer)}\n\`\`\`\nGood bye.`],
  ])("given as JSON in the text, %s, is taken", async (_how, text) => {
    for (const responseFormat of [weather, providerStrategy(weather)]) {
      const model = scriptedModel(() => ({ text }));
      const state = await createDeepAgent({ model, responseFormat }).invoke(input);
      expect(state.structuredResponse).toEqual(answer);
      expect(model.requests).toHaveLength(1);
      expect(state.messages.at(-1)?.text).toBe(text);
    }
  });

  it.each([
    ["text", weather, "Some text.", 4],
    ["JSON of another form", weather, '{"city":"Riga"}', 4],
    ["a list", weather, "[1]", 4],
    ["two blocks of code", weather, "```\n{}\n```\n```\n{}\n```", 4],
    ["nothing", weather, "", 4],
    ["text, from the provider", providerStrategy(weather), "about -3", 4],
  ])("that is missing for %s is asked for thrice more, then fails", async (_what, format, text, calls) => {
    const model = scriptedModel(() => ({ text }));
    const agent = buildAgent({ model, responseFormat: format, checkpointer: new MemorySaver() });
    const failure: unknown = await collect(agent, { kind: "task", task: "go" }).catch(
      (error: unknown) => error,
    );
    expect(failure).toBeInstanceOf(RunFailure);
    expect(failure).toMatchObject({
      code: "no_structured_response",
      said: text,
      message: expect.stringContaining("Ask again"),
    });
    expect(model.requests).toHaveLength(calls);
    const reminders = model.requests.at(-1)?.messages.filter((message) => message.type === "human") ?? [];
    expect(reminders).toHaveLength(calls);
  });

  it("that comes with a reminder leaves no trace of it but its tokens", async () => {
    const model = scriptedModel((request) =>
      request.call < 3 ? { text: `not yet ${request.call}` } : answering(answer)(request),
    );
    const state = await createDeepAgent({ model, responseFormat: weather }).invoke(input);
    expect(state.structuredResponse).toEqual(answer);
    expect(state.messages.map((message) => message.type)).toEqual(["human", "ai", "tool", "ai"]);
    expect(state.messages[1]).toHaveProperty("usage_metadata.output_tokens", 4 * 5);
  });

  it("that is missing at the limit of model calls ends the run by that limit", async () => {
    for (const maxIterations of [1, 3]) {
      const model = scriptedModel(() => ({ text: "just text" }));
      const agent = createDeepAgent({ model, responseFormat: weather, limits: { maxIterations } });
      const { messages, structuredResponse } = await agent.invoke(input);
      expect(structuredResponse).toBeUndefined();
      expect(model.requests).toHaveLength(maxIterations + 1); // the last one asks for a report
      expect(messages.map(({ text }) => text)).toEqual(["go", "just text", expect.stringContaining("limit")]);
      expect(messages.at(-1)?.response_metadata).toMatchObject({ stop_reason: "max_iterations" });
    }
  });

  it("that never fits is given up after five tries", async () => {
    const model = scriptedModel(answering());
    const agent = createDeepAgent({ model, responseFormat: weather });
    await expect(agent.invoke(input)).rejects.toMatchObject({ code: "no_structured_response" });
    expect(model.requests).toHaveLength(5);
  });

  it("that does not fit is asked for again", async () => {
    const model = scriptedModel(answering({ city: "Riga" }, answer));
    const state = await createDeepAgent({ model, responseFormat: weather }).invoke(input);
    expect(state.structuredResponse).toEqual(answer);
    const [refused] = state.messages.filter((message) => ToolMessage.isInstance(message));
    expect(refused?.status).toBe("error");
    expect(refused?.text).toContain("degrees");
  });

  it("beside other calls is not taken; those run", async () => {
    const model = scriptedModel(({ call }) => ({
      toolCalls: [
        ...(call === 0 ? [{ id: "ls", name: "ls", args: {} }] : []),
        { id: `answer${call}`, name: "structured_response", args: answer },
      ],
    }));
    const agent = buildAgent({ model, responseFormat: weather, checkpointer: new MemorySaver() });
    const events = await collect(agent, { kind: "task", task: "go" });
    expect(events.at(-1)).toMatchObject({ kind: "finished", structured: answer });
    expect((await toolMessages(agent)).map(({ tool_call_id, status }) => [tool_call_id, status])).toEqual([
      ["ls", "success"],
      ["answer0", "error"],
      ["answer1", "success"],
    ]);
  });

  it("of a subagent reaches the agent as JSON, and is not asked of the agent", async () => {
    const model = scriptedModel(({ tools, messages }) => {
      if (!tools.includes("task")) return { toolCalls: [{ name: "structured_response", args: answer }] };
      const report = messages.find((message) => ToolMessage.isInstance(message));
      if (report) return { text: report.text };
      return { toolCalls: [{ name: "task", args: { description: "d", subagent_type: "forecaster" } }] };
    });
    const subagents = [{ name: "forecaster", description: "d", systemPrompt: "p", responseFormat: weather }];
    const state = await createDeepAgent({ model, subagents }).invoke(input);
    expect(state.messages.at(-1)?.text).toBe(JSON.stringify(answer));
    expect(state.structuredResponse).toBeUndefined();
  });
});

it("a subagent without its structured response is a failed call, with what it said, and its siblings go on", async () => {
  const model = scriptedModel(({ tools, messages }) => {
    if (tools.includes("structured_response")) return { text: `All I know. ${"x".repeat(400)} The end.` };
    if (!tools.includes("task")) return { text: "done" };
    if (messages.some((message) => ToolMessage.isInstance(message))) return { text: "end" };
    const task = (subagent_type: string) => ({ name: "task", args: { description: "d", subagent_type } });
    return { toolCalls: [task("forecaster"), task("general-purpose")] };
  });
  const subagents = [{ name: "forecaster", description: "d", systemPrompt: "p", responseFormat: weather }];
  const state = await createDeepAgent({ model, subagents }).invoke(input);
  const results = state.messages.filter((message) => ToolMessage.isInstance(message));
  const failed = results.find(({ status }) => status === "error");
  const done = results.find(({ status }) => status === "success");
  expect(results).toHaveLength(2);
  expect(failed?.text).toMatch(/^Error: subagent 'forecaster' failed: .*call of structured_response/);
  expect(failed?.text).toMatch(/What it said before:\nAll I know\. x{400} The end\.$/);
  expect(done?.text).toBe("done");
  expect(state.messages.at(-1)?.text).toBe("end");
});

describe("an answer of one of several forms", () => {
  const city = z.object({ city: z.string() });
  const river = z.object({ river: z.string() }).meta({ title: "River" });

  it("is given by the call of its own form", async () => {
    for (const [name, args] of [
      ["structured_response", { city: "Rome" }],
      ["River", { river: "Tiber" }],
    ] as const) {
      const model = scriptedModel(() => ({ toolCalls: [{ name, args }] }));
      const { structuredResponse } = await createDeepAgent({ model, responseFormat: [city, river] }).invoke(
        input,
      );
      expectTypeOf(structuredResponse).toEqualTypeOf<{ city: string } | { river: string } | undefined>();
      expect(structuredResponse).toEqual(args);
    }
  });

  it("needs forms that can be told apart, and of one kind", () => {
    const code = (responseFormat: ResponseFormat) => {
      try {
        createDeepAgent({ responseFormat });
      } catch (error) {
        return error instanceof ConfigurationError && error.code;
      }
    };
    expect(code([])).toBe("INVALID_RESPONSE_FORMAT");
    expect(code([city, ...toolStrategy(river)] as never)).toBe("INVALID_RESPONSE_FORMAT");
    expect(code([river, river])).toBe("TOOL_NAME_COLLISION");
    expect(code([city, city])).toBeUndefined();
  });
});
