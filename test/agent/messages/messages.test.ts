import {
  AIMessage,
  type BaseMessage,
  HumanMessage,
  RemoveMessage,
  ToolMessage,
} from "@langchain/core/messages";
import { messagesDeltaReducer, REMOVE_ALL_MESSAGES } from "@langchain/langgraph";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { foldMessages } from "../../../src/agent/messages/messages.ts";

const id = fc.option(fc.constantFrom("a", "b", "c", "d"), { nil: undefined });
const text = fc.string({ maxLength: 3 });
const message = fc.oneof(
  fc.record({ id, content: text }).map(({ id: own, content }) => new HumanMessage({ id: own, content })),
  fc.record({ id, content: text }).map(({ id: own, content }) => new AIMessage({ id: own, content })),
);
const write = fc.oneof(
  message,
  fc.array(message, { maxLength: 4 }),
  fc.array(message, { minLength: 33, maxLength: 40 }),
  fc.constantFrom("a", "b", REMOVE_ALL_MESSAGES).map((gone) => new RemoveMessage({ id: gone })),
);

const shown = (messages: readonly BaseMessage[]) => messages.map((one) => [one.type, one.id, one.text]);

test("messages are folded as LangGraph folds them, and what was folded before stays as it was", () => {
  fc.assert(
    fc.property(fc.array(fc.array(write, { maxLength: 3 }), { maxLength: 6 }), (steps) => {
      let ours: BaseMessage[] = [];
      let theirs: BaseMessage[] = [];
      for (const writes of steps) {
        const before = [...ours];
        const next = foldMessages(ours, writes);
        expect(ours).toEqual(before);
        theirs = messagesDeltaReducer(theirs, writes);
        expect(shown(next)).toEqual(shown(theirs));
        ours = next;
      }
    }),
  );
});

test("results stand in the order of their calls, however they come in", () => {
  const calls = ["a", "b", "c", "d", "e"];
  const reply = new AIMessage({
    id: "reply",
    content: "",
    tool_calls: calls.map((call) => ({ id: call, name: "t", args: {} })),
  });
  const results = calls.map((call) => new ToolMessage({ id: `r${call}`, content: call, tool_call_id: call }));
  const question = new HumanMessage({ id: "q", content: "q" });
  const order = fc.shuffledSubarray(results, { minLength: calls.length, maxLength: calls.length });
  fc.assert(
    fc.property(order, fc.array(fc.nat(5), { maxLength: 4 }), fc.boolean(), (ended, cuts, long) => {
      const earlier = long
        ? Array.from({ length: 40 }, (_, index) => new HumanMessage({ id: `h${index}`, content: "" }))
        : [];
      const bounds = [0, ...cuts.sort((a, b) => a - b), ended.length];
      const batches = bounds.slice(1).map((bound, index) => ended.slice(bounds[index], bound));
      let state = foldMessages([], [[...earlier, question, reply]]);
      for (const batch of batches) state = foldMessages(state, [batch]);
      const shownResults = state.slice(-calls.length).map(({ text: said }) => said);
      expect(shownResults).toEqual(calls);
      expect(foldMessages([], [[...earlier, question], reply, ...ended])).toEqual(state);
      const more = foldMessages(state, [[new AIMessage("end")], [new HumanMessage("next")]]);
      expect(more.slice(0, state.length)).toEqual(state);
    }),
  );
});
