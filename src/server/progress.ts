import type { ProgressToken, ServerContext } from "@modelcontextprotocol/server";
import type { Logger } from "../core/logger.ts";
import { oneLine, stripControl } from "../core/text.ts";
import { activityOf } from "../runs/run-view.ts";
import type { RunEvent, RunView } from "../runs/run.ts";

const MAX_CHARACTERS = 200;

/** Tells a client that waits what its run does. */
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
  logger: Logger;
}

/** For requests that carry no token. */
export const noProgress: Progress = { started: () => {}, event: () => {}, stop: () => {} };

/**
 * Progress is the journal's sequence number, so that it keeps growing over several calls for one run. A
 * heartbeat repeats the last line between event n and n + 1 as n + 1/2, n + 2/3, n + 3/4, …
 */
export function createProgress({ token, notify, heartbeat, logger }: ProgressOptions): Progress {
  let seq = -1;
  let beats = 0;
  let line = "";
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  const send = (): void => {
    if (stopped) return;
    clearTimeout(timer);
    timer = setTimeout(beat, heartbeat);
    const progress = seq + beats / (beats + 1);
    notify({
      method: "notifications/progress",
      params: { progressToken: token, progress, message: line },
    }).catch((error: unknown) => logger.debug("progress.not_sent", { error }));
  };
  const beat = (): void => {
    beats += 1;
    send();
  };
  const step = (next: number, message: string): void => {
    if (next <= seq) return;
    seq = next;
    beats = 0;
    line = oneLine(stripControl(message), MAX_CHARACTERS);
    send();
  };
  return {
    started: ({ run, activity, place }) => {
      const isNew = run.lastSeq <= 1 && place === undefined;
      step(run.lastSeq, isNew ? `run ${run.id} started` : `run ${run.id}: ${activity}`);
    },
    event: (event) => {
      const activity = activityOf(event);
      if (activity !== undefined && event.kind !== "run_started") step(event.seq, activity);
    },
    stop: () => {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
