import { methods } from "@agentclientprotocol/sdk";
import { expect, test } from "vitest";
import { openHome } from "../../support/harness.ts";
import { play } from "../../support/harness-brain.ts";
import { saidBy, startEditor } from "./editor.ts";

const { session } = methods.agent;

test("commands of the folder are offered to the editor, and become the task with their arguments", async () => {
  const files = {
    ".claude/commands/review.md":
      "---\ndescription: Reviews a change.\nargument-hint: '[pr]'\n---\nReview change $1 now.\n",
    ".claude/commands/goal.md": "Not this one.",
  };
  const think = play({ "Review change 12 now.": [{ text: "Reviewed." }] });
  const { workspace, env } = await openHome({ think, files });
  const editor = await startEditor({ env });
  const { sessionId } = await editor.agent.request(session.new, { cwd: workspace, mcpServers: [] });
  const offered = () =>
    editor.updates.flatMap((update) =>
      update.sessionUpdate === "available_commands_update" ? update.availableCommands : [],
    );
  await editor.until(() => offered().length > 0);
  expect(offered().map(({ name }) => name)).toEqual(["goal", "review"]);
  expect(offered()[1]).toMatchObject({ description: "Reviews a change.", input: { hint: "[pr]" } });
  const prompt = [{ type: "text" as const, text: "/review 12" }];
  expect(await editor.agent.request(session.prompt, { sessionId, prompt })).toEqual({
    stopReason: "end_turn",
  });
  await editor.until(() => saidBy(editor.updates).includes("Reviewed."));
});
