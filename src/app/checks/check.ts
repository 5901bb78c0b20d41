import type { HostFacts } from "../../config/paths.ts";
import type { Config } from "../../config/schema.ts";
import type { Storage } from "../../storage/storage.ts";
import { type FoundKeys, withStoredKeys } from "../stored-keys.ts";

/** One thing that a run needs. */
export interface Check {
  name: string;
  ok: boolean;
  /** The finding, or the problem and its remedy. */
  text: string;
}

export interface Facts extends FoundKeys {
  config: Config;
  warnings: readonly string[];
  host: HostFacts;
  /** True if an MCP client may lend its model. */
  lendable: boolean;
}

/** Facts that every process has. */
export type OwnFacts = Pick<Facts, "config" | "env">;

/** Reads the keychain for the keys that the environment lacks. */
export const factsFor = async (
  { config, warnings }: Pick<Facts, "config" | "warnings">,
  host: HostFacts,
  lendable: boolean,
): Promise<Facts> => ({ config, warnings, host, lendable, ...(await withStoredKeys(config, host.env)) });

/** Closes the storage after the work. */
export async function closing<Result>(storage: Storage, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } finally {
    await storage.close();
  }
}

/** Resolves with the result of `work`, or with that of `late` after so many seconds. `work` gets a signal to stop. */
export async function within<Result>(
  seconds: number,
  work: (signal: AbortSignal) => Promise<Result>,
  late: (time: string) => Result,
): Promise<Result> {
  const controller = new AbortController();
  const end = new Promise<Result>((resolve) => {
    controller.signal.addEventListener("abort", () => resolve(late(`${seconds} s`)));
  });
  const timer = setTimeout(() => controller.abort(), seconds * 1000);
  try {
    return await Promise.race([work(controller.signal), end]);
  } finally {
    clearTimeout(timer);
  }
}
