import { expect, test } from "vitest";
import { SCOPES, type Scope } from "../../../src/config/sections.ts";
import type { PrincipalRuns } from "../../../src/runs/service.ts";
import { scopedRuns } from "../../../src/server/auth/scopes.ts";
import { authInfoOf } from "../../../src/server/auth/auth.ts";
import { APPROVE, person, runIdOf, untilStatus, writeFile } from "../../e2e/support.ts";
import { plainRuns } from "../support.ts";
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

const CARRIED = { id: "x", decisions: [], answers: [], replies: [], by: "test" };

test("every method of the run service demands a scope", async () => {
  const service = plainRuns();
  const holder = (...scopes: Scope[]) => scopedRuns(service, authInfoOf({ principal: "p", scopes }));
  const signal = new AbortController().signal;
  const calls: Record<string, (runs: PrincipalRuns) => unknown> = {
    start: (runs) => runs.start("p", { task: "x" }),
    cancel: (runs) => runs.cancel("p", "r", "x"),
    rename: (runs) => runs.rename("p", "r", "x"),
    delete: (runs) => runs.delete("p", "r"),
    share: (runs) => runs.share("p", "r", 1),
    revoke: (runs) => runs.revoke("p", "s"),
    decide: (runs) => runs.decide("p", "r", "a", { type: "approve" }, "test"),
    "an answer that decides": (runs) =>
      runs.useAnswer("p", "r", {
        ...CARRIED,
        decisions: [{ approvalId: "a", decision: { type: "approve" } }],
      }),
    "an answer of a model": (runs) =>
      runs.useAnswer("p", "r", {
        ...CARRIED,
        replies: [{ callId: "c", reply: { kind: "declined", message: "no" } }],
      }),
    view: (runs) => runs.view("p", "r"),
    watch: (runs) => runs.watch("p", "r", { signal }),
    watchStarts: (runs) => runs.watchStarts("p", { signal }),
    list: (runs) => runs.list("p", { limit: 1 }),
    events: (runs) => runs.events("p", "r"),
    runFiles: (runs) => runs.runFiles("p", "r"),
    files: (runs) => runs.files("p"),
    searchMemories: (runs) => runs.searchMemories("p", "x", 1),
    drawing: (runs) => runs.drawing("p"),
  };
  const refusedBy = async (runs: PrincipalRuns): Promise<string[]> => {
    const names: string[] = [];
    for (const [name, call] of Object.entries(calls)) {
      try {
        await call(runs);
      } catch (error) {
        expect(error).toMatchObject({ code: "insufficient_scope" });
        names.push(name);
      }
    }
    return names;
  };
  const reading = ["watchStarts", "list", "events", "runFiles", "files", "searchMemories", "drawing"];
  expect(await refusedBy(holder())).toEqual(Object.keys(calls));
  expect(await refusedBy(holder("run"))).toEqual(["decide", "an answer that decides", ...reading]);
  const changing = ["start", "cancel", "rename", "delete", "share", "revoke", "an answer of a model"];
  expect(await refusedBy(holder("approve"))).toEqual([...changing, ...reading]);
  const deciding = ["decide", "an answer that decides", "an answer of a model"];
  expect(await refusedBy(holder("read"))).toEqual([...changing.slice(0, 6), ...deciding]);
  expect(await refusedBy(holder("run", "approve", "read"))).toEqual([]);
  expect(await refusedBy(scopedRuns(service, undefined))).toEqual([]);
  // Who holds a token is given nothing of what operates the server.
  expect(
    Object.keys(holder(...SCOPES)).filter((name) =>
      ["prune", "planPrune", "statistics", "assertWritable", "close"].includes(name),
    ),
  ).toEqual([]);
});
