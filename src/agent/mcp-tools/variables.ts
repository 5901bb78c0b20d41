/** Variables in entries of servers, in the forms of `variables.json`, and files with variables. */
import { readFileSync, statSync } from "node:fs";
import { basename, isAbsolute, sep } from "node:path";
import { parse } from "dotenv";
import { orElse } from "../../core/errors.ts";
import { isInside, realPath } from "../../core/real-path.ts";
import { shownName } from "../../core/text.ts";
import type { Environment } from "../models/choose.ts";
import { McpUnavailableError } from "./failure-reasons.ts";
import table from "./variables.json" with { type: "json" };

/** A variable in any form. A default that is not closed reaches to the end, so that no later beginning is tried in it. */
const VARIABLE = new RegExp(table.variables.map(({ pattern }) => pattern).join("|"), "g");
const FORMS = table.variables.map((form) => ({ ...form, pattern: new RegExp(`^(?:${form.pattern})$`) }));

/** Replaces the variables of texts, and collects those that are not set or that only other programs fill in. */
export function variableFiller(
  env: Environment,
  workspace: string | undefined,
  keep: (name: string, value: string) => void,
) {
  const missing = new Set<string>();
  const foreign = new Set<string>();
  const folders: Environment = {
    userHome: env["HOME"] ?? env["USERPROFILE"],
    workspaceFolder: workspace,
    workspaceFolderBasename: workspace && basename(workspace),
    pathSeparator: sep,
  };
  const text = (template: string, isShellText = false): string =>
    template.replace(VARIABLE, (whole) => {
      const form = FORMS.find(({ pattern }) => pattern.test(whole));
      const [, name, fallback] = form?.pattern.exec(whole) ?? [];
      if (form?.isForeign) foreign.add(shownName(whole));
      if (name === undefined || (whole.startsWith("${") && !whole.endsWith("}"))) return whole;
      if (folders[name] !== undefined) return folders[name];
      const value = (env[name] ?? env[name.toUpperCase()]) || fallback;
      // Passwords and percent-encoded texts have such parts too; a shell has variables of its own.
      const isText = form?.isBare && (isShellText || !/^[A-Z_][A-Z\d_]{2,}$/.test(name));
      if (value === undefined && isText) return whole;
      if (value === undefined) missing.add(name);
      else keep(name, value);
      return value ?? "";
    });
  return { text, missing, foreign };
}

/**
 * Reads the variables of a file. A file in the workspace is refused, because the agent could
 * add programs to the server's process there.
 *
 * @throws McpUnavailableError why it cannot be used, without its path and its text.
 */
export function readEnvFile(path: string, workspace: string | undefined): Record<string, string> {
  const isOfWorkspace = workspace !== undefined && isInside(realPath(workspace), realPath(path));
  // A pipe would never end, and a large file is another one.
  const stats = isAbsolute(path) ? orElse(() => statSync(path), undefined) : undefined;
  const content =
    stats?.isFile() && stats.size <= 100_000
      ? orElse(() => readFileSync(path, "utf8"), undefined)
      : undefined;
  if (!isOfWorkspace && content !== undefined && !content.includes("\0"))
    return parse(content.replace(/^\ufeff/, ""));
  throw new McpUnavailableError(
    isOfWorkspace
      ? "its envFile is in the workspace, where the agent can change it; move it elsewhere, or set its variables in env"
      : "its envFile is not a text file of at most 100 kB that can be read; its path may be relative to the configuration file",
  );
}
