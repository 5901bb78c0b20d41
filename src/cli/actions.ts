/** The actions of commands that have several. */
import { type Action, action } from "./command.ts";
import { CHOICE_FLAGS, REMOVAL_FLAGS } from "./schedule-choices.ts";

const CHOICES = CHOICE_FLAGS.map(({ name }) => name);

export const RUN_ACTIONS: readonly Action[] = [
  action("list", "List the newest runs, one per line.", {
    flags: ["limit", "json", "all-principals"],
    examples: ["runs list --limit 5", "runs list --json | head -1"],
  }),
  action("show RUN", "Show the current state of a run: todos, agents, open requests, answer.", {
    flags: ["json", "all-principals"],
    examples: ["runs show last", "runs show Xy3k --json"],
  }),
  action("watch RUN", "Follow a run until it ends, whichever process works on it.", {
    flags: ["json"],
    examples: ["runs watch last"],
  }),
  action(
    "answer RUN [REQUEST]",
    "Decide on open approvals and answer open questions, by a flag or by keys.",
    {
      flags: ["approve", "approve-same", "reject", "edit", "message", "value", "field", "opened", "decline"],
      examples: [
        "runs answer last",
        'runs answer last --reject --message "Use the other folder"',
        "runs answer last --value blue",
        "runs answer last --field colour=blue --field coats=3",
      ],
    },
  ),
  action("review RUN", "Show a run's proposed changes; --file shows all of a long one.", {
    flags: ["file", "json"],
    examples: ["runs review last", "runs review last --file data/tides.csv"],
  }),
  action("apply RUN", "Apply the reviewed changes: all that is left, or named files.", {
    flags: ["digest", "file", "over", "fit", "refuse", "message", "branch", "worktree"],
    examples: [
      "runs apply last",
      "runs apply last --file src/send.js#1,2 --file src/outbox.js",
      'runs apply last --refuse deploy/crontab --message "Hourly on purpose"',
      "runs apply last --branch agent/outbox --worktree",
    ],
  }),
  action("discard RUN", "Delete what a run proposed and nobody applied.", {
    examples: ["runs discard last"],
  }),
  action('tell RUN "TEXT"', "Send the agent a message, which it reads at its next step.", {
    examples: ['runs tell last "Keep it short"'],
  }),
  action("cancel RUN", "Cancel a run for good.", {
    flags: ["message"],
    examples: ['runs cancel last --message "not needed any more"'],
  }),
  action("open RUN", "Open the page of a run in the browser.", {
    flags: ["no-browser"],
    examples: ["runs open last"],
  }),
  action("points RUN", "List the steps of a conversation that a new one can start from.", {
    flags: ["json"],
    examples: ["runs points last"],
  }),
  action("prune", "Delete finished runs that exceed --retention-days or --retention-megabytes.", {
    flags: ["dry-run", "orphans"],
    examples: ["runs prune --retention-days 30 --dry-run"],
  }),
];

export const SCHEDULE_ACTIONS: readonly Action[] = [
  action('add EXPRESSION "TASK"', "Add a schedule: a cron expression, and the task of its runs.", {
    flags: ["name", "time-zone", "catch-up", "catch-up-limit", "overlap", ...CHOICES, "json"],
    examples: [
      'schedule add "0 7 * * 1-5" "Summarize what changed in this folder since yesterday"',
      'schedule add @weekly "Look for outdated pages" --name pages --time-zone Europe/Berlin',
      'schedule add "0 * * * *" "Read the new tickets" --catch-up all --catch-up-limit 5',
      'schedule add @daily "Sort the notes" --model anthropic:claude-haiku-4-5 --limits-cost-usd 0.5',
    ],
  }),
  action("edit SCHEDULE", "Change its times, task or name, or the model, limits and goal of its runs.", {
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
      ...REMOVAL_FLAGS.map(({ name }) => name),
      "json",
      "all-principals",
    ],
    examples: [
      'schedule edit news --cron "30 7 * * 1-5"',
      "schedule edit news --limits-tokens 200000 --no-model",
    ],
  }),
  action("list", "List schedules with their next time and their last run, one per line.", {
    flags: ["json", "all-principals"],
    examples: ["schedule list", "schedule list --json"],
  }),
  action("show SCHEDULE", "Show a schedule: its task, its next times, its newest runs and skips.", {
    flags: ["json", "all-principals"],
    examples: ["schedule show pages"],
  }),
  action("pause SCHEDULE", "Start no runs until it is resumed.", {
    flags: ["all-principals"],
    examples: ["schedule pause pages"],
  }),
  action("resume SCHEDULE", "Continue with the next time from now on.", {
    flags: ["all-principals"],
    examples: ["schedule resume pages"],
  }),
  action("remove SCHEDULE", "Remove a schedule. Its runs are kept.", {
    flags: ["all-principals"],
    examples: ["schedule remove pages"],
  }),
  action("run SCHEDULE", "Start a run now. The times of the schedule do not change.", {
    flags: ["json"],
    examples: ["schedule run pages"],
  }),
];

export const ACCESS_ACTIONS: readonly Action[] = [
  action("list", "List read-only links and subscriptions, those that end first before the others.", {
    flags: ["json"],
    examples: ["access list", "access list --json"],
  }),
  action("revoke ID…", "End them at once.", { examples: ["access revoke sub_1f0c"] }),
];

export const NEWS_ACTIONS: readonly Action[] = [
  action("list", "List messages that no channel has accepted yet, failed ones first.", {
    flags: ["json"],
    examples: ["news list", "news list --json"],
  }),
  action("retry [NUMBER…]", "Retry messages now, with a full set of attempts.", {
    flags: ["all"],
    examples: ["news retry 12", "news retry --all"],
  }),
  action("drop [NUMBER…]", "Delete messages without sending them.", {
    flags: ["all"],
    examples: ["news drop 12", "news drop --all"],
  }),
];
