import { CLIENT_NAMES } from "./install/clients.ts";
import type { Command } from "./command.ts";

export const installCommand: Command = {
  name: "install",
  usage: "install CLIENT",
  summary: `Add this server to a client's configuration: ${CLIENT_NAMES.join(", ")}.`,
  configurable: false,
  positionals: 1,
  flags: [
    { name: "workspace", kind: "text", hint: "DIR", help: "The folder the agent works in." },
    { name: "model", kind: "text", hint: "VALUE", help: "`provider:model` or `offline`." },
    { name: "print", kind: "boolean", help: "Show what would be written, and change nothing." },
  ],
  run: async (args) => (await import("./install/run-install.ts")).runInstall(args),
};
