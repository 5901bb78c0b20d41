import { type Line, play, type Think } from "../../support/harness-brain.ts";
import { delegate, repeat, writeFile } from "../support.ts";

/** A run that an earlier program began and did not end. */
interface Story {
  task: string;
  /** Files of the workspace at the beginning. */
  files?: Record<string, string>;
  /** Settings besides those of every test, as environment variables. */
  env?: Record<string, string>;
  /** Lines of each agent, by a part of its task. */
  lines: Record<string, readonly Line[]>;
}

const edit = (file_path: string, old_string: string, new_string: string): Line => ({
  toolCalls: [{ name: "edit_file", args: { file_path, old_string, new_string } }],
});

/** One story for each state of a run that later programs have to finish. */
export const STORIES = {
  approval: {
    task: "Write one file",
    lines: { "Write one file": [{ toolCalls: [writeFile("/workspace/new.md", "new\n")] }, repeat] },
  },
  "second-question": {
    task: "Raise the limit",
    files: { "limits.txt": "timeout = 5\nretries = 1\n" },
    env: { DEEPAGENT_APPROVALS_ALLOW_MODEL_ANSWERS: "true" },
    lines: { "Raise the limit": [edit("/workspace/limits.txt", "timeout = 5", "timeout = 9"), repeat] },
  },
  "subagent-approval": {
    task: "Have a file written",
    lines: {
      "Have a file written": [{ toolCalls: [delegate("Write the deep file")] }, repeat],
      "Write the deep file": [{ toolCalls: [writeFile("/workspace/deep.md", "deep\n")] }, repeat],
    },
  },
  "stored-decision": {
    task: "Add a line",
    files: { "lines.txt": "end\n" },
    lines: { "Add a line": [edit("/workspace/lines.txt", "end", "line\nend"), repeat] },
  },
  "begun-effect": {
    task: "Run a command",
    lines: {
      "Run a command": [
        { toolCalls: [{ name: "execute", args: { command: "echo begun >> begun.txt; sleep 30" } }] },
        repeat,
      ],
    },
  },
  "lent-model": { task: "Keep a note", env: { DEEPAGENT_MODEL: "client" }, lines: {} },
} satisfies Record<string, Story>;

export type StoryName = keyof typeof STORIES;

/** Stories whose data is also in Postgres, by the folder of their dump. */
export const IN_POSTGRES = {
  "approval-postgres": "approval",
  "subagent-approval-postgres": "subagent-approval",
} as const satisfies Record<string, StoryName>;

/** A story as tests and the writer open it: the model that began the run also continues it. */
export function storyOf(name: StoryName): Required<Omit<Story, "lines">> & { think: Think } {
  const { lines, ...story }: Story = STORIES[name];
  return { files: {}, env: {}, ...story, think: play(lines) };
}

/** Replies of the lent model: it writes a file of the thread, then ends. */
export const LENT_REPLIES = [
  {
    role: "assistant",
    model: "lent-1",
    stopReason: "toolUse",
    content: [{ type: "tool_use", id: "use_1", ...toSampling(writeFile("/note.md", "kept\n")) }],
  },
  { role: "assistant", model: "lent-1", stopReason: "endTurn", content: { type: "text", text: "noted" } },
];

function toSampling({ name, args }: ReturnType<typeof writeFile>) {
  return { name, input: args };
}

export const LENDS = { sampling: { tools: {} } };
