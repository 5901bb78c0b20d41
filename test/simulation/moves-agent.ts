/** An agent without a model: it makes the moves of a table, which its task seeds, and keeps its thread as a real one does. */
import type { Agent, AgentEnd, AgentInput, HitlRequest, WorkOptions } from "../../src/agent/agent.ts";
import type { InboxMessage } from "../../src/agent/contracts/state.ts";
import type { Checkpoints } from "../../src/runs/thread-ports.ts";
import {
  type MovesThreads,
  type TakenThread,
  ThreadsInMemory,
  messagesIn,
  tokensIn,
} from "./moves-threads.ts";
import { type Move, type Part, REPLY, REPLY_TOKENS, TOKEN_LIMITS, movesFor } from "./moves.ts";
import { type Place, later } from "./virtual-machine.ts";
import type { Workspace } from "./workspace.ts";
import type { Agents, World } from "./world.ts";

/** A world as its agents see it. */
export interface ActedOn {
  readonly draw: () => number;
  readonly tokenLimit: number;
  readonly workspace: Pick<Workspace, "write">;
  /** Has an effect outside. */
  act(key: string): void;
  problem(text: string): void;
}

/** The agents of a world of the first tier. */
export function movesAgents(world: World): Agents {
  const threads = new ThreadsInMemory();
  return {
    isLimited: true,
    agentAt: async (place) => movesAgent(world, threads, place),
    checkpointsAt: (place) => movesCheckpoints(threads, place),
    tokensOf: (runIds) => tokensIn(threads.all(), runIds),
    messages: () => messagesIn(threads.all()),
    close: () => {},
  };
}

/** The agent of a server. */
export function movesAgent(world: ActedOn, threads: MovesThreads, place: Place): Agent {
  const agent: Agent = {
    work: async (threadId, input, options) =>
      new Work(world, await threads.open(place, threadId), { ...options, threadId }).from(input),
    checkCall: (_tool, args) => ({ ok: true, args: args as Record<string, unknown> }),
    snapshot: async () => ({ todos: [], files: {}, answer: "" }),
    subagent: () => agent,
    drawing: async () => "",
  };
  return agent;
}

export const movesCheckpoints = (threads: MovesThreads, place: Place): Checkpoints => ({
  sync: () => later(),
  startOver: (threadId, token) => threads.startOver(place, threadId, token),
  deleteThread: (threadId) => threads.delete(threadId),
  tidyThread: () => later(),
  usedBytes: async () => 0,
  returnSpace: async () => 0,
  threads: () => threads.ids(),
  steps: async () => [],
  writtenWith: async () => [],
  copyThread: async () => false,
});

class Work {
  readonly #world: ActedOn;
  readonly #thread: TakenThread;
  readonly #options: WorkOptions & { threadId: string };

  constructor(world: ActedOn, thread: TakenThread, options: WorkOptions & { threadId: string }) {
    this.#world = world;
    this.#thread = thread;
    this.#options = options;
  }

  /** Writes into the thread, unless another server has taken it. */
  async #save(write: () => void): Promise<void> {
    await later(this.#world.draw() < 0.2 ? this.#world.draw() * 3000 : 0);
    await this.#thread.write(write);
  }

  async from(input: AgentInput): Promise<AgentEnd> {
    const { runId, signal } = this.#options;
    const { parts } = this.#thread;
    if (input.kind === "task" && !parts.has(runId)) {
      const part = {
        task: input.task,
        moves: movesFor(input.task, this.#world.tokenLimit === TOKEN_LIMITS.low),
        done: 0,
        tokens: 0,
        children: [],
      };
      // Of the messages to earlier runs, those that are not in the thread.
      const told = new Map(this.#unread(input.told ?? []).map((message) => [message.id, message]));
      await this.#save(() => parts.set(runId, { ...part, inbox: told }));
    }
    const part = parts.get(runId);
    if (part === undefined) {
      this.#world.problem(`task-kept: run ${runId} continues, and its thread has no task of it`);
      throw new Error("The thread has no task of this run.");
    }
    if (input.kind === "resume") {
      for (const [id, reply] of Object.entries(input.answers))
        if (part.pending?.id === id && part.pending.reply === undefined)
          await this.#save(() => (part.pending = { id, reply }));
    }
    for (;;) {
      signal.throwIfAborted();
      await this.#readInbox(part);
      const move = part.moves[part.done];
      if (move === undefined) return this.#finish(part);
      const end = await this.#make(move, part);
      if (end !== undefined) return end;
    }
  }

  async #readInbox(part: Part): Promise<void> {
    for (const message of this.#unread((await this.#options.inbox?.messages()) ?? []))
      await this.#save(() => part.inbox.set(message.id, message));
  }

  #unread(messages: readonly InboxMessage[]): InboxMessage[] {
    const parts = [...this.#thread.parts.values()];
    return messages.filter(({ id }) => !parts.some(({ inbox }) => inbox.has(id)));
  }

  async #finish(part: Part, stopReason?: "max_tokens"): Promise<AgentEnd> {
    await later(this.#world.draw() * 2000);
    await this.#save(() => (part.isFinished = true));
    return { kind: "finished", answer: "done", ...(stopReason && { stopReason }) };
  }

  /** Returns the end of the work, if the move is one. */
  async #make(move: Move, part: Part): Promise<AgentEnd | undefined> {
    const { agent = [], events, budget } = this.#options;
    // A server that was stopped continues its own move, however far its successor has come.
    const number = part.done;
    const callId = `${this.#options.threadId}.${part.task}.${number}`;
    const made = async (): Promise<undefined> => {
      await this.#save(() => {
        part.done += 1;
        delete part.pending;
      });
      return undefined;
    };
    switch (move) {
      case "say": {
        // Its own limit, which it knows, and then the common one.
        if (part.tokens + REPLY_TOKENS > this.#world.tokenLimit) return this.#finish(part, "max_tokens");
        const fits = await budget?.reserve(
          REPLY_TOKENS,
          (others, reserved) =>
            others.tokens + reserved + part.tokens + REPLY_TOKENS <= this.#world.tokenLimit,
        );
        if (fits === false) return this.#finish(part, "max_tokens");
        await later(this.#world.draw() * 400);
        events?.tell({ kind: "model_called", agent, model: "moves", usage: REPLY, text: "" });
        await events?.stored();
        await this.#save(() => {
          part.done += 1;
          part.tokens += REPLY_TOKENS;
        });
        return undefined;
      }
      case "act":
        await this.#act(callId);
        return made();
      case "write":
        await later(this.#world.draw() * 500);
        this.#world.workspace.write(this.#options.threadId, number, `written ${callId}`);
        return made();
      case "approve": {
        const id = `approve ${callId}`;
        const { reply } = part.pending?.id === id ? part.pending : {};
        if (reply === undefined) return this.#askApproval(id, callId, part);
        const [decision] = (reply as { decisions: { type: string }[] }).decisions;
        if (decision?.type !== "reject") await this.#act(callId);
        return made();
      }
      case "ask": {
        const id = `ask ${callId}`;
        if (part.pending?.id === id && part.pending.reply !== undefined) return made();
        const field = { name: "answer", type: "text", required: true } as const;
        const question = { kind: "ask", text: `Which? ${part.task}`, fields: [field] } as const;
        const asked = { question: { ...question, fields: [field] }, agent };
        events?.tell({ kind: "question_asked", interruptId: id, ...asked });
        await events?.stored();
        await this.#save(() => (part.pending = { id }));
        return { ...PAUSED, questions: [{ id, ...asked }] };
      }
      case "child":
        await this.#startChild(callId, part);
        return made();
      case "wait": {
        const reported = new Set([...part.inbox.values()].flatMap(({ from }) => from?.threadId ?? []));
        return part.children.every((threadId) => reported.has(threadId))
          ? made()
          : { ...PAUSED, childAwaited: true };
      }
    }
  }

  async #askApproval(id: string, callId: string, part: Part): Promise<AgentEnd> {
    const { agent = [], events } = this.#options;
    const action = { name: "act", args: { key: callId }, description: "act", toolCallId: callId };
    const request: HitlRequest = {
      actionRequests: [action],
      reviewConfigs: [{ actionName: "act", allowedDecisions: ["approve", "reject"] }],
      agent,
    };
    events?.tell({ kind: "approval_requested", agent, interruptId: id, request });
    await events?.stored();
    await this.#save(() => (part.pending = { id }));
    return { ...PAUSED, interrupts: [{ id, request }] };
  }

  /** A call with an effect outside, recorded before and after it. */
  async #act(callId: string): Promise<void> {
    const { agent = [], events, effects } = this.#options;
    const call = { agent, messageId: `message ${callId}`, callId };
    const known = await effects?.find(call);
    const recalled = known && ({ recalled: true } as const);
    events?.tell({ kind: "tool_started", agent, callId, tool: "act", summary: "act", ...recalled });
    if (known === undefined) {
      await effects?.begin(call, "act");
      await later(this.#world.draw() * 300);
      this.#world.act(callId);
      await later(this.#world.draw() * 300);
      await effects?.finish(call, { type: "json", data: Buffer.from('"done"') });
    }
    const status = known !== undefined && known.outcome === undefined ? "error" : "success";
    events?.tell({ kind: "tool_finished", agent, callId, tool: "act", status, summary: "" });
    await events?.stored();
  }

  async #startChild(callId: string, part: Part): Promise<void> {
    const { agent = [], events, children } = this.#options;
    if (children === undefined) return;
    const title = `child ${part.task.replace(/^\w+ /, "")}.${part.done}`;
    const threadId = (await children.find({ call: callId }))?.threadId ?? (await children.newThread());
    const child = await children.start({ call: callId, name: "helper", title, description: title, threadId });
    if (child === "too_many") return;
    const { id, name } = child;
    const path = [...agent, { callId: id, name, task: title }];
    const started = { callId: id, name, description: title, background: true } as const;
    events?.tell({ kind: "subagent_started", agent: path, ...started });
    await events?.stored();
    if (!part.children.includes(child.threadId)) await this.#save(() => part.children.push(child.threadId));
  }
}

const PAUSED = {
  kind: "paused",
  interrupts: [],
  questions: [],
  modelAwaited: false,
  childAwaited: false,
} satisfies AgentEnd;
