import { _default as withDefault, optional, z } from "zod";
import { LOG_LEVELS } from "../core/logger.ts";
import { memberOf } from "../core/unknown.ts";
import { limitsSchema } from "./limits.ts";
import { mcpServersSchema } from "./mcp-servers.ts";
import { eventWebhooksSchema, newsSchema } from "./news.ts";
import {
  absolutePath,
  between,
  group,
  httpSchema,
  listOfTexts,
  matching,
  modelEntries,
  modelParameters,
  mountsSchema,
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
export const ConfigSchema = z.strictObject({
  $schema: z
    .string()
    .optional()
    .describe(
      "Address of the JSON schema, which editors use to check and complete the file; the server ignores it.",
    ),
  dataDir: absolutePath.describe(
    "Folder for runs, threads and memories. Default: `deepagent-mcp` in the user's data folder.",
  ),
  storage: optional(
    matching(/^postgres(ql)?:\/\/\S+$/, "must be the address of a Postgres, postgres://user@host/database"),
  ).describe(
    "`postgres://user:password@host/database`: any number of servers share it. Default: files in `dataDir`. Set it in the environment, where other users of the machine cannot see the password.",
  ),
  storageSchema: matching(/^[a-z_][a-z0-9_]{0,39}$/, "use lowercase letters, digits and _, at most 40")
    .default("deepagent")
    .describe("The Postgres schema of this server's tables; created if missing."),
  storageConnections: withDefault(whole(2, 1000), 10).describe(
    "Maximum number of Postgres connections of one process, besides the one that listens.",
  ),
  storageS3: optional(storageS3Schema).describe(
    "Bucket for conversation parts of 64 KB and more, instead of Postgres; needs the package @aws-sdk/client-s3. Default: Postgres.",
  ),
  storageRole: optional(
    matching(/^[a-z_][a-z0-9_]{0,62}$/, "use lowercase letters, digits and _, at most 63"),
  ).describe(
    "A Postgres role that runs the principals' requests, so that row-level security confines each to its own rows. Default: none; only the queries confine them.",
  ),
  workspace: optional(absolutePath).describe(
    "The folder the agent works in, mounted at /workspace/. Default: the current one, unless that is `~` or `/`.",
  ),
  workspaceFolder: ownPath
    .refine((path) => path.includes("{"), { error: "needs {principal} or {thread}" })
    .optional()
    .describe(
      "Gives each principal or thread its own folder below `workspace`, created on first use: `{principal}`, `{thread}`, or a path with them such as `teams/{principal}`. Default: all of them work in `workspace` itself.",
    ),
  workspacePerMachine: onOff(false).describe(
    "Lets servers on one Postgres have different folders at the path of `workspace`: then a run waits for a server that has its own. Otherwise the second such server is refused.",
  ),
  respectGitignore: onOff(false).describe(
    "Hides `.git` and the files that `.gitignore` excludes from glob and grep in the workspace; they can still be listed and read.",
  ),
  model: optional(nonEmptyText).describe(
    "`provider:model`, `offline`, or `client` for the model that the MCP client lends. Default: chosen from the provider keys in the environment.",
  ),
  profile: optional(z.enum(["deepcowork", "production"])).describe(
    "Other defaults: `deepcowork` for work beside a person (seven file tools, 25 model calls, every change and command approved), `production` for strict limits (small files and results, likewise approved). Explicit settings override these.",
  ),
  fallbackModels: listOfTexts.describe(
    "Models as `provider:model`, called in this order if the previous one cannot answer.",
  ),
  models: modelEntries,
  modelParameters,
  allowedModels: listOfTexts.describe(
    "More models, as `provider:model`, that a person may choose for one run, and that subagent files of the workspace may name. Without this setting runs use `model`, and subagent files may name `model`, `fallbackModels` and the models of `subagents`.",
  ),
  judgeModel: optional(nonEmptyText).describe(
    "Model of the judge of goals, as `provider:model`. Default: the model of the run.",
  ),
  systemPrompt: z
    .string()
    .min(1)
    .max(100_000)
    .optional()
    .describe("Instructions of your own, shown to the agent before the built-in ones."),
  systemPromptFile: optional(absolutePath).describe(
    "A file with more of them, read again whenever a run begins or continues.",
  ),
  approvals: group({
    write: choice(["workspace", "all", "none"], "workspace").describe(
      "File changes that need approval: those in /workspace/ and `mounts`, all, or none.",
    ),
    execute: choice(["all", "unsandboxed"], "all").describe(
      "Commands that need approval: all, or only those that run outside a sandbox.",
    ),
    allowModelAnswers: onOff(false).describe(
      "Lets the calling model answer approvals through answer_deep_agent.",
    ),
    deadline: optional(between(1, 31_536_000)).describe(
      "Time after which an undecided approval is denied. Default: it waits.",
    ),
  }),
  questions: group({
    ask: onOff(true).describe("Lets the agent ask a person with ask_user."),
    deadline: optional(between(1, 31_536_000)).describe(
      "Time after which the agent continues without an answer. Default: it waits.",
    ),
    hold: withDefault(between(1, 86_400), 600).describe(
      "Time that a call of another MCP server waits for a person's answer to the server, if the call cannot be made again.",
    ),
  }),
  hints: group({
    listing: onOff(true).describe(
      "Describes the workspace to the agent in the first message of a thread: names, languages, commands, branch.",
    ),
    ending: onOff(false).describe(
      "Tells an agent, once per run, that it is about to end with open todos, or with workspace changes that nothing has checked since. It costs one more model call.",
    ),
    failures: onOff(true).describe(
      "Points out calls that keep failing in the same way with different arguments.",
    ),
  }),
  programs: onOff(false).describe(
    "Lets the agent run JavaScript programs that call its tools, with run_program. Each call of a program is approved, limited and recorded like any other.",
  ),
  backgroundTasks: onOff(true).describe(
    "Lets the agent start subagents that work in the background. Not available with a model that a client lends.",
  ),
  changes: choice(["direct", "propose"], "direct").describe(
    "Default for runs that do not choose: direct, they change the workspace; propose, they work on a copy of it, and a person reviews the whole change and applies all, some or none of it.",
  ),
  proposals: group({
    folder: optional(absolutePath).describe(
      "Folder for the copies in which runs propose changes; servers that share a workspace must share it too. Default: `proposals` in `dataDir`.",
    ),
    maxMegabytes: withDefault(whole(1, 1_000_000), 4096).describe(
      "Size in MiB of the largest workspace that is copied.",
    ),
  }),
  web: webSchema.prefault({}),
  execute: group({
    mode: choice(["auto", "sandbox", "off"], "auto").describe(
      "Runs commands: auto, in a sandbox if available, otherwise as the user with each command approved; sandbox, only in one; off, not at all.",
    ),
    timeout: withDefault(seconds.min(1), 120).describe("Time limit of a command if the call sets none."),
    maxOutputBytes: withDefault(whole(1000, 100_000_000), 100_000).describe(
      "Bytes of a command's output that are shown; a longer output is stored in a file, up to 10 MiB.",
    ),
    memoryMb: withDefault(whole(64), 2048).describe("MiB of memory for each process in the sandbox."),
    processes: withDefault(whole(8), 512).describe("Processes a command may have in the sandbox."),
    readOnly: z
      .array(absolutePath)
      .default([])
      .describe("More folders that commands in the sandbox may read, such as a toolchain."),
    sandbox: optional(sandboxSchema).describe(
      "Where commands run, instead of this machine's own sandbox. Sandboxes of docker, modal, runloop and daytona have their own files, mounted at /sandbox/. Each run gets a new one, created again when the server restarts, unless `sandboxId` names one.",
    ),
  }),
  files: group({
    maxFileSizeMb: withDefault(z.number().positive().max(1024), 10).describe(
      "Larger files of the workspace are not searched or edited.",
    ),
    hide: listOfTexts.describe(
      "Files of the workspace that the agent cannot see, by name or through a link: names such as `*.pem`, patterns from its root such as `/config/*.key`, or the word `sensitive` for `secrets` folders and `.env` files. Commands are then disabled, because they could see these files.",
    ),
    readOnly: listOfTexts.describe(
      "Folders of the workspace that the agent may not change, by name or through a link, such as `/vendor`; `/` for all of it. Commands are then disabled.",
    ),
  }),
  permissions: z
    .array(
      z.strictObject({
        operations: z
          .array(z.enum(["read", "write"]))
          .min(1)
          .describe("Operations that the rule covers."),
        paths: z
          .array(z.string().startsWith("/", { error: "must begin with /" }))
          .min(1)
          .describe("Patterns of whole paths, such as `/workspace/docs/**`."),
        mode: choice(["allow", "deny", "interrupt"], "deny").describe(
          "`interrupt`: each call needs approval.",
        ),
      }),
    )
    .default([])
    .describe(
      "Rules for the agent's file tools; the first match applies, and calls without a match are allowed. They also apply to the target of a link. Commands are then disabled.",
    ),
  delivery: group({
    window: withDefault(seconds, 40).describe(
      "How long a call waits; most clients cancel one after 60 seconds, even with progress.",
    ),
    windowWithProgress: withDefault(seconds, 240).describe(
      "How long a call with a progress token waits, for clients known to wait while they receive progress.",
    ),
    heartbeat: withDefault(seconds.min(1), 15).describe(
      "Longest silence between two progress notifications.",
    ),
    clients: z
      .record(
        nonEmptyText,
        z.strictObject({
          window: optional(seconds).describe("How long its calls wait, with progress or without."),
          pausesForForms: optional(z.boolean()).describe(
            "True if its timeout pauses while a form of the call is open.",
          ),
        }),
      )
      .default({})
      .describe(
        "How long single clients wait, by their name or by `name/version`; the beginning of a version is enough. Overrides the built-in values for the client.",
      ),
    ask: choice(["form", "page"], "form").describe(
      "Where clients that support both ask for approvals: in their own form, or on the local page.",
    ),
    stopRunOn: choice(["request", "cancellation", "disconnect"], "request").describe(
      "What cancels a run besides an explicit request: a client that cancels the call waiting for it, or also one that times out or disconnects.",
    ),
  }),
  shareLinks: onOff(true).describe(
    "Lets people who may start runs create links on the page with which anyone can read one run, for at most seven days. Off disables all such links.",
  ),
  page: optional(z.boolean()).describe(
    "The page of all runs, which results link to. Over stdio it is on this machine, by default on. With `http.tokens` or `http.oauth` it is at the server's own address, for people who log in with a token, by default on. Over HTTP without either it is on this machine, by default off.",
  ),
  codexTools: onOff(false).describe(
    "Also offers the tools codex and codex-reply, for clients that were written for the MCP server of Codex.",
  ),
  news: newsSchema,
  eventWebhooks: eventWebhooksSchema,
  notify: choice(["off", "bell", "desktop"], "desktop").describe(
    "How a terminal notifies a person who is needed, or who was inactive for half a minute when a run ended: not at all, by its bell, or also by a desktop notification if the terminal supports it.",
  ),
  limits: limitsSchema,
  retention: group({
    days: optional(between(1, 36_500)).describe(
      "Delete runs, with their threads, this long after they ended. Default: never.",
    ),
    megabytes: optional(z.number().min(1)).describe(
      "Delete the oldest finished runs while more than this is stored. Default: no limit.",
    ),
  }),
  memories: group({
    embeddings: optional(nonEmptyText).describe(
      "`openai:model` that also finds memories by their meaning, at OPENAI_BASE_URL if that is set; it is sent their text. Default: by words only.",
    ),
  }),
  subagents: z
    .array(subagentSchema)
    .default([])
    .describe("Agents that the agent may start, besides the general one."),
  mcpServers: mcpServersSchema
    .default({})
    .describe("Other MCP servers whose tools the agent may use, in the form clients use."),
  mounts: mountsSchema
    .default({})
    .describe(
      'More folders of the agent\'s tree, each on a server: `{ "/archive/": { "s3": { "bucket": "archive" } } }`. All users of this server share them.',
    ),
  skills: z
    .array(absolutePath)
    .default([])
    .describe(
      "Folders of skills, mounted read-only below /skills/. If two skills have the same name, the later one applies: bundled ones, `globalSkills`, these, then `skills`, `.claude/skills` and `.deepagent/skills` of the workspace.",
    ),
  globalSkills: optional(absolutePath).describe(
    "A folder of skills for all workspaces. Default: `~/.deepagent/skills`, if it exists.",
  ),
  http: httpSchema.prefault({}),
  logLevel: choice(LOG_LEVELS, "info").describe("Lowest severity written to standard error."),
});

export type Config = z.output<typeof ConfigSchema> & {
  /** The files and folders of this program itself, which no agent gets to see. Not a setting: `loadConfig` finds them. */
  readonly privatePaths?: readonly string[];
};
export type ConfigInput = z.input<typeof ConfigSchema>;

/** Facts of the schema about one setting, for help and messages. */
export interface SettingInfo {
  description?: string;
  /** The default as text, such as `"workspace"` or `8`; absent if there is none. */
  defaultText?: string;
  /** Allowed values, when there is a fixed list. */
  choices?: readonly string[];
}

/** Facts about the setting at `path`, such as `http.port`. */
export function settingInfo(path: string): SettingInfo {
  const schema = schemaAt(path.split("."));
  const initial = memberOf(memberOf(schema, "def"), "defaultValue");
  const description = memberOf(schema, "description") ?? memberOf(unwrap(schema), "description");
  const options = memberOf(unwrap(schema), "options");
  return {
    ...(typeof description === "string" ? { description } : {}),
    ...(typeof initial === "string" || typeof initial === "number" || typeof initial === "boolean"
      ? { defaultText: String(initial) }
      : {}),
    ...(Array.isArray(options) ? { choices: options.map(String) } : {}),
  };
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
export const configuredModels = ({
  model,
  fallbackModels,
  allowedModels,
  judgeModel,
  subagents,
}: Omit<ModelSettings, "models">): Array<string | undefined> => [
  model,
  ...fallbackModels,
  ...allowedModels,
  ...(judgeModel === undefined ? [] : [judgeModel]),
  ...subagents.flatMap((one) => one.model ?? []),
];

export const asksForClientModel = (config: Omit<ModelSettings, "models">): boolean =>
  configuredModels(config).includes(CLIENT_MODEL);
