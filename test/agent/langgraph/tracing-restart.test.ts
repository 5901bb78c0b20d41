import { ToolMessage } from "@langchain/core/messages";
import { SpanStatusCode, trace } from "@opentelemetry/api";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { describe, expect, it, onTestFinished } from "vitest";
import { deferred } from "../../support/harness-deferred.ts";
import { scriptedModel } from "../../support/scripted-model.ts";
import {
  mine,
  approve,
  callingInTurn,
  databaseFile,
  follow,
  note,
  noteTool,
  openServer,
  reach,
  startRun,
} from "../../runs/support.ts";

/** A tracer of OpenTelemetry's own SDK; gives what it has exported, and how many spans were begun. */
function sdk() {
  const exporter = new InMemorySpanExporter();
  let begun = 0;
  const counting = {
    onStart: () => void (begun += 1),
    onEnd: () => {},
    forceFlush: async () => {},
    shutdown: async () => {},
  };
  const provider = new BasicTracerProvider({ spanProcessors: [counting, new SimpleSpanProcessor(exporter)] });
  trace.setGlobalTracerProvider(provider);
  onTestFinished(() => {
    trace.disable();
    return provider.shutdown();
  });
  return { spans: () => exporter.getFinishedSpans(), begun: () => begun, provider };
}

const ROOT = "invoke_agent deepagent";
const roots = (spans: ReadableSpan[]) => spans.filter(({ name }) => name === ROOT);
const idsOf = (spans: ReadableSpan[]) => new Set(spans.map((span) => span.spanContext().spanId));
const tracesOf = (spans: ReadableSpan[]) => new Set(spans.map((span) => span.spanContext().traceId));

describe("the spans of a run", () => {
  it("are one trace, whichever servers worked on it between which pauses", async () => {
    const { spans, begun } = sdk();
    const file = databaseFile();
    const task = { name: "task", args: { description: "part", subagent_type: "general-purpose" } };
    const agent = () => ({
      model: scriptedModel(({ tools, messages }) => {
        if (messages.some((message) => ToolMessage.isInstance(message))) return { text: "end" };
        return { toolCalls: tools.includes("task") ? [task, note("a")] : [note("b")] };
      }),
      tools: [noteTool([])],
      interruptOn: { note: true },
    });
    const first = openServer(file, agent());
    const { id, threadId } = await startRun(first.service, "go");
    for (const text of ["a", "b"]) {
      const { service } = openServer(file, agent());
      await first.service.close();
      const isAsked = ({ kind }: { kind: string }) => kind === "approval_requested";
      await follow(service, id, isAsked);
      await reach(service, id, "input_required");
      await approve(service, id, text);
      if (text === "a") {
        await follow(service, id, ({ kind, data }) => kind === "tool_finished" && data["tool"] === "note");
        // The result is in a checkpoint once the run waits again.
        const leases = async () =>
          (await mine(service).read.summaries({}, { limit: 1 })).map((run) => run.leasedUntil);
        await expect.poll(leases).toEqual([undefined]);
      } else await reach(service, id, "completed");
      await service.close();
    }
    const all = spans();
    expect(tracesOf(all).size).toBe(1);
    expect(begun()).toBe(all.length);
    expect(idsOf(all).size).toBe(all.length);
    const [begin, ...later] = roots(all);
    expect(begin?.parentSpanContext).toBeUndefined();
    expect(later.length).toBeGreaterThan(0);
    for (const root of later) {
      expect(root.parentSpanContext?.spanId).toBe(begin?.spanContext().spanId);
      expect(root.attributes["deepagent.run.resumed"]).toBe(true);
    }
    for (const root of roots(all)) {
      expect(root.attributes["deepagent.run.id"]).toBe(id);
      expect(root.status.code).toBe(SpanStatusCode.UNSET);
    }
    expect(new Set(all.map(({ attributes }) => attributes["gen_ai.conversation.id"] ?? threadId))).toEqual(
      new Set([threadId]),
    );
    // Each call that ran is told of once.
    expect(all.filter(({ name }) => name === "execute_tool note")).toHaveLength(2);
    const next = openServer(file, agent());
    const other = await startRun(next.service, "go on", { threadId });
    await reach(next.service, other.id, "completed");
    expect(tracesOf(spans()).size).toBe(2);
  });

  it.each(["parked", "cancelled"] as const)("of a run %s in the middle of a call are ended", async (how) => {
    const { spans, begun } = sdk();
    const began = deferred();
    const tools = [noteTool([], async () => (began.resolve(), new Promise(() => {})))];
    const file = databaseFile();
    const { service } = openServer(file, { model: callingInTurn([note("a")]), tools });
    const run = await startRun(service, "go");
    await began.promise;
    if (how === "cancelled") await service.as({ principal: "local" }).control.cancel(run.id, "enough");
    await service.close();
    expect(spans()).toHaveLength(begun());
    const [root] = roots(spans());
    const call = spans().find(({ name }) => name === "execute_tool note");
    if (how === "parked") {
      expect(root?.attributes["deepagent.run.parked"]).toBe(true);
      expect([root, call].map((span) => span?.status.code)).toEqual([
        SpanStatusCode.UNSET,
        SpanStatusCode.UNSET,
      ]);
    } else {
      expect([root, call].map((span) => span?.attributes["error.type"])).toEqual(["cancelled", "cancelled"]);
      expect([root, call].map((span) => span?.status.code)).toEqual([
        SpanStatusCode.ERROR,
        SpanStatusCode.ERROR,
      ]);
    }
  });
});
