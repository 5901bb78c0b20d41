/** How the text of an environment variable or flag becomes a value. */
export type SettingKind = "text" | "path" | "paths" | "list" | "number" | "boolean";

/** One setting that environment and flags may give; the rest is for the config file alone. */
export interface Setting {
  /** Where it stands in the configuration, such as `http.port`. */
  readonly path: string;
  readonly kind: SettingKind;
  /** Name of the flag without dashes, where it differs from the path. */
  readonly flag?: string;
}

/** Every setting but those for a file alone: `$schema`, `execute.sandbox`, keys and style of addresses in `storageS3`, `subagents`, `permissions`, `delivery.clients`, `http.tokens`, `http.oauth`. */
export const SETTINGS: readonly Setting[] = [
  { path: "workspace", kind: "path" },
  { path: "workspaceFolder", kind: "text" },
  { path: "workspacePerMachine", kind: "boolean" },
  { path: "respectGitignore", kind: "boolean" },
  { path: "model", kind: "text" },
  { path: "fallbackModels", kind: "list" },
  { path: "allowedModels", kind: "list" },
  { path: "systemPrompt", kind: "text" },
  { path: "systemPromptFile", kind: "path" },
  { path: "profile", kind: "text" },
  { path: "dataDir", kind: "path" },
  { path: "storage", kind: "text" },
  { path: "storageSchema", kind: "text" },
  { path: "storageConnections", kind: "number" },
  { path: "storageS3.bucket", kind: "text" },
  { path: "storageS3.prefix", kind: "text" },
  { path: "storageS3.endpoint", kind: "text" },
  { path: "storageS3.region", kind: "text" },
  { path: "storageRole", kind: "text" },
  { path: "skills", kind: "paths" },
  { path: "globalSkills", kind: "path" },
  { path: "files.maxFileSizeMb", kind: "number" },
  { path: "files.hide", kind: "list" },
  { path: "files.readOnly", kind: "list" },
  { path: "memories.embeddings", kind: "text" },
  { path: "approvals.write", kind: "text" },
  { path: "approvals.execute", kind: "text" },
  { path: "approvals.allowModelAnswers", kind: "boolean" },
  { path: "approvals.deadline", kind: "number" },
  { path: "execute.mode", kind: "text", flag: "execute" },
  { path: "execute.timeout", kind: "number" },
  { path: "execute.maxOutputBytes", kind: "number" },
  { path: "execute.memoryMb", kind: "number" },
  { path: "execute.processes", kind: "number" },
  { path: "execute.readOnly", kind: "paths" },
  { path: "delivery.window", kind: "number" },
  { path: "delivery.windowWithProgress", kind: "number" },
  { path: "delivery.heartbeat", kind: "number" },
  { path: "delivery.ask", kind: "text" },
  { path: "delivery.stopRunOn", kind: "text" },
  { path: "page", kind: "boolean" },
  { path: "notify", kind: "text" },
  { path: "limits.concurrentRuns", kind: "number" },
  { path: "limits.openRuns", kind: "number" },
  { path: "limits.drain", kind: "number" },
  { path: "limits.serverCrashes", kind: "number" },
  { path: "limits.parallelSubagents", kind: "number" },
  { path: "limits.parallelTools", kind: "number" },
  { path: "limits.modelCalls", kind: "number" },
  { path: "limits.toolCalls", kind: "number" },
  { path: "limits.tokens", kind: "number" },
  { path: "limits.costUsd", kind: "number" },
  { path: "limits.modelPatience", kind: "number" },
  { path: "limits.modelSilence", kind: "number" },
  { path: "limits.workTime", kind: "number" },
  { path: "limits.toolTime", kind: "number" },
  { path: "limits.repeatedTurns", kind: "number" },
  { path: "limits.subagentDepth", kind: "number" },
  { path: "limits.listedCharacters", kind: "number" },
  { path: "retention.days", kind: "number" },
  { path: "retention.megabytes", kind: "number" },
  { path: "http.host", kind: "text", flag: "host" },
  { path: "http.port", kind: "number", flag: "port" },
  { path: "http.allowedHosts", kind: "list", flag: "allowed-hosts" },
  { path: "http.allowedOrigins", kind: "list", flag: "allowed-origins" },
  { path: "http.requestsPerMinute", kind: "number", flag: "requests-per-minute" },
  { path: "http.refusalsPerMinute", kind: "number", flag: "refusals-per-minute" },
  { path: "http.sessions", kind: "number" },
  { path: "http.sessionsPerPrincipal", kind: "number" },
  { path: "http.trustedProxies", kind: "list", flag: "trusted-proxies" },
  { path: "logLevel", kind: "text" },
];

export const ENV_PREFIX = "DEEPAGENT_";
/** Names the config file; the same as `--config`. */
export const CONFIG_FILE_ENV = `${ENV_PREFIX}CONFIG`;

/** `http.allowedHosts` → `DEEPAGENT_HTTP_ALLOWED_HOSTS`. */
export function envNameOf(setting: Setting): string {
  return `${ENV_PREFIX}${wordsOf(setting.path).join("_").toUpperCase()}`;
}

/** `approvals.write` → `approvals-write`; without the dashes. */
export function flagNameOf(setting: Setting): string {
  return setting.flag ?? wordsOf(setting.path).join("-");
}

function wordsOf(path: string): string[] {
  return path.replace(/[A-Z]/g, (letter) => `.${letter.toLowerCase()}`).split(".");
}
