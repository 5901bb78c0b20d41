import type { FlagValues } from "../config/load.ts";
import type { HostFacts } from "../config/paths.ts";

/** Ends with an exit code: 0 done, 1 failed, 2 wrong usage or configuration. */
export type ExitCode = 0 | 1 | 2;

export interface Flag {
  /** Without dashes. */
  name: string;
  short?: string;
  kind: "boolean" | "text" | "list";
  /** What stands for the value in help, such as `DIR`. */
  hint?: string;
  help: string;
  /** Path of the setting it gives; help then adds default and environment variable. */
  setting?: string;
}

export interface CommandArguments {
  flags: FlagValues;
  positionals: readonly string[];
  host: HostFacts;
}

export interface Command {
  name: string;
  /** How it is called, without the program's name. */
  usage: string;
  /** One line. */
  summary: string;
  /** Flags of its own. */
  flags: readonly Flag[];
  /** Whether the flags of the configuration apply. */
  configurable: boolean;
  /** How many words may follow; default none. */
  positionals?: number;
  run(args: CommandArguments): Promise<ExitCode>;
}
