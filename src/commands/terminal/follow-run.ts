import { isFinal, type Principal, type RunEvent, type RunView } from "../../runs/run.ts";
import type { RunService } from "../../runs/service.ts";
import { pendingApprovals } from "../../server/run-report.ts";

export interface FollowOptions {
  runs: RunService;
  principal: Principal;
  runId: string;
  signal: AbortSignal;
  /** The newest state, after every event. */
  show: (view: RunView) => void;
  /** Every event of the journal from the first on, once. */
  onEvent?: (event: RunEvent) => void;
  /** Called when approvals are open; whoever does not decide on all of them says whether to stop following. */
  decide: (view: RunView) => Promise<"go on" | "stop">;
}

/** Follows a run of this data directory, whoever works on it; the newest view, `undefined` for no such run. */
export async function followRun(options: FollowOptions): Promise<RunView | undefined> {
  const { runs, principal, runId, signal, show, onEvent, decide } = options;
  let view = await runs.view(principal, runId);
  if (view === undefined) return undefined;
  const asked = new Set<string>();
  const handle = async (now: RunView): Promise<boolean> => {
    show(now);
    const open = pendingApprovals(now).filter(({ id }) => !asked.has(id));
    if (isFinal(now.run.status) || open.length === 0) return true;
    for (const { id } of open) asked.add(id);
    return (await decide(now)) === "go on";
  };
  for await (const event of runs.watch(principal, runId, { after: 0, signal })) {
    onEvent?.(event);
    // What is known already need not be shown step by step.
    if (event.seq < view.run.lastSeq) continue;
    view = (await runs.view(principal, runId)) ?? view;
    if (!(await handle(view))) break;
  }
  return (await runs.view(principal, runId)) ?? view;
}
