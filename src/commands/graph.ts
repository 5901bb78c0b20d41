import type { Command } from "./command.ts";

export const graphCommand: Command = {
  name: "graph",
  usage: "graph",
  summary: "Print how the agent works as a drawing, in the language of Mermaid.",
  configurable: true,
  flags: [],
  run: async (args) => {
    const { LOCAL, withLocalRuns } = await import("./terminal/local-runs.ts");
    return withLocalRuns(args, false, async ({ runs }) => {
      process.stdout.write(`${(await runs.drawing(LOCAL)).trimEnd()}\n`);
      return 0;
    });
  },
};
