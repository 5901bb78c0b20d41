import { type BaseMessage, HumanMessage } from "@langchain/core/messages";
import { expect, test } from "vitest";
import { newMessages } from "../../../src/agent/langgraph/reading-inbox.ts";

const message = (id: string) => ({ id, text: id });
const human = (id: string): BaseMessage => new HumanMessage({ id, content: id });

test("a message is new until the thread has it, and a long thread is looked through once for it", async () => {
  const told = [message("a"), message("b")];
  const inbox = { messages: () => told };
  let looks = 0;
  const thread = (...ids: string[]): BaseMessage[] => {
    const all = ids.map(human);
    const map = all.map.bind(all);
    return Object.assign(all, {
      map: (...args: Parameters<typeof map>) => {
        looks += 1;
        return map(...args);
      },
    });
  };
  const idsOf = async (...ids: string[]) => (await newMessages(inbox, thread(...ids))).map(({ id }) => id);
  expect(await idsOf("task")).toEqual(["a", "b"]);
  expect(await idsOf("task", "a")).toEqual(["b"]);
  expect(await idsOf("task", "a", "b")).toEqual([]);
  expect(looks).toBe(3);
  for (let step = 0; step < 10; step += 1) expect(await idsOf("task", "a", "b", `step ${step}`)).toEqual([]);
  expect(looks).toBe(3);
  told.push(message("c"));
  expect(await idsOf("task", "a", "b")).toEqual(["c"]);
  expect(await newMessages({ messages: () => told }, thread("task", "c"))).toHaveLength(2);
});
