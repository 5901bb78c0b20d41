import type { ProgressToken, ServerContext } from "@modelcontextprotocol/server";
import { byIdentity } from "../../core/by-identity.ts";
import { type Clock, createPace } from "../../core/clock.ts";
import type { Logger } from "../../core/logger.ts";
import { duration, oneLine, stripControl } from "../../core/text.ts";
import { type RunEvent, activityOf } from "../../runs/events.ts";
import type { RunView } from "../../runs/run.ts";

/** Reports the progress of a run to a waiting client. */
export interface Progress {
  /** The first line, sent at once: it opens the stream of an HTTP request. */
  started(view: RunView): void;
  event(event: RunEvent): void;
  /** After this nothing is sent any more. */
  stop(): void;
}

export interface ProgressOptions {
  token: ProgressToken;
  notify: ServerContext["mcpReq"]["notify"];
  /** Milliseconds. */
  heartbeat: number;
  /** For durations: it does not jump. */
  clock: Clock;
  /** System time, for the duration of the run. */
  now: Clock;
  /** Aborted when the client ends the call: it gets no more reports. */
  signal: AbortSignal;
  /** Reads the current run before each heartbeat while it is queued, because its place changes without an event. */
  view: () => Promise<RunView | undefined>;
  logger: Logger;
}

/**
 * Progress is the journal's sequence number, so that it keeps growing over several calls for one run. A heartbeat
 * repeats the last line, or reports the run's current place in line, with the time since the run was started, between
 * event n and n + 1 as n + 1/2, n + 2/3, n + 3/4, … When lines arrive faster than anybody reads, the newest is sent
 * when its turn has come.
 */
export function createProgress(options: ProgressOptions): Progress {
  const { token, notify, heartbeat, clock, now, signal, view, logger } = options;
  let seq = -1;
  let beats = 0;
  let line = "";
  let isInLine = false;
  let startedAt = 0;
  let timer: NodeJS.Timeout | undefined;

  const send = (): void => {
    clearTimeout(timer);
    timer = setTimeout(() => (isInLine ? void beatInLine() : beat()), heartbeat);
    const progress = seq + beats / (beats + 1);
    const message = beats === 0 ? line : `${line} (${duration(now() - startedAt)})`;
    notify({
      method: "notifications/progress",
      params: { progressToken: token, progress, message },
    }).catch((error: unknown) => logger.debug("progress.not_sent", { error }));
  };
  // Nobody reads faster, and a client that does not read at all costs the memory of every line.
  const pace = createPace(send, { burst: 40, everyMs: 100, clock });
  const beat = (): void => {
    beats += 1;
    pace.ask();
  };
  const beatInLine = async (): Promise<void> => {
    const latest = await view().catch(() => undefined);
    if (!isInLine) return; // an event arrived while this read the view
    if (latest?.place !== undefined) line = shown(stateLine(latest));
    beat();
  };
  const step = (next: number, told: string): void => {
    if (next <= seq) return;
    seq = next;
    beats = 0;
    line = told;
    pace.ask();
  };
  const stop = (): void => {
    signal.removeEventListener("abort", stop);
    pace.stop();
    clearTimeout(timer);
  };
  signal.addEventListener("abort", stop, { once: true });
  return {
    started: (first) => {
      const { run, place } = first;
      startedAt = run.createdAt;
      isInLine = place !== undefined;
      step(run.lastSeq, shown(run.lastSeq <= 1 && !isInLine ? `run ${run.id} started` : stateLine(first)));
    },
    event: (event) => {
      isInLine = false;
      const told = lineOfEvent(event);
      if (told !== undefined) step(event.seq, told);
    },
    stop,
  };
}

const stateLine = ({ run, activity }: RunView): string => `run ${run.id}: ${activity}`;

const shown = (message: string): string => oneLine(stripControl(message), 200);

/** Returns undefined if the event needs no line. All followers of a run get equal events, and report equal lines. */
const lineOfEvent = byIdentity((event: RunEvent): string | undefined => {
  const activity = event.kind === "run_started" ? undefined : activityOf(event);
  return activity === undefined ? undefined : shown(activity);
});
