/** The conversion of an environment variable's or flag's text to a value. */
export type SettingKind = "text" | "path" | "paths" | "list" | "number" | "boolean";

/** One setting that environment and flags can set; the others are only for the config file. */
export interface Setting {
  /** Its path in the configuration, such as `http.port`. */
  readonly path: string;
  readonly kind: SettingKind;
  /** Name of the flag without dashes, where it differs from the path. */
  readonly flag?: string;
  /** Placeholder for the value in help. Default: by the kind. */
  readonly hint?: string;
}

/** Every setting but those for a file alone: `$schema`, `execute.sandbox`, keys and style of addresses in `storageS3`, `subagents`, `permissions`, `web.search.command`, `delivery.clients`, `http.tokens`, `http.oauth`. */
export const SETTINGS: readonly Setting[] = [
  { path: "workspace", kind: "path" },
  { path: "workspaceFolder", kind: "text", hint: "PATTERN" },
  { path: "workspacePerMachine", kind: "boolean" },
  { path: "respectGitignore", kind: "boolean" },
  { path: "model", kind: "text", hint: "MODEL" },
  { path: "fallbackModels", kind: "list", hint: "MODEL" },
  { path: "allowedModels", kind: "list", hint: "MODEL" },
  { path: "judgeModel", kind: "text", hint: "MODEL" },
  { path: "systemPrompt", kind: "text", hint: "TEXT" },
  { path: "systemPromptFile", kind: "path", hint: "FILE" },
  { path: "profile", kind: "text" },
  { path: "dataDir", kind: "path" },
  { path: "storage", kind: "text", hint: "URL" },
  { path: "storageSchema", kind: "text", hint: "NAME" },
  { path: "storageConnections", kind: "number" },
  { path: "storageS3.bucket", kind: "text", hint: "NAME" },
  { path: "storageS3.prefix", kind: "text", hint: "TEXT" },
  { path: "storageS3.endpoint", kind: "text", hint: "URL" },
  { path: "storageS3.region", kind: "text", hint: "NAME" },
  { path: "storageRole", kind: "text", hint: "NAME" },
  { path: "skills", kind: "paths" },
  { path: "globalSkills", kind: "path" },
  { path: "files.maxFileSizeMb", kind: "number", hint: "MB" },
  { path: "files.hide", kind: "list", hint: "PATTERN" },
  { path: "files.readOnly", kind: "list", hint: "PATTERN" },
  { path: "memories.embeddings", kind: "text", hint: "MODEL" },
  { path: "approvals.write", kind: "text" },
  { path: "approvals.execute", kind: "text" },
  { path: "approvals.allowModelAnswers", kind: "boolean" },
  { path: "approvals.deadline", kind: "number", hint: "SECONDS" },
  { path: "questions.ask", kind: "boolean" },
  { path: "questions.deadline", kind: "number", hint: "SECONDS" },
  { path: "questions.hold", kind: "number", hint: "SECONDS" },
  { path: "hints.listing", kind: "boolean" },
  { path: "hints.ending", kind: "boolean" },
  { path: "hints.failures", kind: "boolean" },
  { path: "programs", kind: "boolean" },
  { path: "backgroundTasks", kind: "boolean" },
  { path: "changes", kind: "text" },
  { path: "proposals.folder", kind: "path", hint: "FOLDER" },
  { path: "proposals.maxMegabytes", kind: "number", hint: "MB" },
  { path: "web.mode", kind: "text", flag: "web" },
  { path: "web.hosts", kind: "list", hint: "HOST" },
  { path: "web.search.provider", kind: "text", hint: "NAME" },
  { path: "web.search.url", kind: "text", hint: "URL" },
  { path: "execute.mode", kind: "text", flag: "execute" },
  { path: "execute.timeout", kind: "number", hint: "SECONDS" },
  { path: "execute.maxOutputBytes", kind: "number", hint: "BYTES" },
  { path: "execute.memoryMb", kind: "number", hint: "MB" },
  { path: "execute.processes", kind: "number" },
  { path: "execute.readOnly", kind: "paths" },
  { path: "codexTools", kind: "boolean" },
  { path: "delivery.window", kind: "number", hint: "SECONDS" },
  { path: "delivery.windowWithProgress", kind: "number", hint: "SECONDS" },
  { path: "delivery.heartbeat", kind: "number", hint: "SECONDS" },
  { path: "delivery.ask", kind: "text" },
  { path: "delivery.stopRunOn", kind: "text" },
  { path: "page", kind: "boolean" },
  { path: "shareLinks", kind: "boolean" },
  { path: "eventWebhooks", kind: "boolean" },
  { path: "notify", kind: "text", hint: "URL" },
  { path: "limits.concurrentRuns", kind: "number" },
  { path: "limits.openRuns", kind: "number" },
  { path: "limits.drain", kind: "number", hint: "SECONDS" },
  { path: "limits.serverCrashes", kind: "number" },
  { path: "limits.parallelSubagents", kind: "number" },
  { path: "limits.parallelTools", kind: "number" },
  { path: "limits.modelCalls", kind: "number" },
  { path: "limits.toolCalls", kind: "number" },
  { path: "limits.tokens", kind: "number" },
  { path: "limits.costUsd", kind: "number", hint: "USD" },
  { path: "limits.modelPatience", kind: "number", hint: "SECONDS" },
  { path: "limits.modelSilence", kind: "number", hint: "SECONDS" },
  { path: "limits.workTime", kind: "number", hint: "SECONDS" },
  { path: "limits.toolTime", kind: "number", hint: "SECONDS" },
  { path: "limits.goalRounds", kind: "number" },
  { path: "limits.repeatedTurns", kind: "number" },
  { path: "limits.subagentDepth", kind: "number" },
  { path: "limits.listedCharacters", kind: "number" },
  { path: "limits.foreignToolTokens", kind: "number" },
  { path: "retention.days", kind: "number", hint: "DAYS" },
  { path: "retention.megabytes", kind: "number", hint: "MB" },
  { path: "http.host", kind: "text", hint: "HOST", flag: "host" },
  { path: "http.port", kind: "number", hint: "PORT", flag: "port" },
  { path: "http.allowedHosts", kind: "list", hint: "HOST", flag: "allowed-hosts" },
  { path: "http.allowedOrigins", kind: "list", hint: "ORIGIN", flag: "allowed-origins" },
  { path: "http.agUi", kind: "boolean", flag: "ag-ui" },
  { path: "http.requestsPerMinute", kind: "number", flag: "requests-per-minute" },
  { path: "http.refusalsPerMinute", kind: "number", flag: "refusals-per-minute" },
  { path: "http.sessions", kind: "number" },
  { path: "http.sessionsPerPrincipal", kind: "number" },
  { path: "http.trustedProxies", kind: "list", hint: "ADDRESS", flag: "trusted-proxies" },
  { path: "logLevel", kind: "text" },
];

/** The groups in which help shows settings, by the beginnings of their paths. */
export const SETTING_GROUPS: readonly (readonly [title: string, beginnings: readonly string[]])[] = [
  ["Folder and files", ["workspace", "respectGitignore", "files", "skills", "globalSkills", "memories"]],
  [
    "Model and prompt",
    ["model", "fallbackModels", "allowedModels", "judgeModel", "systemPrompt", "profile", "hints"],
  ],
  [
    "Approvals, questions, programs, web and commands",
    ["approvals", "questions", "changes", "proposals", "programs", "backgroundTasks", "web", "execute"],
  ],
  ["Limits", ["limits"]],
  ["Storage", ["dataDir", "storage", "retention"]],
  ["Clients and people", ["delivery", "page", "shareLinks", "notify", "news", "eventWebhooks", "codexTools"]],
  ["HTTP", ["http"]],
  ["Log", ["logLevel"]],
];

export const ENV_PREFIX = "DEEPAGENT_";
/** Names the config file; the same as `--config`. */
export const CONFIG_FILE_ENV = `${ENV_PREFIX}CONFIG`;

/** `http.allowedHosts` → `DEEPAGENT_HTTP_ALLOWED_HOSTS`. */
export const envName = (setting: Setting): string =>
  `${ENV_PREFIX}${settingWords(setting.path).join("_").toUpperCase()}`;

/** `approvals.write` → `approvals-write`; without the dashes. */
export const flagName = (setting: Setting): string => setting.flag ?? settingWords(setting.path).join("-");

const settingWords = (path: string): string[] =>
  path.replace(/[A-Z]/g, (letter) => `.${letter.toLowerCase()}`).split(".");
