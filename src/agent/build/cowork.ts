import { randomUUID } from "node:crypto";
import { homedir } from "node:os";
import { join } from "node:path";
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import type { BaseCheckpointSaver } from "@langchain/langgraph";
import type { z } from "zod";
import { defined } from "../../core/unknown.ts";
import { ConfigurationError } from "../../core/errors.ts";
import type { Logger } from "../../core/logger.ts";
import { readOptions } from "../../core/options.ts";
import type { AgentMiddleware, ToolInput } from "../contracts/middleware.ts";
import type { HitlResponse, PendingInterrupt } from "../contracts/question.ts";
import type { Decision } from "../../tools/request.ts";
import type { AgentEvent } from "../contracts/events.ts";
import type { AgentSnapshot } from "../contracts/agent.ts";
import { createDeepAgent } from "./create-deep-agent.ts";
import type { CompiledSubAgent, SubAgent, TypedDeepAgent } from "./params.ts";
import { Command, MemorySaver, graphFailure } from "../langgraph/internals.ts";
import { openInterrupts } from "../langgraph/open-interrupts.ts";
import { AGENT_NAME, eventOf, withEvents } from "../langgraph/step-of-task.ts";
import { finishedEvent, snapshotOf, valuesOf, whatWaits } from "../langgraph/thread-agent.ts";
import { type ModelSource, resolveModel } from "../models/resolve.ts";
import tables from "./options.json" with { type: "json" };
import { type AgentProfile, PROFILES, type ProfileName, openPlace } from "./profiles.ts";
import texts from "./texts.json" with { type: "json" };
import { fill } from "../../core/text.ts";

/**
 * A deep agent behind five functions: all that a program needs to show an agent to a person, and nothing
 * else. `buildLlm`, `buildAgent`, `streamEvents`, `getAgentState`, `resumeAgentInput`.
 */

export interface BuildLlmOptions {
  /** `provider:model` or `offline`. Default: chosen from the keys in `env`. */
  model?: string;
  /** The source of keys and addresses. Default: the environment of the process. */
  env?: Readonly<Record<string, string | undefined>>;
  log?: Logger;
}

export interface BuildAgentOptions {
  /** The folder to work on. */
  workspaceDir: string;
  /** Default: `buildLlm()` when the model is first needed. */
  model?: ModelSource;
  /** Keeps the thread. Default: in memory, gone with the process. */
  checkpointer?: BaseCheckpointSaver;
  /** `cowork` (default): does the work itself. `acp`: coordinates subagents that do it. */
  mode?: AgentMode;
  /** The thread to work on. Default: a new one. */
  threadId?: string;
  /** Asks before the calls that `profile` gates. Default true. */
  withHitl?: boolean;
  /** Besides those of `profile`. */
  tools?: readonly ToolInput[];
  /** Instead of the text of `mode`. */
  systemPrompt?: string;
  subagents?: ReadonlyArray<SubAgent | CompiledSubAgent>;
  middleware?: readonly AgentMiddleware[];
  /** A name or your own. Default `deepcowork`. */
  profile?: ProfileName | AgentProfile;
  /** Skills for all workspaces; those in `skills` of the workspace count before them. Default `~/.cowork/skills`. */
  globalSkills?: string;
  log?: Logger;
}

export type AgentMode = "cowork" | "acp";

const PROMPTS: Readonly<Record<AgentMode, string>> = texts.modes;

/** An agent at its folder, and the thread it works on. */
export interface WorkspaceAgent extends AsyncDisposable {
  readonly graph: TypedDeepAgent<undefined, unknown, z.ZodObject, string, AgentMiddleware[]>;
  readonly threadId: string;
  /** Ends the commands that still run. */
  close(): Promise<void>;
}

/** A piece of a model's reply; `agent` names the subagent, if it is one. */
export interface TokenEvent {
  readonly kind: "token";
  readonly text: string;
  readonly agent?: string;
}

/** Answers to calls that wait for a person; made by `resumeAgentInput`. */
export interface ResumeInput {
  readonly resume: HitlResponse | Readonly<Record<string, HitlResponse>>;
}

/** A thread as a person sees it. */
export interface WorkspaceState extends AgentSnapshot {
  /** The calls that wait for a decision. */
  readonly waiting: readonly PendingInterrupt[];
}

/** The model that `options` and the environment choose; makes no request. */
export async function buildLlm(options: BuildLlmOptions = {}): Promise<BaseChatModel> {
  const { env = process.env, ...rest } = readOptions("buildLlm", options, tables.buildLlm);
  return (await resolveModel({ env, ...rest })).model;
}

/**
 * An agent that works on a folder with the settings of a profile.
 *
 * @throws ConfigurationError for options that make no sense.
 */
export function buildAgent(given: BuildAgentOptions): WorkspaceAgent {
  const options = readOptions("buildAgent", given, tables.buildAgent);
  const { mode = "cowork", withHitl = true, threadId = randomUUID() } = options;
  if (!options.workspaceDir || !Object.hasOwn(PROMPTS, mode))
    throw new ConfigurationError("INVALID_OPTION", texts.workspaceNeeded);
  const profile = profileOf(options.profile ?? "deepcowork");
  const { globalSkills = join(homedir(), ".cowork", "skills") } = options;
  const place = openPlace(profile, options.workspaceDir, globalSkills);
  const { model = () => buildLlm(), systemPrompt = fill(PROMPTS[mode], place.folder) } = options;
  const { tools, subagents, middleware, log } = options;
  const graph = createDeepAgent({
    model,
    systemPrompt,
    backend: place.backend,
    skills: place.skills,
    checkpointer: options.checkpointer ?? new MemorySaver(),
    ...(withHitl ? { interruptOn: profile.interruptOn } : {}),
    ...defined({ filesystem: profile.filesystem, limits: profile.limits, tools, subagents, middleware, log }),
  });
  const close = (): Promise<void> => place.close();
  return { graph, threadId, close, [Symbol.asyncDispose]: close };
}

function profileOf(chosen: ProfileName | AgentProfile): AgentProfile {
  if (typeof chosen === "object") {
    const own: Partial<AgentProfile> = readOptions("profile", chosen, tables.profile);
    // Left out by mistake, gates would be lost in silence.
    const { interruptOn } = own;
    if (interruptOn) return { ...own, interruptOn };
    throw new ConfigurationError("INVALID_OPTION", texts.gatesNeeded);
  }
  if (Object.hasOwn(PROFILES, chosen)) return PROFILES[chosen];
  const names = Object.keys(PROFILES).join(", ");
  throw new ConfigurationError("UNKNOWN_PROFILE", fill(texts.unknownProfile, chosen, names));
}

/**
 * Works on a task, or continues with answers, and yields events in order with tokens in between. The last event is
 * `finished`, or `paused` with the calls that wait for a person.
 *
 * @throws ConfigurationError for answers that match no waiting call; nothing was run then, and all calls stay open.
 *   RunFailure when the agent cannot continue.
 */
export async function* streamEvents(
  agent: WorkspaceAgent,
  input: string | ResumeInput,
  { signal }: { signal?: AbortSignal } = {},
): AsyncGenerator<AgentEvent | TokenEvent> {
  const { graph } = agent;
  const thread = { configurable: { thread_id: agent.threadId } };
  const isTask = typeof input === "string";
  const next = isTask ? { messages: [{ role: "user", content: input }] } : new Command(input);
  const asked: string[] = [];
  try {
    const streamMode: Array<"custom" | "messages"> = ["custom", "messages"];
    // LangGraph 1.7 shows the tokens of subagents only with `subgraphs`.
    const options = withEvents({ ...thread, streamMode, subgraphs: true, ...defined({ signal }) });
    const stream = await graph.stream(next, options);
    // With two modes and subgraphs, chunks are [namespace, mode, payload].
    for await (const [, mode, chunk] of stream as AsyncIterable<[string[], string, unknown]>) {
      const event = mode === "messages" ? tokenOf(chunk) : eventOf(chunk);
      if (event && "interruptId" in event) asked.push(event.interruptId);
      if (event) yield event;
    }
  } catch (error) {
    signal?.throwIfAborted();
    throw graphFailure(error);
  }
  const waiting = whatWaits(await openIn(agent), asked);
  yield waiting ? { kind: "paused", ...waiting } : finishedEvent(valuesOf(await graph.getState(thread)));
}

/** Reads a chunk of stream mode `messages`: part of a reply, or all of it, with metadata about its origin. */
function tokenOf(chunk: unknown): TokenEvent | undefined {
  const [message, metadata] = chunk as [BaseMessage, Record<string, unknown>]; // LangGraph's form
  if (!AIMessage.isInstance(message) || message.text === "") return undefined;
  const { [AGENT_NAME]: name } = metadata;
  return { kind: "token", text: message.text, ...(typeof name === "string" ? { agent: name } : {}) };
}

/** The current state of an agent's thread, also in another process. */
export async function getAgentState(agent: WorkspaceAgent): Promise<WorkspaceState> {
  const thread = { configurable: { thread_id: agent.threadId } };
  const state = await agent.graph.getState(thread, { subgraphs: true });
  const waiting = whatWaits(await openIn(agent), []);
  return { ...snapshotOf(state), waiting: waiting?.interrupts ?? [] };
}

const openIn = async ({ graph: { checkpointer }, threadId }: WorkspaceAgent) =>
  typeof checkpointer === "object" ? openInterrupts(checkpointer, { thread_id: threadId }) : [];

/**
 * The input that continues with these decisions: a list in the order of the waiting calls, or a map by the ids of
 * `paused` or `getAgentState`. Approvals without a decision stay open.
 */
export function resumeAgentInput(
  decisions: readonly Decision[] | Readonly<Record<string, Decision | HitlResponse>>,
): ResumeInput {
  if (Array.isArray(decisions)) return { resume: { decisions: [...(decisions as readonly Decision[])] } };
  const responseOf = (answer: Decision | HitlResponse): HitlResponse =>
    "decisions" in answer ? answer : { decisions: [answer] };
  const answers = Object.entries(decisions).map(([id, answer]) => [id, responseOf(answer)] as const);
  return { resume: Object.fromEntries(answers) };
}
