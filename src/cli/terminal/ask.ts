/** Asks a person in the terminal about calls that wait for approval. */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline/promises";
import { z } from "zod";
import { startChild } from "../../core/child-process.ts";
import { diffLines } from "../../core/diff.ts";
import { type Principal, type RunView, alreadyDecided } from "../../runs/run.ts";
import type { RunService } from "../../runs/service.ts";
import { approvalForm, decisionOf } from "../../server/views/approval-form.ts";
import { pendingApprovals } from "../../server/views/run-report.ts";
import type { Colors } from "./text.ts";

export interface AskOptions {
  runs: RunService;
  principal: Principal;
  asker: Asker;
}

/** Puts the open approvals of a run to the person at the terminal, one after the other, until each is decided. */
export async function askOpenApprovals(view: RunView, { runs, principal, asker }: AskOptions): Promise<void> {
  const pending = pendingApprovals(view);
  for (const [index, approval] of pending.entries()) {
    const place = { runId: view.run.id, position: index + 1, total: pending.length };
    for (let problem: string | undefined; ;) {
      const form = approvalForm(approval, problem === undefined ? place : { ...place, problem });
      const answer = decisionOf(approval, await askApproval(ApprovalForm.parse(form), asker));
      if (!answer.ok) {
        problem = answer.problem;
        continue;
      }
      const outcome = await runs.decide(principal, view.run.id, approval.id, answer.decision, "terminal");
      if (outcome.ok) {
        if (outcome.repeated) asker.print(alreadyDecided(outcome.approval));
        break;
      }
      if (outcome.code === "already_decided") {
        asker.print(outcome.message);
        break;
      }
      problem = outcome.message;
    }
  }
}

/** An elicitation form as this server sends it for an approval. */
export const ApprovalForm = z.object({
  message: z.string(),
  requestedSchema: z.object({
    properties: z.object({
      decision: z.object({ enum: z.array(z.enum(["approve", "approve_same", "edit", "reject"])) }),
      edited_args: z.object({ default: z.string() }).optional(),
    }),
  }),
});
export type ApprovalForm = z.output<typeof ApprovalForm>;

export type ApprovalAnswer = {
  decision: "approve" | "approve_same" | "edit" | "reject";
  edited_args?: string;
  message?: string;
};

/** Terminal functions that asking needs. */
export interface Asker {
  /** One line of input; rejects when there is no more, or the person interrupts. */
  question(prompt: string): Promise<string>;
  print(text: string): void;
  /** Lets the person edit a text; `undefined` when that failed. */
  edit(text: string, fileName: string): Promise<string | undefined>;
  /** Lines of the terminal. */
  rows(): number;
  colors: Colors;
}

/** Asks until there is a decision. */
export async function askApproval(form: ApprovalForm, asker: Asker): Promise<ApprovalAnswer> {
  const { colors } = asker;
  const offered = form.requestedSchema.properties.decision.enum;
  const lines = coloured(form.message, colors);
  const shown = Math.max(asker.rows() - 8, 10);
  const hidden = lines.length - shown;
  asker.print(["", colors.yellow("? Approval"), ...lines.slice(0, shown)].join("\n"));
  if (hidden > 0) asker.print(colors.dim(`    … ${hidden} more lines`));
  // Renamed, so that each choice has a first letter of its own.
  const named = offered.map((decision) => (decision === "approve_same" ? SAME : decision));
  const choices = [...named, ...(hidden > 0 ? ["view"] : [])];
  const prompt = `${choices.map((choice) => keyed(choice, colors)).join("  ")} › `;
  for (;;) {
    const key = (await asker.question(prompt)).trim().toLowerCase();
    const choice = key === "" ? undefined : choices.find((name) => name.startsWith(key));
    if (choice === "view") asker.print(lines.join("\n"));
    if (choice === "approve") return { decision: "approve" };
    if (choice === SAME) return { decision: "approve_same" };
    if (choice === "reject") {
      const message = await asker.question("Why, or what instead (may stay empty) › ");
      return { decision: "reject", ...(message.trim() === "" ? {} : { message }) };
    }
    if (choice === "edit") {
      const edited = await editArguments(form.requestedSchema.properties.edited_args?.default ?? "{}", asker);
      if (edited !== undefined) return { decision: "edit", edited_args: edited };
      asker.print("Nothing was changed.");
    }
  }
}

const SAME = "same for the whole run";

/** The first lines of a form: who wants to do what. */
export function approvalTitle(form: ApprovalForm): string {
  const [who = "", what = ""] = form.message.split("\n");
  return `${who} ${what}`.trim();
}

const keyed = (choice: string, colors: Colors): string =>
  `[${colors.bold(choice.slice(0, 1))}]${choice.slice(1)}`;

/** The form's text with the diff in it, which is indented, in the usual colours. */
function coloured(message: string, colors: Colors): string[] {
  const paint = {
    add: colors.green,
    del: colors.red,
    hunk: colors.cyan,
    file: colors.bold,
    context: String,
    note: String,
  };
  const lines = message.split("\n");
  const kinds = diffLines(
    lines.map((line) => (line.startsWith(INDENT) ? line.slice(INDENT.length) : "")).join("\n"),
  );
  return lines.map((line, index) => paint[kinds[index]?.kind ?? "note"](line));
}

const INDENT = "    ";

/** The argument a person wants to see as text rather than as an escaped JSON string. */
const TEXT_ARGUMENTS = ["content", "new_string", "command"];

async function editArguments(json: string, asker: Asker): Promise<string | undefined> {
  const args: unknown = JSON.parse(json);
  if (typeof args !== "object" || args === null) return undefined;
  const record: Record<string, unknown> = { ...args };
  const name = TEXT_ARGUMENTS.find((key) => typeof record[key] === "string");
  const before = name === undefined ? JSON.stringify(args, null, 2) : String(record[name]);
  const after = await asker.edit(before, name === undefined ? "arguments.json" : `${name}.txt`);
  if (after === undefined || after === before) return undefined;
  return name === undefined ? after : JSON.stringify({ ...record, [name]: after });
}

/** Asks on the terminal of this process. Ctrl-C and Ctrl-D at a question call `interrupted`. */
export function terminalAsker(colors: Colors, interrupted: () => void): Asker {
  return {
    colors,
    print: (text) => void process.stdout.write(`${text}\n`),
    rows: () => process.stdout.rows,
    edit: editInEditor,
    question: async (prompt) => {
      const lines = createInterface({ input: process.stdin, output: process.stdout });
      const stop = new AbortController();
      const end = (): void => {
        interrupted();
        stop.abort();
      };
      lines.once("SIGINT", end);
      lines.once("close", () => stop.abort());
      try {
        return await lines.question(prompt, { signal: stop.signal });
      } catch (error) {
        interrupted();
        throw error;
      } finally {
        lines.close();
      }
    },
  };
}

async function editInEditor(text: string, fileName: string): Promise<string | undefined> {
  const fallback = process.platform === "win32" ? "notepad" : "vi";
  const editor = process.env["VISUAL"] ?? process.env["EDITOR"] ?? fallback;
  const [command = fallback, ...args] = editor.split(" ").filter((part) => part !== "");
  const folder = await mkdtemp(join(tmpdir(), "deepagent-edit-"));
  const file = join(folder, fileName);
  try {
    await writeFile(file, text, { mode: 0o600 });
    const code = await new Promise<number | null>((resolve) => {
      const child = startChild(command, [...args, file], { stdio: "inherit" });
      child.once("error", () => resolve(null));
      child.once("exit", resolve);
    });
    if (code === 0) return await readFile(file, "utf8");
    process.stdout.write(`The editor "${command}" failed; set EDITOR to one that is installed.\n`);
    return undefined;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
