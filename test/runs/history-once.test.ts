import { ToolMessage } from "@langchain/core/messages";
import { expect, test } from "vitest";
import { StoreBackend } from "../../src/backends/stores/langgraph-store.ts";
import { createStore } from "../../src/storage/sqlite/memories/store.ts";
import { openDatabase } from "../../src/storage/sqlite/database.ts";
import { deferred } from "../support/harness-deferred.ts";
import { calls, isSummarizer, long } from "../support/long-results.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { cleanUpWith, databaseFile, mine, openServer, reach, startRun } from "./support.ts";

const THEN = {
  "goes on": undefined,
  "goes on and is told something": "told",
  "is cancelled, and its thread goes on": "follow-up",
} as const;

test.each(Object.entries(THEN))("history of a killed run is kept once when it %s", async (_how, then) => {
  const file = databaseFile();
  const database = openDatabase(`${file}.store`);
  cleanUpWith(() => database.close());
  const backend = new StoreBackend({ store: createStore(database), namespace: ["files"] });
  const history = async () =>
    String((await backend.readRaw(`/conversation_history/${run.threadId}.md`)).data?.content ?? "");
  const asked = deferred();
  /** Makes so many calls, one in each turn, follow-ups included. */
  const agent = (turns: number, summarize: () => Promise<{ text: string }>) => ({
    model: scriptedModel(({ messages }) => {
      if (isSummarizer(messages)) return summarize();
      const last = messages.findLast((message) => ToolMessage.isInstance(message));
      const turn = Number(/^c(\d+)_/.exec(last?.tool_call_id ?? "")?.[1] ?? 0) + 1;
      return turn <= turns ? calls(turn, [300]) : { text: "end" };
    }),
    tools: [long],
    backend,
    summarization: { trigger: { messages: 9 }, keep: { messages: 3 } },
  });
  const first = openServer(
    file,
    agent(8, () => {
      asked.resolve();
      return new Promise(() => {});
    }),
  );
  const run = await startRun(first.service, "the task");
  await asked.promise;
  first.kill();
  const before = await history();
  expect(before).toContain("the task");

  const idle = openServer(file, agent(0, never), { concurrentRuns: 0 });
  if (then === "told") await mine(idle.service).control.tell(run.id, { text: "one thing more" });
  if (then === "follow-up") await mine(idle.service).control.cancel(run.id, "enough");
  const second = openServer(
    file,
    agent(12, async () => ({ text: "SUMMARY" })),
  );
  const next =
    then === "follow-up" ? await startRun(second.service, "and more", { threadId: run.threadId }) : run;
  await reach(second.service, next.id, "completed");

  const after = await history();
  expect(after.startsWith(before)).toBe(true);
  expect(after.length).toBeGreaterThan(before.length);
  const results = [...after.matchAll(/^## Result of long \((\S+)\)$/gm)].map(([, id]) => id);
  expect(results.length).toBeGreaterThan(3);
  expect(new Set(results).size).toBe(results.length);
  expect(after.match(/^the task$/gm)).toHaveLength(1);
});

const never = (): Promise<never> => Promise.reject(new Error("nothing is summarized here"));
