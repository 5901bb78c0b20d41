import table from "./settings.json" with { type: "json" };

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

/** Every setting but those for a file alone: `$schema`, `execute.sandbox`, keys and style of addresses in `storageS3`, `subagents`, `permissions`, `web.search.command`, `delivery.clients`, `principalFolders`, `http.tokens`, `http.oauth`. */
export const SETTINGS = table.settings as readonly Setting[]; // JSON has no unions, and a test checks each kind

/** The groups in which help shows settings, by the beginnings of their paths. */
export const SETTING_GROUPS: readonly (readonly [title: string, beginnings: readonly string[]])[] =
  Object.entries(table.groups).map(([title, beginnings]) => [title, beginnings.split(" ")]);

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
