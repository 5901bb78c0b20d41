/** The actions of commands that have several. */
import type { Action } from "./command.ts";
import { CHOICE_FLAGS, REMOVAL_FLAGS } from "./schedule-choices.ts";

const CHOICES = CHOICE_FLAGS.map(({ name }) => name);
const REMOVALS = REMOVAL_FLAGS.map(({ name }) => name);

export const RUN_ACTIONS: readonly Action[] = [
  {
    name: "list",
    summary: "List the newest runs, one per line.",
    flags: ["limit", "json", "all-principals"],
    examples: ["runs list --limit 5", "runs list --json | head -1"],
  },
  {
    name: "show",
    words: "RUN",
    summary: "Show the current state of a run: todos, agents, open requests, answer.",
    flags: ["json", "all-principals"],
    examples: ["runs show last", "runs show Xy3k --json"],
  },
  {
    name: "watch",
    words: "RUN",
    summary: "Follow a run until it ends, whichever process works on it.",
    flags: ["json"],
    examples: ["runs watch last"],
  },
  {
    name: "answer",
    words: "RUN [REQUEST]",
    summary: "Decide on open approvals and answer open questions, by a flag or by keys.",
    flags: ["approve", "approve-same", "reject", "edit", "message", "value", "field", "opened", "decline"],
    examples: [
      "runs answer last",
      'runs answer last --reject --message "Use the other folder"',
      "runs answer last --value blue",
      "runs answer last --field colour=blue --field coats=3",
    ],
  },
  {
    name: "review",
    words: "RUN",
    summary: "Show all that a run proposes to change, file by file.",
    flags: ["json"],
    examples: ["runs review last"],
  },
  {
    name: "apply",
    words: "RUN",
    summary: "Apply what a run proposes: all of it, or the files that flags name.",
    flags: ["file", "over", "fit", "refuse", "message", "branch", "worktree"],
    examples: [
      "runs apply last",
      "runs apply last --file src/send.js#1,2 --file src/outbox.js",
      'runs apply last --refuse deploy/crontab --message "Hourly on purpose"',
      "runs apply last --branch agent/outbox --worktree",
    ],
  },
  {
    name: "discard",
    words: "RUN",
    summary: "Delete what a run proposed and nobody applied.",
    examples: ["runs discard last"],
  },
  {
    name: "tell",
    words: 'RUN "TEXT"',
    summary: "Send the agent a message, which it reads at its next step.",
    examples: ['runs tell last "Keep it short"'],
  },
  {
    name: "cancel",
    words: "RUN",
    summary: "Cancel a run for good.",
    flags: ["message"],
    examples: ['runs cancel last --message "not needed any more"'],
  },
  {
    name: "open",
    words: "RUN",
    summary: "Open the page of a run in the browser.",
    flags: ["no-browser"],
    examples: ["runs open last"],
  },
  {
    name: "points",
    words: "RUN",
    summary: "List the steps of a conversation that a new one can start from.",
    flags: ["json"],
    examples: ["runs points last"],
  },
  {
    name: "prune",
    summary: "Delete finished runs that exceed --retention-days or --retention-megabytes.",
    flags: ["dry-run", "orphans"],
    examples: ["runs prune --retention-days 30 --dry-run"],
  },
];

export const SCHEDULE_ACTIONS: readonly Action[] = [
  {
    name: "add",
    words: 'EXPRESSION "TASK"',
    summary: "Add a schedule: a cron expression, and the task of its runs.",
    flags: ["name", "time-zone", "catch-up", "catch-up-limit", "overlap", ...CHOICES, "json"],
    examples: [
      'schedule add "0 7 * * 1-5" "Summarize what changed in this folder since yesterday"',
      'schedule add @weekly "Look for outdated pages" --name pages --time-zone Europe/Berlin',
      'schedule add "0 * * * *" "Read the new tickets" --catch-up all --catch-up-limit 5',
      'schedule add @daily "Sort the notes" --model anthropic:claude-haiku-4-5 --limits-cost-usd 0.5',
    ],
  },
  {
    name: "edit",
    words: "SCHEDULE",
    summary: "Change its times, task or name, or the model, limits and goal of its runs.",
    flags: [
      "cron",
      "task",
      "name",
      "time-zone",
      "catch-up",
      "catch-up-limit",
      "overlap",
      "no-overlap",
      ...CHOICES,
      ...REMOVALS,
      "json",
      "all-principals",
    ],
    examples: [
      'schedule edit news --cron "30 7 * * 1-5"',
      "schedule edit news --limits-tokens 200000 --no-model",
    ],
  },
  {
    name: "list",
    summary: "List schedules with their next time and their last run, one per line.",
    flags: ["json", "all-principals"],
    examples: ["schedule list", "schedule list --json"],
  },
  {
    name: "show",
    words: "SCHEDULE",
    summary: "Show a schedule: its task, its next times, its newest runs and skips.",
    flags: ["json", "all-principals"],
    examples: ["schedule show pages"],
  },
  {
    name: "pause",
    words: "SCHEDULE",
    summary: "Start no runs until it is resumed.",
    flags: ["all-principals"],
    examples: ["schedule pause pages"],
  },
  {
    name: "resume",
    words: "SCHEDULE",
    summary: "Continue with the next time from now on.",
    flags: ["all-principals"],
    examples: ["schedule resume pages"],
  },
  {
    name: "remove",
    words: "SCHEDULE",
    summary: "Remove a schedule. Its runs are kept.",
    flags: ["all-principals"],
    examples: ["schedule remove pages"],
  },
  {
    name: "run",
    words: "SCHEDULE",
    summary: "Start a run now. The times of the schedule do not change.",
    flags: ["json"],
    examples: ["schedule run pages"],
  },
];

export const NEWS_ACTIONS: readonly Action[] = [
  {
    name: "list",
    summary: "List messages that no channel has accepted yet, failed ones first.",
    flags: ["json"],
    examples: ["news list", "news list --json"],
  },
  {
    name: "retry",
    words: "[NUMBER…]",
    summary: "Retry messages now, with a full set of attempts.",
    flags: ["all"],
    examples: ["news retry 12", "news retry --all"],
  },
  {
    name: "drop",
    words: "[NUMBER…]",
    summary: "Delete messages without sending them.",
    flags: ["all"],
    examples: ["news drop 12", "news drop --all"],
  },
];
