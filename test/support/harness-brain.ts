import type { WireAnswer, WireReply, WireRequest } from "./wire-server-protocol.ts";
import { startWireServer } from "./wire-server.ts";

/** What the test's model gets to see of one call. */
export interface Thought {
  /** The first human message: the task of the run, or what a subagent was told. */
  task: string;
  /** How many replies this agent has had since that message. */
  step: number;
  request: WireRequest;
}

/** The model of a test. It may wait for as long as the test wants. */
export type Think = (thought: Thought) => WireReply | Promise<WireReply>;

export interface Brain {
  /** Environment in which the product uses this model. */
  env: Record<string, string>;
  /** Every call so far that kept the provider's rules. */
  thoughts: readonly Thought[];
  /** Why calls were refused by the provider's rules. */
  refusals: readonly string[];
  close(): Promise<void>;
}

/**
 * A model provider on this machine whose model is a function of the test. The product reaches it with
 * nothing but its usual environment variables, in this process and in others.
 */
export async function openBrain(think: Think): Promise<Brain> {
  const thoughts: Thought[] = [];
  const server = await startWireServer((request) => {
    const thought = thoughtOf(request);
    thoughts.push(thought);
    return think(thought);
  });
  return {
    env: { DEEPAGENT_MODEL: "anthropic:claude-test", ...server.env("anthropic") },
    thoughts,
    refusals: server.refusals,
    close: () => server.close(),
  };
}

function thoughtOf(request: WireRequest): Thought {
  const first = request.messages.findIndex(({ role }) => role === "user");
  return {
    task: request.messages[first]?.text ?? "",
    step: request.messages.slice(first).filter(({ role }) => role === "assistant").length,
    request,
  };
}

/** One thing an agent says, or how it finds out. */
export type Line = WireAnswer | Think;

/** A model whose agents each speak the lines of the part that their task names, one per call. */
export function play(parts: Record<string, readonly Line[]>): Think {
  return (thought) => {
    const part = Object.keys(parts).find((name) => thought.task.includes(name));
    const line = part === undefined ? undefined : parts[part]?.[thought.step];
    if (line === undefined) {
      return { status: 400, message: `no line for step ${thought.step} of: ${thought.task}` };
    }
    return typeof line === "function" ? line(thought) : line;
  };
}

/** What the tools answered to the last message of the agent. */
export function answersOf({ request }: Thought): { id: string; text: string }[] {
  const { messages } = request;
  const last = messages.findLastIndex(({ role }) => role === "assistant");
  return messages.slice(last + 1).flatMap(({ toolResults }) => toolResults);
}

/** Calls that the model did not find answered exactly once when it was asked again. */
export function wronglyAnswered({ thoughts }: Brain): string[] {
  return thoughts.flatMap(({ request: { messages } }) => {
    const answers = messages.flatMap(({ toolResults }) => toolResults.map(({ id }) => id));
    const calls = messages.flatMap(({ toolCalls }) => toolCalls.map(({ id }) => id));
    return calls.filter((call) => answers.filter((answer) => answer === call).length !== 1);
  });
}
