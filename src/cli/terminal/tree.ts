/** The picture of a run as lines for a terminal: todos, then the tree of agents, then where the run stands. */
import { z } from "zod";
import { durationText } from "../../core/clock.ts";
import { firstSentence, oneLine, showControl } from "../../core/text.ts";
import { dollars } from "../../runs/view.ts";
import { counted } from "../../tools/format.ts";
import { type Colors, displayWidth, fit, padded } from "./text.ts";

const Todo = z.object({ content: z.string(), status: z.enum(["pending", "in_progress", "completed"]) });

const Agent = z.object({
  /** Names on the way down, such as `researcher › general-purpose`. */
  agent: z.string(),
  description: z.string(),
  status: z.enum(["queued", "working", "completed", "failed"]),
  step: z.string(),
  tool_calls: z.number(),
});

/** The fields of the resource `deepagent://runs/{run_id}` that the terminal shows. */
export const RunPicture = z.object({
  run_id: z.string(),
  status: z.enum(["working", "input_required", "completed", "failed", "cancelled"]),
  activity: z.string(),
  /** There while nobody works on the run. */
  queue: z.object({ number: z.number() }).optional(),
  created_at: z.string(),
  ended_at: z.string().optional(),
  answer: z.string().optional(),
  failure_reason: z.string().optional(),
  failure_message: z.string().optional(),
  todos: z.array(Todo),
  agents: z.array(Agent),
  files_changed: z.array(z.string()),
  usage: z.object({
    input_tokens: z.number(),
    output_tokens: z.number(),
    cost_usd: z.union([z.number(), z.literal("unknown")]),
  }),
});
export type RunPicture = z.output<typeof RunPicture>;
export type AgentPicture = RunPicture["agents"][number];

export interface TreeStyle {
  colors: Colors;
  /** Columns of the terminal. */
  width: number;
  /** Most lines. Default: as many as it takes. */
  height?: number;
  /** Counts up; turns the spinner. */
  frame: number;
  /** The system's time, for a run that is not over. */
  now: number;
}

const SPINNER = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/** Between the names of an agent and the one it started. */
const LEVEL = " › ";
/** Below this many columns the tool calls are left out. */
const COUNT_WIDTH = 70;

/** Draws no line as wide as the terminal, which would wrap it. Where lines are short, those at work come first. */
export function renderTree(picture: RunPicture, style: TreeStyle): string[] {
  const width = Math.max(style.width - 1, 8);
  const inner = { ...style, width };
  const end = [activityLine(picture, inner), figuresLine(picture, inner)];
  const room = (style.height ?? Infinity) - end.length;
  const least = Math.min(picture.agents.length, Math.max(Math.floor(room / 2), 1));
  const todos = todoLines(picture, inner, room - least - 2);
  const gap = todos.length > 0 && picture.agents.length > 0 ? [""] : [];
  const agents = agentLines(picture, inner, room - todos.length - gap.length - 1);
  const shown = [...todos, ...gap, ...agents, ""].slice(0, Math.max(room, 0));
  return [...shown, ...end];
}

/** Todos that are done give way first. */
function todoLines({ todos }: RunPicture, { colors, width }: TreeStyle, room: number): string[] {
  const done = todos.filter(({ status }) => status === "completed").length;
  const isShort = todos.length > room;
  const open = isShort ? todos.filter(({ status }) => status !== "completed") : todos;
  const folded =
    isShort && done > 0 ? [`  ${colors.green("✔")} ${colors.dim(fit(`${done} done`, width - 4))}`] : [];
  const lines = open.map(({ content, status }) => {
    const text = fit(clean(content), width - 4);
    if (status === "completed") return `  ${colors.green("✔")} ${colors.dim(text)}`;
    if (status === "in_progress") return `  ${colors.cyan("▸")} ${colors.bold(text)}`;
    return `  ${colors.dim("○")} ${text}`;
  });
  return cutLines([...folded, ...lines], room, { colors, width });
}

/** Agents that have ended well, or wait, give way first. */
function agentLines({ agents }: RunPicture, style: TreeStyle, room: number): string[] {
  const { colors, width } = style;
  const isShort = agents.length > room;
  const isShown = ({ status }: AgentPicture): boolean => status === "working" || status === "failed";
  const shown = isShort ? agents.filter(isShown) : agents;
  const folded = [
    ...(isShort ? countOf(agents, "completed", (count) => `${count} done`) : []),
    ...(isShort ? countOf(agents, "queued", (count) => `${count} waiting`) : []),
  ].join(" · ");
  const titles = shown.map(({ agent, description }) => titleOf(agent, description));
  const column = Math.max(0, ...titles.map(displayWidth));
  const lines = shown.map((agent, index) => agentLine(agent, shown.slice(index + 1), style, column));
  const last = folded === "" ? [] : [`  ${colors.dim(fit(`and ${folded}`, width - 2))}`];
  return cutLines([...lines, ...last], room, style);
}

/** A text with the number of agents that stand so; nothing for none. */
function countOf(
  agents: readonly AgentPicture[],
  status: AgentPicture["status"],
  text: (count: number) => string,
): string[] {
  const { length } = agents.filter((agent) => agent.status === status);
  return length > 0 ? [text(length)] : [];
}

function cutLines(
  lines: string[],
  room: number,
  { colors, width }: Pick<TreeStyle, "colors" | "width">,
): string[] {
  if (lines.length <= room) return lines;
  if (room < 1) return [];
  return [
    ...lines.slice(0, room - 1),
    `  ${colors.dim(fit(`… ${lines.length - room + 1} more`, width - 2))}`,
  ];
}

/** `column`: how wide the longest title is, so that the steps stand below each other. */
function agentLine(
  agent: AgentPicture,
  below: readonly AgentPicture[],
  style: TreeStyle,
  column: number,
): string {
  const { colors, width } = style;
  const depth = depthOf(agent);
  const isLast = !below.some((other) => depthOf(other) === depth);
  const indent = "│  ".repeat(Math.min(depth, Math.floor(width / 8)));
  const branch = `  ${indent}${isLast ? "└─" : "├─"} `;
  const calls =
    width >= COUNT_WIDTH && agent.status !== "queued" ? ` ${counted(agent.tool_calls, "call", "calls")}` : "";
  // Mark and gap take four columns.
  const room = Math.max(width - displayWidth(branch) - displayWidth(calls) - 4, 0);
  const title = fit(
    titleOf(agent.agent, agent.description),
    Math.max(Math.floor(room / 2), Math.min(room, 10)),
  );
  const titled = padded(title, Math.min(column, Math.floor(room / 2)));
  const step = fit(clean(agent.step), room - displayWidth(titled));
  const gap = " ".repeat(room - displayWidth(titled) - displayWidth(step));
  const mark = {
    queued: colors.dim("◌"),
    working: spinner(style),
    completed: colors.green("✔"),
    failed: colors.red("✖"),
  };
  const named = agent.status === "working" ? titled : colors.dim(titled);
  return `${colors.dim(branch)}${mark[agent.status]} ${named}  ${colors.dim(step + gap + calls)}`;
}

function activityLine(picture: RunPicture, style: TreeStyle): string {
  const { colors, width } = style;
  const mark = {
    working: picture.queue === undefined ? spinner(style) : colors.yellow("◌"),
    input_required: colors.yellow("?"),
    completed: colors.green("✔"),
    failed: colors.red("✖"),
    cancelled: colors.yellow("■"),
  };
  const text = isShownAbove(picture) ? agentCounts(picture) : clean(picture.activity);
  return `  ${mark[picture.status]} ${fit(text, width - 4)}`;
}

/** Such as `8 of 12 agents at work, 4 waiting`. */
function agentCounts({ agents }: RunPicture): string {
  const all = counted(agents.length, "agent", "agents");
  const facts = [
    ...countOf(agents, "working", (count) => `${count} of ${all} at work`),
    ...countOf(agents, "queued", (count) => `${count} waiting`),
  ];
  return facts.join(", ") || `${all} done`;
}

/** Whether the lines about todos and agents already show the last event. */
export function isShownAbove({ activity, agents, status }: RunPicture): boolean {
  return status === "working" && agents.some(({ agent }) => activity.startsWith(lastName(agent)));
}

/** Time, tokens and cost so far. */
function figuresLine(picture: RunPicture, { colors, width, now }: TreeStyle): string {
  const { usage, created_at: created, ended_at: ended } = picture;
  const end = ended === undefined ? now : Date.parse(ended);
  const facts = [
    durationText(end - Date.parse(created)),
    ...(usage.input_tokens + usage.output_tokens > 0
      ? [`${shortCount(usage.input_tokens)} tokens in, ${shortCount(usage.output_tokens)} out`]
      : []),
    ...(typeof usage.cost_usd === "number" && usage.cost_usd > 0 ? [dollars(usage.cost_usd)] : []),
  ];
  return `    ${colors.dim(fit(facts.join(" · "), width - 4))}`;
}

/** Such as `950`, `12.3k` or `1.2M`. */
function shortCount(count: number): string {
  if (count < 1000) return String(count);
  return count < 999_950 ? `${(count / 1000).toFixed(1)}k` : `${(count / 1_000_000).toFixed(1)}M`;
}

const spinner = ({ colors, frame }: TreeStyle): string => colors.cyan(SPINNER[frame % SPINNER.length] ?? "⠋");

const depthOf = (agent: AgentPicture): number => agent.agent.split(LEVEL).length - 1;

const lastName = (agent: string): string => agent.split(LEVEL).at(-1) ?? agent;

/** The first sentence of an agent's task, after its type where that tells something. */
export function titleOf(name: string, description: string): string {
  const type = clean(lastName(name));
  const task = firstSentence(showControl(description), 300).replace(/\.$/, "");
  if (task === "") return type;
  return type === "general-purpose" ? task : `${type}: ${task}`;
}

/** Text of agents is untrusted: no escape sequences, one line. */
export const clean = (text: string): string => oneLine(showControl(text), 300);
