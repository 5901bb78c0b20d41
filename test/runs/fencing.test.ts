import { HumanMessage } from "@langchain/core/messages";
import { expect, test } from "vitest";
import { deferred } from "../support/harness-deferred.ts";
import { scriptedModel, type ScriptedReply } from "../support/scripted-model.ts";
import {
  checkpointsOf,
  databaseFile,
  follow,
  kinds,
  note,
  noteTool,
  openServer,
  reach,
  startRun,
} from "./support.ts";

/** Neither beats nor looks, like a process that is stopped. */
const ASLEEP = { pollMs: 1_000_000, heartbeatMs: 1_000_000, leaseMs: 200 };

/** Two servers with connections of their own to both databases. */
function twoServers() {
  const file = databaseFile();
  const time = { now: 1_000_000 };
  const notes: string[] = [];
  const open = (reply: () => Promise<ScriptedReply>, timing = {}) => {
    const { checkpointer } = checkpointsOf(file);
    const model = scriptedModel(({ messages }) => {
      const last = messages.at(-1);
      if (HumanMessage.isInstance(last)) return reply();
      return {
        text: messages
          .map((message) => `${message.type} ${message.text}`)
          .slice(1)
          .join(" | "),
      };
    });
    const agent = { model, tools: [noteTool(notes)], checkpointer };
    const clock = () => time.now;
    return openServer(file, agent, {
      checkpoints: async () => checkpointer,
      clock,
      concurrentRuns: 1,
      ...timing,
    });
  };
  return { open, time, notes };
}

const calls = (id: string): ScriptedReply => ({ toolCalls: [{ id, ...note(id) }] });

test("what a server that was stopped meanwhile got from its model is no part of the thread", async () => {
  const { open, time, notes } = twoServers();
  const [asked, woken] = [deferred(), deferred()];
  const sleeper = open(
    async () => {
      asked.resolve();
      await woken.promise;
      return calls("sleeper");
    },
    { timing: ASLEEP },
  );
  const run = await startRun(sleeper.service, "work");
  await asked.promise;
  time.now += 1000;
  const [askedAgain, answered] = [deferred(), deferred()];
  const next = open(async () => {
    askedAgain.resolve();
    await answered.promise;
    return calls("next");
  });
  await askedAgain.promise;
  const later = await startRun(sleeper.service, "later");
  woken.resolve();
  // The other server is at work, so this one does it, once it has given up what it lost.
  await reach(next.service, later.id, "completed");
  answered.resolve();
  const { run: ended } = await reach(next.service, run.id, "completed");
  expect(ended.answer).toBe("human work | ai  | tool noted next");
  const followUp = await startRun(next.service, "more", { threadId: run.threadId });
  const thread = "human work | ai  | tool noted next | ai human work | ai  | tool noted next | human more";
  expect((await reach(next.service, followUp.id, "completed")).run.answer).toBe(
    `${thread} | ai  | tool noted next`,
  );
  expect(notes).toEqual(["sleeper", "next", "next"]); // the first of the later run
  expect(kinds(await follow(next.service, run.id)).filter((kind) => kind === "run_completed")).toHaveLength(
    1,
  );
});
