import { expect, test } from "vitest";
import { SCOPES, type Scope } from "../../../src/runs/run.ts";
import { APPROVE, person, runIdOf, untilStatus, writeFile } from "../../e2e/support.ts";
import { CLIENT_KINDS } from "../../support/clients.ts";
import { play } from "../../support/harness-brain.ts";
import { entry, openGuarded, withTokens } from "./support.ts";

const think = play({
  "Change a file": [{ toolCalls: [writeFile("/workspace/new.md", "new\n")] }, { text: "changed" }],
});
const authenticator = withTokens(
  entry("all", "alice"),
  ...SCOPES.map((scope) => entry(scope, "alice", [scope])),
);
const approving = () => person({ "new.md": APPROVE }).answer;

test.each(CLIENT_KINDS)("%s: a token can do what its scopes say, and no more", async (kind) => {
  const server = await openGuarded(think, { authenticator });
  const runs = await server.connect("run", kind, approving());
  const approves = await server.connect("approve", kind, approving());
  const reads = await server.connect("read", kind, approving());
  const refused = async (asking: Promise<unknown>, scope: Scope): Promise<void> => {
    await expect(asking).rejects.toThrow(new RegExp(`scope ${scope}|required "${scope}"`));
  };

  for (const client of [approves, reads]) {
    await refused(client.call("run_deep_agent", { task: "Change a file" }), "run");
  }
  // The person at this client would approve, but its token may not: nobody is asked.
  const runId = runIdOf(await runs.call("run_deep_agent", { task: "Change a file" }));
  await untilStatus(runs, runId, "input_required");
  expect(await untilStatus(reads, runId, "input_required")).toMatchObject({ run_id: runId });

  for (const client of [runs, approves]) {
    await refused(client.readResource(`deepagent://runs/${runId}`), "read");
    await refused(client.listResources(), "read");
    await refused(client.complete("deepagent://runs/{run_id}", "run_id", ""), "read");
    await refused(client.call("search_memories", { query: "x" }), "read");
    await refused(client.call("read_agent_file", { path: "/workspace/" }), "read");
  }
  expect((await reads.listResources()).map(({ name }) => name)).toContain(runId);
  for (const client of [approves, reads]) {
    await refused(client.call("cancel_deep_agent", { run_id: runId }), "run");
  }
  expect(await untilStatus(approves, runId, "completed")).toMatchObject({ answer: "changed" });
});
