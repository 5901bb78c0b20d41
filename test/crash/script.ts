import { createHash } from "node:crypto";
import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import type { ScriptedReply, ScriptedToolCall } from "../support/scripted-model.ts";

/** One thing an agent wants done, and how it finds out whether it was. */
interface Goal {
  name: string;
  call: Omit<ScriptedToolCall, "id">;
  /** Absent for calls that may be repeated. */
  check?: { call: Omit<ScriptedToolCall, "id">; done: (answer: string) => boolean };
}

/** Goals of one reply; the next stage begins when all of them are reached. */
type Stage = readonly Goal[];

const write = (file_path: string, content: string): Goal => ({
  name: `write ${file_path}`,
  call: { name: "write_file", args: { file_path, content } },
  check: { call: read(file_path), done: (answer) => answer.includes(content.trimEnd()) },
});

const edit = (file_path: string, old_string: string, new_string: string): Goal => ({
  name: `edit ${file_path} ${new_string}`,
  call: { name: "edit_file", args: { file_path, old_string, new_string } },
  check: { call: read(file_path), done: (answer) => answer.includes(new_string) },
});

/** What must not be done twice; a line with `ask`, `deny` or `change` in it needs a person. */
const append = (line: string): Goal => ({
  name: `append ${line}`,
  call: { name: "append", args: { line } },
  check: {
    call: { name: "lines", args: {} },
    done: (answer) => answer.split("\n").some((other) => other === line || other === changed(line)),
  },
});

/** As `append`, by a command in the workspace. */
const command = (run: string, line: string): Goal => ({
  name: `command ${line}`,
  call: {
    name: "execute",
    args: {
      command: `mkdir -p ${run} && sleep 0.01 && echo '${line}' >> ${run}/commands.txt && sleep 0.01`,
      cwd: "/workspace",
    },
  },
  check: { call: read(`/workspace/${run}/commands.txt`), done: (answer) => answer.includes(line) },
});

const read = (file_path: string): Goal["call"] => ({ name: "read_file", args: { file_path } });

const delegate = (description: string): Goal => ({
  name: description,
  call: { name: "task", args: { description, subagent_type: "general-purpose" } },
});

/** What a person makes of a line that contains `change`. */
export const changed = (line: string): string => `${line} (changed)`;

/** What the agent of a task has to do: `main <run>` or `part <run> <name>`. */
function stagesOf(task: string): Stage[] {
  const [kind, run = "", part = ""] = task.split(" ");
  if (kind === "part") {
    const file = `/workspace/${run}/${part}.md`;
    return [
      [
        append(`${run} ${part} begins`),
        command(run, `${run} ${part} commands`),
        write(file, `${part} of ${run}\n`),
      ],
      [append(`${run} ${part} ask`), edit(file, `${part} of`, `${part}, a part of`)],
      [append(`${run} ${part} ends`)],
    ];
  }
  const file = `/workspace/${run}/main.md`;
  return [
    [write(file, `report of ${run}\n`), write("/draft.md", "only in the thread\n"), append(`${run} begins`)],
    [edit(file, `report of ${run}`, `report of ${run}, revised`), { name: "look", call: read("/draft.md") }],
    [...["one", "two", "three"].map((name) => delegate(`part ${run} ${name}`)), command(run, `${run} works`)],
    [
      append(`${run} ask`),
      command(run, `${run} ask for a command`),
      append(`${run} deny`),
      append(`${run} change`),
      edit("/draft.md", "only", "still"),
    ],
    [append(`${run} ends`)],
  ];
}

type State = "open" | "unknown" | "missing" | "done";

/** The next reply of the agent with this conversation: nothing else decides, so that it can be continued. */
export function nextReply(messages: readonly BaseMessage[]): ScriptedReply {
  const begin = messages.findIndex((message) => HumanMessage.isInstance(message));
  const task = messages[begin]?.text ?? "";
  const answers = new Map(
    messages
      .filter((message) => ToolMessage.isInstance(message))
      .map((message) => [message.tool_call_id, message]),
  );
  const calls = messages.flatMap((message) =>
    AIMessage.isInstance(message) ? (message.tool_calls ?? []) : [],
  );
  for (const stage of stagesOf(task)) {
    const toolCalls = stage.flatMap((goal) =>
      callFor(
        goal,
        calls.map(({ id = "" }) => id),
        answers,
      ),
    );
    if (toolCalls.length > 0) return { toolCalls, delayMs: Math.random() * 10 };
  }
  return { text: `${task} is done`, delayMs: Math.random() * 10 };
}

/** How the ids of a goal's calls begin, in a form that every provider takes. */
function idsOf({ name }: Goal): { act: string; look: string } {
  const id = createHash("sha256").update(name).digest("hex").slice(0, 20);
  const kind = name.includes("/draft.md") ? "draft" : "goal";
  return { act: `${kind}-${id}-act-`, look: `${kind}-${id}-look-` };
}

function callFor(goal: Goal, calls: readonly string[], answers: ReadonlyMap<string, ToolMessage>) {
  const { act, look } = idsOf(goal);
  const own = calls.filter((id) => id.startsWith(act) || id.startsWith(look));
  const last = own.at(-1);
  const state = last === undefined ? "open" : stateAfter(goal, last, answers.get(last));
  if (state === "done") return [];
  if (state === "unknown" && goal.check) return [{ id: `${look}${own.length}`, ...goal.check.call }];
  return [{ id: `${act}${own.length}`, ...goal.call }];
}

function stateAfter(goal: Goal, call: string, answer: ToolMessage | undefined): State {
  if (answer === undefined) throw new Error(`the call ${call} was not answered`);
  if (call.startsWith(idsOf(goal).look)) return goal.check?.done(answer.text) === true ? "done" : "missing";
  if (answer.text.startsWith("Error: The server stopped")) return "unknown";
  if (answer.status !== "error" || answer.text.startsWith("User rejected")) return "done";
  throw new Error(`the call ${call} was answered: ${answer.text}`);
}
