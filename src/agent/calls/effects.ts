/** Keeps calls with outside effects from taking effect twice when a run continues after a crash. */
import type { ToolCall } from "@langchain/core/messages/tool";
import type { Backend, MaybePromise, ThreadFiles } from "../../backends/backend.ts";
import { lifetimeAt } from "../../backends/runtime.ts";
import { toolError } from "../../tools/tool.ts";
import type { AgentTool, CallResult } from "../contracts/middleware.ts";

/** The record of one call, as `EffectLog` keeps it for a run. */
export interface Effects {
  /** Returns undefined if the call never began. Without `result`, its end is unknown, or its `handle` continues it. */
  find(): MaybePromise<{ result?: CallResult; handle?: unknown } | undefined>;
  begin(tool: string): MaybePromise<void>;
  finish(call: ToolCall, result: CallResult): MaybePromise<void>;
  /** `handle`: JSON. */
  keep(handle: unknown): MaybePromise<void>;
  withdraw(): MaybePromise<void>;
}

/** Keeps nothing, for agents that work without a run. */
export const noEffects: Effects = {
  find: () => undefined,
  begin: () => undefined,
  finish: () => undefined,
  keep: () => undefined,
  withdraw: () => undefined,
};

export class EffectGuard {
  readonly #effects: Effects;
  #found: ReturnType<Effects["find"]> | undefined;
  #begun = false;

  constructor(effects: Effects) {
    this.#effects = effects;
  }

  /** True if the call began before this task. */
  async wasBegun(): Promise<boolean> {
    return (await this.#before()) !== undefined;
  }

  /** The answer of a call that was begun before a crash; undefined if it may run. */
  async recall(
    tool: AgentTool | undefined,
    call: ToolCall,
    files: ThreadFiles,
  ): Promise<CallResult | undefined> {
    const known = await this.#before();
    if (known === undefined || known.handle !== undefined) return undefined;
    const { result = toolError(unknownOutcome(tool, call)) } = known;
    if (result.update?.files) files.apply(result.update.files);
    return result;
  }

  #before(): ReturnType<Effects["find"]> {
    return (this.#found ??= this.#effects.find());
  }

  /** Call this before each run of the tool that a wrapper allows. */
  async begin(tool: AgentTool, call: ToolCall, reach: Reach): Promise<void> {
    if (this.#begun) return;
    if ((await this.handle()) !== undefined) return void (this.#begun = true);
    if (!(await hasOutsideEffect(tool, call.args, reach))) return;
    await this.#effects.begin(tool.name);
    this.#begun = true;
  }

  async finish(call: ToolCall, result: CallResult): Promise<void> {
    if (this.#begun) await this.#effects.finish(call, result);
  }

  /** The handle by which a call that began before is continued. */
  async handle(): Promise<unknown> {
    return (await this.#before())?.handle;
  }

  /** The call continues elsewhere: from now on it is continued, and not made again. */
  async keep(handle: unknown): Promise<void> {
    if (this.#begun) await this.#effects.keep(handle);
  }

  async withdraw(): Promise<void> {
    if (this.#begun) await this.#effects.withdraw();
  }
}

/** The places that a call's effects can reach. */
interface Reach {
  readonly backend: Backend;
  /** True if no call of a subagent is made twice after it is started again. */
  readonly accountsForCalls: (subagent: string) => boolean;
}

/** True if a call makes changes that a crash does not undo. Tools of unknown kind count as such. */
async function hasOutsideEffect(
  tool: AgentTool,
  args: Record<string, unknown>,
  { backend, accountsForCalls }: Reach,
): Promise<boolean> {
  switch (tool.kind) {
    case "read":
    case "plan":
      return false;
    case "delegate":
      return !accountsForCalls(String(args["subagent_type"]));
    case "execute":
      return true;
    case "write": {
      const path = writtenPath(tool, args);
      return path === undefined || (await lifetimeAt(backend, path)) === "persistent";
    }
  }
}

/** The file that a call changes, if it names one. */
export const writtenPath = (
  tool: AgentTool | undefined,
  args: Record<string, unknown>,
): string | undefined => (tool?.kind === "write" ? tool.pathOf(args) : undefined);

function unknownOutcome(tool: AgentTool | undefined, { name, args }: ToolCall): string {
  const path = writtenPath(tool, args);
  if (path !== undefined)
    return `The server stopped while ${name} was at work on '${path}', so it is unknown whether it took effect. It was not repeated. Read '${path}' to check its current content, then continue from that.`;
  return `The server stopped while ${name} was at work, so it is unknown whether, or how far, it took effect. It was not repeated. Check for its traces, such as files or output, before you call it again.`;
}
