/**
 * Counts the answers that one project takes from a person: three runs, each with twelve commands and ten changes of
 * files; once with an answer to each, and once with the rules that a careful person saves.
 */
import { openParts, makeFolders } from "../test/support/folders.ts";
import { openBrain } from "../test/support/harness-brain.ts";
import { type Approval, isApproval, isFinal } from "../src/runs/run.ts";
import type { PrincipalRuns } from "../src/runs/service.ts";
import type { PersonDecision } from "../src/tools/request.ts";

const COMMANDS = [
  "npm run test",
  "npm run test -- --watch=false",
  "npm run lint",
  "CI=1 npm run test -- src/a.test.js 2>&1",
  "git status --short",
  "grep -rn TODO src",
  "npm run build",
  "npm run lint -- --quiet",
  "git diff src/file1.js",
  "npm run build && npm run test",
  "git status",
  "timeout 60 npm run test",
];
const FILES = [1, 2, 3, 4, 5, 6, 7, 8]
  .map((number) => `src/file${number}.js`)
  .concat("docs/a.md", "docs/b.md");
const RUNS = 3;

/** The most that a person saves at once: later arguments of the same program and subcommand, and a folder. */
const CAREFUL = /^(?:Bash\((?:npm run \w+|git \w+|grep) \*\)|Edit\(\/\w+\/\*\*\))$/;

/** Exit code: 0 if rules leave at most eight answers. */
export async function main({ print }: { print(text: string): void }): Promise<0 | 1> {
  const without = await count(() => ({ type: "approve" }));
  const careful = await count(({ ruled }) => {
    const offer = ruled?.offers?.find(({ rules }) => rules.every((rule) => CAREFUL.test(rule)));
    return offer === undefined ? { type: "approve" } : { type: "approve_always", rules: offer.rules };
  });
  print(`${RUNS} runs of ${COMMANDS.length} commands and ${FILES.length} changes of files`);
  print(`answers without rules: ${without.answers} (${without.calls} calls)`);
  print(`answers with rules: ${careful.answers} (${careful.calls} calls)`);
  for (const rule of careful.rules) print(`  ${rule}`);
  return careful.answers <= 8 && careful.calls === without.calls ? 0 : 1;
}

async function count(decide: (approval: Approval) => PersonDecision) {
  const scripts = { test: "node -e 0", lint: "node -e 0", build: "node -e 0" };
  const folders = makeFolders({
    "package.json": JSON.stringify({ name: "project", scripts }),
    "src/a.js": "",
  });
  const brain = await openBrain(({ step }) => {
    const command = COMMANDS[step];
    const file = FILES[step];
    const calls = [
      ...(command === undefined ? [] : [{ name: "execute", args: { command } }]),
      ...(file === undefined
        ? []
        : [{ name: "write_file", args: { file_path: `/workspace/${file}`, content: `${Math.random()}\n` } }]),
    ];
    return calls.length === 0 ? { text: "done" } : { toolCalls: calls };
  });
  const parts = openParts({ ...folders.env, ...brain.env });
  try {
    const service = await parts.deps.runs();
    const runs = service.as({ principal: "local" });
    let answers = 0;
    let calls = 0;
    for (let number = 0; number < RUNS; number += 1) {
      const ended = await drive(runs, decide);
      answers += ended.answers;
      calls += ended.calls;
    }
    return { answers, calls, rules: (await runs.rules.list()).map(({ rule }) => rule) };
  } finally {
    await parts.close();
    await brain.close();
    folders.remove();
  }
}

/** Does one run, and counts the answers of the person and the approved calls. */
async function drive(runs: PrincipalRuns, decide: (approval: Approval) => PersonDecision) {
  const started = await runs.control.start({ task: "Work on the project" });
  if (!started.ok) throw new Error(started.message);
  const { id } = started.run;
  let answers = 0;
  for (let last = 0; ;) {
    const view = await runs.read.view(id);
    const approvals = view?.requests.filter(isApproval) ?? [];
    const open = approvals.find(({ status }) => status === "pending");
    if (open !== undefined) {
      answers += 1;
      const given = { requestId: open.id, answer: decide(open) };
      const outcome = await runs.requests.answer(id, given, "person");
      if (!outcome.ok) throw new Error(outcome.message);
    } else if (view !== undefined && isFinal(view.run.status)) {
      const isApproved = ({ status }: Approval): boolean => status === "approved";
      return { answers, calls: approvals.filter(isApproved).length };
    } else {
      for await (const event of runs.watch.events(id, { after: last, signal: AbortSignal.timeout(60_000) })) {
        last = event.seq;
        if (["approval_requested", "run_completed", "run_failed"].includes(event.kind)) break;
      }
    }
  }
}
