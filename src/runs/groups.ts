/** Implements each group of methods on runs for every principal. */
import * as schedules from "./schedules.ts";
import { resolveBackend, snapshotFiles } from "../backends/runtime.ts";
import { defined } from "../core/unknown.ts";
import { oneLine } from "../core/text.ts";
import { answer, problemOf, useAnswer } from "./answer.ts";
import { callTexts } from "./call-texts.ts";
import type { RunContext } from "./context.ts";
import { type SharedTails, follow, followStarts } from "./follow.ts";
import { deleteRun, discardChange, proposedChange, reviewChange } from "./later-review.ts";
import type { LiveText, LiveTexts } from "./live-texts.ts";
import { NO_OTHER_SERVERS } from "./other-servers.ts";
import { type Principal, MAX_NAME, noRun } from "./run.ts";
import type { RunGroups } from "./scopes.ts";
import type { RunServiceOptions } from "./service.ts";
import { share } from "./shares.ts";
import { SHUTTING_DOWN, pointsOfThread, start, tell } from "./start.ts";
import { ownTurn } from "../core/concurrency.ts";
import { NewestOf } from "../core/newest-of.ts";
import type { RunRepository } from "./sql/repository.ts";
import { RunFold, placeText } from "./view.ts";

/** Context of the groups, with the parts of the process that works on runs. */
interface GroupContext extends RunContext {
  tails: SharedTails;
  texts: LiveTexts;
  options: RunServiceOptions;
  isClosing: () => boolean;
  /** Stops the work on a run that was cancelled, if it is done here. */
  stopWork: (runId: string) => Promise<void>;
  /** Looks at the schedules again, because the next due time may have changed. */
  reschedule: () => void;
  /** Deletes runs without an owner. */
  prune: () => Promise<unknown>;
}

export function runGroups(context: GroupContext): RunGroups {
  const { runs, feed, tails, texts, clock, options } = context;
  return {
    read: readGroup(context),
    watch: {
      events: (...args) => follow<never>(...args, { feed, tails }),
      live: (...args) => follow<LiveText>(...args, { feed, tails, texts }),
      starts: (principal, { signal }) => followStarts(principal, signal, { runs: runs.read, feed }),
    },
    control: controlGroup(context),
    requests: {
      answer: (...args) => answer(context, ...args),
      problemOf: (...args) => problemOf(context, ...args),
      useAnswer: (...args) => useAnswer(context, ...args),
    },
    changes: {
      proposed: (...args) => proposedChange(context, ...args),
      hasCopy: async (principal, runId) => {
        const run = await runs.read.run(principal, runId);
        return run !== undefined && context.proposals?.has(run) === true;
      },
      review: (...args) => reviewChange(context, ...args),
      discard: (...args) => discardChange(context, ...args),
    },
    schedules: schedulesGroup(context),
    rules: runs.rules,
    access: {
      share: (principal, runId, milliseconds, madeWith) =>
        share(principal, runId, milliseconds, madeWith, { clock, add: runs.shares.add }),
      list: (principal) => runs.shares.access(clock(), principal),
      revoke: runs.shares.revoke,
    },
    news: runs.news,
    files: {
      ofRun: (...args) => filesOfRun(...args, context),
      mounts: options.tree,
      searchMemories: options.searchMemories,
    },
    agents: {
      readiness: async (principal) => {
        const refusal = await options.preflight(principal);
        return { ...defined({ model: options.model, refusal }), ...options.choices?.() };
      },
      drawing: options.drawing,
      otherServers: async () => options.otherServers?.() ?? NO_OTHER_SERVERS,
    },
  };
}

const readGroup = (context: GroupContext): RunGroups["read"] => {
  const { read } = context.runs;
  return {
    ...read,
    view: runViews(read),
    events: async (principal, runId, { after = 0, limit = 1000 } = {}) => {
      const page = await read.journal(principal, runId, after, limit);
      return page && [...page.events];
    },
    points: async (principal, runId) => {
      const run = await read.run(principal, runId);
      return run && pointsOfThread(principal, run.threadId, context);
    },
    callTexts: async (principal, runId, seq) => {
      const files = (id: string) => filesOfRun(principal, id, context);
      return callTexts({ ...context, files }, principal, runId, seq);
    },
  };
};

const controlGroup = (context: GroupContext): RunGroups["control"] => {
  const { runs, clock, isClosing, stopWork } = context;
  return {
    start: async (principal, request) => (isClosing() ? SHUTTING_DOWN : start(context, principal, request)),
    answered: runs.answered,
    tell: (...args) => tell(context, ...args),
    replyToModel: async (principal, runId, callId, reply) => {
      const run = await runs.read.run(principal, runId);
      if (run === undefined) return noRun(runId);
      return { ok: true, repeated: !(await runs.reply(run, callId, reply, clock())) };
    },
    cancel: async (principal, runId, reason) => {
      const cancelled = await runs.cancel(principal, runId, reason, clock());
      if (cancelled === undefined) return noRun(runId);
      await stopWork(runId);
      return { ok: true, run: cancelled.run, alreadyEnded: cancelled.ended };
    },
    rename: (principal, runId, name) => runs.rename(principal, runId, oneLine(name, MAX_NAME) || null),
    delete: (...args) => deleteRun(context, ...args),
  };
};

const schedulesGroup = (context: GroupContext): RunGroups["schedules"] => {
  const rescheduled = async <Outcome>(change: Promise<Outcome>): Promise<Outcome> => {
    const outcome = await change;
    context.reschedule();
    return outcome;
  };
  return {
    ...context.schedules,
    add: (...args) => rescheduled(schedules.addSchedule(context, ...args)),
    edit: (...args) => rescheduled(schedules.editSchedule(context, ...args)),
    pause: (...args) => schedules.pauseSchedule(context, ...args),
    resume: (...args) => rescheduled(schedules.resumeSchedule(context, ...args)),
    runNow: (...args) => schedules.runScheduleNow(context, ...args),
  };
};

/** The tree as the run's agent sees it, with the thread's files as they are now. */
async function filesOfRun(principal: Principal, runId: string, { runs, agentFor, options }: GroupContext) {
  const run = await runs.read.run(principal, runId);
  if (run === undefined) return undefined;
  const { files } = await (await agentFor(run)).snapshot(run.threadId);
  const source = await options.treeWithThread(run);
  return resolveBackend(source, { files: snapshotFiles(files), threadId: run.threadId });
}

/** Events read at once to update a view: more would keep others from their turn. */
const EVENTS_AT_ONCE = 250;

function runViews(read: Pick<RunRepository["read"], "picture">): RunGroups["read"]["view"] {
  const folds = new NewestOf<RunFold>(256);
  return async (principal, runId) => {
    for (;;) {
      const fold = folds.get(runId) ?? new RunFold();
      const after = fold.lastSeq;
      const picture = await read.picture(principal, runId, after, EVENTS_AT_ONCE);
      if (picture === undefined) return undefined;
      // Another call continued with the fold in between: look again, from there.
      if (fold.lastSeq !== after) continue;
      const { events, place, ...seen } = picture;
      for (const event of events) fold.add(event);
      folds.keep(runId, fold);
      if (events.length === EVENTS_AT_ONCE) {
        await ownTurn();
        continue;
      }
      return {
        ...seen,
        requests: fold.withCalls(seen.requests),
        mainAgent: fold.mainAgent(seen.run),
        subagents: fold.subagents(),
        filesChanged: fold.filesChanged(seen.run),
        activity: place === undefined ? fold.activity : placeText(place),
        models: fold.models(),
        ...defined({ place, goal: fold.goal(seen.run) }),
      };
    }
  };
}
