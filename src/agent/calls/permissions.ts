/** Rules for the paths that file tools may use. */
import type { Backend, BackendSource } from "../../backends/backend.ts";
import { type Glob, compileGlob, literalStarts } from "../../backends/glob.ts";
import { NamedPlaces, PolicyRules, fold } from "../../backends/policy-rules.ts";
import { PolicyBackend } from "../../backends/policy.ts";
import { joinPath } from "../../backends/paths.ts";
import { ConfigurationError } from "../../core/errors.ts";
import { readOptions } from "../../core/options.ts";
import { trimEndOf } from "../../core/text.ts";
import type { DecisionType } from "../../tools/request.ts";
import type { ToolKind } from "../../tools/tool.ts";
import type { AgentTool, Gate } from "../contracts/middleware.ts";

export const ALL_DECISIONS: readonly DecisionType[] = ["approve", "edit", "reject"];

export type FileOperation = "read" | "write";

/** A rule for paths: in a list, the first rule that fits counts, and a call that fits none is allowed. */
export interface FilesystemPermission {
  operations: readonly FileOperation[];
  /** Globs of absolute paths, such as `/workspace/secrets/**`. */
  paths: readonly string[];
  /** `interrupt`: a person is asked about each call. Must be stated: libraries read a rule without it differently. */
  mode: PermissionMode;
}

export type PermissionMode = "allow" | "deny" | "interrupt";

interface Rule extends Pick<FilesystemPermission, "operations" | "mode"> {
  globs: readonly Glob[];
  /** For other spellings of a path that some file systems take for the same file. */
  folded: readonly Glob[];
}

const OPERATIONS: Partial<Record<ToolKind, FileOperation>> = { read: "read", write: "write" };

/**
 * File permissions of an agent. Lists of rules add up: a call must pass each of them. As a policy of a backend they hide
 * and protect files; calls that a person may allow are not refused there.
 */
export class Permissions extends PolicyRules {
  /** The paths that rules against something name, up to their first wildcard. */
  override readonly named: readonly string[];
  readonly #lists: ReadonlyArray<readonly Rule[]>;

  private constructor(lists: ReadonlyArray<readonly FilesystemPermission[]>) {
    super({});
    this.#lists = lists.map((list) => list.map(toRule));
    const globs = this.#lists.flat().flatMap((rule) => (rule.mode === "allow" ? [] : rule.globs));
    this.named = [...new Set(globs.flatMap(literalStarts))];
  }

  /** Returns undefined if no list has a rule: then nothing needs to be checked. */
  static of(lists: ReadonlyArray<readonly FilesystemPermission[] | undefined>): Permissions | undefined {
    const given = lists.flatMap((list) => (list === undefined || list.length === 0 ? [] : [list]));
    return given.length === 0 ? undefined : new Permissions(given);
  }

  /** The strictest answer of all lists, for the path as it is written and for other spellings of it. */
  decide(operation: FileOperation, path: string): PermissionMode {
    const relative = trimEndOf(path.replace(/^\/+/, ""), "/");
    const folded = fold(relative);
    const firstOf = (rules: readonly Rule[], fits: (rule: Rule) => boolean): PermissionMode =>
      rules.find((rule) => rule.operations.includes(operation) && fits(rule))?.mode ?? "allow";
    const answers = this.#lists.flatMap((rules) => [
      firstOf(rules, ({ globs }) => globs.some((glob) => glob.matches(relative))),
      firstOf(rules, (rule) => rule.folded.some((glob) => glob.matches(folded))),
    ]);
    if (answers.includes("deny")) return "deny";
    return answers.includes("interrupt") ? "interrupt" : "allow";
  }

  override isHidden(path: string): boolean {
    return path !== "/" && this.decide("read", path) === "deny";
  }

  override isAsked(path: string): boolean {
    return this.decide("read", path) === "interrupt";
  }

  override isReadOnly(path: string): boolean {
    return this.decide("write", path) === "deny";
  }

  override get hides(): boolean {
    return true;
  }

  override get distinguishes(): boolean {
    return true;
  }

  /** True if each list lets something below `path` be read, so that `path` must be there to be listed. */
  override isOnTheWay(path: string): boolean {
    const reaches = (glob: Glob): boolean => glob.reaches(path.slice(1));
    return this.#lists.every((rules) =>
      rules.some(
        (rule) => rule.mode !== "deny" && rule.operations.includes("read") && rule.globs.some(reaches),
      ),
    );
  }

  /** True if a rule may forbid something at or below `path`. */
  override hasReadOnlyBelow(path: string): boolean {
    const reaches = (glob: Glob): boolean => glob.reaches(fold(path).slice(1));
    return this.#lists.flat().some(({ mode, folded }) => mode !== "allow" && folded.some(reaches));
  }

  /** Why a call may not run, by the path that it names; undefined if it may. */
  denial(tool: AgentTool, args: Record<string, unknown>): string | undefined {
    const access = accessOf(tool, args);
    return access && this.decide(access.operation, access.path) === "deny" ? denialOf(access) : undefined;
  }

  /** Denies or gates a call by its path and the target of that path. Hidden places do not exist for it (`over`). */
  async judge(
    tool: AgentTool,
    args: Record<string, unknown>,
    backend: Backend,
  ): Promise<{ denial?: string; gate?: Gate }> {
    const access = accessOf(tool, args);
    if (access === undefined) return {};
    const { operation, path } = access;
    const places = await NamedPlaces.in(backend, this.named);
    const entry = (await backend.followLinks?.(path, { lastLink: "itself" })) ?? path;
    const target = (await backend.followLinks?.(path)) ?? path;
    const modesAt = (place: string, use = operation): PermissionMode[] =>
      places.namesOf(place).map((name) => this.decide(use, name));
    const isUnknown = modesAt(entry, "read").includes("deny");
    if (modesAt(entry).includes("deny") && !isUnknown) return { denial: denialOf(access) };
    // A file in a folder stands for those that a search in it reads.
    const asked = [path, entry, target].flatMap((place) =>
      operation === "read" ? [place, joinPath(place, "file")] : [place],
    );
    const asks = asked.flatMap((place) => modesAt(place)).includes("interrupt");
    return asks ? { gate: { allowedDecisions: [...ALL_DECISIONS], asksAlways: true } } : {};
  }

  /** The files as they may be seen: listings and searches leave out the rest. It runs no commands. */
  over(backend: BackendSource): BackendSource {
    return new PolicyBackend(backend, this);
  }
}

const denialOf = ({ operation, path }: Access): string => `permission denied for ${operation} on ${path}`;

interface Access {
  operation: FileOperation;
  path: string;
}

function accessOf(tool: AgentTool, args: Record<string, unknown>): Access | undefined {
  const operation = OPERATIONS[tool.kind];
  const path = operation && tool.pathOf(args);
  return path === undefined ? undefined : { operation: operation ?? "write", path };
}

function toRule(given: FilesystemPermission): Rule {
  const rule: Partial<FilesystemPermission> = readOptions<FilesystemPermission>("A permission", given, {
    operations: "a list of non-empty texts",
    paths: "a list of non-empty texts",
    mode: "a text",
  });
  const { operations = [], paths = [], mode } = rule;
  if (mode === undefined) throw invalid("A permission needs a `mode`: allow, deny or interrupt.");
  const example = '{ operations: ["write"], paths: ["/etc/**"] }';
  if (operations.length === 0 || paths.length === 0)
    throw invalid(`A permission needs operations (read, write) and paths, for example ${example}.`);
  const unknown = [
    ...operations.filter((operation) => !Object.values(OPERATIONS).includes(operation)),
    ...(["allow", "deny", "interrupt"].includes(mode) ? [] : [mode]),
  ].map((word) => `'${word}'`);
  const known = "operations are read and write, modes are allow, deny and interrupt";
  if (unknown.length > 0) throw invalid(`A permission has ${unknown.join(" and ")}; ${known}.`);
  return { operations, mode, globs: paths.map(toGlob), folded: paths.map((path) => toGlob(fold(path))) };
}

const invalid = (problem: string): ConfigurationError =>
  new ConfigurationError("INVALID_PERMISSION", problem);

function toGlob(pattern: string): Glob {
  const compiled = compileGlob(pattern, { fromRoot: true });
  if (pattern.startsWith("/") && compiled.ok) return compiled.glob;
  const reason = compiled.ok ? "it must be absolute" : compiled.error;
  throw invalid(`The permission path '${pattern}' is not usable: ${reason}`);
}
