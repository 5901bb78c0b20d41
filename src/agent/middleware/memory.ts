import { StateSchema } from "@langchain/langgraph";
import type { Backend, BackendSource } from "../../backends/backend.ts";
import { contentOf } from "../../backends/file-data.ts";
import { resolveBackend } from "../../backends/resolve.ts";
import type { Logger } from "../../core/logger.ts";
import { oneLine } from "../../core/text.ts";
import { asMaterial, MEMORY_GUIDELINES } from "../prompts.ts";
import { latest } from "../state.ts";
import { backendRuntime, threadFiles } from "../step.ts";
import { appendSystemPrompt, type Middleware } from "./middleware.ts";

/** Content of the memory files that exist, by path, in the order of the sources. */
export type MemoryContents = Readonly<Record<string, string>>;

export interface MemoryOptions {
  backend: BackendSource;
  /** Paths of `AGENTS.md` files, in the order they are shown. */
  sources: readonly string[];
  log: Logger;
}

/**
 * Long-term memory in the system prompt: files read at the start of each run. A thread keeps what it
 * read until a file changes, so that the prompt has the same bytes over its runs.
 */
export function memoryMiddleware({ backend, sources, log }: MemoryOptions): Middleware {
  return {
    name: "MemoryMiddleware",
    stateSchema: new StateSchema({ memoryContents: latest<MemoryContents>({}) }),
    beforeAgent: async (state, runtime) => {
      const resolved = await resolveBackend(backend, backendRuntime(runtime, threadFiles(runtime)));
      const memoryContents = await readSources(resolved, sources, log);
      const known = JSON.stringify(state["memoryContents"] ?? {});
      return JSON.stringify(memoryContents) === known ? undefined : { memoryContents };
    },
    wrapModelCall: (request, next) => {
      const contents = request.state["memoryContents"] as MemoryContents | undefined; // our channel
      return next(appendSystemPrompt(request, memoryBlock(contents ?? {})));
    },
  };
}

async function readSources(
  backend: Backend,
  sources: readonly string[],
  log: Logger,
): Promise<MemoryContents> {
  const contents: Record<string, string> = {};
  for (const path of sources) {
    const { data, error, code } = await backend.readRaw(path);
    if (data) {
      const content = contentOf(path, data);
      if (content.ok && content.content.kind === "text") contents[path] = content.content.text;
    } else if (code !== "not_found") {
      log.warn("memory_not_read", { path, error });
    }
  }
  return contents;
}

function memoryBlock(contents: MemoryContents): string {
  const files = Object.entries(contents)
    .filter(([, text]) => text.trim() !== "")
    .map(([path, text]) => `${asMaterial(oneLine(path, 1024))}\n${asMaterial(text.trim())}`);
  const body = files.length === 0 ? "(no memory yet)" : files.join("\n\n");
  return `<agent_memory>\n${body}\n</agent_memory>\n\n${MEMORY_GUIDELINES}`;
}
