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
  if (picture.failure !== undefined) {
    const { reason, message } = picture.failure;
    parts.push(heading("Failed", colors), colors.red(`${reason}: ${stripControl(message)}`));
  }
  return `\n${[...parts, figures(facts)].join("\n\n")}\n`;
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

function figures({ picture, toolCalls, seconds, colors }: SummaryFacts): string {
  const { input_tokens: input, output_tokens: output } = picture.usage;
  const done = picture.todos.filter(({ status }) => status === "completed").length;
  const facts = [
    `${picture.status} in ${seconds.toFixed(1)} s`,
    `${picture.subagents.length} subagents`,
    `${toolCalls} tool calls`,
    `${done} of ${picture.todos.length} todos`,
    `${picture.files_changed.length} files changed`,
    ...(input + output === 0 ? [] : [`${input} tokens in, ${output} out`]),
  ];
  const mark = picture.status === "completed" ? colors.green("✔") : colors.red("✖");
  return `${mark} ${facts.join(" · ")}`;
}
