/** Reads approval rules, such as `Bash(npm run test *)`, and compares calls with them. */
import { compileGlob } from "../backends/glob.ts";
import { NewestOf } from "../core/newest-of.ts";
import { oneLine, trimEndOf } from "../core/text.ts";
import type { RuledCall } from "./call.ts";
import names from "./names.json" with { type: "json" };
import { type ShellReading, readCommandLine } from "./shell/read.ts";
import { type ShellRule, parseShellRule, ruleCovers, ruleTouches } from "./shell/rule.ts";

/** A rule that was read. `covers`: it applies to all of the call. `touches`: it may apply to a part of the call. */
export interface CallRule {
  readonly text: string;
  readonly shell?: ShellRule;
  covers(call: RuledCall): boolean;
  touches(call: RuledCall): boolean;
}

type Read = CallRule | { problem: string };

/** One command line is compared with many rules, and one rule with many calls. */
const lines = new NewestOf<ShellReading>(16);
const parsed = new NewestOf<Read>(1000);

/** The commands of a call, or why they are not known. */
export function readCommand({ command, shell }: Extract<RuledCall, { kind: "command" }>): ShellReading {
  const key = `${shell} ${command}`;
  const line = lines.get(key) ?? readCommandLine(command, shell);
  lines.keep(key, line);
  return line;
}

/**
 * Reads a rule in the form of Claude Code: `Bash(npm run test *)`, `Edit(docs/**)`, `WebFetch(domain:docs.example.org)`,
 * `mcp__server__tool`. The table beside this file has the names that other programs use.
 */
function parseRule(given: string): Read {
  const text = given.trim();
  if (text.startsWith("mcp__")) return serverToolRule(text, text.slice(5).replace(/__\*$/, ""));
  const [, name = "", spec] = /^([A-Za-z_]+)(?:\(([^]*)\))?$/.exec(text) ?? [];
  const kind = Object.hasOwn(names.tools, name) ? names.tools[name as keyof typeof names.tools] : undefined; // a key of it
  switch (kind) {
    case "command":
      return commandRule(text, spec);
    case "edit":
      return editRule(text, spec);
    case "page":
      return pageRule(text, spec);
    case "server_tool":
      return serverToolRule(text, (spec ?? "").replace(":", "__").replace(/(?:__)?\*$/, ""));
    default:
      return unreadable(text, "write Bash(…), Edit(…), WebFetch(domain:…) or mcp__server__tool");
  }
}

const unreadable = (text: string, why: string): { problem: string } => ({
  problem: `The rule ${JSON.stringify(oneLine(text, 100))} cannot be used: ${trimEndOf(why, ".")}.`,
});

function commandRule(text: string, spec = "*"): Read {
  const shell = parseShellRule(spec);
  if ("problem" in shell) return unreadable(text, shell.problem);
  return {
    text,
    shell,
    covers: () => false, // a line may need several rules: see `allowingRules`
    touches: (call) => {
      if (call.kind !== "command") return false;
      const line = readCommand(call);
      return !line.ok || line.commands.some((command) => ruleTouches(shell, command));
    },
  };
}

function editRule(text: string, spec = "**"): Read {
  if (/^(?:\/\/|~)/.test(spec)) return unreadable(text, "paths are those of the workspace");
  // A pattern without a slash, except at its end, fits at any depth, as in .gitignore.
  const path = spec.replace(/^\.\//, "/").replace(/\/$/, "/**");
  const options = path.startsWith("/") ? { fromRoot: true } : { nameAtAnyDepth: true };
  const compiled = path.startsWith("!") ? undefined : compileGlob(path, options);
  if (compiled?.ok !== true) return unreadable(text, compiled?.error ?? "it has no pattern of paths");
  const { glob } = compiled;
  const fits = (call: RuledCall, how: "every" | "some"): boolean =>
    call.kind === "edit" &&
    call.paths.length > 0 &&
    call.paths[how]((one) => one !== "" && glob.matches(one));
  return { text, covers: (call) => fits(call, "every"), touches: (call) => fits(call, "some") };
}

function pageRule(text: string, spec = "*"): Read {
  const host = spec.replace(/^domain:/, "").toLowerCase();
  const end = host.startsWith("*.") ? host.slice(1) : undefined;
  if (!/^(?:\*|(?:\*\.)?[^\s/*?#@]+)$/.test(host)) return unreadable(text, "it names no host");
  const covers = (call: RuledCall): boolean =>
    call.kind === "page" &&
    (host === "*" ||
      (end === undefined ? call.host === host.replace(/^www\./, "") : call.host.endsWith(end)));
  return { text, covers, touches: covers };
}

/** `name`: `server__tool`, or the server for all of its tools. */
function serverToolRule(text: string, name: string): Read {
  if (!/^[\w-]+$/.test(name)) return unreadable(text, "write mcp__server__tool");
  const covers = (call: RuledCall): boolean =>
    call.kind === "server_tool" && (call.name === name || call.name.startsWith(`${name}__`));
  return { text, covers, touches: covers };
}

/** The first rule of a configuration that cannot be used, with its setting and the reason. */
export function ruleProblem(
  rules: Readonly<Record<"allow" | "ask" | "deny", readonly string[]>>,
): string | undefined {
  for (const kind of ["allow", "ask", "deny"] as const)
    for (const text of rules[kind]) {
      const read = parseRule(text);
      const useless = kind === "allow" && "text" in read ? read.shell?.neverAllows : undefined;
      const { problem } = useless === undefined ? { problem: undefined, ...read } : unreadable(text, useless);
      if (problem !== undefined) return `rules.${kind}: ${problem}`;
    }
  return undefined;
}

/** The rules that can be read; others count for nothing. */
export const readRules = (texts: readonly string[]): CallRule[] =>
  texts.flatMap((text) => {
    const read = parsed.get(text) ?? parseRule(text);
    parsed.keep(text, read);
    return "problem" in read ? [] : [read];
  });

/**
 * The rules of a list that together allow a call; undefined if they do not. Every command of a command line needs one,
 * unless it has no effects.
 */
export function allowingRules(call: RuledCall, texts: readonly string[]): string[] | undefined {
  const rules = readRules(texts);
  if (call.kind !== "command") {
    const rule = rules.find((one) => one.covers(call));
    return rule && [rule.text];
  }
  const line = readCommand(call);
  if (!line.ok) return undefined;
  const used = new Set<string>();
  for (const command of line.commands) {
    const rule = rules.find(({ shell }) => shell !== undefined && ruleCovers(shell, command));
    if (rule !== undefined) used.add(rule.text);
    else if (!command.isHarmless) return undefined;
  }
  return used.size > 0 ? [...used] : undefined;
}
