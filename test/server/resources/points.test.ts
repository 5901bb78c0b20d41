import { expect, test } from "vitest";
import { runUri } from "../../../src/server/contracts/uris.ts";
import { createCheckpointer } from "../../../src/storage/sqlite/checkpoints/checkpointer.ts";
import { cleanUpWith, connect, databaseFile, openServer } from "../../runs/support.ts";
import { CLIENT_KINDS, connectClient } from "../../support/clients.ts";
import { memoryConnector } from "../../support/harness-memory.ts";
import { scriptedModel } from "../../support/scripted-model.ts";
import { depsFor } from "../support.ts";

test.each(CLIENT_KINDS)("%s: a thread begins at a point of another that a resource lists", async (kind) => {
  const file = databaseFile();
  const checkpointer = createCheckpointer(connect(file));
  const model = scriptedModel(({ messages }) => ({
    text: messages.flatMap(({ type, text }) => (type === "human" ? [text] : [])).join(" | "),
  }));
  const { service } = openServer(file, { model, checkpointer }, { checkpoints: async () => checkpointer });
  const client = await connectClient(memoryConnector(depsFor(service)), { kind });
  cleanUpWith(() => client.close());
  const call = async (args: object) => (await client.call("run_deep_agent", { ...args })).structured;
  const first = await call({ task: "one" });
  await call({ task: "two", thread_id: first?.["thread_id"] });
  const { contents } = await client.readResource(`${runUri(String(first?.["run_id"]))}/points`);
  const points = JSON.parse(String(contents[0]?.["text"])) as { thread_id: string; summary: string }[];
  expect(points.map(({ summary }) => summary)).toEqual([
    "You: one",
    "Agent: one",
    "You: two",
    "Agent: one | two",
  ]);
  const fork = await call({ task: "three", thread_id: points[1]?.thread_id });
  expect(fork).toMatchObject({ status: "completed", answer: "one | three" });
  expect(fork?.["thread_id"]).not.toBe(first?.["thread_id"]);
});
