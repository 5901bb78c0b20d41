import { z } from "zod";
import { diffLines } from "../../server/diff-lines.ts";
import type { Colors } from "../colors.ts";

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

/** What asking needs of the terminal. */
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
  // A letter of its own.
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
  const paint = { add: colors.green, del: colors.red, hunk: colors.cyan, file: colors.bold, context: String };
  const lines = message.split("\n");
  const kinds = diffLines(
    lines.map((line) => (line.startsWith(INDENT) ? line.slice(INDENT.length) : "")).join("\n"),
  );
  return lines.map((line, index) => paint[kinds[index]?.kind ?? "context"](line));
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
