import { onTestFinished } from "vitest";
import { program } from "../../support/harness-stdio.ts";
import { type PseudoTerminal, openTerminal } from "../../support/pseudo-terminal.ts";
import {
  startWireServer,
  type WireReply,
  type WireRequest,
  type WireServer,
} from "../../support/wire-server.ts";
import { cleanEnv } from "../built-bin.ts";
import { type TerminalHome, terminalHome } from "../terminal-home.ts";

interface Scene {
  columns: number;
  rows?: number;
  args: readonly string[];
  /** What the model answers: the main agent's, by how often it was asked, and that of each subagent. */
  main: readonly WireReply[];
  subagent?: (request: WireRequest) => WireReply | Promise<WireReply>;
  env?: Record<string, string>;
  /** The line of a shell that the program stands in as `"$@"`. Default: the program alone. */
  shell?: string;
}

/** The program in a terminal, with a model that says what the scene says. */
export async function play({
  columns,
  rows,
  args,
  main,
  subagent,
  env,
  shell,
}: Scene): Promise<PseudoTerminal & { model: WireServer; home: TerminalHome }> {
  let turn = 0;
  const server = await startWireServer((request) =>
    request.tools.includes("task") || subagent === undefined
      ? (main[turn++] ?? { text: "Nothing more." })
      : subagent(request),
  );
  onTestFinished(() => server.close());
  const home = terminalHome();
  const line = shell === undefined ? [] : ["bash", "-c", shell, "bash"];
  const terminal = openTerminal([...line, process.execPath, await program(), ...args], {
    columns,
    ...(rows === undefined ? {} : { rows }),
    cwd: home.workspace,
    env: { ...cleanEnv(), ...home.env, ...server.env("openai"), DEEPAGENT_MODEL: "openai:gpt-5", ...env },
  });
  return { ...terminal, model: server, home };
}

export const delegate = (descriptions: readonly string[]): WireReply => ({
  toolCalls: descriptions.map((description) => ({
    name: "task",
    args: { description, subagent_type: "general-purpose" },
  })),
});

/** A promise that the test fulfils. */
export function gate(): { open: () => void; opened: Promise<void> } {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { open, opened };
}
