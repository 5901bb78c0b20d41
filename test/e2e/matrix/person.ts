import type { RunService } from "../../../src/runs/service.ts";
import type { Answer, PersonDecision } from "../../../src/tools/request.ts";
import { isApproval, isQuestion } from "../../../src/runs/run.ts";
import { mine } from "../../runs/support.ts";
import { visit } from "../../server/page/support.ts";
import type { Browser, FormAnswer, Person } from "../../support/clients.ts";

/** What the person does with every approval, or with every question. */
export type Wish = "approve" | "edit" | "reject" | "answer" | "ignore";

/** The answer of a person who answers. */
const ANSWER = "blue";

/** The one person behind a client, who answers where they are asked. */
export interface MatrixPerson {
  form: Person;
  browser: Browser;
  /** Where their client cannot ask: in a terminal of the same machine. */
  elsewhere(runId: string): Promise<void>;
}

/** What an edit makes of the call. */
const EDITED = { text: "edited" };
const REASON = "rather not";

export function personWho(wish: Wish, service: () => RunService): MatrixPerson {
  return {
    form: () => FORM_ANSWERS[wish],
    browser: async ({ url }) => {
      if (wish !== "ignore") await decideOnPage(url, wish);
      return { action: "accept" };
    },
    elsewhere: async (runId) => {
      if (wish === "ignore") return;
      const view = await mine(service()).read.view(runId);
      for (const { id, status, tool } of view?.requests.filter(isApproval) ?? []) {
        if (status === "pending")
          await mine(service()).requests.answer(
            runId,
            { requestId: id, answer: decision(wish, tool) },
            "terminal",
          );
      }
      for (const { id, status } of view?.requests.filter(isQuestion) ?? []) {
        if (status === "pending")
          await mine(service()).requests.answer(runId, { requestId: id, answer: ANSWERED }, "terminal");
      }
    },
  };
}

const FORM_ANSWERS: Readonly<Record<Wish, FormAnswer>> = {
  approve: { action: "accept", content: { decision: "approve" } },
  edit: { action: "accept", content: { decision: "edit", edited_args: JSON.stringify(EDITED) } },
  reject: { action: "accept", content: { decision: "reject", message: REASON } },
  answer: { action: "accept", content: { answer: ANSWER } },
  ignore: { action: "cancel" },
};

const ANSWERED: Answer = { type: "fields", values: { answer: ANSWER } };

const decision = (wish: Exclude<Wish, "ignore">, tool: string): PersonDecision => {
  if (wish === "approve") return { type: "approve" };
  if (wish === "reject") return { type: "reject", message: REASON };
  return { type: "edit", editedAction: { name: tool, args: EDITED } };
};

async function decideOnPage(url: string, wish: Exclude<Wish, "ignore">): Promise<void> {
  const visitor = await visit(url);
  const { body } = await visitor.get(visitor.path);
  for (const [, request = ""] of body.matchAll(/name="request" value="([^"]*)"/g)) {
    await visitor.post(`${visitor.path}/reply`, {
      request,
      decision: wish,
      act: wish,
      v0: ANSWER,
      ...(wish === "edit" ? { edited_args: JSON.stringify(EDITED) } : {}),
      ...(wish === "reject" ? { message: REASON } : {}),
    });
  }
}
