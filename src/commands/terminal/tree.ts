import type { Colors } from "../colors.ts";
import { firstSentence, oneLine, stripControl } from "../../core/text.ts";
import type { RunPicture, AgentPicture } from "./picture.ts";
import { displayWidth, fit } from "./text-width.ts";

export interface TreeStyle {
  colors: Colors;
  /** Columns of the terminal. */
  width: number;
  /** Counts up; turns the spinner. */
  frame: number;
}

const SPINNER = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/** Between the names of an agent and the one it started. */
const LEVEL = " › ";
const MIN_WIDTH = 20;
/** Below this many columns the tool calls are left out. */
const COUNT_WIDTH = 70;

/** The live view of a run: todos, then the tree of agents, each with its newest step. */
export function renderTree(picture: RunPicture, style: TreeStyle): string[] {
  const width = Math.max(style.width, MIN_WIDTH) - 1;
  const { todos, agents } = picture;
  return [
    ...todoLines(picture, style, width),
    ...(todos.length > 0 && agents.length > 0 ? [""] : []),
    ...agents.map((agent, index) => agentLine(agent, index, agents, style, width)),
    ...(todos.length > 0 || agents.length > 0 ? [""] : []),
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
  agent: AgentPicture,
  index: number,
  all: readonly AgentPicture[],
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
  const title = fit(titleOf(agent), Math.max(Math.floor(room / 2), Math.min(room, 10)));
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

const depthOf = (agent: AgentPicture): number => agent.agent.split(LEVEL).length - 1;

/** The first sentence of what it was told to do. */
const titleOf = ({ description, agent }: AgentPicture): string =>
  firstSentence(stripControl(description), 300) || agent;

/** Text of agents is untrusted: no escape sequences, one line. */
const clean = (text: string): string => oneLine(stripControl(text), 300);

/** What is new between two views, as lines for an output that cannot be redrawn. */
export function newLines(before: RunPicture | undefined, after: RunPicture): string[] {
  const activity = short(after.activity);
  const isNews = after.activity !== before?.activity && !isTold(after);
  return [...newTodoLines(before, after), ...newAgentLines(before, after), ...(isNews ? [activity] : [])];
}

function newTodoLines(before: RunPicture | undefined, { todos }: RunPicture): string[] {
  const known = new Map(before?.todos.map((todo) => [todo.content, todo.status]));
  const isNewPlan = known.size === 0 && todos.length > 0;
  const plan = isNewPlan
    ? [`plan: ${todos.length} todos`, ...todos.map(({ content }) => `  - ${short(content)}`)]
    : [];
  const changes = todos
    .filter(({ content, status }) => status !== "pending" && status !== known.get(content))
    .map(({ content, status }) => `${status === "completed" ? "done" : "now"}: ${short(content)}`);
  return [...plan, ...changes];
}

function newAgentLines(before: RunPicture | undefined, { agents }: RunPicture): string[] {
  return agents.flatMap((agent, index) => {
    const earlier = before?.agents[index];
    const label = `  subagent ${index + 1}`;
    const isNew = earlier === undefined;
    const start = isNew ? [`${label} (${agent.agent}): ${short(titleOf(agent))}`] : [];
    if (agent.status !== "working" && agent.status !== earlier?.status)
      return [
        ...start,
        `${label} ${agent.status} after ${agent.tool_calls} tool calls: ${short(agent.step)}`,
      ];
    const isStep = !isNew && agent.status === "working" && agent.step !== earlier.step;
    return isStep ? [`${label}: ${short(agent.step)}`] : start;
  });
}

/** Whether the lines about todos and agents say already what happened last. */
function isTold({ activity, agents }: RunPicture): boolean {
  return (
    activity.startsWith("write_todos") || agents.some(({ agent }) => activity.startsWith(lastName(agent)))
  );
}

const lastName = (agent: string): string => agent.split(LEVEL).at(-1) ?? agent;

const short = (text: string): string => fit(clean(text), 100);
