/** The screen that shows all of a call that waits, however long it is, and the proof that a form came from there. */
import { displayBlock, oneLine } from "../../core/text.ts";
import { type Approval, isApproval } from "../../runs/run.ts";
import { type Html, html } from "../views/html.ts";
import { renderWholeCall } from "../views/room/approval.ts";
import { callParts } from "../views/shown-call.ts";
import { factsDigest } from "./proposed.ts";
import { type PartScreen, partScreen } from "./screen-context.ts";
import { type PageSession, isShared } from "../contracts/viewer.ts";
import { EMPTY, plainText } from "./whole-text.ts";

/** All of a change, or every argument in full, then the decision. Returns undefined if the run or the request is unknown. */
export const callScreen: PartScreen = async (context, runId, query) => {
  const { runs, session, openCommand } = context;
  const view = await runs.read.view(runId);
  const approval = view?.requests.filter(isApproval).find(({ id }) => id === query.get("approval"));
  if (view === undefined || approval === undefined) return undefined;
  if (approval.status !== "pending" && isShared(session)) return undefined;
  const parts: Html[] = [];
  for (const { name, text } of callParts(approval)) {
    const shown = text === "" ? EMPTY : await plainText(text, name, displayBlock);
    parts.push(
      html`<section>
        <h2 class="part-name">${name}</h2>
        ${shown}
      </section>`,
    );
  }
  const viewer = { session, openCommand: openCommand(view.run) };
  const body = renderWholeCall(approval, viewer, parts, wholeCallProof(session, approval));
  const title = `The whole call of ${oneLine(approval.tool, 64)}`;
  return partScreen(context, runId, { title, heading: title, body });
};

/** A field of the form below the whole call: a form without it did not show all. It grants nothing to a session. */
const wholeCallProof = (session: PageSession, approval: Approval): string =>
  factsDigest(["whole call", session.id, approval.id, callParts(approval)]);

/** True if a form came from the screen that shows the whole call. */
export const hasProof = (session: PageSession, approval: Approval, form: URLSearchParams): boolean =>
  form.get("whole") === wholeCallProof(session, approval);
