/** Draws a run in the terminal, as a tree that is replaced while the run works. */
import { z } from "zod";
import { firstSentence, oneLine, stripControl } from "../../core/text.ts";
import { type Colors, displayWidth, fit } from "./text.ts";

/** Shows a run in the terminal. */
export interface Screen {
  /** The newest state of the run. */
  show(picture: RunPicture): void;
  /** Takes the live view away, and leaves `text` above it. */
  print(text: string): void;
  /** Takes the live view away until the next `resume`, for a question. */
  pause(): void;
  resume(): void;
  close(): void;
}

const FRAME_MS = 100;

/** Redraws the run in place. `output` must be a terminal. */
export function liveScreen(output: NodeJS.WriteStream, colors: Colors): Screen {
  let picture: RunPicture | undefined;
  let drawn = 0;
  let frame = 0;
  let paused = false;
  const erase = (): void => {
    if (drawn > 0) output.write(`\u001b[${drawn}A\r\u001b[J`);
    drawn = 0;
  };
  const draw = (): void => {
    if (picture === undefined || paused) return;
    const room = Math.max(output.rows - 1, 3);
    const lines = renderTree(picture, { colors, width: output.columns, frame }).slice(-room);
    // One write, so that nothing flickers.
    const back = drawn > 0 ? `\u001b[${drawn}A\r` : "";
    output.write(`${back}${lines.map((line) => `${line}\u001b[K\n`).join("")}\u001b[J`);
    drawn = lines.length;
  };
  const timer = setInterval(() => {
    frame += 1;
    draw();
  }, FRAME_MS);
  const hideCursor = (): void => void output.write("\u001b[?25l");
  const showCursor = (): void => void output.write("\u001b[?25h");
  hideCursor();
  return {
    show: (next) => {
      picture = next;
      draw();
    },
    print: (text) => {
      erase();
      output.write(`${text}\n`);
      draw();
    },
    pause: () => {
      paused = true;
      erase();
      showCursor();
    },
    resume: () => {
      paused = false;
      hideCursor();
      draw();
    },
    close: () => {
      clearInterval(timer);
      draw();
      showCursor();
    },
  };
}

/** Writes what is new, line by line, with the seconds since the start. */
export function plainScreen(output: NodeJS.WritableStream, now: () => number): Screen {
  const start = now();
  let before: RunPicture | undefined;
  return {
    show: (picture) => {
      const seconds = ((now() - start) / 1000).toFixed(1).padStart(5);
      for (const line of newLines(before, picture)) output.write(`[${seconds}s] ${line}\n`);
      before = picture;
    },
    print: (text) => void output.write(`${text}\n`),
    pause: () => {},
    resume: () => {},
    close: () => {},
  };
}

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

/** Returns the first sentence of its instructions. */
const titleOf = ({ description, agent }: AgentPicture): string =>
  firstSentence(stripControl(description), 300) || agent;

/** Text of agents is untrusted: no escape sequences, one line. */
const clean = (text: string): string => oneLine(stripControl(text), 300);

/** Lists the changes between two views, as lines for an output that cannot be redrawn. */
export function newLines(before: RunPicture | undefined, after: RunPicture): string[] {
  const activity = short(after.activity);
  const isNews = after.activity !== before?.activity && !isShownAbove(after);
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

/** Whether the lines about todos and agents already show the last event. */
function isShownAbove({ activity, agents }: RunPicture): boolean {
  return (
    activity.startsWith("write_todos") || agents.some(({ agent }) => activity.startsWith(lastName(agent)))
  );
}

const lastName = (agent: string): string => agent.split(LEVEL).at(-1) ?? agent;

const short = (text: string): string => fit(clean(text), 100);

const Todo = z.object({ content: z.string(), status: z.enum(["pending", "in_progress", "completed"]) });

const Agent = z.object({
  /** Names on the way down, such as `researcher › general-purpose`. */
  agent: z.string(),
  description: z.string(),
  status: z.enum(["working", "completed", "failed"]),
  step: z.string(),
  tool_calls: z.number(),
});

/** The fields of the resource `deepagent://runs/{run_id}` that the terminal shows. */
export const RunPicture = z.object({
  run_id: z.string(),
  status: z.enum(["working", "input_required", "completed", "failed", "cancelled"]),
  activity: z.string(),
  answer: z.string().optional(),
  failure_reason: z.string().optional(),
  failure_message: z.string().optional(),
  todos: z.array(Todo),
  agents: z.array(Agent),
  files_changed: z.array(z.string()),
  usage: z.object({ input_tokens: z.number(), output_tokens: z.number() }),
});
export type RunPicture = z.output<typeof RunPicture>;
export type AgentPicture = RunPicture["agents"][number];
