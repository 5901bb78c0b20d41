import { isApproval } from "../../../src/runs/run.ts";
import { describe, expect, test } from "vitest";
import type { RunService } from "../../../src/runs/service.ts";
import { mine, note, reach } from "../../runs/support.ts";
import { CLIENT_KINDS, type FormAnswer } from "../../support/clients.ts";
import { deferred } from "../../support/harness-deferred.ts";
import { approvalRuns, connect, depsFor } from "../support.ts";

/** A model that is told to check until the run has ended does so at once, and clients stop one that repeats itself. */

async function approveElsewhere(service: RunService, runId: string): Promise<void> {
  const approvals = (await reach(service, runId, "input_required")).requests.filter(isApproval);
  const outcome = await mine(service).requests.answer(
    runId,
    { requestId: approvals[0]?.id ?? "", answer: { type: "approve" } },
    "terminal",
  );
  expect(outcome.ok).toBe(true);
}

describe.each(CLIENT_KINDS)("%s", (kind) => {
  test("a second check of an approval that this client cannot show waits for the decision", async () => {
    const { service, notes } = approvalRuns(note("a"));
    const client = await connect(depsFor(service), { kind });
    const { structured, text } = await client.call("run_deep_agent", { task: "note a" });
    expect(text).toContain("waits for their decision");
    const runId = String(structured["run_id"]);
    const waiting = deferred();
    const check = client.call("check_deep_agent", { run_id: runId }, { onProgress: () => waiting.resolve() });
    await waiting.promise;
    await approveElsewhere(service, runId);
    expect((await check).structured["status"]).not.toBe("input_required");
    await reach(service, runId, "completed");
    expect(notes).toEqual(["a"]);
  });

  test("the first check of a client that was not told of an approval returns", async () => {
    const { service } = approvalRuns(note("a"));
    const deps = depsFor(service);
    const starting = await connect(deps, { kind });
    const { structured } = await starting.call("run_deep_agent", { task: "note a" });
    const other = await connect(deps, { kind });
    const { structured: seen } = await other.call("check_deep_agent", { run_id: structured["run_id"] });
    expect(seen).toMatchObject({ status: "input_required", approvals: [{ tool: "note" }] });
  });

  test("a client that closes every form by itself is told of other ways, and its next check waits", async () => {
    const { service, notes } = approvalRuns(note("a"));
    const frozen = Date.now();
    const deps = depsFor(service, { clock: () => frozen });
    const closedAgain = deferred();
    let forms = 0;
    const person = (): FormAnswer => {
      forms += 1;
      if (forms === 2) closedAgain.resolve();
      return { action: "cancel" };
    };
    const client = await connect(deps, { kind, person });
    const { structured, text } = await client.call("run_deep_agent", { task: "note a" });
    expect(structured).toMatchObject({ status: "input_required" });
    expect(text).toContain("closed the question before anyone could read it");
    expect(text).toContain("deepagent-mcp runs open");
    const runId = String(structured["run_id"]);
    const check = client.call("check_deep_agent", { run_id: runId });
    await closedAgain.promise;
    await approveElsewhere(service, runId);
    expect((await check).structured["status"]).not.toBe("input_required");
    await reach(service, runId, "completed");
    expect(forms).toBe(2);
    expect(notes).toEqual(["a"]);
  });

  test("a check after an older event returns at once, and one after the newest waits for more", async () => {
    const { service } = approvalRuns(note("a"));
    const client = await connect(depsFor(service), { kind });
    const { structured: told, text } = await client.call("run_deep_agent", { task: "note a" });
    const [runId, after] = [String(told["run_id"]), Number(told["last_event"])];
    expect(text).toContain(`after: ${after}`);
    const { structured: missed } = await client.call("check_deep_agent", { run_id: runId, after: 0 });
    expect(missed).toMatchObject({ status: "input_required", last_event: after });
    const waiting = deferred();
    const args = { run_id: runId, after };
    const check = client.call("check_deep_agent", args, { onProgress: () => waiting.resolve() });
    await waiting.promise;
    await approveElsewhere(service, runId);
    expect(Number((await check).structured["last_event"])).toBeGreaterThan(after);
  });

  test("a check after the newest event waits where nothing is remembered, too", async () => {
    const { service } = approvalRuns(note("a"));
    const deps = depsFor(service);
    const { structured: told } = await (await connect(deps, { kind })).call("run_deep_agent", { task: "a" });
    const [runId, after] = [String(told["run_id"]), Number(told["last_event"])];
    const other = await connect(deps, { kind });
    const waiting = deferred();
    const args = { run_id: runId, after };
    const check = other.call("check_deep_agent", args, { onProgress: () => waiting.resolve() });
    await waiting.promise;
    await approveElsewhere(service, runId);
    expect((await check).structured["status"]).not.toBe("input_required");
  });
});
