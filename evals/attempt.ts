import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { oneLine } from "../src/core/text.ts";
import { isFinal, type RunView, isQuestion, isApproval } from "../src/runs/run.ts";
import type { PrincipalRuns } from "../src/runs/service.ts";
import { askOf, type EvalTask } from "./task.ts";

/** Longest time of one run, in milliseconds; one that takes longer is cancelled. */
const PATIENCE_MS = 15 * 60_000;

/** One try of a task. */
export interface Attempt {
  /** One line that says what is missing; absent when the task is solved. */
  problem?: string;
  /** Its runs as they ended. */
  views: readonly RunView[];
}

/** Does a task as its person would. Never rejects. */
export async function attempt(service: PrincipalRuns, task: EvalTask, workspace: string): Promise<Attempt> {
  const views: RunView[] = [];
  try {
    for (const asked of task.asked) {
      const isNew = typeof asked !== "string";
      const threadId = isNew ? undefined : views.at(-1)?.run.threadId;
      const text = askOf(task.name, isNew ? asked.anew : asked);
      const started = await service.control.start({ task: text, ...(threadId ? { threadId } : {}) });
      if (!started.ok) throw new Error(started.message);
      const view = await followRun(service, started.run.id, task);
      views.push(view);
      const { status, failure, cancelReason } = view.run;
      if (status !== "completed") throw new Error(failure?.message ?? cancelReason ?? `the run is ${status}`);
    }
    await checkEnd(service, task, views, workspace);
    return { views };
  } catch (error) {
    return { problem: oneLine(error instanceof Error ? error.message : String(error), 400), views };
  }
}

async function checkEnd(
  service: PrincipalRuns,
  task: EvalTask,
  views: readonly RunView[],
  workspace: string,
): Promise<void> {
  const last = views.at(-1)?.run;
  const tree = last && (await service.files.ofRun(last.id));
  await task.check({
    answer: last?.answer ?? "",
    views,
    file: (name) => {
      const path = join(workspace, task.name, name);
      return existsSync(path) ? readFileSync(path, "utf8") : undefined;
    },
    read: async (path) => {
      const page = await tree?.read(path);
      return page && "content" in page ? String(page.content) : undefined;
    },
  });
}

/** Follows a run to its end as a person would: approvals are answered, questions declined. */
async function followRun(service: PrincipalRuns, runId: string, task: EvalTask): Promise<RunView> {
  const answered = new Set<string>();
  const isNew = ({ id, status }: { id: string; status: string }): boolean =>
    status === "pending" && !answered.has(id);
  const look = async (): Promise<RunView> => {
    const view = await service.read.view(runId);
    if (!view) throw new Error("the run is gone");
    for (const approval of view.requests.filter(isApproval).filter(isNew)) {
      answered.add(approval.id);
      const tell = (text: string) => service.control.tell(runId, { text });
      const decision = (await task.person?.(approval, tell)) ?? { type: "approve" };
      await service.requests.answer(runId, { requestId: approval.id, answer: decision }, "evals");
    }
    for (const { id } of view.requests.filter(isQuestion).filter(isNew)) {
      answered.add(id);
      await service.requests.answer(runId, { requestId: id, answer: { type: "decline" } }, "evals");
    }
    return view;
  };
  const signal = AbortSignal.timeout(PATIENCE_MS);
  for await (const { kind } of service.watch.events(runId, { signal })) {
    if (kind === "approval_requested" || kind === "question_asked") await look();
  }
  const view = await look();
  if (isFinal(view.run.status)) return view;
  await service.control.cancel(runId, `The run did not end within ${PATIENCE_MS / 60_000} minutes.`);
  return look();
}
