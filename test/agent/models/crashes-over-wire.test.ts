import { join } from "node:path";
import { AIMessage, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import fc from "fast-check";
import { describe, expect, test } from "vitest";

import { type End, MortalProcess } from "../../support/mortal-process.ts";
import { paused, graphOf, resumeAgentInput } from "../../support/run-agent.ts";
import type { WireReply, WireRequest } from "../../support/wire-server.ts";
import { PROVIDERS, wireThread } from "../../support/wire-thread.ts";
import { attempts } from "../../support/effort.ts";
import { filesIn } from "../../support/files-in.ts";

const call = (id: string, name: string, args: Record<string, unknown> = {}) => ({ id, name, args });
const write = (id: string) => call(id, "write_file", { file_path: `/${id}.md`, content: "x" });
const approve = { decisions: [{ type: "approve" as const }] };

describe.each(PROVIDERS)("histories over $protocol", (protocol) => {
  test("after the process was killed at any moment, whether the run goes on or a new task comes", async () => {
    const task = (id: string) =>
      call(id, "task", { description: `do ${id}`, subagent_type: "general-purpose" });
    const step = ({ messages, number }: WireRequest): WireReply => {
      const isMain = messages.every(({ text }) => !/^do (one|two)$/.test(text));
      if (messages.some(({ toolResults }) => toolResults.length > 0))
        return { text: isMain ? "end" : "report" };
      if (messages.at(-1)?.text.endsWith("and now?")) return { text: "end" };
      const own = [write(`w${number}`), call(`l${number}`, "ls"), write(`gated${number}`)];
      return { text: "I work.", toolCalls: isMain ? [task("one"), ...own, task("two")] : own };
    };
    const moment = fc.record({
      steps: fc.integer({ min: 1, max: 60 }),
      how: fc.constantFrom<End["how"]>("kill", "abort"),
      fate: fc.constantFrom("resumed", "cancelled", "failed"),
    });
    await fc.assert(
      fc.asyncProperty(moment, async ({ fate, ...end }) => {
        const folder = filesIn();
        let process = new MortalProcess(end);
        const { run, go, goOn, agent, server } = await wireThread(
          protocol,
          Array.from({ length: 20 }, () => step),
          () => ({
            checkpointer: process.checkpointer(join(folder, "checkpoints.db"), () => undefined),
            interruptOn: {
              write_file: { when: ({ args }) => String(args["file_path"]).startsWith("/gated") },
            },
          }),
        );
        await Promise.race([go({ signal: process.signal }).catch(() => undefined), process.died]);
        await process.settled();
        process.close();
        process = new MortalProcess();
        if (fate === "resumed") {
          let events = await go();
          while (events.at(-1)?.kind === "paused")
            events = await run(resumeAgentInput({ [paused(events)[0]?.id ?? ""]: approve }));
          expect(events.at(-1)).toMatchObject({ kind: "finished", answer: "end" });
        }
        await goOn(fate === "failed" ? "failed" : "cancelled");
        const { values } = await graphOf(agent()).getState({ configurable: { thread_id: "t1" } });
        const messages = values["messages"] as BaseMessage[];
        const made = messages.flatMap((message) =>
          AIMessage.isInstance(message) ? (message.tool_calls ?? []).map(({ id }) => id) : [],
        );
        const results = messages.filter((message) => ToolMessage.isInstance(message));
        expect(results.map(({ tool_call_id }) => tool_call_id).sort()).toEqual(made.sort());
        const reports = results.filter(({ name }) => name === "task").map(({ text }) => text);
        const named = reports.flatMap((text) => /are kept: (.+)/.exec(text)?.[1]?.split(", ") ?? []);
        const { files } = await agent().snapshot("t1");
        expect(Object.keys(files)).toEqual(expect.arrayContaining(named));
        for (const text of reports) {
          if (fate === "resumed") expect(text).toBe("report");
          else expect(text).toMatch(new RegExp(`^(report$|Tool call .*: the run (was )?${fate} before)`));
        }
        process.close();
        await server.close();
      }),
      attempts(12),
    );
  });
});
