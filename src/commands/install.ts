import { CLIENT_NAMES } from "./install/clients.ts";
import type { Command, Flag } from "./command.ts";

const PROJECT: Flag = {
  name: "project",
  kind: "boolean",
  help: "The file of the project in the current folder, for claude-code, cursor and vscode, instead of your own.",
};

export const installCommand: Command = {
  name: "install",
  usage: "install CLIENT",
  summary: `Add this server to a client's configuration: ${CLIENT_NAMES.join(", ")}.`,
  configurable: false,
  positionals: 1,
  flags: [
    { name: "workspace", kind: "text", hint: "DIR", help: "The folder the agent works in." },
    { name: "model", kind: "text", hint: "VALUE", help: "`provider:model`, `offline` or `client`." },
    {
      name: "env",
      kind: "list",
      hint: "KEY[=VALUE]",
      help: "A variable for the server, such as the key of the model. Without VALUE it is copied from here, or asked for or referred to where the client can. May be repeated.",
    },
    PROJECT,
    { name: "print", kind: "boolean", help: "Show what would be written, and change nothing." },
  ],
  run: async (args) => (await import("./install/run-install.ts")).runInstall(args),
};

export const uninstallCommand: Command = {
  name: "uninstall",
  usage: "uninstall CLIENT",
  summary: "Take this server out of a client's configuration, and leave everything else.",
  configurable: false,
  positionals: 1,
  flags: [PROJECT],
  run: async (args) => (await import("./install/run-install.ts")).runUninstall(args),
};
