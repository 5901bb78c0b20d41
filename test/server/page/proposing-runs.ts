/** Runs that propose changes, for the screen that reviews them. */
import { askingForReview, nextReview, writeFiles } from "../../runs/proposing.ts";
import { mine } from "../../runs/support.ts";

export const PROPOSED_AT = Date.UTC(2026, 2, 3, 9, 22, 0);

const lines = (name: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `const ${name}${index + 1} = ${index + 1};`);

const SEND = [
  ...lines("limit", 7),
  "export async function send(station, alarms) {",
  "  for (const alarm of alarms) {",
  "    await post(messageOf(station, alarm));",
  "  }",
  "}",
  ...lines("pause", 17),
  "",
  ...lines("note", 10),
  '  log.debug("sent", id);',
  "",
];

function sendAfter(): string {
  const after = [...SEND];
  after.splice(40, 1, '  log.info("sent", id, attempt);');
  const resume = ["export async function resume() {", "  for (const id of outbox.open()) await deliver(id);"];
  after.splice(29, 0, "/** Sends what an earlier start could not. */", ...resume, "}");
  after.splice(9, 1, "    const id = outbox.add(messageOf(station, alarm));", "    await deliver(id);");
  return after.join("\n");
}

const ALARMS = [...lines("level", 26), "await send(station, alarms);", ...lines("rest", 12), ""].join("\n");

const LIMITS = [...lines("limit", 8), ""].join("\n");

const OUTBOX = [
  'import { DatabaseSync } from "node:sqlite";',
  "",
  "const KEEP_DAYS = 30;",
  ...lines("column", 25),
  "",
].join("\n");

const BEFORE = {
  "src/send.js": SEND.join("\n"),
  "src/alarms.js": ALARMS,
  "deploy/crontab": "0 * * * * node bin/alarms.js\n",
  "src/pager/limits.js": LIMITS,
  "docs/old-outbox.md": "# Outbox\n\nNobody reads this any more.\n",
  ".gitignore": "*.log\n",
};

const draft = (copy: string): void =>
  writeFiles(copy, {
    "docs/plan.md": "# Plan\n\nKeep what could not be sent.\n",
    "deploy/crontab": "*/5 * * * * node bin/alarms.js\n",
  });

const propose = (copy: string): void =>
  writeFiles(copy, {
    "src/send.js": sendAfter(),
    "src/outbox.js": OUTBOX,
    "src/alarms.js": ALARMS.replace(
      "await send(station, alarms);",
      "await send(station, alarms);\nawait resume();",
    ),
    "docs/old-outbox.md": null,
    "src/pager/limits.js": null,
    "src/config/limits.js": LIMITS.replace("limit5 = 5", "limit5 = 60"),
  });

/** Somebody changed the same lines of the folder meanwhile. */
const moveFolder = (workspace: string): void =>
  writeFiles(workspace, {
    "src/alarms.js": ALARMS.replace("alarms);", "alarms, { attempts: 3 });"),
  });

/** A run whose second review has edits, a new, a deleted, a renamed and a refused file, and a conflict. */
export async function proposingRun() {
  let [ids, rounds] = [0, 0];
  const asking = await askingForReview(
    {
      before: BEFORE,
      isRepository: true,
      work: (copy) => ((rounds += 1) === 2 ? propose : draft)(copy),
      clock: () => PROPOSED_AT,
      newId: (prefix) => `${prefix}_Qe7vNc3T${(ids += 1)}`,
    },
    "Make alarm delivery survive an outage of the pager",
  );
  const { service, runId, question, workspace } = asking;
  const choice = {
    apply: { "docs/plan.md": "all" as const },
    refused: { "deploy/crontab": "We start it hourly on purpose." },
  };
  await mine(service).requests.answer(
    runId,
    { requestId: question.id, answer: { type: "review", choice } },
    "page",
  );
  const again = await nextReview(service, runId, question.id);
  moveFolder(workspace);
  return { ...asking, question: again };
}
