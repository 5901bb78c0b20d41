import type { BackendSource } from "../../backends/backend.ts";
import { readText } from "../../backends/file-data.ts";
import { listRoots } from "../../backends/runtime.ts";
import type { Logger } from "../../core/logger.ts";
import { headOf, oneLine } from "../../core/text.ts";
import type { Middleware } from "../contracts/middleware.ts";
import type { TextsByName } from "../contracts/state.ts";
import { asMaterial, memoryGuidelines } from "../messages/prompts.ts";

/** Longest part of one file that is shown; the rest is read with the file tools. */
const MAX_CHARS = 40_000;

/**
 * Long-term memory at the end of the system prompt: files read at the start of each run. A thread keeps the texts
 * until a file changes, so that the prompt has the same bytes over its runs. `sources`: paths of `AGENTS.md` files, in
 * the order in which they are shown.
 */
export const memoryMiddleware = (
  backend: BackendSource,
  sources: readonly string[],
  log: Logger,
): Middleware => ({
  name: "MemoryMiddleware",
  channels: { memoryContents: { kind: "latest", initial: {} } },
  beforeAgent: async (state, runtime) => {
    const resolved = await runtime.step.backend(backend, state, log);
    const known = readContents(state);
    const memoryContents: Record<string, string> = {};
    // Files that do not exist are left out. A file that cannot be read now keeps its last content.
    for (const path of sources) {
      // A larger file is not looked at.
      const file = await readText(resolved, path, 10 * 1024 * 1024);
      if (file.text !== undefined) {
        memoryContents[path] = file.text;
        const characters = file.text.length;
        if (characters <= MAX_CHARS) continue;
        const head = headOf(file.text, MAX_CHARS);
        const lines = head.split("\n").length - 1;
        memoryContents[path] =
          `${head}\n[cut here: the file has ${characters} characters; continue with read_file ${path}, offset ${lines}]`;
        log.warn("memory_cut", { path, characters, shown: MAX_CHARS });
      } else if (file.code !== "not_found") {
        log.warn("memory_not_read", { path, error: file.error });
        if (known[path] !== undefined) memoryContents[path] = known[path];
      }
    }
    return JSON.stringify(memoryContents) === JSON.stringify(known) ? undefined : { memoryContents };
  },
  wrapModelCall: async (request, next) => {
    const { runtime, state } = request;
    const resolved = await runtime.step.backend(backend, state);
    const guidelines = memoryGuidelines(await listRoots(resolved), sources);
    const files = Object.entries(readContents(state))
      .filter(([, text]) => text.trim() !== "")
      .map(([path, text]) => `${asMaterial(oneLine(path, 1024))}\n${asMaterial(text.trim())}`);
    const body = files.length === 0 ? "(no memory yet)" : files.join("\n\n");
    const memory = `<agent_memory>\n${body}\n</agent_memory>\n\n${guidelines}`;
    return next({ ...request, closingPrompt: [request.closingPrompt ?? [], memory].flat().join("\n\n") });
  },
});

/** Content of the memory files that exist, by path, in the order of the sources. */
const readContents = (state: Readonly<Record<string, unknown>>): TextsByName =>
  (state["memoryContents"] as TextsByName | undefined) ?? {}; // our channel
