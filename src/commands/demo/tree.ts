import type { Colors } from "../colors.ts";
import { oneLine, stripControl } from "../../core/text.ts";
import type { RunPicture, SubagentPicture } from "./picture.ts";
import { displayWidth, fit } from "./text-width.ts";

export interface TreeStyle {
  colors: Colors;
  /** Columns of the terminal. */
  width: number;
  /** Counts up; turns the spinner. */
  frame: number;
}

const SPINNER = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const MIN_WIDTH = 20;
/** Below this many columns the tool calls are left out. */
const COUNT_WIDTH = 70;

/** The live view of a run: todos, then the tree of agents, each with its newest step. */
export function renderTree(picture: RunPicture, style: TreeStyle): string[] {
  const width = Math.max(style.width, MIN_WIDTH) - 1;
  return [
    ...todoLines(picture, style, width),
    ...(picture.todos.length > 0 && picture.subagents.length > 0 ? [""] : []),
    ...picture.subagents.map((agent, index) => agentLine(agent, index, picture.subagents, style, width)),
    "",
    activityLine(picture, style, width),
  ];
}

function todoLines(picture: RunPicture, { colors }: TreeStyle, width: number): string[] {
  return picture.todos.map(({ content, status }) => {
    const text = fit(clean(content), width - 4);
    if (status === "completed") return `  ${colors.green("✔")} ${colors.dim(text)}`;
    if (status === "in_progress") return `  ${colors.cyan("▸")} ${colors.bold(text)}`;
    return `  ${colors.dim("○")} ${text}`;
  });
}

function agentLine(
  agent: SubagentPicture,
  index: number,
  all: readonly SubagentPicture[],
  style: TreeStyle,
  width: number,
): string {
  const { colors } = style;
  const depth = depthOf(agent);
  const isLast = !all.slice(index + 1).some((other) => depthOf(other) === depth);
  const indent = "│  ".repeat(Math.min(depth, Math.floor(width / 8)));
  const branch = `  ${indent}${isLast ? "└─" : "├─"} `;
  const count =
    width >= COUNT_WIDTH ? ` ${agent.tool_calls} ${agent.tool_calls === 1 ? "call" : "calls"}` : "";
  // Mark and gap take four columns.
  const room = Math.max(width - displayWidth(branch) - displayWidth(count) - 4, 0);
  const title = fit(
    clean(agent.description) || agent.name,
    Math.max(Math.floor(room / 2), Math.min(room, 10)),
  );
  const step = fit(clean(agent.step), room - displayWidth(title));
  const gap = " ".repeat(room - displayWidth(title) - displayWidth(step));
  const mark = { working: spinner(style), completed: colors.green("✔"), failed: colors.red("✖") };
  return `${colors.dim(branch)}${mark[agent.status]} ${title}  ${colors.dim(step + gap + count)}`;
}

function activityLine(picture: RunPicture, style: TreeStyle, width: number): string {
  const { colors } = style;
  const text = fit(clean(picture.activity), width - 4);
  const mark = {
    working: spinner(style),
    input_required: colors.yellow("?"),
    completed: colors.green("✔"),
    failed: colors.red("✖"),
    cancelled: colors.yellow("■"),
  };
  return `  ${mark[picture.status]} ${text}`;
}

const spinner = ({ colors, frame }: TreeStyle): string => colors.cyan(SPINNER[frame % SPINNER.length] ?? "⠋");

const depthOf = (agent: SubagentPicture): number => agent.agent.split(" > ").length - 1;

/** Text of agents is untrusted: no escape sequences, one line. */
const clean = (text: string): string => oneLine(stripControl(text), 300);

/** What is new between two views, as lines for an output that cannot be redrawn. */
export function newLines(before: RunPicture | undefined, after: RunPicture): string[] {
  const lines: string[] = [];
  const known = new Map(before?.todos.map((todo) => [todo.content, todo.status]));
  if (after.todos.length > 0 && !before?.todos.length) {
    lines.push(
      `plan: ${after.todos.length} todos`,
      ...after.todos.map(({ content }) => `  - ${clean(content)}`),
    );
  }
  for (const { content, status } of after.todos) {
    if (status !== "pending" && known.get(content) !== status && (known.size > 0 || status === "completed"))
      lines.push(`${status === "completed" ? "done" : "now"}: ${clean(content)}`);
  }
  after.subagents.forEach((agent, index) => {
    const earlier = before?.subagents[index];
    const label = `subagent ${index + 1}`;
    if (earlier === undefined) lines.push(`${label} (${agent.name}) started: ${clean(agent.description)}`);
    if (agent.step === earlier?.step && agent.status === earlier.status) return;
    if (agent.status === "working") lines.push(`${label}: ${clean(agent.step)}`);
    else lines.push(`${label} ${agent.status} after ${agent.tool_calls} tool calls: ${clean(agent.step)}`);
  });
  const told = after.subagents.some((agent) => after.activity.includes(agent.step));
  if (after.activity !== before?.activity && !told) lines.push(clean(after.activity));
  return lines;
}
