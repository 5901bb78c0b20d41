/** Other MCP servers in the configuration. `server-entries.json` has the forms that other programs use. */
import { _default as withDefault, optional, z } from "zod";
import table from "./server-entries.json" with { type: "json" };
import { plainProblem } from "../core/plain-problem.ts";
import { oneLine, shownName } from "../core/text.ts";
import { isRecord, recordOf, parsedUrl } from "../core/unknown.ts";
import { between, choice, described, nonEmptyText } from "./sections.ts";
import { ENTRY_KEYS, readEntry, safeNames } from "./server-entry.ts";

const textWithoutNul = z
  .string()
  .refine((text) => !text.includes("\0"), { error: "must have no NUL character" });
const texts = z.record(textWithoutNul, textWithoutNul);

const toolNames = z.array(nonEmptyText).optional();

/** Our own form, which the documentation describes. */
const server = z
  .object(
    described("server", {
      type: optional(z.enum(["stdio", "http", "sse"])),
      command: optional(textWithoutNul.min(1)),
      args: optional(z.array(textWithoutNul)),
      env: optional(texts),
      envFile: optional(textWithoutNul.min(1)),
      cwd: optional(textWithoutNul.min(1)),
      url: optional(textWithoutNul.min(1)),
      headers: optional(texts),
      oauth: z
        .object(
          described("serverOauth", {
            clientId: optional(nonEmptyText),
            clientSecret: optional(nonEmptyText),
            scope: optional(z.string()),
            callbackPort: optional(between(1, 65_535)),
            callbackHost: optional(z.enum(["127.0.0.1", "localhost"])),
            clientMetadataUrl: optional(z.url({ protocol: /^https$/, error: "must be an https address" })),
          }),
        )
        .optional(),
      approve: choice(["writes", "all", "none"], "writes"),
      alwaysAllow: toolNames,
      tools: toolNames,
      disabledTools: toolNames,
      disabled: optional(z.boolean()),
      timeout: withDefault(between(1, 86_400), 120),
    }),
  )
  .extend({
    problem: z.string().optional().meta({ internal: true, description: "Why it cannot be used." }),
    notes: z.array(z.string()).optional().meta({ internal: true, description: "How it was read." }),
    noLogin: z.boolean().optional().meta({ internal: true, description: "Nobody logs in there." }),
  })
  .superRefine(({ type, command, url, disabled, problem }, context) => {
    const add = (message: string): void => context.addIssue({ code: "custom", message });
    if (disabled || problem !== undefined) return;
    if ((command === undefined) === (url === undefined)) add("it needs either a command or a url");
    else if (type !== undefined && (type === "stdio") !== (command !== undefined))
      add(`it has type ${type}; stdio goes with a command, the others with a url`);
    else if (url !== undefined && !/[$%{]/.test(url) && !/^https?:$/.test(parsedUrl(url)?.protocol ?? ""))
      add("url must be an http or https address");
  })
  .transform(({ type, command = "", args = [], env = {}, url, headers = {}, ...rest }) =>
    url === undefined
      ? { command, args, env, ...rest }
      : { url, headers, ...(type === "sse" ? { isOlder: true } : {}), ...rest },
  );

const namedList = (list: readonly unknown[]): Record<string, unknown> =>
  Object.fromEntries(
    list.map((one, at) => {
      const { name = at + 1 } = recordOf(one);
      return [String(name), one];
    }),
  );

/** Finds the servers in a file of any program: under one of the usual names, or at its top. */
export function findServers(file: Record<string, unknown>): Record<string, unknown> | undefined {
  const starts = [...(ENTRY_KEYS["command"] ?? []), ...(ENTRY_KEYS["url"] ?? [])];
  const isEntry = (value: unknown): boolean =>
    starts.some((name) => [recordOf(value)[name]].flat().some((first) => typeof first === "string"));
  for (const name of Object.keys(table.wrappers)) {
    const inner = Object.hasOwn(file, name) && !isEntry(file[name]) ? file[name] : undefined;
    if (Array.isArray(inner)) return namedList(inner);
    if (isRecord(inner)) return findServers(inner) ?? inner;
  }
  const entries = Object.entries(file).filter(([name]) => !Object.hasOwn(table.left, name));
  const isBare = entries.length > 0 && entries.every(([, value]) => isEntry(value));
  return isBare ? Object.fromEntries(entries) : undefined;
}

/** Each server may cost a process or a connection. */
const MAX_SERVERS = 100;

/**
 * The servers by names that tools can have. An entry that cannot be used stays, with its `problem`, so that it is
 * reported like a server that cannot be reached; no entry is an obstacle to the others. No value is quoted, because it
 * may be a secret.
 */
export const mcpServersSchema = z.preprocess(
  (given) => {
    const found = Array.isArray(given) ? namedList(given) : given;
    if (!isRecord(found)) return given;
    const inner = Object.keys(found).length === 1 ? findServers(found) : undefined;
    const all = Object.entries(inner ?? found);
    const used = all.slice(0, MAX_SERVERS);
    const names = safeNames(used.map(([name]) => name));
    const read = used.map(([name, given], at) => {
      const own = names[at] ?? name;
      const called = `It is called "${shownName(name)}" in the configuration, which no tool name can have in it.`;
      const notes = own === name ? [] : [called];
      if (!isRecord(given)) return [own, { problem: "its entry must be an object", notes }];
      const entry = readEntry(given, notes);
      const [issue] = server.safeParse(entry, { error: plainProblem }).error?.issues ?? [];
      if (issue === undefined) return [own, { ...entry, notes }];
      const text = `${issue.path.map(String).join(".")} ${issue.message}`.trim();
      return [own, { problem: oneLine(`its entry is not valid: ${text}`, 300), notes }];
    });
    const problem = `${all.length - used.length} further servers are not used; the limit is ${MAX_SERVERS}`;
    return Object.fromEntries([...read, ...(all.length > used.length ? [["further", { problem }]] : [])]);
  },
  z.record(z.string(), server),
);
