import { z } from "zod";
import { headOf } from "../core/text.ts";
import type { ToolSpec } from "./tool.ts";

/** An argument that is a path. Systems take 4096 bytes at most, and each way to look at one costs more the longer it is. */
export const pathText = (): z.ZodString =>
  z.string().max(4096, "Longer than 4096 characters: give the path of a file or directory");

/** An argument that is searched for. */
export const patternText = (): z.ZodString =>
  z.string().min(1).max(10_000, "Longer than 10000 characters: search for a part of it");

export type ParsedArguments<Args> = { ok: true; args: Args } | { ok: false; message: string };

/**
 * The one way arguments reach a tool: aliases are renamed, defaults filled in, everything else refused
 * with a message that names each bad field.
 */
export function parseArguments<Schema extends z.ZodObject>(
  spec: ToolSpec<Schema>,
  raw: unknown,
): ParsedArguments<z.output<Schema>> {
  const parsed = spec.schema.safeParse(renameAliases(raw, spec.aliases ?? {}));
  if (parsed.success) return { ok: true, args: parsed.data };
  return { ok: false, message: invalidArguments(spec.name, parsed.error.issues) };
}

/** What is wrong with one argument. */
export interface ArgumentIssue {
  readonly message: string;
  /** Where, from the arguments down; empty: they themselves. */
  readonly path: readonly PropertyKey[];
}

/** Names each bad field of a call, in bounds. */
export function invalidArguments(tool: string, issues: readonly ArgumentIssue[]): string {
  const problems = issues.slice(0, MAX_ISSUES).map(issueText).join("; ");
  return `Invalid arguments for ${tool}: ${problems}`;
}

/**
 * JSON Schema of the arguments as a model is offered it: arguments with a default are optional, and the
 * bounds that every integer has, and the lengths of texts, are left out.
 */
export function parametersOf(spec: ToolSpec): Record<string, unknown> {
  const { $schema: _dialect, ...schema } = z.toJSONSchema(spec.schema, {
    io: "input",
    override: ({ jsonSchema }) => {
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
      delete jsonSchema.maxLength;
    },
  });
  return schema;
}

function renameAliases(raw: unknown, aliases: Readonly<Record<string, string>>): unknown {
  if (typeof raw !== "object" || raw === null || Array.isArray(raw)) return raw;
  const renamed: Record<string, unknown> = { ...raw };
  for (const [alias, name] of Object.entries(aliases)) {
    if (!Object.hasOwn(renamed, alias) || Object.hasOwn(renamed, name)) continue;
    renamed[name] = renamed[alias];
    delete renamed[alias];
  }
  return renamed;
}

function issueText({ message, path }: ArgumentIssue): string {
  const place = path.map(String).join(".");
  return headOf(place === "" ? message : `${place}: ${message}`, MAX_ISSUE_CHARS);
}

const MAX_ISSUES = 5;
const MAX_ISSUE_CHARS = 300;
