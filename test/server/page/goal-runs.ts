/** Runs whose goals a judge has checked: one that asks a person about it, and one that ended without meeting it. */
import type { AgentEvent } from "../../../src/agent/agent.ts";
import { goalQuestion } from "../../../src/agent/messages/goal-texts.ts";
import { type JournalledEvent, entryOf } from "../../../src/runs/events.ts";
import type { RunService } from "../../../src/runs/service.ts";
import { sqliteRuns } from "../../../src/storage/sqlite/runs/repository.ts";
import { ME, connect, databaseFile, openServer } from "../../runs/support.ts";
import { scriptedModel } from "../../support/scripted-model.ts";

export const JUDGED_AT = Date.UTC(2026, 2, 3, 10, 0, 0);

const CRITERIA = [
  "/workspace/docs/alarms.md names the owner of every alarm in alarms.yaml",
  "Every threshold has a source",
  "The tests pass",
  "The harbour office has agreed to the new thresholds",
];

type Judged = Extract<AgentEvent, { kind: "goal_judged" }>;

const judged = (round: number, verdicts: Array<Omit<Judged["verdicts"][number], "criterion">>): Judged => ({
  kind: "goal_judged",
  agent: [],
  round,
  rounds: 5,
  verdicts: verdicts.map((finding, index) => ({ criterion: CRITERIA[index] ?? "", ...finding })),
});

const OWNERS = {
  verdict: "met",
  evidence: "docs/alarms.md:12-48 has 9 owners; alarms.yaml has 9 alarms.",
} as const;
const TESTS = { verdict: "met", evidence: "`node --test` of 09:41 ended with 24 passed, 0 failed." } as const;

const FIRST = judged(1, [
  OWNERS,
  {
    verdict: "not_met",
    evidence: "docs/alarms.md:30 gives 3.1 m for Cuxhaven without a source.",
    missing: "Cite the gauge record, or mark the threshold as unknown.",
  },
  TESTS,
  {
    verdict: "not_met",
    evidence: "No file mentions the harbour office.",
    missing: "Look for the agreement.",
  },
]);

const SECOND = judged(2, [
  OWNERS,
  { verdict: "met", evidence: "docs/alarms.md:30 cites gauges/2025.csv:118; the other eight cite rows too." },
  TESTS,
  {
    verdict: "uncertain",
    evidence: "letters/2026-02.md:4 says that an agreement is expected, and nothing newer is there.",
    missing: "Ask the harbour office.",
  },
]);

const ANSWER = `Goal not met: the judge couldn't verify 1 of 4 criteria, and a person stopped the run.

- uncertain: "${CRITERIA[3]}". letters/2026-02.md:4 says that an agreement is expected.

Answer:

All nine alarms now have an owner and a source: see \`docs/alarms.md\`.`;

/** No process works on the runs. */
export async function goalRuns(): Promise<{ service: RunService; asked: string; ended: string }> {
  const file = databaseFile();
  const repository = sqliteRuns(connect(file));
  const work = repository.work({});
  const seed = async (runId: string, events: readonly JournalledEvent[]) => {
    const now = JUDGED_AT - 1_200_000;
    const fresh = { runId, newThreadId: `thr_${runId}`, environment: "tides", now };
    await repository.create(ME, { task: "Give every alarm an owner and a source", goal: CRITERIA }, fresh);
    const claimed = await repository.claimNext(
      { owner: "seed", environment: "tides", now, expiresAt: now + 7_200_000 },
      10,
    );
    if (claimed === undefined) throw new Error("nothing waits");
    for (const [index, event] of events.entries())
      await work.record(claimed.lease, [entryOf(event)], now + 60_000 * (index + 1));
    return claimed.lease;
  };
  const [asked, ended] = ["run_asked", "run_ended"];
  const lease = await seed(asked, [FIRST, SECOND]);
  const reason = "the judge couldn't verify 1 of 4 criteria";
  const state = { run: asked, everMet: [], stalled: 0, status: "asked" as const, ...SECOND, reason };
  const question = goalQuestion(state, { criteria: CRITERIA, rounds: 5 }, true);
  await work.ask(lease, [], "q1", [question], JUDGED_AT - 600_000);
  const told = `${reason}, and a person stopped the run`;
  const last: JournalledEvent = { kind: "goal_ended", agent: [], round: 2, outcome: "not_met", reason: told };
  const other = await seed(ended, [FIRST, SECOND, last]);
  const inbox = work.inbox(other);
  await inbox.messages();
  await work.complete(other, { answer: ANSWER, stopReason: "goal_not_met" }, inbox, JUDGED_AT - 300_000);
  const options = { concurrentRuns: 0, clock: () => JUDGED_AT };
  const { service } = openServer(file, { model: scriptedModel(() => ({ text: "" })) }, options);
  return { service, asked, ended };
}
