import { methods } from "@agentclientprotocol/sdk";
import { expect, test } from "vitest";
import { openHome } from "../../support/harness.ts";
import { deferred } from "../../support/harness-deferred.ts";
import { play } from "../../support/harness-brain.ts";
import { saidBy, startEditor } from "./editor.ts";

const { session } = methods.agent;
const LOOKS = "I look around in the folder, and then I tell you what I have found. ".repeat(8);
const ANSWER = "There are notes in the folder, and nothing else is there.";

/** An editor whose model stops in the middle of each text until the test lets it continue. */
async function streaming() {
  const [first, second] = [deferred(), deferred()];
  const { workspace, env } = await openHome({
    think: play({
      "look around": [
        {
          text: LOOKS,
          toolCalls: [{ id: "c1", name: "ls", args: { path: "/workspace" } }],
          pieceLength: 20,
          rest: first.promise,
        },
        { text: ANSWER, pieceLength: 5, rest: second.promise },
      ],
    }),
  });
  const editor = await startEditor({ env });
  const { sessionId } = await editor.agent.request(session.new, { cwd: workspace, mcpServers: [] });
  const asked = editor.agent.request(session.prompt, {
    sessionId,
    prompt: [{ type: "text", text: "look around" }],
  });
  return { editor, sessionId, workspace, asked, first, second };
}

test("an editor is sent the words of the agent as they are written, each once", async () => {
  const { editor, asked, first, second } = await streaming();
  const said = (): string => saidBy(editor.updates);
  await editor.until(() => said().startsWith(LOOKS.slice(0, 60)));
  expect(said().length).toBeLessThan(LOOKS.length);
  first.resolve();
  await editor.until(() => said().includes(ANSWER.slice(0, 15)));
  expect(said()).not.toContain(ANSWER);
  second.resolve();
  expect(await asked).toEqual({ stopReason: "end_turn" });
  await editor.until(() => said().endsWith(ANSWER));
  // The whole text between the calls, not its beginning alone.
  expect(said()).toBe(`${LOOKS}\n\n${ANSWER}`);
  const ids = editor.updates.flatMap((update) =>
    update.sessionUpdate === "agent_message_chunk" ? [update.messageId] : [],
  );
  expect(new Set(ids).size).toBe(2);
});

test("a session that is loaded in the middle of an answer shows what is there, and then the rest", async () => {
  const { editor, sessionId, workspace, asked, first, second } = await streaming();
  asked.catch(() => undefined);
  first.resolve();
  await editor.until(() => saidBy(editor.updates).includes(ANSWER.slice(0, 15)));
  const again = (): string =>
    saidBy(
      editor.updates.slice(editor.updates.findLastIndex((one) => one.sessionUpdate === "user_message_chunk")),
    );
  await editor.agent.request(session.load, { sessionId, cwd: workspace, mcpServers: [] });
  await editor.until(() => again().includes(ANSWER.slice(0, 15)));
  second.resolve();
  await editor.until(() => again().endsWith(ANSWER));
  // The text before the call is shown up to the length that the journal has.
  expect(again()).toMatch(/^I look around.*…\n\nThere are notes/s);
  expect(again().match(/There are notes/g)).toHaveLength(1);
});
