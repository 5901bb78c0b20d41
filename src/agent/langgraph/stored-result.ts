/** Records of calls with outside effects, in LangGraph's encoding of checkpoints. */
import type { ToolMessage } from "@langchain/core/messages";
import { Command, MemorySaver, Send, isCommand } from "@langchain/langgraph";
import type { Effects } from "../calls/effects.ts";
import type { CallIdentity, EffectLog, StoredOutcome } from "../contracts/middleware.ts";
import { type Outcome, fromOutcome, toOutcome } from "./outcome.ts";

/** LangGraph exports its encoding through its savers only. */
const { serde } = new MemorySaver();

export const storedEffects = (log: EffectLog, at: CallIdentity): Effects => ({
  find: async () => {
    const known = await log.find(at);
    if (known?.outcome) return { result: fromOutcome(await revive(known.outcome)) };
    const { handle } = known ?? {};
    return (
      known && (handle === undefined ? {} : { handle: JSON.parse(Buffer.from(handle).toString()) as unknown })
    );
  },
  begin: (tool) => log.begin(at, tool),
  finish: async (call, result) => log.finish(at, await store(toOutcome(call, result))),
  keep: (handle) => log.keep(at, Buffer.from(JSON.stringify(handle))),
  withdraw: () => log.withdraw(at),
});

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
  const targets = [goto ?? []].flat().map((to) => (typeof to === "string" ? to : new Send(to.node, to.args)));
  return new Command({ ...rest, ...(goto === undefined ? {} : { goto: targets }) });
}

type Target = string | { node: string; args: unknown };

interface StoredCommand {
  update?: Record<string, unknown>;
  goto?: Target | Target[];
  graph?: string;
  resume?: unknown;
}
