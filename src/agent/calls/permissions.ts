/** Rules for the paths that file tools may use. */
import type { BackendSource } from "../../backends/backend.ts";
import { type Glob, compileGlob } from "../../backends/glob.ts";
import { PolicyBackend, PolicyRules } from "../../backends/policy.ts";
import { ConfigurationError } from "../../core/errors.ts";
import { type OptionTable, readOptions } from "../../core/options.ts";
import { trimEndOf } from "../../core/text.ts";
import type { ToolKind } from "../../tools/tool.ts";
import type { AgentTool, Gate } from "../contracts.ts";
import { ALL_DECISIONS } from "../middleware/human-in-the-loop.ts";

export type FileOperation = "read" | "write";

/** A rule for paths; of a list of rules the first that fits counts, and what none fits is allowed. */
export interface FilesystemPermission {
  operations: readonly FileOperation[];
  /** Globs of absolute paths, such as `/workspace/secrets/**`. */
  paths: readonly string[];
  /** Default `deny`. `interrupt`: a person is asked about each call. */
  mode?: PermissionMode;
}

export type PermissionMode = "allow" | "deny" | "interrupt";

interface Rule {
  operations: readonly FileOperation[];
  globs: readonly Glob[];
  mode: PermissionMode;
}

const OPERATIONS: Partial<Record<ToolKind, FileOperation>> = { read: "read", write: "write" };

/** What an agent may do with files. Lists of rules add up: a call must pass each of them. */
export class Permissions {
  readonly #lists: ReadonlyArray<readonly Rule[]>;

  private constructor(lists: ReadonlyArray<readonly Rule[]>) {
    this.#lists = lists;
  }

  /** `undefined` when no list has a rule: then nothing needs to be checked. */
  static of(lists: ReadonlyArray<readonly FilesystemPermission[] | undefined>): Permissions | undefined {
    const given = lists.filter((list) => list !== undefined && list.length > 0);
    return given.length === 0 ? undefined : new Permissions(given.map((list) => (list ?? []).map(toRule)));
  }

  /** The strictest answer of all lists. */
  decide(operation: FileOperation, path: string): PermissionMode {
    const answers = this.#lists.map((rules) => firstMatch(rules, operation, path));
    if (answers.includes("deny")) return "deny";
    return answers.includes("interrupt") ? "interrupt" : "allow";
  }

  /** Whether a list lets something below `path` be read, so that `path` must be there to be listed. */
  leadsOn(path: string): boolean {
    return this.#lists.every((rules) =>
      rules.some(
        ({ mode, operations, globs }) =>
          mode !== "deny" && operations.includes("read") && globs.some((glob) => glob.reaches(path.slice(1))),
      ),
    );
  }

  /** Whether a rule may forbid something at or below `path`. */
  restrictsBelow(path: string): boolean {
    return this.#lists.some((rules) =>
      rules.some(({ mode, globs }) => mode !== "allow" && globs.some((glob) => glob.reaches(path.slice(1)))),
    );
  }

  /** Why a call may not run. */
  denial(tool: AgentTool, args: Record<string, unknown>): string | undefined {
    const access = accessOf(tool, args);
    if (!access || this.decide(access.operation, access.path) !== "deny") return undefined;
    return `permission denied for ${access.operation} on ${access.path}`;
  }

  /** How a person is asked about a call that needs it. */
  gate(tool: AgentTool, args: Record<string, unknown>): Gate | undefined {
    const access = accessOf(tool, args);
    if (!access || this.decide(access.operation, access.path) !== "interrupt") return undefined;
    return { allowedDecisions: [...ALL_DECISIONS] };
  }

  /** The files as they may be seen: listings and searches leave out the rest. It runs no commands. */
  over(backend: BackendSource): BackendSource {
    return new PolicyBackend(backend, new PermissionRules(this));
  }
}

/** The rules as a policy of a backend. Calls that a person may allow are not refused here. */
class PermissionRules extends PolicyRules {
  readonly #permissions: Permissions;

  constructor(permissions: Permissions) {
    super({});
    this.#permissions = permissions;
  }

  override isHidden(path: string): boolean {
    return path !== "/" && this.#permissions.decide("read", path) === "deny";
  }

  override isOnTheWay(path: string): boolean {
    return this.#permissions.leadsOn(path);
  }

  override isReadOnly(path: string): boolean {
    return this.#permissions.decide("write", path) === "deny";
  }

  override hasReadOnlyBelow(path: string): boolean {
    return this.#permissions.restrictsBelow(path);
  }

  override get hidesNames(): boolean {
    return true;
  }
}

function accessOf(
  tool: AgentTool,
  args: Record<string, unknown>,
): { operation: FileOperation; path: string } | undefined {
  const operation = OPERATIONS[tool.kind];
  const path = operation && tool.pathOf(args);
  return path === undefined ? undefined : { operation: operation ?? "write", path };
}

function firstMatch(rules: readonly Rule[], operation: FileOperation, path: string): PermissionMode {
  const relative = trimEndOf(path.replace(/^\/+/, ""), "/");
  const rule = rules.find(
    ({ operations, globs }) => operations.includes(operation) && globs.some((glob) => glob.matches(relative)),
  );
  return rule?.mode ?? "allow";
}

const PERMISSION: OptionTable<FilesystemPermission> = {
  operations: "a list of non-empty texts",
  paths: "a list of non-empty texts",
  mode: "a text",
};

function toRule(given: FilesystemPermission): Rule {
  const rule: Partial<FilesystemPermission> = readOptions("A permission", given, PERMISSION);
  const { operations = [], paths = [], mode = "deny" } = rule;
  if (operations.length === 0 || paths.length === 0) {
    throw new ConfigurationError(
      "INVALID_PERMISSION",
      'A permission needs operations (read, write) and paths, such as { operations: ["write"], paths: ["/etc/**"] }.',
    );
  }
  const unknown = [
    ...operations.filter((operation) => !Object.values(OPERATIONS).includes(operation)),
    ...(["allow", "deny", "interrupt"].includes(mode) ? [] : [mode]),
  ];
  if (unknown.length > 0) {
    throw new ConfigurationError(
      "INVALID_PERMISSION",
      `A permission has ${unknown.map((word) => `'${word}'`).join(" and ")}; operations are read and write, modes are allow, deny and interrupt.`,
    );
  }
  return { operations, mode, globs: paths.map(toGlob) };
}

function toGlob(pattern: string): Glob {
  const compiled = compileGlob(pattern, { fromRoot: true });
  if (pattern.startsWith("/") && compiled.ok) return compiled.glob;
  const reason = compiled.ok ? "it must be absolute" : compiled.error;
  throw new ConfigurationError(
    "INVALID_PERMISSION",
    `The permission path '${pattern}' is not usable: ${reason}`,
  );
}
