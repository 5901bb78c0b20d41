import { randomBytes } from "node:crypto";
import { inputResponse } from "@modelcontextprotocol/server";
import { defined } from "../../core/unknown.ts";
import type { ModelCall, RunView, RunRequest } from "../../runs/run.ts";
import { contentOf, isFinal, isQuestion } from "../../runs/run.ts";
import { callDigest } from "../calls/call.ts";
import { questionKey } from "../calls/open-requests.ts";
import type { Outcome } from "../calls/outcome.ts";
import type { ApprovalState } from "../calls/state.ts";
import { allDecided, askable, formFor, isUnread, pageMessage, placeOf } from "./answers.ts";
import { type Delivery, type DeliverySession, follow, gathered, hasNews, isOver } from "./session.ts";
import type { PersonRequest } from "../views/request-form.ts";

/** Clients stop after ten rounds, so the call returns the current state before that. */
const MAX_ROUNDS = 8;

/**
 * Ends the call with the questions; the client repeats it with the answers, which `carriedAnswers` has carried
 * out by then. The signed state names the run, so the repeated call continues it.
 */
export const inputRequiredDelivery: Delivery = async (session) => {
  const { state, problems = new Map<string, string>() } = session.answers ?? {};
  const left = new Set(session.answers?.left);
  if (state?.page !== undefined) await whilePageIsOpen(session, { ...state, page: state.page }, left);
  const round = (state?.round ?? 0) + 1;
  const { forms, page, models } = session.client;
  const mayAsk = (view: RunView): RunRequest[] => (forms || page ? askable(view, left, session) : []);
  const isNews = hasNews(session);
  const news = await follow(
    session,
    (view, changed) => isNews(view, changed) || (models && view.modelCalls.length > 0),
  );
  const view = await gathered(session, news, mayAsk(news));
  const waiting = mayAsk(view);
  const { runs, runId } = session;
  const calls = models && !isFinal(view.run.status) ? await runs.read.modelCalls(runId) : [];
  const isNothing = waiting.length === 0 && calls.length === 0;
  if (isNothing || round > MAX_ROUNDS || isOver(session)) return { kind: "run", view };
  return (await ask(session, waiting, calls, { left, problems, round })) ?? { kind: "run", view };
};

/** Waits only for answers on the page, if the client has opened it. */
async function whilePageIsOpen(
  session: DeliverySession,
  { page, asked, at }: ApprovalState & { page: string },
  left: Set<string>,
): Promise<void> {
  const response = inputResponse(session.context.mcpReq.inputResponses, page);
  if (response.kind !== "elicit" || response.action !== "accept") {
    for (const { approval: id } of asked) {
      left.add(id);
      if (response.kind === "elicit" && isUnread(response, session.deps.clock() - at))
        session.open.refusedUnread({ runId: session.runId, id });
    }
    return;
  }
  const decided = allDecided(asked.map(({ approval: id }) => ({ id })));
  const { models } = session.client;
  await follow(session, (view) => decided(view) || (models && view.modelCalls.length > 0));
}

/** Questions to a person, with the facts that the signed state keeps of them. */
interface Asked {
  requests: Record<string, PersonRequest>;
  asked: ApprovalState["asked"];
  page?: string;
}

/** Asks nothing if no page can be served. */
async function openPage(
  { runId, pageLink }: DeliverySession,
  waiting: readonly RunRequest[],
  at: number,
): Promise<Asked> {
  const url = waiting.length === 0 ? undefined : await pageLink();
  if (url === undefined) return { requests: {}, asked: [] };
  const page = questionKey(runId, at);
  return {
    requests: { [page]: { mode: "url", message: pageMessage(runId, waiting), url } },
    asked: waiting.map((one) => ({ key: page, approval: one.id, digest: digestOf(one) })),
    page,
  };
}

async function formsFor(
  session: DeliverySession,
  waiting: readonly RunRequest[],
  problems: ReadonlyMap<string, string>,
  at: number,
): Promise<Asked> {
  const open: Asked = { requests: {}, asked: [] };
  for (const one of waiting) {
    const key = questionKey(one.id, at);
    const problem = problems.get(one.id);
    const place = { runId: session.runId, ...placeOf(one, waiting), ...defined({ problem }) };
    open.requests[key] = await formFor(one, place, session);
    open.asked.push({ key, approval: one.id, digest: digestOf(one) });
  }
  return open;
}

/** Returns `undefined` if no question is left. */
async function ask(
  session: DeliverySession,
  waiting: readonly RunRequest[],
  calls: readonly ModelCall[],
  asking: { left: ReadonlySet<string>; problems: ReadonlyMap<string, string>; round: number },
): Promise<Outcome | undefined> {
  const { runId, digest, codec, context, deps, client } = session;
  const at = deps.clock();
  const { requests, ...facts } = client.page
    ? await openPage(session, waiting, at)
    : await formsFor(session, waiting, asking.problems, at);
  const lent = calls.map((call) => ({ key: questionKey(`model-${call.id}`, at), call }));
  if (lent.length === 0 && Object.keys(requests).length === 0) return undefined;
  const state = {
    id: randomBytes(12).toString("base64url"),
    run: runId,
    call: digest,
    round: asking.round,
    at,
    left: [...asking.left],
    ...facts,
    ...(lent.length > 0 ? { models: lent.map(({ key, call }) => ({ key, call: call.id })) } : {}),
  };
  const models = Object.fromEntries(lent.map(({ key, call }) => [key, call.request]));
  return { kind: "ask", requests, models, state: await codec.mint(state, context) };
}

/** Ties an answer to the call or the question that was shown. */
export const digestOf = (request: RunRequest): string =>
  isQuestion(request) ? callDigest(request.kind, contentOf(request)) : callDigest(request.tool, request.args);
