import { z } from "zod";

const Servers = z.record(z.string(), z.unknown());

/** A client's configuration with one server added, or why it was left alone. */
export type MergedConfig = { ok: true; text: string; changed: boolean } | { ok: false; problem: string };

/** Adds or replaces `name` below `key` and keeps everything else. `text` is empty for a new file. */
export function mergeConfig(text: string, key: string, name: string, entry: object): MergedConfig {
  const parsed = parseObject(text);
  if (!parsed) return { ok: false, problem: "it is not plain JSON (comments and trailing commas are not)" };
  const servers = Servers.safeParse(parsed[key] ?? {});
  if (!servers.success) return { ok: false, problem: `its "${key}" is not an object` };
  const same = JSON.stringify(servers.data[name]) === JSON.stringify(entry);
  const merged = { ...parsed, [key]: { ...servers.data, [name]: entry } };
  return { ok: true, changed: !same, text: `${JSON.stringify(merged, null, 2)}\n` };
}

function parseObject(text: string): Record<string, unknown> | undefined {
  if (text.trim() === "") return {};
  try {
    return Servers.safeParse(JSON.parse(text.replace(/^\uFEFF/, ""))).data;
  } catch {
    return undefined;
  }
}
