import { randomBytes } from "node:crypto";
import { type CreateMessageRequestParams, inputResponse } from "@modelcontextprotocol/server";
import { defined } from "../../core/defined.ts";
import { type Approval, type ModelCall, type RunView, isFinal } from "../../runs/run.ts";
import { callDigest } from "../protocol/call.ts";
import type { Outcome, Waiting } from "../protocol/outcome.ts";
import type { ApprovalState } from "../protocol/state.ts";
import { allDecided, askable, formFor, isUnread, pageMessage } from "./answers.ts";
import { samplingParams } from "./client-model.ts";
import { type Delivery, type DeliverySession, follow, gathered, hasNews, isOver } from "./session.ts";

/** Clients give up after ten rounds, so the call returns the current state before that. */
const MAX_ROUNDS = 8;

/**
 * Ends the call with the questions; the client repeats it with the answers, which `carriedAnswers` has carried
 * out by then. The signed state names the run, so the repeated call continues it.
 */
export const inputRequiredDelivery: Delivery = {
  deliver: async (session) => {
    const { state, problems = new Map<string, string>() } = session.answers ?? {};
    const left = new Set(session.answers?.left);
    if (state?.page !== undefined) await whilePageIsOpen(session, { ...state, page: state.page }, left);
    const round = (state?.round ?? 0) + 1;
    const { forms, page, models } = session.client;
    const mayAsk = (view: RunView): Approval[] => (forms || page ? askable(view, left, session) : []);
    const isNews = hasNews(session);
    const news = await follow(
      session,
      (view, changed) => isNews(view, changed) || (models && view.modelCalls.length > 0),
    );
    const view = await gathered(session, news, mayAsk(news));
    const approvals = mayAsk(view);
    const calls = models && !isFinal(view.run.status) ? await openCalls(session) : [];
    const isNothing = approvals.length === 0 && calls.length === 0;
    if (isNothing || round > MAX_ROUNDS || isOver(session)) return { kind: "run", view };
    return (await ask(session, approvals, calls, { left, problems, round })) ?? { kind: "run", view };
  },
};

/** Waits only for decisions on the page, if the client has opened it. */
async function whilePageIsOpen(
  session: DeliverySession,
  { page, asked, at }: ApprovalState & { page: string },
  left: Set<string>,
): Promise<void> {
  const response = inputResponse(session.context.mcpReq.inputResponses, page);
  if (response.kind !== "elicit" || response.action !== "accept") {
    for (const { approval: id } of asked) {
      left.add(id);
      if (response.kind === "elicit" && isUnread(response, session.now() - at)) {
        session.open.refusedUnread({ runId: session.runId, id });
      }
    }
    return;
  }
  const decided = allDecided(asked.map(({ approval: id }) => ({ id })));
  const { models } = session.client;
  await follow(session, (view) => decided(view) || (models && view.modelCalls.length > 0));
}

const openCalls = ({ runs, principal, runId }: DeliverySession): Promise<ModelCall[]> =>
  runs.modelCalls(principal, runId);

interface Question {
  left: ReadonlySet<string>;
  problems: ReadonlyMap<string, string>;
  round: number;
}

/** Questions to a person, with the facts that the signed state keeps of them. */
interface Asking {
  requests: Record<string, Waiting>;
  asked: ApprovalState["asked"];
  page?: string;
}

/** Asks nothing if no page can be served. */
async function openPage(
  { runId, pageLink }: DeliverySession,
  approvals: readonly Approval[],
  at: number,
): Promise<Asking> {
  const url = approvals.length === 0 ? undefined : await pageLink();
  if (url === undefined) return { requests: {}, asked: [] };
  const page = `${runId}@${at.toString(36)}`;
  return {
    requests: { [page]: { mode: "url", message: pageMessage(runId, approvals), url } },
    asked: approvals.map((approval) => ({ key: page, approval: approval.id, digest: digestOf(approval) })),
    page,
  };
}

async function formsFor(
  session: DeliverySession,
  approvals: readonly Approval[],
  { problems }: Question,
  at: number,
): Promise<Asking> {
  const asking: Asking = { requests: {}, asked: [] };
  for (const [index, approval] of approvals.entries()) {
    // Contains the time, so that no key is used twice in a run.
    const key = `${approval.id}@${at.toString(36)}`;
    const problem = problems.get(approval.id);
    const place = { runId: session.runId, position: index + 1, total: approvals.length };
    asking.requests[key] = await formFor(approval, { ...place, ...defined({ problem }) }, session);
    asking.asked.push({ key, approval: approval.id, digest: digestOf(approval) });
  }
  return asking;
}

/** Returns `undefined` if no question is left. */
async function ask(
  session: DeliverySession,
  approvals: readonly Approval[],
  calls: readonly ModelCall[],
  question: Question,
): Promise<Outcome | undefined> {
  const { runId, digest, codec, context, now, client } = session;
  const at = now();
  const open = client.page
    ? await openPage(session, approvals, at)
    : await formsFor(session, approvals, question, at);
  const { requests: forms, ...facts } = open;
  const id = randomBytes(12).toString("base64url");
  const models = calls.map((call) => ({ key: `model-${call.id}@${at.toString(36)}`, call: call.id }));
  const requests = calls.map(({ request }, index) => [models[index]?.key, samplingParams(request)]);
  if (requests.length === 0 && Object.keys(forms).length === 0) return undefined;
  const left = [...question.left];
  const state = {
    id,
    run: runId,
    call: digest,
    round: question.round,
    at,
    left,
    ...facts,
    ...(models.length > 0 ? { models } : {}),
  };
  return {
    kind: "ask",
    requests: forms,
    models: Object.fromEntries(requests) as Record<string, CreateMessageRequestParams>, // pairs of the two
    state: await codec.mint(state, context),
  };
}

/** Ties an answer to the tool and arguments that were shown. */
const digestOf = ({ tool, args }: Approval): string => callDigest(tool, args);
