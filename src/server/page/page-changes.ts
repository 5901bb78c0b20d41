import type { RunEvent } from "../../runs/run.ts";
import type { RunService } from "../../runs/service.ts";
import { agentLabel } from "../approval-form.ts";
import type { PageSession } from "./page-sessions.ts";

/** One change of a file by a call of the run. */
export interface FileChange {
  time: number;
  /** Who changed it. */
  agent: string;
  /** `undefined` when the call did not tell, as tools of others do not. */
  diff: string | undefined;
}

const EVENTS_PER_PAGE = 500;
const MAX_CHANGES = 100;

/** The newest changes of `path` in this run, oldest first; `undefined`: no such run. */
export async function readChanges(
  runs: RunService,
  { principal, run }: PageSession,
  path: string,
): Promise<FileChange[] | undefined> {
  const changes: FileChange[] = [];
  for (let after = 0; ;) {
    const events = await runs.events(principal, run, { after, limit: EVENTS_PER_PAGE });
    if (events === undefined) return undefined;
    changes.push(...events.filter((event) => isChangeOf(event, path)).map(changeOf));
    changes.splice(0, changes.length - MAX_CHANGES);
    const last = events.at(-1);
    if (last === undefined || events.length < EVENTS_PER_PAGE) return changes;
    after = last.seq;
  }
}

const isChangeOf = ({ kind, data }: RunEvent, path: string): boolean =>
  kind === "file_changed" && data["path"] === path;

function changeOf({ time, agent, data }: RunEvent): FileChange {
  const { diff } = data;
  return { time, agent: agentLabel(agent), diff: typeof diff === "string" ? diff : undefined };
}
