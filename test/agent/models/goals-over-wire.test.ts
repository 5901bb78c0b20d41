import { describe, expect, test } from "vitest";
import { type Finding, findings, met, notMet } from "../../support/judge.ts";
import type { WireReply, WireRequest } from "../../support/wire-server.ts";
import { PROVIDERS, type Step, wireThread } from "../../support/wire-thread.ts";

const isJudge = ({ messages }: WireRequest): boolean =>
  messages.some(({ text }) => text.startsWith("Judge this work."));

/** The findings in the way that the model was asked for them: by a call, or as JSON. */
function reply({ tools }: WireRequest, ...given: Finding[]): WireReply {
  const [call = { name: "", args: {} }] = findings(...given).toolCalls ?? [];
  return tools.includes(call.name) ? { toolCalls: [call] } : { text: JSON.stringify(call.args) };
}

describe.each(PROVIDERS)("a goal over $protocol", (protocol) => {
  test("is judged with tools and a schema that the provider takes, and the thread goes on", async () => {
    let rounds = 0;
    const step: Step = (request) => {
      if (!isJudge(request)) return { text: `answer ${rounds}` };
      const hasLooked = request.messages.some(({ toolResults }) => toolResults.length > 0);
      if (!hasLooked) return { toolCalls: [{ id: `look_${rounds}`, name: "ls", args: { path: "/" } }] };
      rounds += 1;
      return rounds === 1 ? reply(request, notMet("no file"), met) : reply(request, met, met);
    };
    const steps = Array.from({ length: 12 }, () => step);
    const thread = await wireThread(protocol, steps, { goal: { criteria: ["One", "Two"] } });
    const events = await thread.go();
    expect(events.at(-1)).toMatchObject({ kind: "finished", answer: "answer 1" });
    expect(events.filter(({ kind }) => kind === "goal_judged")).toMatchObject([
      { verdicts: [{ verdict: "not_met", evidence: "no file" }, { verdict: "met" }] },
      { verdicts: [{ verdict: "met" }, { verdict: "met" }] },
    ]);
    expect(rounds).toBe(2);
    await thread.goOn();
    await thread.server.close();
  });
});
