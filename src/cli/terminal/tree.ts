/** The picture of a run as lines for a terminal: todos, then the tree of agents, then where the run stands. */
import { dollars, tokens } from "../../server/views/cost-words.ts";
import { groupBy } from "../../core/group-by.ts";
import { duration, firstSentence, oneLine, showControl } from "../../core/text.ts";
import { GENERAL_PURPOSE } from "../../tools/tool.ts";
import type { runDocument } from "../../server/views/run-document.ts";
import { counted } from "../../tools/format.ts";
import { type Colors, displayWidth, fit, padded } from "./text.ts";
import words from "./words.json" with { type: "json" };

/** The fields of the resource `deepagent://runs/{run_id}` that the terminal shows. */
export type RunPicture = Pick<
  ReturnType<typeof runDocument>,
  "status" | "activity" | "todos" | "agents" | "created_at"
> & {
  /** There while nobody works on the run. */
  queue?: object | undefined;
  ended_at?: string | undefined;
  usage: Pick<ReturnType<typeof runDocument>["usage"], "input_tokens" | "output_tokens" | "cost_usd">;
};
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
  const above = [...todos, ...gap, ...agents];
  const shown = above.length > 0 ? [...above, ""].slice(0, Math.max(room, 0)) : [];
  return [...shown, ...end];
}

/** Drops finished todos first. */
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
  const all = [...folded, ...lines];
  if (all.length <= room) return all;
  const more = `  ${colors.dim(fit(`… ${all.length - room + 1} more`, width - 2))}`;
  return room < 1 ? [] : [...all.slice(0, room - 1), more];
}

/** The state of an agent. The table has the words for those that are not shown, the most urgent state first. */
type State = keyof typeof words.folded;

/** The tree of agents; of many, first those that need a person, and as many of the others as there is room for. */
function agentLines({ agents }: RunPicture, style: TreeStyle, room: number): string[] {
  const { colors, width } = style;
  const rows = inTreeOrder(agents);
  if (rows.length <= room) return drawn(rows, style);
  if (room < 1) return [];
  const chosen = chosenRows(rows, room - 1);
  const shown = rows.filter((row) => chosen.has(row));
  const hidden = rows.filter((row) => !chosen.has(row));
  const folded = Object.entries(words.folded).flatMap(([state, text]) => {
    const { length } = hidden.filter((row) => row.state === state);
    return length > 0 ? [`${length} ${text}`] : [];
  });
  const last = `  ${colors.dim(fit(`… ${folded.join(" · ")}`, width - 2))}`;
  return [...drawn(shown, style), last];
}

interface Row {
  agent: AgentPicture;
  state: State;
  depth: number;
  place: number;
}

/** Every agent below the one that started it; of many, the most urgent first. */
function inTreeOrder(agents: readonly AgentPicture[]): Row[] {
  const known = new Set(agents.map(({ call_ids: ids }) => ids.join(" ")));
  let queued = 0;
  const rows = agents.map((agent): Row => {
    const state = agentState(agent);
    const place = state === "queued" ? (queued += 1) : 0;
    return { agent, state, depth: agent.call_ids.length - 1, place };
  });
  const children = groupBy(rows, ({ agent }) => {
    const parent = agent.call_ids.slice(0, -1).join(" ");
    return known.has(parent) ? parent : "";
  });
  const familyOf = (row: Row): Row[] => [
    row,
    ...(children.get(row.agent.call_ids.join(" ")) ?? []).flatMap(familyOf),
  ];
  const families = (children.get("") ?? []).map(familyOf);
  // Few agents stay in the order in which they were started.
  return (agents.length > 8 ? families.toSorted((a, b) => urgency(a) - urgency(b)) : families).flat();
}

const urgency = (family: readonly Row[]): number =>
  Math.min(...family.map(({ state }) => Object.keys(words.folded).indexOf(state)));

function agentState({ status, pending_approvals, pending_questions, waiting }: AgentPicture): State {
  if (status === "completed") return "finished";
  if (status !== "working") return status;
  return pending_approvals + pending_questions > 0 ? "needs you" : waiting ? "waits" : status;
}

/** Chooses rows for `room` lines: those at work before the others, and of each kind the first. */
function chosenRows(rows: readonly Row[], room: number): Set<Row> {
  const chosen = new Set<Row>();
  const choose = (state: State, most: number): void => {
    const left = Math.max(Math.min(most, room - chosen.size), 0);
    for (const row of rows.filter((row) => row.state === state && !chosen.has(row)).slice(0, left))
      chosen.add(row);
  };
  choose("needs you", room);
  choose("failed", Math.ceil(room / 4));
  const isAnyQueued = rows.some(({ state }) => state === "queued");
  choose("working", room - chosen.size - (isAnyQueued ? 1 : 0));
  choose("waits", room);
  choose("queued", room);
  choose("failed", room);
  return chosen;
}

function drawn(rows: readonly Row[], style: TreeStyle): string[] {
  const titles = rows.map(({ agent }) => titleOf(agent.agent, agent.description));
  const column = Math.max(0, ...titles.map(displayWidth));
  return rows.map((row, index) => agentLine(row, rows.slice(index + 1), style, column));
}

/** `column`: how wide the longest title is, so that the steps stand below each other. */
function agentLine(row: Row, below: readonly Row[], style: TreeStyle, column: number): string {
  const { agent, state, depth, place } = row;
  const { colors, width } = style;
  const levels = Math.min(depth, Math.floor(width / 8));
  const indent = Array.from({ length: levels }, (_, level) => (goesOn(level, below) ? "│  " : "   "));
  const branch = `  ${indent.join("")}${goesOn(depth, below) ? "├─" : "└─"} `;
  const made = state === "queued" ? "" : ` ${counted(agent.tool_calls, "call")}`;
  // Equal widths align the steps of all agents.
  const calls = width >= 70 ? made.padStart(" 999 calls".length) : "";
  // Mark and gap take four columns.
  const room = Math.max(width - displayWidth(branch) - displayWidth(calls) - 4, 0);
  const half = Math.floor(room / 2);
  const title = fit(titleOf(agent.agent, agent.description), Math.max(half, Math.min(room, 10)));
  const titled = padded(title, Math.min(column, half));
  const waits = state === "waits" ? "waiting for its agents" : clean(agent.step);
  const does = state === "queued" ? `queued (#${place})` : waits;
  const step = fit(does, room - displayWidth(titled));
  const gap = " ".repeat(room - displayWidth(titled) - displayWidth(step));
  const mark = state === "working" ? spinner(style) : stateMark(state, colors);
  const isActive = state === "working" || state === "needs you";
  const named = isActive ? titled : colors.dim(titled);
  return `${colors.dim(branch)}${mark} ${named}  ${colors.dim(step + gap + calls)}`;
}

/** True if a branch of this depth has more rows before the next shallower row. */
const goesOn = (depth: number, below: readonly Row[]): boolean =>
  below.find((row) => row.depth <= depth)?.depth === depth;

function activityLine(picture: RunPicture, style: TreeStyle): string {
  const { colors, width } = style;
  const atWork = picture.queue === undefined ? spinner(style) : colors.yellow("◌");
  const mark = picture.status === "working" ? atWork : stateMark(picture.status, colors);
  const text = isShownAbove(picture) ? agentCounts(picture) : clean(picture.activity);
  return `  ${mark} ${fit(text, width - 4)}`;
}

/** Returns the coloured sign of a run, an agent or a criterion. */
export function stateMark(state: keyof typeof words.marks, colors: Colors): string {
  const { sign, color } = words.marks[state];
  return colors[color as "cyan" | "yellow" | "green" | "red" | "dim"](sign); // the table has only these
}

/** Such as `8 of 12 agents at work, 4 waiting`. */
function agentCounts({ agents }: RunPicture): string {
  const all = counted(agents.length, "agent");
  const count = (...wanted: State[]): number =>
    agents.filter((agent) => wanted.includes(agentState(agent))).length;
  const [working, queued] = [count("working"), count("needs you", "waits", "queued")];
  const facts = [
    ...(working > 0 ? [`${working} of ${all} at work`] : []),
    ...(queued > 0 ? [`${queued} waiting`] : []),
  ];
  return facts.join(", ") || `${all} done`;
}

/** True if the lines about todos and agents already show the last event. */
export const isShownAbove = ({ activity, agents, status }: RunPicture): boolean =>
  status === "working" && agents.some(({ name }) => activity.startsWith(`${name}: `));

/** Time, tokens and cost so far. */
function figuresLine(picture: RunPicture, { colors, width, now }: TreeStyle): string {
  const { usage, created_at: created, ended_at: ended } = picture;
  const end = ended === undefined ? now : Date.parse(ended);
  const cost = usage.cost_usd;
  const facts = [
    duration(end - Date.parse(created)),
    ...(usage.input_tokens + usage.output_tokens > 0
      ? [`${tokens(usage.input_tokens)} tokens in, ${tokens(usage.output_tokens)} out`]
      : []),
    ...(typeof cost === "number" && cost > 0 ? [dollars(cost)] : []),
  ];
  return `    ${colors.dim(fit(facts.join(" · "), width - 4))}`;
}

const spinner = ({ colors, frame }: TreeStyle): string => colors.cyan(SPINNER[frame % SPINNER.length] ?? "⠋");

/** Returns the first sentence of an agent's task, after its type if that adds something. */
export function titleOf(name: string, description: string): string {
  const type = clean(name.split(" › ").at(-1) ?? name);
  const task = firstSentence(showControl(description), 300).replace(/\.$/, "");
  if (task === "") return type;
  return type === GENERAL_PURPOSE ? task : `${type}: ${task}`;
}

/** Text of agents is untrusted: no escape sequences, one line. */
export const clean = (text: string): string => oneLine(showControl(text), 300);
