import type { Command } from "./command.ts";

export const doctorCommand: Command = {
  name: "doctor",
  usage: "doctor",
  summary: "Check what a run needs: Node, workspace, data folder, model, sandbox, search program.",
  configurable: true,
  flags: [],
  run: async (args) => (await import("./doctor/run-doctor.ts")).runDoctor(args),
};
