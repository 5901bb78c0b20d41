/** Lists, removes and tries the rules that people saved with approvals. */
import { existsSync } from "node:fs";
import { isoTime } from "../core/clock.ts";
import { loadConfig } from "../config/load.ts";
import { realPath } from "../core/real-path.ts";
import { displayText, oneLine } from "../core/text.ts";
import { allowingRules, readCommand } from "../rules/rule.ts";
import type { ApprovalRule } from "../rules/call.ts";
import { counted } from "../tools/format.ts";
import type { CommandArguments, ExitCode } from "./command.ts";
import { type LocalRuns, withLocalRuns } from "./local-runs.ts";
import { complain, readAction, say, sayRows } from "./output.ts";

/** Works on the data directory alone: servers that use it follow the change at once. */
export async function runRules(args: CommandArguments): Promise<ExitCode> {
  const action = readAction("rules", args.positionals);
  if (typeof action === "number") return action;
  const { name, words } = action;
  return withLocalRuns(args, false, async (local) => {
    const rules = await local.runs.rules.list();
    if (name === "test") return test(args, words[0] ?? "", rules, local);
    if (name === "remove") return remove(words, rules, local);
    if (args.flags["json"] === true)
      return sayRows(
        rules.map(({ isUnsandboxed: outsideSandbox, ...rule }) => ({ ...rule, outsideSandbox })),
      );
    const none =
      "There are no rules. To save one, choose “always allow” when a call waits for your approval.";
    return say(...(rules.length === 0 ? [none] : rules.map(ruleLine)));
  });
}

async function remove(ids: readonly string[], rules: readonly ApprovalRule[], local: LocalRuns) {
  for (const word of ids) {
    const [one, ...others] = rules.filter(({ id, rule }) => rule === word || id.startsWith(word));
    if (one === undefined || others.length > 0 || !(await local.runs.rules.remove(one.id)))
      return complain(
        `${oneLine(word, 80)} names no rule, or several. ${local.dataCommand("rules", "list")} shows all.`,
      );
  }
  return say(`Removed ${counted(ids.length, "rule")}. Calls that they allowed need your approval again.`);
}

/** Reports whether the rules of the workspace allow a command. */
function test(args: CommandArguments, command: string, rules: readonly ApprovalRule[], local: LocalRuns) {
  const loaded = loadConfig({ flags: args.flags, ...args.host });
  const folder = realPath((loaded.ok && loaded.config.workspace) || ".");
  const shell = existsSync("/bin/bash") ? "bash" : "sh";
  const facts = { kind: "command", command, shell } as const;
  const line = readCommand({ ...facts, isSandboxed: true, hasNetwork: false });
  if (!line.ok) return say(`Needs approval: ${line.reason}.`);
  const results = [true, false].map((isSandboxed) => {
    const own = rules.filter((rule) => rule.folder === folder && rule.isUnsandboxed === !isSandboxed);
    const allow = isSandboxed || local.config.rules.outsideSandbox ? local.config.rules.allow : [];
    const call = { ...facts, isSandboxed, hasNetwork: !isSandboxed };
    const used = allowingRules(call, [...allow, ...own.map(({ rule }) => rule)]);
    const place = isSandboxed ? "In a sandbox" : "Outside any sandbox";
    return `${place}: ${used === undefined ? "needs approval; no rule covers all of it" : `allowed by ${used.join(", ")}`}.`;
  });
  return say(`Rules of ${displayText(folder)}:`, ...results);
}

function ruleLine(rule: ApprovalRule): string {
  const { lastUsedAt } = rule;
  const facts = [
    oneLine(displayText(rule.folder), 80),
    ...(rule.isUnsandboxed ? ["outside any sandbox"] : []),
    `used ${counted(rule.uses, "time")}${lastUsedAt === undefined ? "" : `, last ${isoTime(lastUsedAt)}`}`,
    `saved ${isoTime(rule.createdAt)}, ${oneLine(rule.createdBy, 60)}, in run ${rule.runId.slice(0, 12)}`,
  ];
  return `${rule.id}  ${oneLine(displayText(rule.rule), 200)}\n    ${facts.join(" · ")}`;
}
