/** Runs that are the same each time, for pictures of the page: fixed times, ids, names and costs. */
import { callRequests } from "../../../src/runs/asked-events.ts";
import type { AgentPath, HitlRequest } from "../../../src/agent/agent.ts";
import { StateBackend } from "../../../src/backends/stores/state.ts";
import { defined } from "../../../src/core/unknown.ts";
import { snapshotFiles } from "../../../src/backends/runtime.ts";
import { entryOf } from "../../../src/runs/events.ts";
import type { Lease } from "../../../src/runs/ports.ts";
import type { RunRepository } from "../../../src/runs/sql/repository.ts";
import type { RunSchedule } from "../../../src/runs/run.ts";
import type { Schedule } from "../../../src/runs/schedule.ts";
import type { RunService } from "../../../src/runs/service.ts";
import { sqliteRuns } from "../../../src/storage/sqlite/runs/repository.ts";
import { ME, mine, connect, databaseFile, openServer } from "../../runs/support.ts";
import { scriptedModel } from "../../support/scripted-model.ts";

export const NOW = Date.UTC(2026, 2, 3, 10, 0, 0);
const MINUTE = 60_000;

type Event = Parameters<typeof entryOf>[0];

/** What became of a subagent. */
type Fate = "asks" | "failed" | "retries" | "works" | "queued" | "done";

interface Agent {
  task: string;
  fate: Fate;
  kind?: string;
  background?: true;
}

const TWELVE: readonly Agent[] = [
  { task: "Trace the alarm path through src/", fate: "done" },
  { task: "Check deploy/ and the crontab", fate: "done" },
  { task: "Read docs/ for what is promised", fate: "done", kind: "researcher" },
  { task: "Check the pager’s HTTP interface", fate: "done" },
  { task: "Check the station list for gaps", fate: "failed" },
  { task: "Check time zones and daylight saving 🛰️ in every station", fate: "works" },
  { task: "Make send() try again", fate: "asks" },
  { task: "Run the tests on the change", fate: "asks" },
  { task: "Write tests for retries and time-outs", fate: "retries", background: true },
  { task: "افحص قائمة المحطات בדוק את התחנות and report", fate: "works" },
  {
    task: `Review the whole change of ${"a-very-long-name-without-an-end-".repeat(4)}and more`,
    fate: "queued",
  },
  { task: "Write the operations note", fate: "queued" },
];

const BEFORE = [
  "export async function send(alarm, pager) {",
  "  const body = JSON.stringify(alarm);",
  "  const answer = await fetch(pager.address, { method: 'POST', body });",
  "  if (!answer.ok) throw new Error(`pager: ${answer.status}`);",
  "}",
];
const DIFF = [
  "--- /workspace/src/alarms.js",
  "+++ /workspace/src/alarms.js",
  "@@ -10,7 +10,10 @@",
  ` ${BEFORE[0]}`,
  ` ${BEFORE[1]}`,
  `-${BEFORE[2]}`,
  `-${BEFORE[3]}`,
  "+  for (let attempt = 1; ; attempt += 1) {",
  "+    const answer = await fetch(pager.address, { method: 'POST', body });",
  "+    if (answer.ok) return;",
  "+    if (attempt === 3) throw new Error(`pager: ${answer.status} 🚨`);",
  "+  }",
  ` ${BEFORE[4]}`,
  " ",
  " // Tides are told in minutes since midnight.",
].join("\n");

const ANSWER = `# Where an alarm gets lost

\`send()\` tries **once**. When the pager does not answer within ten seconds, the alarm is gone.

1. The crontab starts the check hourly, so that an alarm can be 59 minutes late.
2. Three stations have no time zone: *Wilhelmshaven*, *Esbjerg* and *Lerwick*.

| station | alarms | lost |
|---|---:|---:|
| Wilhelmshaven | 41 | 3 |
| Esbjerg 🚨 | 77 | 1 |

\`\`\`js
export const retry = (attempts) => attempts < 3; // then the duty officer is called
\`\`\`

> Nothing was changed outside of \`src/\`.
`;

export interface SeededRuns {
  service: RunService;
  /** Ids by what becomes of the run. */
  runs: Readonly<Record<"twelve" | "hundred" | "done" | "failed" | "cancelled" | "queued", string>>;
}

export async function seededRuns(): Promise<SeededRuns> {
  const file = databaseFile();
  const repository = sqliteRuns(connect(file));
  const work = repository.work({});
  let now = NOW;

  async function begin(
    id: string,
    task: string,
    minutesAgo: number,
    environment = "tide-alarms",
    schedule?: RunSchedule,
  ): Promise<void> {
    now = NOW - minutesAgo * MINUTE;
    const fresh = {
      runId: `run_${id}`,
      newThreadId: `thr_${id}`,
      environment,
      now,
      ...defined({ schedule }),
    };
    await repository.create(ME, { task }, fresh);
  }
  async function claim(environment = "tide-alarms"): Promise<Lease> {
    const wanted = { owner: "seed", environment, now, expiresAt: NOW + 60 * MINUTE };
    const claimed = await repository.claimNext(wanted, 10);
    if (claimed === undefined) throw new Error("nothing waits");
    return claimed.lease;
  }
  const record = (lease: Lease, time: number, event: Event): Promise<void> =>
    work.record(lease, [entryOf(event)], time);
  const says = (
    lease: Lease,
    time: number,
    agent: AgentPath,
    text: string,
    costUsd = 0.04,
  ): Promise<void> => {
    const usage = { inputTokens: 24_000, outputTokens: 600, cachedInputTokens: 20_000 };
    return record(lease, time, {
      kind: "model_called",
      agent,
      model: "claude-sonnet-4-5",
      usage,
      text,
      costUsd,
    });
  };
  const calls = async (lease: Lease, time: number, agent: AgentPath, callId: string, file: string) => {
    const call = { agent, callId, tool: "read_file" };
    await record(lease, time, { kind: "tool_started", ...call, summary: `read_file ${file}` });
    await record(lease, time + 12_000, {
      kind: "tool_finished",
      ...call,
      status: "success",
      summary: "212 lines",
    });
  };

  const asked: { agent: AgentPath; id: string; request: HitlRequest }[] = [];
  async function runAgent(lease: Lease, index: number, count: number, one: Agent) {
    const { task, fate, kind, background } = one;
    const name = kind ?? "general-purpose";
    const agent: AgentPath = [{ callId: `call_${index}`, name, task }];
    const about = { agent, callId: `call_${index}`, name };
    if (fate === "queued") {
      return record(lease, NOW - MINUTE, {
        kind: "subagent_queued",
        ...about,
        description: `${task}. Then report.`,
      });
    }
    const start = NOW - 12 * MINUTE + (index * 8 * MINUTE) / count;
    await record(lease, start, {
      kind: "subagent_started",
      ...about,
      description: `${task}. Then report.`,
      ...(background ? { background } : {}),
    });
    await says(lease, start + 8000, agent, `I look at it: ${task}.`);
    for (const nth of [1, 2, 3])
      await calls(lease, start + nth * 30_000, agent, `c${index}_${nth}`, "/workspace/src/alarms.js");
    const end = start + 3 * MINUTE;
    if (fate === "done" || fate === "failed") {
      const status = fate === "done" ? ("success" as const) : ("error" as const);
      return record(lease, end, {
        kind: "subagent_finished",
        ...about,
        status,
        report: `It is told: ${task}`,
      });
    }
    if (fate === "retries") {
      const message = "Model overloaded. Attempt 4 in 20 s.";
      const failure = { model: "claude-sonnet-4-5", reason: "model_rate_limited" as const, message };
      return record(lease, end, { kind: "model_retry", agent, ...failure, attempt: 3, pauseMs: 20_000 });
    }
    if (fate === "asks")
      asked.push({ agent, id: `ask_${index}`, request: asked.length === 0 ? EDIT : COMMAND });
    return undefined;
  }

  async function crowd(id: string, task: string, agents: readonly Agent[]): Promise<void> {
    await begin(id, task, 13);
    const lease = await claim();
    await says(lease, now + 10_000, [], "I plan first, and send agents out.", 0.49);
    await record(lease, now + 11_000, { kind: "todos", agent: [], todos: PLAN });
    for (const [index, agent] of agents.entries()) await runAgent(lease, index, agents.length, agent);
    await record(lease, NOW - 2 * MINUTE, {
      kind: "file_changed",
      agent: [],
      callId: "c_write",
      path: "/workspace/notes/alarm-path.md",
      diff: DIFF,
      added: 5,
      removed: 2,
    });
    for (const { agent, id: interrupt, request } of asked.splice(0)) {
      await work.ask(lease, agent, interrupt, callRequests(request), NOW - 4 * MINUTE);
    }
  }

  await begin("done", "Find out where an alarm can get lost, and write a report", 26 * 60);
  const done = await claim();
  await says(done, now + 60_000, [], "I read the code.", 1.12);
  const changed = { agent: [], callId: "c1", diff: DIFF, added: 5, removed: 2 };
  await record(done, now + 90_000, { kind: "file_changed", ...changed, path: "/workspace/src/alarms.js" });
  await record(done, now + 95_000, {
    kind: "file_changed",
    ...changed,
    path: `/workspace/${"deep/".repeat(12)}notes.md`,
  });
  await work.complete(done, { answer: ANSWER }, work.inbox(done), now + 4 * MINUTE);

  await seedSchedules(repository);
  const logs = { id: "sch_logs", name: "night logs", dueAt: NOW - 25 * 60 * MINUTE };
  await begin("failed", "Summarize the logs of last night", 25 * 60, "night-logs", logs);
  const failed = await claim("night-logs");
  await says(failed, now + 5000, [], "I look at the logs.");
  const message =
    "The model claude-sonnet-4-5 refused the key (HTTP 401). Check the provider's API key in the server's environment and what it may use. The provider said: 401 authentication_error: invalid x-api-key <b>🔑</b>";
  await work.fail(failed, { reason: "model_auth", message }, now + 2 * MINUTE);

  await crowd("cancelled", "把站点列表移到 SQLite 🗂️, and keep the file format for imports", stopped());
  await crowd("hundred", "Check the gauges of a hundred stations", hundred());
  await crowd("twelve", TASK, TWELVE);
  await begin("queued", "Write down what the night shift has to know", 1);

  const { service } = openServer(
    file,
    { model: scriptedModel(() => ({ text: "" })) },
    {
      concurrentRuns: 0,
      model: "claude-sonnet-4-5",
      choices: () => ({
        models: [
          { spec: "claude-sonnet-4-5", price: { input: 3, output: 15 } },
          { spec: "claude-haiku-4-5", price: { input: 1, output: 5 } },
        ],
        limits: { costUsd: 5, tokens: 2_000_000 },
      }),
      clock: () => NOW,
      tree: () => Promise.resolve(new StateBackend({ files: snapshotFiles(FILES) })),
    },
  );
  await mine(service).control.cancel("run_cancelled", "not before the release 🚢");
  return {
    service,
    runs: {
      cancelled: "run_cancelled",
      twelve: "run_twelve",
      hundred: "run_hundred",
      done: "run_done",
      failed: "run_failed",
      queued: "run_queued",
    },
  };
}

/** One whose last run failed and whose next time was missed, a paused one, and one with long and foreign names. */
async function seedSchedules({ schedules }: RunRepository): Promise<void> {
  const add = async (schedule: Pick<Schedule, "id" | "name" | "task" | "expression"> & Partial<Schedule>) => {
    const rest = { catchUp: "one" as const, catchUpLimit: 10, overlap: false, createdAt: 1, timeZone: "UTC" };
    const added = {
      principal: ME,
      environment: "tide-alarms",
      dueAt: NOW + 23 * 60 * MINUTE,
      ...rest,
      ...schedule,
    };
    await schedules.add(added, 9);
    return added;
  };
  const dueAt = NOW - 60 * MINUTE;
  const task = "Summarize the logs of last night";
  const logs = await add({ id: "sch_logs", name: "night logs", task, expression: "0 9 * * *", dueAt });
  const fresh = { runId: "", newThreadId: "", environment: "night-logs", now: NOW };
  const step = { skipped: { from: dueAt, to: dueAt }, dueAt: dueAt + 24 * 60 * MINUTE };
  await schedules.advance({ ...logs, environment: "night-logs" }, step, fresh);
  const gauges = "Check the gauges, and tell me which of them stand still";
  await add({ id: "sch_gauges", name: "gauges", task: gauges, expression: "*/30 6-18 * * 1-5" });
  await schedules.pause(ME, "sch_gauges", NOW);
  const long = "a-very-long-name-without-an-end-".repeat(3);
  await add({
    id: "sch_long",
    name: long,
    task: TASK,
    expression: "0 7 1,15 * 5",
    timeZone: "America/Argentina/Buenos_Aires",
  });
}

const TASK =
  "Find out how an alarm gets from highWaters to the pager and where it can get lost, then fix it, run the tests and write a report";

const PLAN = [
  { content: "Map the project and its alarm path", status: "completed" as const },
  { content: "Examine every area with a subagent of its own", status: "completed" as const },
  { content: "Fix the lost alarm in send()", status: "in_progress" as const },
  { content: "Run the tests, old and new", status: "pending" as const },
  { content: "Write the report and keep a note", status: "pending" as const },
];

const EDIT: HitlRequest = {
  actionRequests: [
    {
      name: "edit_file",
      args: { file_path: "/workspace/src/alarms.js", old_string: BEFORE[2] ?? "", new_string: "…" },
      description: "Edit",
      toolCallId: "call_edit",
      preview: { kind: "diff", summary: "Edit /workspace/src/alarms.js (1 occurrence)", detail: DIFF },
      same: { key: "edit", text: "change of /workspace/src/alarms.js" },
    },
  ],
  reviewConfigs: [],
};

const COMMAND: HitlRequest = {
  actionRequests: [
    {
      name: "execute",
      args: { command: "node --test test/ --test-reporter=spec --test-name-pattern='retries and time-outs'" },
      description: "Run",
      toolCallId: "call_run",
      preview: {
        kind: "command",
        summary: "execute node --test test/",
        detail: "node --test test/ --test-reporter=spec --test-name-pattern='retries and time-outs'",
      },
    },
  ],
  reviewConfigs: [],
};

function hundred(): Agent[] {
  const fates = new Map<number, Fate>([
    [12, "failed"],
    [41, "asks"],
    [64, "works"],
    [71, "works"],
    [77, "asks"],
    [80, "retries"],
  ]);
  return Array.from({ length: 100 }, (_, index) => ({
    task: `Check gauge ${index + 1} of 100`,
    fate: fates.get(index) ?? (index > 90 ? "queued" : "done"),
  }));
}

/** Twenty-four agents that a person stops. */
function stopped(): Agent[] {
  const fates: readonly Fate[] = ["done", "done", "works", "failed", "works", "asks", "queued", "done"];
  const names = [
    "検潮所のデータを移す",
    `${"long-table-name-".repeat(9)}🛰️`,
    "Write its tests",
    "Draft the tables",
  ];
  return Array.from({ length: 24 }, (_, index) => ({
    task: `${names[index % 4]} ${index + 1}`,
    fate: fates[index % 8] ?? "done",
  }));
}

const text = (content: string) => ({
  content: content.split("\n"),
  created_at: "2026-03-01T08:00:00.000Z",
  modified_at: "2026-03-02T08:00:00.000Z",
});

const FILES = {
  "/memories/stations.md": text("# Stations\n\nLerwick has no time zone."),
  "/memories/pager.md": text("The pager answers within ten seconds, or not at all."),
  "/workspace/README.md": text("# Tide alarms"),
  "/workspace/src/alarms.js": text(BEFORE.join("\n")),
};
