import type { Command } from "./command.ts";

export const runCommand: Command = {
  name: "run",
  usage: 'run ["TASK"]',
  summary: "Work on a task in this terminal: a live tree of agents, and approvals as questions.",
  configurable: true,
  positionals: 1,
  flags: [
    { name: "resume", kind: "text", hint: "RUN", help: "Go on with this run instead of starting one." },
    {
      name: "thread",
      kind: "text",
      hint: "THREAD",
      help: "Continue this conversation, even while it works; THREAD@N, from runs points: begin a new one there.",
    },
    { name: "yes", short: "y", kind: "boolean", help: "Approve everything without asking." },
    { name: "json", kind: "boolean", help: "Write events and the run as lines of JSON." },
  ],
  run: async (args) => (await import("./run/run-task.ts")).runTask(args),
};
