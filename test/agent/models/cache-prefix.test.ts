import { expect, test } from "vitest";
import { z } from "zod";
import { tool } from "@langchain/core/tools";
import type { WireRequest } from "../../support/wire-server.ts";
import { PROVIDERS, wireThread } from "../../support/wire-thread.ts";
import { paused, resumeAgentInput } from "../../support/run-agent.ts";
import { recordOf } from "../../../src/core/unknown.ts";

const TURNS = 100;
const approve = { decisions: [{ type: "approve" as const }] };
const note = tool(({ at }: { at: number }) => `note ${at} ${"word ".repeat(120)}`, {
  name: "note",
  description: "Notes.",
  schema: z.object({ at: z.number() }),
});

/** The parts of a request in the order in which providers cache them, without marks. */
function parts({ body }: WireRequest): string[] {
  const { tools, system, instructions, messages, input } = recordOf(
    JSON.parse(JSON.stringify(body), (name, value: unknown) =>
      name === "cache_control" ? undefined : value,
    ),
  );
  const history = [messages ?? input].flat().map((message) => JSON.stringify(message));
  return [JSON.stringify([tools, system, instructions]), ...history];
}

const isSummarizer = (request: WireRequest): boolean => request.tools.length === 0;

test.each(PROVIDERS)(
  "$protocol: a request begins with the one before in 100 turns, but for each compaction",
  async (protocol) => {
    const steps = Array.from(
      { length: TURNS },
      (_, at) => (request: WireRequest) =>
        isSummarizer(request)
          ? { text: "SUMMARY" }
          : at % 10 === 9
            ? { text: `turn ${at}` }
            : { toolCalls: [{ id: `call_${at}`, name: "note", args: { at } }] },
    );
    const thread = await wireThread(protocol, steps, {
      tools: [note],
      interruptOn: { note: { allowedDecisions: ["approve"] } },
      summarization: { trigger: { tokens: 12_000 }, keep: { messages: 6 } },
    });
    for (let run = 0; thread.server.requests.length < TURNS; run += 1) {
      let events = await thread.run({ kind: "task", task: `task ${run}` }, { runId: `run_${run}` });
      // Each approval is continued by an agent that knows the thread from its checkpoint alone.
      while (events.at(-1)?.kind === "paused") {
        const answers = Object.fromEntries(paused(events).map(({ id }) => [id, approve]));
        events = await thread.run(resumeAgentInput(answers), { runId: `run_${run}` });
      }
    }
    const sent = thread.server.requests.filter((request) => !isSummarizer(request)).map(parts);
    const compactions = thread.server.requests.filter(isSummarizer).length;
    const breaks = sent.slice(1).filter((request, at) => {
      const before = sent[at] ?? [];
      return before.some((part, index) => request[index] !== part);
    });
    expect(thread.server.refusals).toEqual([]);
    expect(compactions).toBeGreaterThan(0);
    expect(breaks.length).toBe(compactions);
  },
);
