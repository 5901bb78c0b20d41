import { createHash } from "node:crypto";
import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import type { ScriptedReply, ScriptedToolCall } from "../support/scripted-model.ts";

type Call = Omit<ScriptedToolCall, "id">;

/** One thing an agent wants done, and how it finds out whether it was. */
interface Goal {
  name: string;
  /** The calls of a goal count from 0; what they leave behind says which one it was. `last`: how the last was answered. */
  call(attempt: number, last?: string): Call;
  /** Whatever answers it, it is reached. */
  isContentWithAny?: true;
  /** Absent for calls that may be repeated. */
  check?: { call: Call; done: (answer: string) => boolean };
}

/** Goals of one reply; the next stage begins when all of them are reached. */
type Stage = readonly Goal[];

const read = (file_path: string): Call => ({ name: "read_file", args: { file_path } });

const look = (file_path: string): Goal => ({ name: `look at ${file_path}`, call: () => read(file_path) });

/** A look at what may not be there. */
const glance = (file_path: string): Goal => ({ ...look(file_path), isContentWithAny: true });

const write = (file_path: string, content: string): Goal => ({
  name: `write ${file_path}`,
  call: () => ({ name: "write_file", args: { file_path, content } }),
  check: { call: read(file_path), done: (answer) => answer.includes(content.trimEnd()) },
});

const edit = (file_path: string, old_string: string, new_string: string): Goal => ({
  name: `edit ${file_path} ${new_string}`,
  call: () => ({ name: "edit_file", args: { file_path, old_string, new_string } }),
  check: { call: read(file_path), done: (answer) => answer.includes(new_string) },
});

const remove = (file_path: string): Goal => ({
  name: `delete ${file_path}`,
  call: () => ({ name: "delete", args: { file_path } }),
  check: { call: read(file_path), done: (answer) => answer.includes("not found") },
});

/** Whether a line is there, as it was wanted or as a person changed it. */
const isWritten = (line: string): NonNullable<Goal["check"]> => ({
  call: { name: "lines", args: {} },
  done: (answer) =>
    answer
      .split("\n")
      .map(bare)
      .some((other) => other === line || other === changed(line)),
});

/** What must not be done twice; a line with `ask`, `deny` or `change` in it needs a person. */
const append = (line: string): Goal => ({
  name: `append ${line}`,
  call: (attempt) => ({ name: "append", args: { line: `${line} #${attempt}` } }),
  check: isWritten(line),
});

/** As `append`, by another server where one is configured. */
const appendElsewhere = (line: string): Goal => ({
  name: `append elsewhere ${line}`,
  call: (attempt, last = "") => ({
    name: last.includes(NO_TOOL) ? "append" : "lines__append",
    args: { line: `${line} #${attempt}` },
  }),
  check: isWritten(line),
});

/** As `append`, by a subagent of which nobody knows what it does. */
const appendBy = (subagent_type: string, line: string): Goal => ({
  name: `append by ${subagent_type} ${line}`,
  call: (attempt) => ({ name: "task", args: { description: `${line} #${attempt}`, subagent_type } }),
  check: isWritten(line),
});

/** As `append`, by a command in the workspace. */
const command = (run: string, line: string): Goal => ({
  name: `command ${line}`,
  call: (attempt) => ({
    name: "execute",
    args: {
      command: `mkdir -p ${run} && sleep 0.01 && echo '${line} #${attempt}' >> ${run}/commands.txt && sleep 0.01`,
      cwd: "/workspace",
    },
  }),
  check: { call: read(`/workspace/${run}/commands.txt`), done: (answer) => answer.includes(`${line} #`) },
});

const delegate = (description: string, subagent_type = "general-purpose"): Goal => ({
  name: description,
  call: () => ({ name: "task", args: { description, subagent_type } }),
});

/** What a person makes of a line that contains `change`. */
export const changed = (line: string): string => `${line} (changed)`;

/** The line without the number of the call that left it behind. */
export const bare = (line: string): string => line.replace(/ #\d+/, "");

/** What a working agent is told to do besides. */
export const besides = (run: string, name = ""): string => `also ${run} ${name}`.trimEnd();

/** The end of the lines that another server appends, which may outlive the one that asked it to by a moment. */
export const ELSEWHERE = "elsewhere";
/** What a call is answered with whose server is not configured. */
const NO_TOOL = "is not a valid tool";

const KINDS: Record<string, (run: string, name: string) => Stage[]> = {
  main(run) {
    const file = `/workspace/${run}/main.md`;
    const scrap = `/workspace/${run}/scrap.md`;
    return [
      [
        write(file, `report of ${run}\n`),
        write("/draft.md", "only in the thread\n"),
        append(`${run} begins`),
      ],
      [
        edit(file, `report of ${run}`, `report of ${run}, revised`),
        look("/draft.md"),
        write(scrap, "to be thrown away\n"),
      ],
      [
        ...["one", "two", "three"].map((name) => delegate(`part ${run} ${name}`)),
        command(run, `${run} works`),
        delegate(`leaf ${run} forked`, "fork"),
        delegate(`leaf ${run} deep`, "deep"),
        appendBy("graph", `${run} by a graph`),
        appendBy("function", `${run} by a function`),
        appendElsewhere(`${run} ${ELSEWHERE}`),
        glance("/skills/notes/SKILL.md"),
      ],
      [
        append(`${run} ask`),
        command(run, `${run} ask for a command`),
        append(`${run} deny`),
        append(`${run} change`),
        edit("/draft.md", "only", "still"),
        remove(scrap),
      ],
      [append(`${run} ends`)],
    ];
  },
  part(run, name) {
    const file = `/workspace/${run}/${name}.md`;
    return [
      [
        append(`${run} ${name} begins`),
        command(run, `${run} ${name} commands`),
        write(file, `${name} of ${run}\n`),
      ],
      [
        append(`${run} ${name} ask`),
        edit(file, `${name} of`, `${name}, a part of`),
        ...(name === "one" ? [delegate(`leaf ${run} ${name}`), delegate(`leaf ${run} other`)] : []),
      ],
      [append(`${run} ${name} ends`)],
    ];
  },
  leaf: (run, name) => [
    [append(`${run} ${name} leaf`), write(`/workspace/${run}/leaf-${name}.md`, `leaf ${name} of ${run}\n`)],
    [append(`${run} ${name} leaf ask`)],
  ],
  quiet: (run) => [
    [append(`${run} begins`), delegate(`leaf ${run} quiet`)],
    [append(`${run} ask`), append(`${run} deny`), append(`${run} change`)],
    [append(`${run} ends`)],
  ],
  wire(run) {
    const file = `/workspace/${run}/main.md`;
    return [
      [write(file, `report of ${run}\n`)],
      [command(run, `${run} works`)],
      [edit(file, `report of ${run}`, `report of ${run}, revised`)],
      [delegate(`wired ${run} one`), delegate(`wired ${run} two`)],
      [command(run, `${run} deny`)],
      [command(run, `${run} ends`)],
    ];
  },
  wired: (run, name) => [
    [write(`/workspace/${run}/${name}.md`, `${name} of ${run}\n`)],
    [command(run, `${run} ${name} ends`)],
  ],
  also: (run, name) => [[append(`${run} was told ${name}`.trimEnd())]],
  more: (run) => [
    [
      look("/draft.md"),
      edit(`/workspace/${run}/main.md`, "revised", "revised twice"),
      append(`${run} again`),
    ],
    [append(`${run} again ask`)],
  ],
  fork: (run) => [[append(`${run} forks`)], [append(`${run} forks ask`)]],
  stop: (run) => [[append(`${run} starts`)], [append(`${run} ask to go on`)], [append(`${run} goes on`)]],
};

function stagesOf(task: string): Stage[] {
  const [kind = "", run = "", name = ""] = task.split(" ");
  return KINDS[kind]?.(run, name) ?? [];
}

type State = "open" | "unknown" | "missing" | "done";

/** The next reply of the agent with this conversation: nothing else decides, so that it can be continued. */
export function nextReply(messages: readonly BaseMessage[]): ScriptedReply {
  const told = messages.filter((message) => HumanMessage.isInstance(message)).map(({ text }) => text);
  const begin = told.findLastIndex((text) => !text.startsWith("also "));
  const answers = new Map(
    messages
      .filter((message) => ToolMessage.isInstance(message))
      .map((message) => [message.tool_call_id, message]),
  );
  const calls = messages
    .flatMap((message) => (AIMessage.isInstance(message) ? (message.tool_calls ?? []) : []))
    .map(({ id = "" }) => id);
  for (const stage of told.slice(begin).flatMap(stagesOf)) {
    const toolCalls = stage.flatMap((goal) => callFor(goal, calls, answers));
    if (toolCalls.length > 0) return { toolCalls, delayMs: Math.random() * 10 };
  }
  return { text: `${told[begin]} is done`, delayMs: Math.random() * 10 };
}

/** How the ids of a goal's calls begin, in a form that every provider takes. */
export function idsOf({ name }: Pick<Goal, "name">): { act: string; look: string } {
  const id = createHash("sha256").update(name).digest("hex").slice(0, 20);
  const kind = name.includes("/draft.md") ? "draft" : "goal";
  return { act: `${kind}-${id}-act-`, look: `${kind}-${id}-look-` };
}

function callFor(goal: Goal, calls: readonly string[], answers: ReadonlyMap<string, ToolMessage>) {
  const ids = idsOf(goal);
  const own = calls.filter((id) => id.startsWith(ids.act) || id.startsWith(ids.look));
  const last = own.at(-1);
  const state = last === undefined ? "open" : stateAfter(goal, last, answers.get(last), own.length > 1);
  if (state === "done") return [];
  if (state === "unknown" && goal.check) return [{ id: `${ids.look}${own.length}`, ...goal.check.call }];
  const before = last === undefined ? undefined : answers.get(last)?.text;
  return [{ id: `${ids.act}${own.length}`, ...goal.call(own.length, before) }];
}

/** `again`: an earlier call of unknown outcome may have come through since it was looked for. */
function stateAfter(goal: Goal, call: string, answer: ToolMessage | undefined, again: boolean): State {
  if (answer === undefined) throw new Error(`the call ${call} was not answered`);
  if (call.startsWith(idsOf(goal).look)) return goal.check?.done(answer.text) === true ? "done" : "missing";
  if (goal.isContentWithAny) return "done";
  if (answer.text.startsWith("Error: The server stopped")) return "unknown";
  if (answer.text.includes(NO_TOOL)) return "missing";
  if (answer.text.startsWith("Error: The MCP server lines failed")) return "unknown";
  if (answer.status !== "error" || answer.text.startsWith("User rejected")) return "done";
  if (again) return "unknown";
  throw new Error(`the call ${call} was answered: ${answer.text}`);
}
