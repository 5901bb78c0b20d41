/** Reads one entry of a server, as any program writes it, into our own form. */
import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import table from "./server-entries.json" with { type: "json" };
import { shownName } from "../core/text.ts";
import { isRecord, recordOf, defined, parsedUrl } from "../core/unknown.ts";

/** Each key of ours, with all its names. */
export const ENTRY_KEYS: Readonly<Record<string, readonly string[]>> = Object.fromEntries(
  Object.entries(table.keys).map(([own, { names }]) => [own, names]),
);

/** Returns the unchecked values of an entry under our own keys, and adds remarks for people to `notes`. */
export function readEntry(given: Record<string, unknown>, notes: string[]): Record<string, unknown> {
  const left: string[] = [];
  const found = pickValues(given, ENTRY_KEYS, left);
  if (isLike(found["disabled"], true) || isLike(found["enabled"], false)) return { disabled: true };
  const { approve, approvalMode, trust, tools, alwaysAllow, disabled, timeoutSeconds } = found;
  const modes = new Map<unknown, string>(Object.entries(table.approvalModes));
  const each = Object.entries(isRecord(tools) ? tools : {}).map(([name, one]) => ({
    name,
    mode: modes.get(recordOf(one)["approval_mode"]),
  }));
  const free = each.filter(({ mode }) => mode === "none").map(({ name }) => name);
  const isStrict = each.some(({ mode }) => mode === "all");
  const chosen = approve ?? (isStrict ? "all" : isLike(trust, true) ? "none" : modes.get(approvalMode));
  if (approve === undefined && isStrict)
    notes.push("All of its calls need approval, as its entry says of some.");
  if (approve === undefined && chosen === "none")
    notes.push("None of its calls needs approval, as its entry says.");
  const listed = isRecord(tools) ? undefined : asList(tools);
  const time = Number(found["timeout"] ?? Number.NaN);
  if (time > 3600) notes.push(`Its timeout of ${time} is read as milliseconds.`);
  const policy = {
    disabled: isLike(disabled, false) ? undefined : disabled,
    approve: chosen,
    tools: Array.isArray(listed) && listed.includes("*") ? undefined : listed,
    disabledTools: asList(found["disabledTools"]),
    alwaysAllow: free.length > 0 ? [...[asList(alwaysAllow) ?? []].flat(), ...free] : asList(alwaysAllow),
    timeout: timeoutSeconds ?? (time > 3600 ? Math.max(time / 1000, 1) : time || found["timeout"]),
  };
  const entry = defined({ ...toOwnKind(found, left), ...policy });
  const more = left.length > 10 ? `, and ${left.length - 10} more` : "";
  if (left.length > 0) notes.push(`Left out of its entry: ${left.slice(0, 10).join(", ")}${more}.`);
  return entry;
}

/** Picks values by all their names; the first name that has a value counts. Adds names that change nothing to `left`. */
function pickValues(given: Record<string, unknown>, keys: typeof ENTRY_KEYS, left: string[], before = "") {
  const known = new Set(Object.values(keys).flat());
  for (const key of Object.keys(given)) {
    const reason = new Map(Object.entries(table.left)).get(key);
    if (known.has(key) || reason === "" || /^[_$]|^x-/.test(key)) continue;
    left.push(`${before}${shownName(key)}${reason === undefined ? "" : ` (${reason})`}`);
  }
  const picked = Object.entries(keys).map(([own, names]) => {
    const [first, ...rest] = names.filter(
      (name) => Object.hasOwn(given, name) && (given[name] ?? undefined) !== undefined,
    );
    left.push(...rest.filter((name) => !isDeepStrictEqual(given[name], given[first ?? ""])));
    return [own, first === undefined ? undefined : given[first]];
  });
  return Object.fromEntries(picked);
}

/** True for a boolean, and for its text and number. */
const isLike = (value: unknown, wanted: boolean): boolean =>
  [String(wanted), String(Number(wanted))].includes(String(value).toLowerCase());

const scalarText = (value: unknown): unknown =>
  typeof value === "number" || typeof value === "boolean" ? String(value) : value;

/** A list of texts, which may be written as one text. */
const asList = (value: unknown): unknown =>
  Array.isArray(value) ? value.map(scalarText) : typeof value === "string" ? [value] : value;

/** Texts by name, from an object or a list of `{ name, value }`, and after them variables that are passed on if they are set. */
function asTexts(value: unknown, variables: unknown): unknown {
  // The members of a list have a name and a value, or are names themselves.
  const pairs = (given: unknown, member: string): [string, unknown][] =>
    isRecord(given)
      ? Object.entries(given)
      : [given ?? []].flat().map((one) => {
          const { name = one, [member]: variable = one } = recordOf(one);
          return [String(name), variable];
        });
  if (value !== undefined && typeof value !== "object") return value;
  const passed = pairs(variables, "name").map(([name, variable]) => [name, `\${${String(variable)}:-}`]);
  const given = pairs(value, "value").filter(([, one]) => one !== null);
  return Object.fromEntries([...passed, ...given.map(([name, one]) => [name, scalarText(one)])]);
}

/** The values that start or reach the server. */
function toOwnKind(found: Record<string, unknown>, left: string[]): Record<string, unknown> {
  const word = scalarText(found["type"])?.toString().toLowerCase().replace(/[-_ ]/g, "");
  const type = word === undefined ? undefined : (new Map(Object.entries(table.types)).get(word) ?? word);
  const [command, ...before] = [found["command"]].flat();
  const { url, args, env, variables, envFile, cwd, headers, headerVariables, bearerVariable } = found;
  const isBoth = command !== undefined && url !== undefined;
  const isRemote = isBoth ? type === "http" || type === "sse" : url !== undefined;
  if (isBoth && type === undefined) return { command, url };
  const others = isRemote
    ? { command, args, env, variables, envFile, cwd }
    : { url, headers, headerVariables, bearerVariable, oauth: found["oauth"] };
  for (const [key, value] of Object.entries(others))
    if (value !== undefined && (typeof value !== "object" || Object.keys(value ?? {}).length > 0))
      left.push(`${key} (not for this kind of server)`);
  if (!isRemote) {
    const all = [...before.map(scalarText), ...[asList(args ?? [])].flat()];
    return { type, command, args: all, env: asTexts(env, variables), envFile, cwd };
  }
  const token =
    bearerVariable === undefined ? {} : { Authorization: `Bearer \${${String(found["bearerVariable"])}}` };
  const own = asTexts(headers, headerVariables);
  const shared = { type, url, headers: isRecord(own) ? { ...token, ...own } : own };
  const { oauth, clientId, clientSecret, scopes } = found;
  const login = typeof oauth === "boolean" ? { enabled: oauth } : oauth;
  if (login !== undefined && !isRecord(login)) return { ...shared, oauth };
  const given = defined({ clientId, clientSecret, scopes, ...login });
  const { enabled, redirectUri, scope, ...rest } = pickValues(given, table.oauth, left, "oauth.");
  if (isLike(enabled, false)) return { ...shared, noLogin: true };
  const { port, hostname } = parsedUrl(String(redirectUri)) ?? {};
  const callbackPort = Number(port) || undefined;
  const callbackHost = hostname === "localhost" ? hostname : undefined;
  const scopeText = scope === undefined ? undefined : [scope].flat().map(String).join(" ");
  const settings = defined({ callbackPort, callbackHost, ...defined(rest), scope: scopeText });
  return login === undefined && Object.keys(settings).length === 0 ? shared : { ...shared, oauth: settings };
}

/** Allowed server names. Tool names begin with one, and its end must be recognizable. */
const SERVER_NAME = /^(?!.*__)[A-Za-z0-9](?:[A-Za-z0-9_-]{0,30}[A-Za-z0-9])?$/;

/** Makes names that tools can have in theirs. Names that become the same, are cut or have no letters get a digest. */
export function safeNames(names: readonly string[]): string[] {
  const plain = names.map((name) => {
    const letters = name.slice(0, 1000).normalize("NFKD").replace(/\p{M}/gu, "");
    return SERVER_NAME.test(name) ? name : letters.replace(/[^A-Za-z0-9]+/g, "-").replace(/^-|-$/g, "");
  });
  const counts = new Map<string, number>();
  for (const name of plain) counts.set(name, (counts.get(name) ?? 0) + 1);
  return names.map((name, at) => {
    const safe = plain[at] ?? "";
    if (SERVER_NAME.test(safe) && (safe === name || counts.get(safe) === 1)) return safe;
    const digest = createHash("sha256").update(name).digest("hex").slice(0, 8);
    return `${safe.slice(0, 23).replace(/-$/, "") || "server"}-${digest}`;
  });
}
