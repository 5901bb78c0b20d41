import type { Command } from "./command.ts";
import { runServe } from "./serve/run-serve.ts";

export const serveCommand: Command = {
  name: "serve",
  usage: "serve",
  summary:
    "Serve MCP over stdio, or with --http over Streamable HTTP; beyond this machine with tokens only. The default.",
  configurable: true,
  flags: [{ name: "http", kind: "boolean", help: "Listen on --host and --port instead of stdio." }],
  run: (args) => runServe(args),
};
