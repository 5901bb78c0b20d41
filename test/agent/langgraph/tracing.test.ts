import {
  type Attributes,
  type Context,
  type Span,
  SpanKind,
  type SpanOptions,
  type SpanStatus,
  SpanStatusCode,
  trace,
} from "@opentelemetry/api";
import { HumanMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import { describe, expect, it, onTestFinished } from "vitest";
import { buildAgent } from "../../../src/agent/agent.ts";
import { createDeepAgent } from "../../../src/agent/build/create-deep-agent.ts";
import { collect, paused, resumeAgentInput } from "../../support/run-agent.ts";
import { callingOnce, scriptedModel } from "../../support/scripted-model.ts";

/** A span that keeps what it is told, as an exporter would. */
class KeptSpan implements Span {
  readonly name: string;
  readonly parent: KeptSpan | undefined;
  readonly attributes: Attributes;
  readonly kind: SpanKind;
  readonly events: string[] = [];
  status: SpanStatus = { code: SpanStatusCode.UNSET };
  ended = 0;

  constructor(name: string, parent: KeptSpan | undefined, { attributes, kind }: SpanOptions) {
    this.name = name;
    this.parent = parent;
    this.attributes = { ...attributes };
    this.kind = kind ?? SpanKind.INTERNAL;
  }

  spanContext() {
    return { traceId: "0".repeat(32), spanId: "0".repeat(16), traceFlags: 1 };
  }
  setAttribute(key: string, value: Attributes[string]) {
    this.attributes[key] = value;
    return this;
  }
  setAttributes(attributes: Attributes) {
    Object.assign(this.attributes, attributes);
    return this;
  }
  addEvent(name: string) {
    this.events.push(name);
    return this;
  }
  addLink() {
    return this;
  }
  addLinks() {
    return this;
  }
  setStatus(status: SpanStatus) {
    this.status = status;
    return this;
  }
  updateName() {
    return this;
  }
  end() {
    this.ended += 1;
  }
  isRecording() {
    return this.ended === 0;
  }
  recordException() {}
}

/** Registers a tracer for this test and gives the spans it was asked for, in order. */
function traced(): KeptSpan[] {
  const spans: KeptSpan[] = [];
  const startSpan = (name: string, options: SpanOptions = {}, context?: Context): KeptSpan => {
    const parent = context && trace.getSpan(context);
    const span = new KeptSpan(name, parent instanceof KeptSpan ? parent : undefined, options);
    spans.push(span);
    return span;
  };
  const startActiveSpan = () => {
    throw new Error("spans of a run are not tied to the call stack");
  };
  trace.setGlobalTracerProvider({ getTracer: () => ({ startSpan, startActiveSpan }) });
  onTestFinished(() => trace.disable());
  return spans;
}

/** `name` of a span below the names of those around it. */
const pathOf = ({ name, parent }: KeptSpan): string => (parent ? `${pathOf(parent)} > ${name}` : name);

const TASK = { kind: "task", task: "go" } as const;
const task = (description: string) => ({
  name: "task",
  args: { description, subagent_type: "general-purpose" },
});

describe("spans", () => {
  it("show run, model calls, tool calls and subagents, each ended once", async () => {
    const spans = traced();
    const model = scriptedModel(({ messages, call }) => {
      if (messages.some(({ text }) => text === "the part")) {
        return messages.length < 4 ? { toolCalls: [{ name: "ls", args: {} }] } : { text: "secret report" };
      }
      return call === 0
        ? { toolCalls: [task("the part"), { name: "read_file", args: { file_path: "/x" } }] }
        : { text: "end" };
    });
    await collect(buildAgent({ model, checkpointer: new MemorySaver() }), TASK);
    const root = "invoke_agent deepagent";
    const subagent = `${root} > execute_tool task > invoke_agent general-purpose`;
    expect(spans.map(pathOf).toSorted()).toEqual(
      [
        root,
        `${root} > chat scripted`,
        `${root} > chat scripted`,
        `${root} > execute_tool read_file`,
        `${root} > execute_tool task`,
        subagent,
        `${subagent} > chat scripted`,
        `${subagent} > chat scripted`,
        `${subagent} > execute_tool ls`,
      ].toSorted(),
    );
    expect(spans.map(({ ended }) => ended)).toEqual(spans.map(() => 1));
    const named = (name: string) => spans.find((span) => span.name === name);
    expect(named("execute_tool read_file")?.status.code).toBe(SpanStatusCode.ERROR);
    expect(named("execute_tool ls")?.status.code).toBe(SpanStatusCode.UNSET);
    expect(named("execute_tool read_file")?.attributes).toMatchObject({
      "error.type": "tool_error",
      "gen_ai.tool.type": "function",
    });
    expect(named("chat scripted")?.kind).toBe(SpanKind.CLIENT);
    expect(named("chat scripted")?.attributes).toMatchObject({
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "ScriptedModel",
      "gen_ai.request.model": "scripted",
      "gen_ai.response.model": "scripted",
      "gen_ai.usage.input_tokens": 10,
      "gen_ai.usage.output_tokens": 5,
    });
    expect(named(root)?.attributes).toMatchObject({
      "gen_ai.conversation.id": "t1",
      "deepagent.run.id": "run_1",
    });
    expect(JSON.stringify(spans.map(({ attributes }) => attributes))).not.toContain("secret");
  });

  it("end when the run waits for a person, and begin anew when it goes on", async () => {
    const spans = traced();
    const model = callingOnce({ name: "write_file", args: { file_path: "/a", content: "" } });
    const agent = buildAgent({ model, checkpointer: new MemorySaver(), interruptOn: { write_file: true } });
    const [request] = paused(await collect(agent, TASK));
    const [root] = spans;
    expect(root).toMatchObject({ ended: 1, events: ["approval_requested"] });
    expect(root?.attributes["deepagent.run.waits_for_approval"]).toBe(true);
    await collect(agent, resumeAgentInput({ [request?.id ?? ""]: { decisions: [{ type: "approve" }] } }));
    const again = spans.filter(({ parent }) => parent === undefined);
    expect(again).toHaveLength(2);
    expect(spans.map(pathOf)).toContain("invoke_agent deepagent > execute_tool write_file");
    expect(spans.every(({ ended }) => ended === 1)).toBe(true);
  });

  it("tell why a run failed, in a word", async () => {
    const spans = traced();
    const model = scriptedModel(() => {
      throw Object.assign(new Error("overloaded"), { status: 529 });
    });
    const agent = buildAgent({ model, checkpointer: new MemorySaver(), limits: { modelPatienceMs: 0 } });
    await expect(collect(agent, TASK)).rejects.toThrow();
    expect(spans[0]).toMatchObject({ ended: 1, status: { code: SpanStatusCode.ERROR } });
    expect(spans[0]?.attributes["error.type"]).toBe("model_unavailable");
    expect(spans[1]).toMatchObject({
      name: "chat scripted",
      ended: 1,
      status: { code: SpanStatusCode.ERROR },
    });
    expect(spans[1]?.attributes["error.type"]).toBe("model_unavailable");
  });

  it("are made of a graph that is invoked by itself, with its name", async () => {
    const spans = traced();
    const model = scriptedModel(({ messages, call }) => {
      if (messages.some(({ text }) => text === "the part")) return { text: "report" };
      return call === 0 ? { toolCalls: [task("the part")] } : { text: "end" };
    });
    const agent = createDeepAgent({ model, name: "cook" });
    await agent.invoke({ messages: [new HumanMessage("go")] }, { configurable: { thread_id: "soup" } });
    expect(spans.map(pathOf)).toEqual([
      "invoke_agent cook",
      "invoke_agent cook > chat scripted",
      "invoke_agent cook > execute_tool task",
      "invoke_agent cook > execute_tool task > invoke_agent general-purpose",
      "invoke_agent cook > execute_tool task > invoke_agent general-purpose > chat scripted",
      "invoke_agent cook > chat scripted",
    ]);
    expect(spans[0]?.attributes).toMatchObject({
      "gen_ai.agent.name": "cook",
      "gen_ai.conversation.id": "soup",
    });
    expect(spans.every(({ ended }) => ended === 1)).toBe(true);
  });

  it("show each model that was tried, and why the first could not answer", async () => {
    const spans = traced();
    const model = scriptedModel(() => {
      throw Object.assign(new Error("limited"), { status: 429 });
    });
    const fallbackModels = [scriptedModel(() => ({ text: "end" }))];
    const limits = { modelPatienceMs: 0 };
    await createDeepAgent({ model, fallbackModels, limits }).invoke({ messages: [new HumanMessage("go")] });
    const calls = spans.filter(({ name }) => name === "chat scripted");
    expect(calls.map(({ attributes }) => attributes["error.type"])).toEqual([
      "model_rate_limited",
      undefined,
    ]);
    expect(spans[0]?.status.code).toBe(SpanStatusCode.UNSET);
  });
});
