import type { Config } from "../../config/schema.ts";

/** Who a client says it is: only ever used for how long its calls wait. */
export interface ClientName {
  name: string;
  version: string;
}

/** Seconds a call may wait, without and with a progress token. */
export interface Windows {
  windowWithoutProgress: number;
  windowWithProgress: number;
}

/**
 * Clients that end a call after 60 seconds even when it tells its progress, by the name they give, or by
 * `name/version` for versions that begin so. Everyone else gets the configured windows.
 */
export const CLIENT_WINDOWS: Readonly<Record<string, Partial<Windows>>> = {
  // Desktop and web; not configurable there.
  "claude-ai": { windowWithProgress: 40 },
  // `tool_timeout_sec`, 60 unless the user raised it.
  "codex-mcp-client": { windowWithProgress: 40 },
  // Not documented; assumed.
  "cursor-vscode": { windowWithProgress: 40 },
  // Cancels even while its own form is open.
  "inspector-client": { windowWithProgress: 40 },
};

/** How long calls of this client wait, in seconds. */
export function windowsFor(client: ClientName | undefined, delivery: Config["delivery"]): Windows {
  const { windowWithoutProgress, windowWithProgress } = delivery;
  const general = { windowWithoutProgress, windowWithProgress };
  if (client === undefined) return general;
  const configured = bestMatch(client, delivery.clients);
  if (configured !== undefined) return { ...general, ...definedOnly(configured) };
  const known = bestMatch(client, CLIENT_WINDOWS) ?? {};
  return {
    windowWithoutProgress: Math.min(windowWithoutProgress, known.windowWithoutProgress ?? Infinity),
    windowWithProgress: Math.min(windowWithProgress, known.windowWithProgress ?? Infinity),
  };
}

/** The entry that names most of the version. */
function bestMatch<Entry>(client: ClientName, entries: Readonly<Record<string, Entry>>): Entry | undefined {
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

function definedOnly(entry: { [Key in keyof Windows]?: Windows[Key] | undefined }): Partial<Windows> {
  return Object.fromEntries(Object.entries(entry).filter(([, value]) => value !== undefined));
}
