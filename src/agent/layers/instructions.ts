import type { BackendSource } from "../../backends/backend.ts";
import { validatePath } from "../../backends/paths.ts";
import type { Logger } from "../../core/logger.ts";
import { isDeepStrictEqual } from "node:util";
import { type Compaction, compactedView } from "../compaction/compacted-view.ts";
import type { Middleware, ToolCallRequest } from "../contracts/middleware.ts";
import { CONTEXT_CHANNELS, type TextsByName } from "../contracts/state.ts";
import { callsOf, isReply, isResult } from "../messages/messages.ts";
import { type InstructionOptions, InstructionReader, type Instructions } from "./instruction-files.ts";

const { instructions: INSTRUCTIONS, laterInstructions: LATER_INSTRUCTIONS } = CONTEXT_CHANNELS;

/**
 * Instructions of the project in the prompt, before the memories, read at the start of each run. Those of folders and
 * files below follow with the result of the first call that reads or changes a file there, and again after compaction.
 */
export const instructionsMiddleware = (
  backend: BackendSource,
  options: InstructionOptions,
  log: Logger,
): Middleware => ({
  name: "InstructionsMiddleware",
  channels: { [INSTRUCTIONS]: { kind: "latest", initial: {} }, [LATER_INSTRUCTIONS]: { kind: "texts" } },
  beforeAgent: async (state, { step }) => {
    const read = await new InstructionReader(options, await step.backend(backend, state, log)).start();
    // A thread keeps the bytes of its prompt until a file changes.
    if (isDeepStrictEqual(read, keptInstructions(state))) return undefined;
    if (step.agent.length === 0)
      for (const message of read.notes.slice(0, 10))
        step.tell({ kind: "warning", message: `Instructions: ${message}` });
    return { [INSTRUCTIONS]: read };
  },
  wrapModelCall: (request, next) => {
    const { block = "" } = keptInstructions(request.state);
    if (block === "") return next(request);
    return next({ ...request, closingPrompt: [block, request.closingPrompt ?? []].flat().join("\n\n") });
  },
  wrapCall: async (request, next) => {
    const result = await next(request);
    const path = request.isInner || result.status === "error" ? undefined : touchedPath(request.toolCall);
    if (path === undefined) return result;
    const { runtime, state } = request;
    const files = await runtime.step.backend(backend, state, log);
    const reader = new InstructionReader(options, files, keptInstructions(state).versions);
    const { text, names } = await instructionsAbout(path, reader, request);
    if (names.length === 0) return result;
    const calls = Object.fromEntries(names.map((name) => [name, request.toolCall.id ?? ""]));
    const { content } = result;
    const more = typeof content === "string" ? `${content}\n\n${text}` : [...content, { type: "text", text }];
    return { ...result, content: more, update: { ...result.update, [LATER_INSTRUCTIONS]: calls } };
  },
});

/** The instructions about a file that the model does not see yet, and the names of the folders and files they are of. */
async function instructionsAbout(path: string, reader: InstructionReader, request: ToolCallRequest) {
  const { state, toolCall } = request;
  const { rules = [] } = keptInstructions(state);
  const { at, names: wanted } = reader.about(path, rules);
  const nothing = { text: "", names: [] };
  if (wanted.length === 0) return nothing;
  const later = (state[LATER_INSTRUCTIONS] as TextsByName | undefined) ?? {}; // our channel
  const compaction = (state[CONTEXT_CHANNELS.compaction] as Compaction | undefined) ?? {}; // its channel
  const results = compactedView(state.messages, compaction).filter(isResult);
  const visible = results.filter(({ text }) => text.includes("<project_instructions>"));
  const calls = new Set(visible.map((result) => result.tool_call_id));
  const seen = new Set(Object.keys(later).filter((name) => calls.has(later[name] ?? "")));
  // Calls of one reply run side by side: the first that reads there shows them.
  for (const call of callsOf(state.messages.findLast(isReply))) {
    if (call.id === toolCall.id) break;
    const earlier = touchedPath(call);
    for (const name of earlier === undefined ? [] : reader.about(earlier, rules).names) seen.add(name);
  }
  const names = wanted.filter((name) => !seen.has(name));
  const isRule = new Set(rules.map((rule) => rule.at));
  const found = [];
  for (const name of names)
    found.push(...(isRule.has(name) ? await reader.take(name) : await reader.folder(name)));
  const texts = found.filter((one) => one.at !== at);
  if (texts.length === 0) return nothing;
  const lead = "Instructions of the project for the file above; they count like those in the system prompt.";
  return { text: InstructionReader.inBlock(`${lead}\n\n${reader.render(texts)}`), names };
}

/** The path of a call that reads or changes one file. */
function touchedPath({ name, args }: ToolCallRequest["toolCall"]): string | undefined {
  if (!["read_file", "write_file", "edit_file"].includes(name)) return undefined;
  const valid = validatePath(args["file_path"] ?? args["path"]);
  return valid.ok ? valid.path : undefined;
}

const keptInstructions = (state: Readonly<Record<string, unknown>>): Partial<Instructions> =>
  (state[INSTRUCTIONS] as Instructions | undefined) ?? {}; // our channel
