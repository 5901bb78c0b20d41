import { methods } from "@agentclientprotocol/sdk";
import { expect, test } from "vitest";
import { goalCommand } from "../../../src/server/acp/prompt.ts";
import { openHome } from "../../support/harness.ts";
import { play } from "../../support/harness-brain.ts";
import { findings, met } from "../../support/judge.ts";
import { type StartedEditor, saidBy, startEditor } from "./editor.ts";

const { session } = methods.agent;

test.each([
  ["/goal", []],
  ["/goal  ", []],
  ["/goal The tests pass", ["The tests pass"]],
  ["/goal\n- The tests pass\n\n  * The readme names it ", ["The tests pass", "The readme names it"]],
  ["/goals are good", undefined],
  ["Write /goal into the file", undefined],
])("%j is read as the command or as a task", (text, criteria) => {
  expect(goalCommand(text.trim())).toEqual(criteria);
});

const judged = (call: string, ...given: Parameters<typeof findings>) => ({
  toolCalls: (findings(...given).toolCalls ?? []).map((one) => ({ id: call, ...one })),
});

async function judging() {
  const think = play({ "Judge this work.": [judged("f1", met)], write: [{ text: "It is written." }] });
  const { workspace, env } = await openHome({ think });
  const editor = await startEditor({ env });
  const { sessionId } = await editor.agent.request(session.new, { cwd: workspace, mcpServers: [] });
  const ask = (text: string, goal?: unknown) =>
    editor.agent.request(session.prompt, {
      sessionId,
      prompt: [{ type: "text", text }],
      ...(goal === undefined ? {} : { _meta: { "deepagent-mcp": { goal } } }),
    });
  return { editor, ask };
}

const thoughts = ({ updates }: StartedEditor): string =>
  updates
    .flatMap((update) =>
      update.sessionUpdate === "agent_thought_chunk" && update.content.type === "text"
        ? [update.content.text]
        : [],
    )
    .join("");

test("the command sets the goal of the next run, whose verdicts are shown", async () => {
  const { editor, ask } = await judging();
  await editor.until(() =>
    editor.updates.some(
      (update) =>
        update.sessionUpdate === "available_commands_update" && update.availableCommands[0]?.name === "goal",
    ),
  );
  expect(await ask("/goal It is written\nIt is written")).toEqual({ stopReason: "end_turn" });
  await editor.until(() => saidBy(editor.updates).includes("Criterion 2 of the goal is given twice"));
  await ask("/goal It is written");
  await editor.until(() => saidBy(editor.updates).includes("a judge checks:\n- It is written"));
  expect(await ask("write")).toEqual({ stopReason: "end_turn" });
  await editor.until(() => thoughts(editor).includes("goal met"));
  expect(thoughts(editor)).toContain("goal: 1 of 1 criteria met (round 1 of 5)\n\nmet: It is written");
  // It was for that run alone.
  const before = thoughts(editor);
  await ask("write again").catch(() => undefined);
  expect(thoughts(editor)).toBe(before);
});

test("a program gives the goal with its prompt; another form is refused", async () => {
  const { editor, ask } = await judging();
  await expect(ask("write", "It is written")).rejects.toMatchObject({
    code: -32602,
    message: expect.stringContaining("must be a list of texts"),
  });
  await expect(ask("write", [])).rejects.toMatchObject({
    message: "No run was started. A goal needs at least one criterion.",
  });
  expect(await ask("write", ["It is written"])).toEqual({ stopReason: "end_turn" });
  await editor.until(() => thoughts(editor).includes("goal met"));
});
