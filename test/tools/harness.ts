import type { Backend, Failure } from "../../src/backends/backend.ts";
import type { SandboxBackend } from "../../src/backends/executor.ts";
import { StateBackend } from "../../src/backends/stores/state.ts";
import { snapshotFiles } from "../../src/backends/runtime.ts";
import { parseArguments } from "../../src/tools/call.ts";
import { fileTools } from "../../src/tools/index.ts";
import type { FileToolOptions } from "../../src/tools/options.ts";
import type { SpawnSubagent, ToolContext, ToolResult, ToolSpec } from "../../src/tools/tool.ts";
import type { CallPreview } from "../../src/tools/request.ts";

export interface CallScope {
  signal?: AbortSignal;
  spawn?: SpawnSubagent;
}

/** Tools over one backend, called the way a model calls them. */
export class ToolHarness {
  readonly backend: Backend;
  readonly #tools: ReadonlyMap<string, ToolSpec>;

  constructor(backend: Backend, tools: readonly ToolSpec[]) {
    this.backend = backend;
    this.#tools = new Map(tools.map((tool) => [tool.name, tool]));
  }

  async call(name: string, raw: Record<string, unknown>, scope: CallScope = {}): Promise<ToolResult> {
    const tool = this.tool(name);
    return tool.handle(argumentsFor(tool, raw), this.#context(scope));
  }

  /** The answer as text; fails for content blocks. */
  async text(name: string, raw: Record<string, unknown>, scope: CallScope = {}): Promise<string> {
    const { content } = await this.call(name, raw, scope);
    if (typeof content !== "string") throw new Error(`${name} answered with content blocks`);
    return content;
  }

  /** The content of a file, as the backend has it. */
  async contentOf(path: string): Promise<unknown> {
    return (await this.backend.readRaw(path)).data?.content;
  }

  /** What a person is shown. */
  async preview(name: string, raw: Record<string, unknown>): Promise<CallPreview> {
    const tool = this.tool(name);
    const preview = await tool.preview?.(argumentsFor(tool, raw), this.#context({}));
    if (!preview) throw new Error(`${name} has no preview`);
    const { kind, summary, detail, lost } = preview;
    return { kind, summary, detail, ...(lost === undefined ? {} : { lost }) };
  }

  pathOf(name: string, raw: Record<string, unknown>): string | undefined {
    const tool = this.tool(name);
    return tool.pathOf?.(argumentsFor(tool, raw));
  }

  tool(name: string): ToolSpec {
    const tool = this.#tools.get(name);
    if (!tool) throw new Error(`no tool ${name}`);
    return tool;
  }

  #context({ signal = new AbortController().signal, spawn }: CallScope): ToolContext {
    return { callId: "call_1", signal, backend: this.backend, ...(spawn ? { spawn } : {}) };
  }
}

export function harness(backend: Backend, options: FileToolOptions = {}): ToolHarness {
  return new ToolHarness(backend, fileTools(options));
}

/** A State backend that holds these files. */
export function stateBackend(files: Readonly<Record<string, string | Uint8Array>> = {}): StateBackend {
  const clock = () => Date.UTC(2026, 0, 2, 3, 4, 5, 6);
  const backend = new StateBackend({ files: snapshotFiles() }, { clock });
  const encoder = new TextEncoder();
  backend.uploadFiles(
    Object.entries(files).map(([path, content]): [string, Uint8Array] => [
      path,
      typeof content === "string" ? encoder.encode(content) : content,
    ]),
  );
  return backend;
}

/** A backend of another project: it gives the answers it is given, with only what its protocol demands. */
export function foreignBackend(answers: Partial<SandboxBackend>): Backend {
  const refuse = (): Failure => ({ error: "not supported by this backend", code: "unsupported" });
  const required = { ls: refuse, read: refuse, readRaw: refuse, grep: refuse, glob: refuse };
  return { ...required, write: refuse, edit: refuse, ...answers };
}

function argumentsFor(tool: ToolSpec, raw: Record<string, unknown>): Record<string, unknown> {
  const parsed = parseArguments(tool, raw);
  if (!parsed.ok) throw new Error(parsed.message);
  return parsed.args;
}
