import type { Config } from "../../config/schema.ts";

/** Who a client says it is: only ever used for how long its calls wait. */
export interface ClientName {
  name: string;
  version: string;
}

/** How a client counts the time it gives a call. */
export interface CallLimit {
  /** It starts counting again whenever the call tells its progress, or it has no limit. */
  extendsOnProgress?: true;
  /** It stops counting while a form of the call is open, or it has no limit. */
  pausesForForms?: true;
}

/**
 * Clients known to wait longer than the 60 seconds after which most end a call, progress or not. By the name
 * they give, or by `name/version` for versions that begin so.
 */
export const KNOWN_LIMITS: Readonly<Record<string, CallLimit>> = {
  // Its documentation of MCP: a call may idle for 5 minutes over HTTP and 30 over stdio, and progress resets that.
  "claude-code": { extendsOnProgress: true },
  // Tried with 0.169: `tool_timeout_sec` (60) ends calls whatever they tell, but rests while a form is open; a
  // form answered after 80 seconds was taken.
  "codex-mcp-client": { pausesForForms: true },
  // Its documentation of MCP names no limit, and it waits until the person cancels.
  "Visual Studio Code": { extendsOnProgress: true, pausesForForms: true },
  "Visual Studio Code - Insiders": { extendsOnProgress: true, pausesForForms: true },
};

/** How long a call waits for its run. */
export interface CallWindow {
  seconds: number;
  /** The time while a form of the call is open does not count. */
  pausesForForms: boolean;
}

/** The window of a call of this client, which `tellsProgress` when it carries a progress token. */
export function windowFor(
  client: ClientName | undefined,
  tellsProgress: boolean,
  delivery: Config["delivery"],
): CallWindow {
  const known = bestMatch(client, KNOWN_LIMITS);
  const configured = bestMatch(client, delivery.clients);
  const isExtended = tellsProgress && known?.extendsOnProgress === true;
  return {
    seconds: configured?.window ?? (isExtended ? delivery.windowWithProgress : delivery.window),
    pausesForForms: configured?.pausesForForms ?? known?.pausesForForms ?? false,
  };
}

/** The entry that names most of the version. */
function bestMatch<Entry>(
  client: ClientName | undefined,
  entries: Readonly<Record<string, Entry>>,
): Entry | undefined {
  if (client === undefined) return undefined;
  const fitting = Object.keys(entries).filter((key) => fits(key, client));
  const best = fitting.sort((a, b) => b.length - a.length)[0];
  return best === undefined ? undefined : entries[best];
}

function fits(key: string, { name, version }: ClientName): boolean {
  if (key === name) return true;
  if (!key.startsWith(`${name}/`)) return false;
  const wanted = key.slice(name.length + 1);
  return version === wanted || version.startsWith(`${wanted}.`);
}
