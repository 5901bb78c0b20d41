import { ToolMessage } from "@langchain/core/messages";
import type { ToolCall } from "@langchain/core/messages/tool";
import type { Backend, FilesUpdate, ThreadFiles } from "../../backends/backend.ts";
import { lifetimeAt } from "../../backends/runtime.ts";
import { toolError } from "../../tools/tool.ts";
import type { AgentTool, CallIdentity, EffectLog, Outcome, StoredOutcome } from "../contracts/call.ts";
import type { Subagents } from "../langgraph/definition.ts";
import { Command, MemorySaver, Send, isCommand } from "../langgraph/internals.ts";
import { toolOutcome } from "./tool.ts";

/** Keeps calls with outside effects from taking effect twice when a run continues after a crash. */

/** LangGraph's encoding of checkpoints, which it gives out through its savers only. */
const { serde } = new MemorySaver();

/** Keeps one call from taking effect a second time. Without a log it does nothing. */
export class EffectGuard {
  readonly #log: EffectLog | undefined;
  readonly #call: CallIdentity;
  #known: Promise<{ outcome?: StoredOutcome } | undefined> | undefined;
  #begun = false;

  constructor(log: EffectLog | undefined, call: CallIdentity) {
    this.#log = log;
    this.#call = call;
  }

  /** True if the call began before this task. */
  async wasBegun(): Promise<boolean> {
    return this.#log !== undefined && (await this.#before()) !== undefined;
  }

  /** The answer of a call that was begun before a crash; `undefined`: it may run. */
  async recall(
    tool: AgentTool | undefined,
    call: ToolCall,
    files: ThreadFiles,
  ): Promise<Outcome | undefined> {
    const known = this.#log && (await this.#before());
    if (known === undefined) return undefined;
    if (known.outcome === undefined) return toolOutcome(call, toolError(unknownOutcome(tool, call)));
    const outcome = await revive(known.outcome);
    const changed =
      isCommand(outcome) && !Array.isArray(outcome.update) ? outcome.update?.["files"] : undefined;
    if (changed) files.apply(changed as FilesUpdate); // the channel's own updates
    return outcome;
  }

  async #before(): Promise<{ outcome?: StoredOutcome } | undefined> {
    return (this.#known ??= Promise.resolve(this.#log?.find(this.#call)));
  }

  /** Call this before each run of the tool that a wrapper allows. */
  async begin(tool: AgentTool, call: ToolCall, reach: Reach): Promise<void> {
    if (this.#log === undefined || this.#begun) return;
    if (!(await hasOutsideEffect(tool, call.args, reach))) return;
    await this.#log.begin(this.#call, tool.name);
    this.#begun = true;
  }

  async finish(outcome: Outcome): Promise<void> {
    if (this.#begun) await this.#log?.finish(this.#call, await store(outcome));
  }

  async withdraw(): Promise<void> {
    if (this.#begun) await this.#log?.withdraw(this.#call);
  }
}

/** The places that a call's effects can reach. */
export interface Reach {
  backend: Backend;
  subagents: Pick<Subagents, "accountsForCalls"> | undefined;
}

/** True if a call makes changes that a crash does not undo. Tools of unknown kind count as such. */
async function hasOutsideEffect(
  tool: AgentTool,
  args: Record<string, unknown>,
  { backend, subagents }: Reach,
): Promise<boolean> {
  switch (tool.kind) {
    case "read":
    case "plan":
      return false;
    case "delegate":
      return subagents?.accountsForCalls(String(args["subagent_type"])) === false;
    case "execute":
      return true;
    case "write": {
      const path = tool.pathOf(args);
      return path === undefined || (await lifetimeAt(backend, path)) === "persistent";
    }
  }
}

function unknownOutcome(tool: AgentTool | undefined, { name, args }: ToolCall): string {
  const path = tool?.kind === "write" ? tool.pathOf(args) : undefined;
  if (path !== undefined) {
    return `The server stopped while ${name} was at work on '${path}', so it is unknown whether it took effect. It was not repeated. Read '${path}' to check its current content, then continue from that.`;
  }
  return `The server stopped while ${name} was at work, so it is unknown whether, or how far, it took effect. It was not repeated. Check for its traces, such as files or output, before you call it again.`;
}

async function store(outcome: Outcome): Promise<StoredOutcome> {
  const { update, goto, graph, resume } = isCommand(outcome) ? outcome : {};
  const plain = isCommand(outcome) ? { command: { update, goto, graph, resume } } : { message: outcome };
  const [type, data] = await serde.dumpsTyped(plain);
  return { type, data };
}

async function revive({ type, data }: StoredOutcome): Promise<Outcome> {
  // Written by `store` from an outcome.
  const plain = (await serde.loadsTyped(type, data)) as { message: ToolMessage } | { command: StoredCommand };
  if ("message" in plain) return plain.message;
  const { goto, ...rest } = plain.command;
  return new Command({ ...rest, ...(goto === undefined ? {} : { goto: [goto].flat().map(toTarget) }) });
}

type Target = string | { node: string; args: unknown };

interface StoredCommand {
  update?: Record<string, unknown>;
  goto?: Target | Target[];
  graph?: string;
  resume?: unknown;
}

const toTarget = (target: Target): string | Send =>
  typeof target === "string" ? target : new Send(target.node, target.args);
