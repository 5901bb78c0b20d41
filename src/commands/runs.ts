import type { Command } from "./command.ts";

export const runsCommand: Command = {
  name: "runs",
  usage: "runs ACTION [RUN]",
  summary:
    "Look at runs and decide on them, also while a server works: list, show, watch, answer, tell, cancel, open, points, prune.",
  configurable: true,
  positionals: 3,
  flags: [
    { name: "json", kind: "boolean", help: "list, show, watch, points: write JSON." },
    { name: "limit", kind: "text", hint: "N", help: "list: how many of the newest runs. Default 20." },
    {
      name: "approve",
      kind: "boolean",
      help: "answer RUN [APPROVAL]: approve; without APPROVAL all that are open.",
    },
    {
      name: "approve-same",
      kind: "boolean",
      help: "answer RUN [APPROVAL]: approve it and, for the rest of the run, the same calls.",
    },
    { name: "reject", kind: "boolean", help: "answer RUN [APPROVAL]: reject." },
    { name: "edit", kind: "text", hint: "JSON", help: "answer RUN APPROVAL: run it with these arguments." },
    { name: "message", kind: "text", hint: "TEXT", help: "answer --reject: to the agent. cancel: why." },
    { name: "dry-run", kind: "boolean", help: "prune: only say what would be forgotten." },
    { name: "orphans", kind: "boolean", help: "prune: also delete threads that belong to no run." },
    { name: "no-browser", kind: "boolean", help: "open: only print the link." },
  ],
  run: async (args) => (await import("./runs/run-runs.ts")).runRuns(args),
};
