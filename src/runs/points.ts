import { type IdSource, shownName } from "../core/text.ts";
import { durably } from "../storage/sqlite/commit.ts";
import type { RunStore } from "../storage/sqlite/runs/run-store.ts";
import type { Checkpoints } from "./ports.ts";
import type { Principal } from "./run.ts";
import type { RunPoint, StartOutcome } from "./service.ts";

/** A point of a thread is named by the thread and its number. */
const pointId = (threadId: string, number: number): string => `${threadId}@${number}`;

export interface ForkContext {
  store: RunStore;
  /** Without them there is nothing to begin another thread from. */
  checkpoints: Checkpoints | undefined;
  newId: IdSource;
  now: number;
}

/** The points of a thread, oldest first. */
export async function pointsOfThread(
  principal: Principal,
  threadId: string,
  { store, checkpoints }: Pick<ForkContext, "store" | "checkpoints">,
): Promise<RunPoint[]> {
  const points = await readPoints(threadId, checkpoints);
  let runId: string | undefined;
  return points.map(({ number, time, messageId, summary }) => {
    // What a run is told while it works is no run of its own.
    if (messageId !== undefined && store.get(principal, messageId) !== undefined) runId = messageId;
    return { id: pointId(threadId, number), time, summary, ...(runId === undefined ? {} : { runId }) };
  });
}

/**
 * Makes a thread that begins as another was at `point`. It is noted first and belongs to nobody before its
 * run is stored: a copy that a crash left behind is found and deleted.
 */
export async function forkThread(
  point: { threadId: string; number: number },
  { store, checkpoints, newId, now }: ForkContext,
): Promise<{ ok: true; threadId: string } | Extract<StartOutcome, { ok: false }>> {
  const name = pointId(point.threadId, point.number);
  const found = (await readPoints(point.threadId, checkpoints)).find(({ number }) => number === point.number);
  if (found === undefined || checkpoints === undefined) return noPoint(name);
  const threadId = newId("thr");
  await durably(store.database, () => store.copies.begin(threadId, now));
  if (!(await checkpoints.copyThread(point.threadId, threadId, found.checkpointId))) return noPoint(name);
  await checkpoints.sync();
  return { ok: true, threadId };
}

async function readPoints(threadId: string, checkpoints: Checkpoints | undefined) {
  if (checkpoints === undefined) return [];
  const { pointsOf } = await import("../agent/agent.ts");
  return pointsOf(await checkpoints.steps(threadId));
}

const noPoint = (name: string): Extract<StartOutcome, { ok: false }> => ({
  ok: false,
  code: "point_not_found",
  message: `There is no point ${shownName(name)} any more. The resource deepagent://runs/{run_id}/points of a run of the thread lists those to choose from.`,
});
