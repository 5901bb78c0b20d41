import { z } from "zod";
import { namesText, withinRoom } from "../core/listing.ts";
import { cutMiddle, displayName, displayText, oneLine, fill } from "../core/text.ts";
import { cancellable } from "./call.ts";
import { onlyAlike } from "./mend-arguments.ts";
import type { BoundPreview, ToolContext, ToolResult, ToolSpec } from "./tool.ts";
import { defineTool, toolError } from "./tool.ts";
import texts from "./texts.json" with { type: "json" };

interface SubagentSummary {
  name: string;
  /** When to use it, for the model that delegates. */
  description: string;
}

export interface TaskToolOptions {
  /** The types a call may name, in the order they are listed. */
  subagents: readonly SubagentSummary[];
  /** Replaces the built-in text; `{available_agents}` in it stands for the list of types. */
  description?: string;
  /** Characters of the list. Default: as many as all types need. Types that are not listed can be started, too. */
  room?: number | undefined;
  /** Folders whose files describe types, where the model finds those that are not listed. */
  folders?: readonly string[] | undefined;
}

/** A type may be written in another case, or with `_` for `-`. */
const schemaFor = (names: readonly string[]) =>
  z.strictObject({
    description: z
      .string()
      .min(1)
      .describe("The goal, facts and paths it cannot know, and the format of the report."),
    subagent_type: z
      .string()
      .transform((type) => (names.includes(type) ? type : (onlyAlike(type, names) ?? type))),
  });

type TaskSchema = ReturnType<typeof schemaFor>;

/** Delegates to a subagent through the context's `spawn`. */
export function taskTool(options: TaskToolOptions): ToolSpec<TaskSchema> {
  const { subagents, description = texts.task, folders = [] } = options;
  const names = subagents.map(({ name }) => name);
  const { shown } = listedTypes(options);
  const named = folders.map((folder) => `\`${folder}\``).join(" and ");
  const more =
    folders.length === 0
      ? "More types exist than are listed here; the user may name one."
      : `More types exist than are listed here: list ${named}, and use the \`name\` in a file as the type.`;
  const list = [...shown.map(typeLine), ...(shown.length < subagents.length ? [more] : [])].join("\n");
  return defineTool({
    name: "task",
    kind: "delegate",
    description: description.replaceAll("{available_agents}", () => list),
    schema: schemaFor(names),
    handle: (args, context) => cancellable("task", context.signal, () => delegate(args, names, context)),
    preview: async (args, context) => {
      const shown = taskPreview(args.subagent_type, args.description);
      const isKnown = names.includes(args.subagent_type);
      return isKnown ? shown : { ...shown, failure: await delegate(args, names, context) };
    },
  });
}

/** The approver of a delegation sees the whole assignment. */
export const taskPreview = (type: string, description: string): BoundPreview => ({
  kind: "arguments",
  summary: displayName(`Delegate a task to the subagent '${type}'`),
  detail: displayText(cutMiddle(description, 100_000)),
});

async function delegate(
  { description, subagent_type: type }: z.output<TaskSchema>,
  names: readonly string[],
  { spawn }: ToolContext,
): Promise<ToolResult> {
  if (!names.includes(type))
    return toolError(fill(texts.unknownSubagent, displayName(type), namesText(names)));
  if (!spawn) return toolError("subagents are not available here; do the task directly.");
  const report = await spawn({ subagentType: type, description });
  return report.content.length > 0 ? report : { ...report, content: "Task completed" };
}

export const listedTypes = ({ subagents, room }: Pick<TaskToolOptions, "subagents" | "room">) =>
  withinRoom(subagents, typeLine, room);

const typeLine = ({ name, description }: SubagentSummary): string =>
  `- ${name}: ${oneLine(description, 2000)}`;
