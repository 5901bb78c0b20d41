import { join } from "node:path";
import { ToolMessage } from "@langchain/core/messages";
import fc from "fast-check";
import { expect, test } from "vitest";
import { type AgentEvent, type AgentInput, buildAgent } from "../../../src/agent/agent.ts";
import { attempts } from "../../support/effort.ts";
import { findings, isJudge, met } from "../../support/judge.ts";
import { MortalProcess } from "../../support/mortal-process.ts";
import { collect } from "../../support/run-agent.ts";
import { scriptedModel } from "../../support/scripted-model.ts";
import { filesIn } from "../../support/files-in.ts";

/** Tokens of one reply of the scripted model. */
const REPLY = 15;
const VERDICTS = ["met", "not_met", "not_met", "not_met", "uncertain"] as const;

const story = fc.record({
  rounds: fc.integer({ min: 1, max: 5 }),
  /** Verdicts of the rounds in turn, about two criteria. */
  verdicts: fc.array(fc.tuple(fc.constantFrom(...VERDICTS), fc.constantFrom(...VERDICTS)), {
    minLength: 5,
    maxLength: 5,
  }),
  decision: fc.constantFrom("accept", "go_on", "stop"),
  looks: fc.boolean(),
  tokens: fc.option(fc.integer({ min: 20, max: 300 }), { nil: undefined }),
  kills: fc.array(fc.integer({ min: 1, max: 25 }), { maxLength: 6 }),
});

test("a goal is judged once a round and at most so often, whenever the process is killed", async () => {
  await fc.assert(
    fc.asyncProperty(story, async ({ rounds, verdicts, decision, looks, tokens, kills }) => {
      const folder = filesIn();
      let judged = 0;
      let calls = 0;
      const model = scriptedModel((request) => {
        calls += 1;
        const { messages } = request;
        if (!isJudge(request)) return { text: `answer ${messages.length}` };
        const hasLooked = messages.some((message) => ToolMessage.isInstance(message));
        if (looks && !hasLooked) return { toolCalls: [{ name: "ls", args: { path: "/" } }] };
        const given = verdicts[judged % verdicts.length] ?? [];
        judged += 1;
        return findings(
          ...given.map((verdict) => (verdict === "met" ? met : { verdict, evidence: `look ${judged}` })),
        );
      });
      const journal = new Map<string, AgentEvent>();
      let ended: AgentEvent | undefined;
      let input: AgentInput = { kind: "task", task: "go" };
      let lost = 0;
      for (const end of [...kills.map((steps) => ({ steps, how: "kill" as const })), undefined]) {
        const process = new MortalProcess(end);
        const agent = buildAgent({
          model,
          checkpointer: process.checkpointer(join(folder, "checkpoints.db"), () => undefined),
          goal: { criteria: ["One", "Two"], rounds },
          askUser: true,
          ...(tokens === undefined ? {} : { limits: { tokens } }),
        });
        for (let isOver = false; !isOver;) {
          let events: readonly AgentEvent[] = [];
          const work = collect(agent, input, { signal: process.signal }, (told) => (events = [...told]));
          const isWhole = await Promise.race([work.then(() => true), process.died.then(() => false)]);
          for (const event of events) {
            if (event.kind !== "goal_judged" && event.kind !== "goal_ended") continue;
            const key = `${event.kind} ${event.round}`;
            expect(event).toEqual(journal.get(key) ?? event);
            journal.set(key, event);
          }
          const last = events.at(-1);
          isOver = !isWhole || last?.kind === "finished";
          if (!isWhole) lost += 1;
          if (isWhole && last?.kind === "finished") ended = last;
          if (isWhole && last?.kind === "paused") {
            const [{ id } = { id: "" }] = last.questions;
            input = { kind: "resume", answers: { [id]: { type: "fields", values: { decision } } } };
            if (decision === "go_on" && Number(/round (\d+)/.exec(textOf(last))?.[1]) >= rounds) {
              input = { kind: "resume", answers: { [id]: { type: "fields", values: { decision: "stop" } } } };
            }
          } else if (input.kind === "task" || !isWhole)
            input = input.kind === "resume" ? input : { kind: "task", task: "go" };
        }
        await process.settled();
        process.close();
        if (ended) break;
      }
      expect(ended).toMatchObject({ kind: "finished" });
      const told = [...journal.values()].filter(({ kind }) => kind === "goal_judged");
      expect(told.length).toBeLessThanOrEqual(rounds);
      expect(told.map((event) => event.kind === "goal_judged" && event.round)).toEqual(
        told.map((_, at) => at + 1),
      );
      // A reply that was on its way when the process died is asked for again.
      expect(judged).toBeLessThanOrEqual(told.length + lost + 1);
      if (tokens !== undefined) expect(calls * REPLY).toBeLessThanOrEqual(tokens + REPLY * (2 + lost));
      const isMet = told.at(-1)?.kind === "goal_judged" && journal.has(`goal_ended ${told.length}`);
      const stopReason = ended?.kind === "finished" ? ended.stopReason : undefined;
      if (stopReason === undefined) expect(isMet).toBe(true);
    }),
    attempts(40),
  );
});

const textOf = (event: AgentEvent): string => {
  const question = event.kind === "paused" ? event.questions[0]?.question : undefined;
  return question?.kind === "ask" ? question.text : "";
};
