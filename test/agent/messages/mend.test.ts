import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import fc from "fast-check";
import { expect, test } from "vitest";
import { repairHistory } from "../../../src/agent/messages/mend.ts";

const idOf = fc.constantFrom("a", "b", "c", "");
const reply = fc.array(idOf, { maxLength: 3 }).map(
  (ids) =>
    new AIMessage({
      content: "r",
      tool_calls: ids.map((id) => ({ ...(id ? { id } : {}), name: "ls", args: {} })),
    }),
);
const invalid = idOf.map(
  (id) => new AIMessage({ content: "i", invalid_tool_calls: [{ id, name: "ls", args: "{", error: "cut" }] }),
);
const result = idOf.map((id) => new ToolMessage({ content: "done", tool_call_id: id }));
const person = fc.constant("hi").map((text) => new HumanMessage(text));

/** Each message with what a provider looks at. */
const shown = (messages: readonly BaseMessage[]) =>
  messages.map((message) => {
    if (ToolMessage.isInstance(message)) return `result of ${message.tool_call_id}: ${message.text}`;
    const { tool_calls: valid = [], invalid_tool_calls: broken = [] } = message as AIMessage; // or none
    return `${message.type} ${[...valid, ...broken].map(({ id }) => id).join()}`;
  });

/** A copy, which nothing is known about. */
const copied = (messages: readonly BaseMessage[]) =>
  messages.map((message) => Object.assign(Object.create(Object.getPrototypeOf(message)), message));

test("A thread that grows, loses its end and grows again is repaired as if it were seen for the first time", () => {
  const grown = fc.array(fc.oneof(reply, result, result, invalid, person), { minLength: 1, maxLength: 10 });
  fc.assert(
    fc.property(grown, fc.array(fc.nat(10), { maxLength: 6 }), (messages, lengths) => {
      const all = [new HumanMessage("Start."), ...messages];
      for (const length of [1, ...lengths, all.length]) {
        const thread = all.slice(0, length + 1);
        const repaired = repairHistory(thread);
        expect(shown(repaired)).toEqual(shown(repairHistory(copied(thread))));
        expect(repairHistory(repaired)).toBe(repaired);
        if (repaired.every((message, at) => message === thread[at]) && repaired.length === thread.length)
          expect(repaired).toBe(thread);
      }
    }),
    { numRuns: 500 },
  );
});

test("A call without a result is completed, also if its thread was fine one message before", () => {
  const call = (id: string) => new AIMessage({ content: "", tool_calls: [{ id, name: "ls", args: {} }] });
  const fine = [new HumanMessage("Go."), call("a"), new ToolMessage({ content: "done", tool_call_id: "a" })];
  expect(repairHistory(fine)).toBe(fine);
  const open = [...fine, call("b")];
  expect(shown(repairHistory(open)).at(-1)).toBe("result of b: Tool call was cancelled or did not complete.");
  const late = [...open, new HumanMessage("Well?"), new ToolMessage({ content: "late", tool_call_id: "b" })];
  expect(shown(repairHistory(late)).slice(-3)).toEqual(["ai b", "result of b: late", "human "]);
});

test("Only new messages of a growing thread are looked at", () => {
  let looks = 0;
  const thread: BaseMessage[] = [new HumanMessage("Go.")];
  for (let step = 0; step < 200; step += 1) {
    const calls = [{ id: `c${step}`, name: "ls", args: {} }];
    const made = new AIMessage({ content: "", tool_calls: calls });
    Object.defineProperty(made, "tool_calls", { get: () => ((looks += 1), calls) });
    thread.push(made, new ToolMessage({ content: "done", tool_call_id: `c${step}` }));
    expect(repairHistory(thread)).toBe(thread);
  }
  // Each once for its calls, and once to see if it may be empty.
  expect(looks).toBe(2 * 200);
});
