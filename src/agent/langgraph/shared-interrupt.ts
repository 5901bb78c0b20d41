/**
 * Shows all calls of a thread that wait for approval as one interrupt, as LangChain's middleware does, and passes each
 * of them its own decision. Inside, every call interrupts its own task.
 */
import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { type Interrupt, type StateSnapshot, isInterrupted } from "@langchain/langgraph";
import { ConfigurationError } from "../../core/errors.ts";
import { isRecord, memberOf, defined } from "../../core/unknown.ts";
import type { HitlRequest } from "../contracts/question.ts";
import type { AgentPath } from "../contracts/state.ts";
import { INTERRUPT } from "./internals.ts";
import type { EditCheck, OpenInterrupt } from "./open-interrupts.ts";
import { answerProblem, bound, isAsked, isRequest } from "./open-interrupts.ts";
import texts from "./texts.json" with { type: "json" };
import { fill } from "../../core/text.ts";

/** An open interrupt for one call of our agents. */
interface WaitingCall extends OpenInterrupt {
  readonly value: HitlRequest & { agent: AgentPath };
}

const isWaitingCall = (open: OpenInterrupt): open is WaitingCall =>
  isRequest(open.value) && open.value.agent !== undefined;

/** An interrupt as programs see it, and LangGraph's ids of those that it stands for. */
interface Shown {
  interrupt: Interrupt;
  ids: ReadonlySet<string>;
}

/** The interrupts that programs see, that of the waiting calls first. */
function shownInterrupts(open: readonly OpenInterrupt[]): Shown[] {
  const calls = open.filter(isWaitingCall);
  const others = open
    .filter((one) => !isWaitingCall(one))
    .map(({ interruptId: id, value, schema }) => ({
      interrupt: { id, value, ...defined({ response_schema: schema }) },
      ids: new Set([id]),
    }));
  if (calls.length === 0) return others;
  const agents = calls.map(({ value }) => value.agent);
  const agent = agents.every((one) => isDeepStrictEqual(one, agents[0])) ? agents[0] : undefined;
  const value: HitlRequest = {
    actionRequests: calls.flatMap(({ id: interruptId, value: request }) =>
      request.actionRequests.map((action) => ({ ...action, interruptId, agent: request.agent })),
    ),
    reviewConfigs: calls.flatMap(({ value: request }) => request.reviewConfigs),
    ...defined({ agent }),
  };
  const ids = new Set(calls.map(({ interruptId }) => interruptId));
  return [{ interrupt: { id: sharedId(calls), value }, ids }, ...others];
}

/** The id of one call, or one that stands for exactly these: decisions count by their place in the list. */
function sharedId(calls: readonly OpenInterrupt[]): string | undefined {
  const [first, ...others] = calls.map(({ id }) => id);
  if (first === undefined || others.length === 0) return first;
  const digest = createHash("sha256").update([first, ...others].join());
  return digest.digest("hex").slice(0, 32);
}

/** Holds interrupts back until the graph stops, because only then all of them are known. */
export async function* withSharedInterrupt<Chunk>(
  chunks: AsyncIterable<Chunk>,
  open: () => Promise<readonly OpenInterrupt[]>,
): AsyncGenerator<Chunk> {
  const held = new Map<string, { chunk: Chunk; ids: Array<string | undefined> }>();
  for await (const chunk of chunks) {
    const last: unknown = Array.isArray(chunk) ? chunk.at(-1) : chunk;
    const asked = isInterrupted(last) ? last[INTERRUPT] : [];
    if (asked.length === 0) yield chunk;
    else {
      const place = Array.isArray(chunk) ? JSON.stringify(chunk.slice(0, -1)) : "";
      const ids = asked.map(({ id }) => id);
      held.set(place, { chunk, ids: [...(held.get(place)?.ids ?? []), ...ids] });
    }
  }
  if (held.size === 0) return;
  const shown = shownInterrupts(await open());
  for (const { chunk, ids } of held.values()) {
    const payload = { [INTERRUPT]: shownFor(ids, shown).map(({ interrupt }) => interrupt) };
    const isShown = payload[INTERRUPT].length > 0;
    // It keeps the form of the chunk that it replaces, whose payload comes last.
    if (isShown) yield (Array.isArray(chunk) ? [...chunk.slice(0, -1), payload] : payload) as Chunk;
  }
}

const shownFor = (ids: ReadonlyArray<string | undefined>, shown: readonly Shown[]): Shown[] =>
  shown.filter((one) => ids.some((id) => id !== undefined && one.ids.has(id)));

/** A state in which the first of the waiting tasks has the interrupt of all, and stands for them. */
export function withSharedTask(state: StateSnapshot, open: readonly OpenInterrupt[]): StateSnapshot {
  if (open.length === 0) return state;
  const left = new Set(shownInterrupts(open));
  const all = [...left];
  const tasks = state.tasks.flatMap((task) => {
    const ids = task.interrupts.map(({ id }) => id);
    const asked = shownFor(ids, all);
    const own = asked.filter((one) => left.delete(one));
    if (asked.length > 0 && own.length === 0) return [];
    const inside = task.state && "tasks" in task.state ? { state: withSharedTask(task.state, open) } : {};
    return [{ ...task, interrupts: own.map(({ interrupt }) => interrupt), ...inside }];
  });
  return { ...state, tasks };
}

/**
 * Answers by LangGraph's interrupt id, from a record by interrupt ids, a list of decisions in the order of the waiting
 * calls, or a bare answer when exactly one is open. LangGraph would hand a bare answer to every open interrupt.
 *
 * @throws ConfigurationError for an answer that fits no open interrupt; nothing was run, and all stay open.
 */
export function answersById(
  resume: unknown,
  open: readonly OpenInterrupt[],
  checkEdit: EditCheck,
): Record<string, unknown> {
  const answers: Record<string, unknown> = {};
  for (const [interrupt, written] of givenAnswers(resume, open)) {
    const { id, interruptId, value } = interrupt;
    if (interruptId in answers) throw invalid(`Interrupt ${id} is answered twice.`);
    const answer = withEditedAction(written);
    const problem = answerProblem(interrupt, answer, checkEdit);
    if (problem !== undefined) throw invalid(`${problem} Interrupt ${id} stays open; answer it again.`);
    answers[interruptId] = isAsked(value) ? bound(answer, value) : answer;
  }
  return answers;
}

const invalid = (problem: string): ConfigurationError => new ConfigurationError("INVALID_ANSWER", problem);

function givenAnswers(resume: unknown, open: readonly OpenInterrupt[]): Array<[OpenInterrupt, unknown]> {
  const calls = open.filter(isWaitingCall);
  const shared = sharedId(calls);
  const keys = isRecord(resume) ? Object.keys(resume) : [];
  const isId = (key: string): boolean =>
    /^[0-9a-f]{32}(-\d+)?$/.test(key) || open.some((one) => isCalled(one, key));
  if (!isRecord(resume) || !keys.some(isId)) return bareAnswer(resume, open, calls);
  if ("decisions" in resume) throw invalid(texts.twoFormsOfAnswer);
  return Object.entries(resume).flatMap(([id, answer]): Array<[OpenInterrupt, unknown]> => {
    const interrupt = open.find((one) => isCalled(one, id));
    if (interrupt) return [[interrupt, answer]];
    if (id === shared) return splitDecisions(answer, calls);
    throw new ConfigurationError("INTERRUPT_NOT_PENDING", `Interrupt ${id} is not pending.`);
  });
}

const isCalled = ({ id, interruptId }: OpenInterrupt, name: string): boolean =>
  id === name || interruptId === name;

/** An answer without an id: to the only open interrupt, or decisions about all waiting calls. */
function bareAnswer(
  resume: unknown,
  open: readonly OpenInterrupt[],
  calls: readonly WaitingCall[],
): Array<[OpenInterrupt, unknown]> {
  const [first, ...others] = open;
  if (!first) throw new ConfigurationError("NOTHING_PENDING", "Nothing waits for an answer in this thread.");
  if (others.length === 0) return [[first, resume]];
  // A list of decisions answers no question of another kind, but may answer an approval of a foreign agent.
  const isList =
    memberOf(resume, "decisions") !== undefined &&
    open.every((one) => isWaitingCall(one) || !isRequest(one.value));
  if (calls.length > 0 && (isList || calls.length === open.length)) return splitDecisions(resume, calls);
  throw severalPending(fill(texts.severalInterrupts, open.map(({ id }) => id).join(", ")));
}

function splitDecisions(answer: unknown, calls: readonly WaitingCall[]): Array<[OpenInterrupt, unknown]> {
  const decisions: unknown = memberOf(answer, "decisions");
  if (Array.isArray(decisions) && decisions.length === calls.length)
    return calls.map((call, index) => [call, { decisions: [decisions[index]] }]);
  const expected = calls.length === 1 ? "1 decision" : `${calls.length} decisions`;
  const given = Array.isArray(decisions) ? `, got ${decisions.length}` : " in a list `decisions`";
  const names = calls.flatMap(({ id, value }) => value.actionRequests.map(({ name }) => `${name} (${id})`));
  throw severalPending(fill(texts.wrongDecisionCount, expected, given, names.join(", ")));
}

const severalPending = (problem: string): ConfigurationError =>
  new ConfigurationError("SEVERAL_APPROVALS_PENDING", problem);

/** Reads `edited_action` as `editedAction`: forms that also serve agents in Python send the former. */
function withEditedAction(answer: unknown): unknown {
  const decisions = memberOf(answer, "decisions");
  if (!Array.isArray(decisions)) return answer;
  const read = decisions.map((decision: unknown) => {
    if (!isRecord(decision) || !("edited_action" in decision)) return decision;
    const { edited_action: editedAction, ...others } = decision;
    return { editedAction, ...others };
  });
  return { ...(answer as object), decisions: read }; // which has that member
}
