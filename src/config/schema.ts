import { _default as withDefault, optional, z } from "zod";
import { LOG_LEVELS } from "../core/logger.ts";
import { memberOf, textMemberOf, defined } from "../core/unknown.ts";
import { mcpServersSchema } from "./mcp-servers.ts";
import {
  absolutePath,
  between,
  fields,
  folderPatterns,
  group,
  httpSchema,
  limitsSchema,
  listOfTexts,
  matching,
  modelEntries,
  modelParameters,
  mountsSchema,
  newsSchema,
  onOff,
  choice,
  ownPath,
  sandboxSchema,
  seconds,
  storageS3Schema,
  subagentSchema,
  nonEmptyText,
  webSchema,
  whole,
} from "./sections.ts";

const ASK_ALL = { "approvals.write": "all", "approvals.execute": "all" } as const;

/** Settings that a profile has other defaults for, by their path. */
const PROFILE_DEFAULTS = {
  deepcowork: {
    ...ASK_ALL,
    "execute.timeout": 60,
    "execute.maxOutputBytes": 50_000,
    "limits.modelCalls": 25,
  },
  production: { ...ASK_ALL, "files.maxFileSizeMb": 5 },
} as const satisfies Record<string, Readonly<Record<string, string | number>>>;

/** The settings of the profile `name`; none for anything else. */
export const profileDefaults = (name: unknown): Array<[path: string, value: string | number]> =>
  Object.entries(PROFILE_DEFAULTS).flatMap(([profile, settings]) =>
    profile === name ? Object.entries(settings) : [],
  );

/** Everything that can be configured, with its default. Times are seconds. */
export const ConfigSchema = fields("config", {
  $schema: z.string().optional(),
  dataDir: absolutePath,
  storage: optional(
    matching(/^postgres(ql)?:\/\/\S+$/, "must be the address of a Postgres, postgres://user@host/database"),
  ),
  storageSchema: matching(
    /^[a-z_][a-z0-9_]{0,39}$/,
    "use lowercase letters, digits and _, at most 40",
  ).default("deepagent"),
  storageConnections: withDefault(whole(2, 1000), 10),
  storageS3: optional(storageS3Schema),
  storageRole: optional(
    matching(/^[a-z_][a-z0-9_]{0,62}$/, "use lowercase letters, digits and _, at most 63"),
  ),
  workspace: optional(absolutePath),
  workspaceFolder: ownPath
    .refine((path) => path.includes("{"), { error: "needs {principal} or {thread}" })
    .optional(),
  workspacePerMachine: onOff(false),
  folders: folderPatterns,
  principalFolders: z.record(nonEmptyText, folderPatterns).default({}),
  respectGitignore: onOff(false),
  model: optional(nonEmptyText),
  profile: optional(z.enum(["deepcowork", "production"])),
  fallbackModels: listOfTexts,
  models: modelEntries,
  modelParameters,
  allowedModels: listOfTexts,
  judgeModel: optional(nonEmptyText),
  systemPrompt: z.string().min(1).max(100_000).optional(),
  systemPromptFile: optional(absolutePath),
  approvals: group("approvals", {
    write: choice(["workspace", "all", "none"], "workspace"),
    execute: choice(["all", "unsandboxed"], "all"),
    allowModelAnswers: onOff(false),
    deadline: optional(between(1, 31_536_000)),
  }),
  rules: group("rules", {
    allow: listOfTexts,
    ask: listOfTexts,
    deny: listOfTexts,
    outsideSandbox: onOff(false),
    afterUntrusted: choice(["ask", "allow"], "ask"),
  }),
  questions: group("questions", {
    ask: onOff(true),
    deadline: optional(between(1, 31_536_000)),
    hold: withDefault(between(1, 86_400), 600),
  }),
  hints: group("hints", {
    listing: onOff(true),
    ending: onOff(false),
    failures: onOff(true),
  }),
  programs: onOff(false),
  backgroundTasks: onOff(true),
  changes: choice(["direct", "propose"], "direct"),
  proposals: group("proposals", {
    folder: optional(absolutePath),
    maxMegabytes: withDefault(whole(1, 1_000_000), 4096),
  }),
  web: webSchema.prefault({}),
  execute: group("execute", {
    mode: choice(["auto", "sandbox", "off"], "auto"),
    timeout: withDefault(seconds.min(1), 120),
    maxOutputBytes: withDefault(whole(1000, 100_000_000), 100_000),
    memoryMb: withDefault(whole(64), 4096),
    processes: withDefault(whole(8), 512),
    readOnly: z.array(absolutePath).default([]),
    sandbox: optional(sandboxSchema),
  }),
  files: group("files", {
    maxFileSizeMb: withDefault(z.number().positive().max(1024), 10),
    hide: listOfTexts,
    readOnly: listOfTexts,
  }),
  permissions: z
    .array(
      fields("permissions", {
        operations: z.array(z.enum(["read", "write"])).min(1),
        paths: z.array(z.string().startsWith("/", { error: "must begin with /" })).min(1),
        mode: choice(["allow", "deny", "interrupt"], "deny"),
      }),
    )
    .default([]),
  delivery: group("delivery", {
    window: withDefault(seconds, 40),
    windowWithProgress: withDefault(seconds, 240),
    heartbeat: withDefault(seconds.min(1), 15),
    clients: z
      .record(
        nonEmptyText,
        fields("clients", {
          window: optional(seconds),
          pausesForForms: optional(z.boolean()),
        }),
      )
      .default({}),
    ask: choice(["form", "page"], "form"),
    stopRunOn: choice(["request", "cancellation", "disconnect"], "request"),
  }),
  shareLinks: onOff(true),
  page: optional(z.boolean()),
  codexTools: onOff(false),
  news: newsSchema,
  eventWebhooks: onOff(true),
  notify: choice(["off", "bell", "desktop"], "desktop"),
  limits: limitsSchema,
  retention: group("retention", {
    days: optional(between(1, 36_500)),
    megabytes: optional(z.number().min(1)),
  }),
  memories: group("memories", {
    embeddings: optional(nonEmptyText),
  }),
  subagents: z.array(subagentSchema).default([]),
  mcpServers: mcpServersSchema.default({}),
  mounts: mountsSchema.default({}),
  skills: z.array(absolutePath).default([]),
  globalSkills: optional(absolutePath),
  homeFiles: onOff(true),
  http: httpSchema.prefault({}),
  logLevel: choice(LOG_LEVELS, "info"),
});

export type Config = z.output<typeof ConfigSchema> & {
  /** The files and folders of this program itself, which no agent gets to see. Not a setting: `loadConfig` finds them. */
  readonly privatePaths?: readonly string[];
  /** The home folder whose files of other programs are read. Not a setting: absent if `homeFiles` is off. */
  readonly homeFolder?: string;
};
export type ConfigInput = z.input<typeof ConfigSchema>;

/**
 * Facts about the setting at `path`, such as `http.port`, for help and messages: its description, its default as text,
 * and its values if there is a fixed list. Each is absent if there is none.
 */
export function settingInfo(path: string) {
  const schema = schemaAt(path.split("."));
  const initial = memberOf(memberOf(schema, "def"), "defaultValue");
  const options = memberOf(unwrap(schema), "options");
  return defined({
    description: textMemberOf(schema, "description") ?? textMemberOf(unwrap(schema), "description"),
    defaultText: ["string", "number", "boolean"].includes(typeof initial) ? String(initial) : undefined,
    choices: Array.isArray(options) ? options.map(String) : undefined,
  });
}

/** Names that are allowed in the group at `path`, as far as they are fixed. */
export function knownKeys(path: readonly PropertyKey[]): string[] {
  const shape = memberOf(unwrap(schemaAt(path)), "shape");
  return typeof shape === "object" && shape !== null ? Object.keys(shape) : [];
}

const schemaAt = (path: readonly PropertyKey[]): unknown =>
  path.reduce<unknown>((schema, key) => {
    const inner = unwrap(schema);
    return typeof key === "number" ? memberOf(inner, "element") : memberOf(memberOf(inner, "shape"), key);
  }, ConfigSchema);

/** The schema inside defaults and optionals. */
function unwrap(schema: unknown): unknown {
  const inner = memberOf(memberOf(schema, "def"), "innerType");
  return inner === undefined ? schema : unwrap(inner);
}

/** The model that an MCP client lends, through sampling. */
export const CLIENT_MODEL = "client";

export type ModelSettings = Pick<
  Config,
  "model" | "models" | "fallbackModels" | "allowedModels" | "judgeModel" | "subagents"
>;

/** The models that runs may use, the main one first; `undefined`: the environment chooses it. */
export const configuredModels = (config: Omit<ModelSettings, "models">): Array<string | undefined> => [
  config.model,
  ...config.fallbackModels,
  ...config.allowedModels,
  ...[config.judgeModel ?? []].flat(),
  ...config.subagents.flatMap((one) => one.model ?? []),
];

export const asksForClientModel = (config: Omit<ModelSettings, "models">): boolean =>
  configuredModels(config).includes(CLIENT_MODEL);
