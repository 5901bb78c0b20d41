import { StdioClientTransport as ModernStdio } from "@modelcontextprotocol/client/stdio";
import { StdioClientTransport as FirstStdio } from "@modelcontextprotocol/sdk/client/stdio.js";
import { bundled } from "./bundled.ts";
import type { Connector } from "./clients.ts";

/** The program as it is in the sources. */
export const program = (): Promise<string> => bundled("src/main.ts");

export interface StdioServer extends Connector {
  /** Process id of the connection made last. */
  pid(): number;
}

/** Reaches the program over stdio: each connection is a process of its own with this environment. */
export function stdioServer(script: string, env: Record<string, string>, user?: number): StdioServer {
  const program = [process.execPath, script];
  const become = ["setpriv", `--reuid=${user}`, `--regid=${user}`, "--clear-groups"];
  return stdioCommand(user === undefined ? program : [...become, ...program], env);
}

/** Reaches what a command starts over stdio. The SDK adds the variables that every program has. */
export function stdioCommand(words: readonly string[], env: Record<string, string>): StdioServer {
  let last: { pid: number | null } | undefined;
  const [command = "", ...args] = words;
  const parameters = { command, args, env, stderr: "ignore" as const };
  return {
    first: () => {
      const transport = new FirstStdio(parameters);
      last = transport;
      return transport;
    },
    modern: () => {
      const transport = new OneProcess(parameters);
      last = transport;
      return transport;
    },
    pid: () => {
      if (typeof last?.pid !== "number") throw new Error("no process is running");
      return last.pid;
    },
  };
}

/** The client asks a plain transport's version in a second process; a subclass it asks directly. */
class OneProcess extends ModernStdio {}
