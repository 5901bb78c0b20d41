import { join } from "node:path";
import { stripControl } from "../../core/text.ts";
import type { Colors } from "../colors.ts";
import type { RunEnd, Session } from "./session.ts";
import type { DemoWorkspace } from "./workspace.ts";

interface SummaryFacts extends RunEnd {
  seconds: number;
  session: Session;
  workspace: DemoWorkspace;
  colors: Colors;
  /** How the demo is called again. */
  demoCommand: string;
  /** The model's own figures are worth showing. */
  countsTokens: boolean;
}

/** What a run left behind: report, memories, answer and figures. */
export async function summary(facts: SummaryFacts): Promise<string> {
  const { picture, session, colors } = facts;
  const changed = picture.files_changed;
  const report = changed.find((path) => path.startsWith("/workspace/") && path.endsWith(".md"));
  const memories = changed.filter((path) => path.startsWith("/memories/"));
  const parts: string[] = [];
  if (report !== undefined) {
    parts.push(heading(`Report  ${hostPath(report, facts.workspace)}`, colors), await text(session, report));
  }
  for (const path of memories) {
    parts.push(heading(`Memory  ${path}`, colors), await text(session, path));
  }
  if (picture.answer !== undefined)
    parts.push(heading("Answer", colors), stripControl(picture.answer.trim()));
  if (picture.failure_reason !== undefined) {
    const why = stripControl(picture.failure_message ?? "no details");
    parts.push(heading("Failed", colors), colors.red(`${picture.failure_reason}: ${why}`));
  }
  return `\n${[...parts, closing(facts, report)].join("\n\n")}\n`;
}

async function text(session: Session, path: string): Promise<string> {
  const uri = `deepagent://files${path.split("/").map(encodeURIComponent).join("/")}`;
  return stripControl(await session.readText(uri)).trim();
}

/** The host's name of a file below `/workspace/`. */
function hostPath(path: string, workspace: DemoWorkspace): string {
  return join(workspace.folder, ...path.split("/").slice(2));
}

const heading = (title: string, colors: Colors): string => colors.bold(colors.cyan(`── ${title}`));

/** What to remember when the rest has scrolled away. */
function closing(facts: SummaryFacts, report: string | undefined): string {
  const { colors, workspace } = facts;
  const lines = [figures(facts)];
  if (report !== undefined) lines.push(`  ${colors.dim("report")}  ${hostPath(report, workspace)}`);
  if (workspace.kind === "sample") {
    lines.push(`  ${colors.dim("yours")}   ${facts.demoCommand} --workspace DIR "TASK"`);
  }
  if (!facts.countsTokens) {
    lines.push(
      `  ${colors.dim("model")}   --model anthropic:NAME or --model openai:NAME, with the key in the environment`,
    );
  }
  return lines.join("\n");
}

function figures({ picture, toolCalls, seconds, colors, countsTokens }: SummaryFacts): string {
  const { input_tokens: input, output_tokens: output } = picture.usage;
  const done = picture.todos.filter(({ status }) => status === "completed").length;
  const facts = [
    `${picture.status} in ${seconds.toFixed(1)} s`,
    counted(picture.agents.length, "subagent"),
    counted(toolCalls, "tool call"),
    ...(picture.todos.length === 0 ? [] : [`${done} of ${picture.todos.length} todos`]),
    `${counted(picture.files_changed.length, "file")} changed`,
    ...(!countsTokens ? [] : [`${input} tokens in, ${output} out`]),
  ];
  const mark = picture.status === "completed" ? colors.green("✔") : colors.red("✖");
  return `${mark} ${facts.join(" · ")}`;
}

const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;
