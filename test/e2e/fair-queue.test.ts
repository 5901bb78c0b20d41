import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { entry } from "../server/auth/support.ts";
import type { TestClient } from "../support/clients.ts";
import { connect, openHome } from "../support/harness.ts";
import type { Think } from "../support/harness-brain.ts";
import { deferred } from "../support/harness-deferred.ts";
import { httpConnector, serveHttp } from "../support/harness-http-process.ts";
import { runIdOf, untilStatus, writeFile } from "./support.ts";

const RUNS = 30;
const CANCELLED = new Set([10, 11, 20]);
const TOKENS = ["alice", "bob"];

/** A home whose server works on one run at a time, for two people with tokens. */
async function openOffice(think: Think) {
  const home = await openHome({
    think,
    env: { DEEPAGENT_LIMITS_CONCURRENT_RUNS: "1", DEEPAGENT_APPROVALS_ALLOW_MODEL_ANSWERS: "true" },
  });
  const config = join(home.workspace, "../config.json");
  const tokens = TOKENS.map((principal) => entry(principal, principal));
  writeFileSync(config, JSON.stringify({ http: { tokens } }));
  const serve = async () => {
    const { child, url } = await serveHttp(home, ["--config", config]);
    const [alice, bob] = await Promise.all(
      TOKENS.map((token) => connect(httpConnector(url, token), "v2-modern")),
    );
    if (alice === undefined || bob === undefined) throw new Error("both have a token");
    return { child, alice, bob };
  };
  return { home, serve };
}

const start = async (client: TestClient, task: string): Promise<string> =>
  runIdOf(await client.call("run_deep_agent", { task, wait_seconds: 0 }));

const placeOf = async (client: TestClient, runId: string): Promise<string> =>
  (await client.call("check_deep_agent", { run_id: runId, wait_seconds: 0 })).text;

test("few runs of one do not wait for many of another, also after a restart", { tags: "long" }, async () => {
  const begun: string[] = [];
  const gate = deferred();
  const { serve } = await openOffice(async ({ task: text, step }) => {
    const [task] = text.split("\n", 1);
    begun.push(`${task} ${step}`);
    if (task === "alice asks" && step === 0) return { toolCalls: [writeFile("/workspace/asked.md", "yes")] };
    await gate.promise;
    return { text: "done" };
  });
  const first = await serve();
  const asks = await start(first.alice, "alice asks");
  const { approvals } = await untilStatus(first.alice, asks, "input_required");
  const alices: string[] = [];
  for (let n = 0; n < RUNS; n += 1) alices.push(await start(first.alice, `alice ${n}`));
  const bobs: string[] = [];
  for (let n = 0; n < 3; n += 1) bobs.push(await start(first.bob, `bob ${n}`));
  const place = (client: TestClient, ids: readonly string[], n: number) => placeOf(client, ids[n] ?? "");
  expect(await place(first.bob, bobs, 0)).toContain(`number 1 of ${RUNS + 2}`);
  expect(await place(first.alice, alices, 1)).toContain(`number 2 of ${RUNS + 2}`);
  expect(await place(first.bob, bobs, 2)).toContain(`number 5 of ${RUNS + 2}`);
  expect(await place(first.alice, alices, RUNS - 1)).toContain(`number ${RUNS + 2} of ${RUNS + 2}`);
  for (const n of CANCELLED) await first.alice.call("cancel_deep_agent", { run_id: alices[n] ?? "" });
  expect(await place(first.alice, alices, RUNS - 1)).toContain(`number ${RUNS - 1} of ${RUNS - 1}`);

  first.child.process.kill("SIGKILL");
  await first.child.exited;
  const begunBefore = begun.length;
  const second = await serve();
  await expect.poll(() => begun.length).toBe(begunBefore + 1);
  // Answered while the line is full: it goes on before those that have not begun.
  const [{ id = "" } = {}] = approvals as { id?: string }[];
  await second.alice.call("answer_deep_agent", { run_id: asks, approval_id: id, decision: "approve" });
  expect(await place(second.alice, [asks], 0)).toContain(`queued: number`);
  gate.resolve();
  await untilStatus(second.alice, alices[RUNS - 1] ?? "", "completed");
  await Promise.all(bobs.map((runId) => untilStatus(second.bob, runId, "completed")));

  const order = begun.slice(begunBefore).map((line) => line.replace(/ \d+$/, ""));
  // The one at work when the server was killed, then turn by turn.
  const turns = "alice 0, bob 0, alice asks, bob 1, alice 1, bob 2, alice 2, alice 3";
  expect(order.slice(0, 8).join(", ")).toBe(turns);
  const rest = Array.from({ length: RUNS }, (_, n) => n).filter((n) => !CANCELLED.has(n));
  expect(order.filter((task) => /^alice \d/.test(task))).toEqual(rest.map((n) => `alice ${n}`));
});
