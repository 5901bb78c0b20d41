import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { PROVIDERS } from "../../agent/models/choose.ts";
import { type HostFacts, defaultWorkspace } from "../../config/paths.ts";

/** The person's wishes, from the command line or from answers at the terminal. */
export interface Wishes {
  workspace?: string;
  model?: string;
  env: Map<string, string | undefined>;
}

export interface Questions {
  host: HostFacts;
  /** The client knows its folder by itself. */
  hasFolder: boolean;
  /** The client asks for values itself, or refers to its environment. */
  needsNoValue: boolean;
}

const DEFAULT_KEY = "ANTHROPIC_API_KEY";
const KEYLESS = new Set(["offline", "client"]);

/** Asks at the terminal for what the command line did not say. An empty answer takes what is in brackets. */
export async function askFor(wishes: Wishes, { host, hasFolder, needsNoValue }: Questions): Promise<Wishes> {
  const { env } = wishes;
  const folder = defaultWorkspace(host);
  const workspace =
    wishes.workspace ??
    (hasFolder ? undefined : await ask(`Folder the agent works in [${folder ?? "none"}] › `, folder));
  const model =
    wishes.model ??
    (await ask("Model, as provider:model, offline or client [chosen by the key] › ", undefined));
  if (env.size === 0 && !KEYLESS.has(model ?? "")) {
    const usual = PROVIDERS[model?.split(":")[0] ?? ""]?.key ?? DEFAULT_KEY;
    const name = await ask(`Variable with the key of the model, or - for none [${usual}] › `, usual);
    if (name !== "-") {
      const hasValue = needsNoValue || Boolean(host.env[name ?? ""]);
      const value = hasValue
        ? undefined
        : await ask(`${name}, which is not shown [none] › `, undefined, true);
      if (hasValue || value !== undefined) env.set(name ?? usual, value);
    }
  }
  return {
    ...(workspace === undefined ? {} : { workspace }),
    ...(model === undefined ? {} : { model }),
    env,
  };
}

async function ask<Initial extends string | undefined>(
  question: string,
  initial: Initial,
  isHidden = false,
): Promise<string | Initial> {
  const nothing = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({
    input: process.stdin,
    output: isHidden ? nothing : process.stdout,
    terminal: true,
  });
  // After the interface has turned the terminal's own echo off.
  if (isHidden) process.stdout.write(question);
  const stop = new AbortController();
  lines.once("close", () => stop.abort());
  try {
    const answer = (await lines.question(isHidden ? "" : question, { signal: stop.signal })).trim();
    return answer === "" ? initial : answer;
  } finally {
    lines.close();
    if (isHidden) process.stdout.write("\n");
  }
}
