import type { Command } from "./command.ts";

export const demoCommand: Command = {
  name: "demo",
  usage: 'demo ["TASK"]',
  summary: "Watch a whole run in the terminal: a real client, this server, and a live tree of agents.",
  configurable: true,
  positionals: 1,
  flags: [{ name: "yes", short: "y", kind: "boolean", help: "Approve everything without asking." }],
  run: async (args) => (await import("./demo/run-demo.ts")).runDemo(args),
};
