import { AIMessage, type BaseMessage, HumanMessage, RemoveMessage } from "@langchain/core/messages";
import { messagesDeltaReducer, REMOVE_ALL_MESSAGES } from "@langchain/langgraph";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { foldMessages } from "../../src/agent/messages-reducer.ts";

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
