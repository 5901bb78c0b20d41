import type { SandboxBackend } from "../backends/backend.ts";
import { withoutSlash, withSlash } from "../backends/paths.ts";

/** Tells where commands run and what bounds them: the same bytes for the same backend. */
export function commandsPrompt({ commands = {}, capabilities = {} }: SandboxBackend): string {
  const { folder = "/", directory, network, timeout, outputBytes } = commands;
  const { isolation, paths } = capabilities;
  const sentences = [
    placeOf(isolation, network),
    ...(paths === "real"
      ? ["They start in the working directory of the file tools."]
      : [startOf(folder, directory)]),
    ...(folder === "/"
      ? []
      : [
          `Nothing else of the file tree exists for them, neither scratch files of \`/\` nor other folders: write what a command needs below \`${withSlash(folder)}\`.`,
        ]),
    ...(timeout === undefined
      ? []
      : [`A command is ended after ${timeout} seconds unless its call says otherwise.`]),
    ...(outputBytes === undefined
      ? []
      : [`Output of more than ${outputBytes} bytes goes into a file that the answer names.`]),
  ];
  return `## Commands\n${sentences.join(" ")}`;
}

type Isolation = NonNullable<SandboxBackend["capabilities"]>["isolation"];

function placeOf(isolation: Isolation | undefined, network: boolean | undefined): string {
  const facts = [
    ...(isolation === undefined
      ? []
      : [isolation === "none" ? "on this machine, outside any sandbox" : "in a sandbox"]),
    ...(network === undefined ? [] : [network ? "with network" : "without network"]),
  ];
  return `\`execute\` runs commands${facts.length > 0 ? ` ${facts.join(", ")}` : ""}.`;
}

function startOf(folder: string, directory: string | undefined): string {
  const name = withoutSlash(folder);
  if (directory === name) return `They start in \`${directory}\` and see its files under the same paths.`;
  const there = directory === undefined ? "the folder" : `\`${directory}\`, which is the folder`;
  return `They start in ${there} that file tools call \`${withSlash(folder)}\`; in commands, use paths relative to it.`;
}
