/** The review of a whole proposed change: its files and places, earlier decisions, and the form that applies it. */
import { capital, displayName, displayText, oneLine } from "../../../core/text.ts";
import { type ProposedChange, type ReviewRecord, hasConflict } from "../../../runs/proposals.ts";
import { type OpenQuestion, type Run, isFinal } from "../../../runs/run.ts";
import { counted } from "../../../tools/format.ts";
import { changeText } from "../../../tools/review.ts";
import { type ApprovalViewer, mayDecide, runPath } from "../../contracts/viewer.ts";
import { type Html, html, textArea, icon } from "../html.ts";
import words from "../words.json" with { type: "json" };
import { nearTime, timeOf } from "./figures.ts";
import { diffLooks, emptyPanel, labelled, shownPath, tickBox } from "./pieces.ts";
import {
  type ChosenOfFile,
  type FileLook,
  type ShownFile,
  boxesOf,
  changeCounts,
  fileAnchor,
  fileIcon,
  placesChosen,
  plainChoice,
  renderFile,
} from "./proposed-file.ts";
import { applyText, boundText, branchText, placesText, refuseText } from "./proposed-words.ts";
import { type Complaint, NO_DEFAULT, fold, onlyLooks } from "./request.ts";

export interface ShownChange extends Omit<ProposedChange, "files"> {
  files: readonly ShownFile[];
}

/** By the stamps of the files. */
export type ChosenOfChange = ReadonlyMap<string, ChosenOfFile>;

export interface ProposedScreen {
  run: Run;
  /** Undefined if nothing is proposed; `unread` if it could not be read, `elsewhere` if its copy is not here. */
  change: ShownChange | "unread" | "elsewhere" | undefined;
  /** The run of the same conversation that works in the copy now. */
  other: string | undefined;
  folder: string | undefined;
  /** Choices of a form that was not taken. */
  chosen?: ChosenOfChange | undefined;
}

const MAX = { branch: 200, message: 4000, reviews: 20, name: 60 };

/** One change with its viewer, and the question about it. */
interface Place {
  screen: ProposedScreen;
  change: ShownChange;
  viewer: ApprovalViewer;
  question: Extract<OpenQuestion, { kind: "review" }> | undefined;
  now: number;
  complaint: Complaint | undefined;
  /** Names a way to decide in words. */
  describeChannel: (by: string) => string;
}

/** True if a person can decide about the change now. */
const isOpen = ({ screen: { run, other }, question }: Place): boolean =>
  other === undefined && (question !== undefined || isFinal(run.status));

const hasForm = (place: Place): boolean => isOpen(place) && mayDecide(place.viewer.session);

const currentChoice = (place: Place, { file, stamp }: ShownFile): ChosenOfFile =>
  place.screen.chosen?.get(stamp) ?? plainChoice(file);

export interface RenderedProposal {
  /** Sections for the list beside the requests. */
  lists?: Html;
  content: Html;
}

/** Returns undefined if there is nothing to show. */
export function renderProposal(
  screen: ProposedScreen,
  about: Omit<Place, "screen" | "change">,
): RenderedProposal | undefined {
  const { change, run } = screen;
  if (change === "unread")
    return {
      content: html`<p class="notice amber" role="alert">
        ${icon("ask", "amber")}The proposed change cannot be read now. Reload the page in a moment.
      </p>`,
    };
  if (change === undefined || change === "elsewhere")
    return isFinal(run.status) && (run.unapplied ?? 0) > 0
      ? { content: emptyPanel("diff", words.empty[change ?? "applied"]) }
      : undefined;
  const place = { ...about, screen, change };
  return { lists: lists(place), content: content(place) };
}

function lists(place: Place): Html {
  const { files, more, reviews } = place.change;
  const count = files.length + more;
  const isForm = hasForm(place);
  const all = html`<label class="end by-script all-files"
    ><input type="checkbox" class="tick-box" data-all />All</label
  >`;
  return html`<section>
      <h2>Proposed change<span class="count">${count}</span>${isForm && all}</h2>
      <ol class="list proposed-list">
        ${files.map((file) => listItem(file, isForm ? currentChoice(place, file) : undefined))}
      </ol>
    </section>
    ${reviews.length > 0 && earlier(reviews, place.describeChannel)} ${isForm && KEYS}`;
}

function listItem(shown: ShownFile, chosen: ChosenOfFile | undefined): Html {
  const { file, stamp } = shown;
  const places = chosen === undefined ? 0 : placesChosen(file, chosen);
  const look = places === 0 ? "" : places < Math.max(1, file.places.length) ? " some" : " on";
  const boxes = boxesOf(file).length;
  const state = fileState(file);
  const note = state === "" && chosen !== undefined && boxes > 0 ? placesText(places, boxes) : state;
  const box =
    chosen && html`<span class="box by-script${look}" data-box="${stamp}" aria-hidden="true"></span>`;
  return html`<li>
    <a href="#${fileAnchor(stamp)}" class="file-row${chosen === undefined ? "" : " boxed"}"
      >${box}${icon(...fileIcon(file))}${shownPath(file.path)}${changeCounts(file)}<small
        class="cut"
        data-note="${stamp}"
        data-plain="${fileState(file)}"
        >${chosen?.refused === undefined ? note : "Rejected"}</small
      ></a
    >
  </li>`;
}

/** The state of a file in a word or two, without the choice; empty for an edited one. */
function fileState(file: ShownFile["file"]): string {
  if (file.stays) return "Cannot be applied";
  if (hasConflict(file)) return "Conflict: changed in the folder";
  if (file.decided?.how === "refused") return "Rejected by you";
  if (file.decided?.how === "left") return "Skipped before";
  if (file.ignored) return file.change === "deleted" ? "Deleted, ignored by Git" : "Ignored by Git";
  return { added: "New file", edited: "", deleted: "Deleted", renamed: capital(changeText(file)) }[
    file.change
  ];
}

const earlier = (reviews: readonly ReviewRecord[], describeChannel: Place["describeChannel"]): Html =>
  html`<section class="past-box">
    <h2>Earlier reviews<span class="count">${reviews.length}</span></h2>
    <ul>
      ${reviews
        .slice(-MAX.reviews)
        .toReversed()
        .map((record) => pastReview(record, describeChannel))}
    </ul>
  </section>`;

function pastReview(record: ReviewRecord, describeChannel: Place["describeChannel"]): Html {
  const { applied, partly, branch, worktree, unapplied, at, by, message, refused } = record;
  const count = applied.length + partly.length;
  const into = branch === undefined ? "" : ` as branch ${displayName(oneLine(branch, MAX.name))}`;
  const refusals = Object.keys(refused).length;
  const more = [
    unapplied > 0 && `, ${unapplied} left`,
    refusals > 0 && `, ${refusals} rejected`,
    worktree !== undefined && `, in ${displayName(oneLine(worktree, 200))}`,
    message !== undefined && `, “${oneLine(displayText(message), 200)}”`,
  ];
  return html`<li>
    <span class="past"
      >${icon(count === 0 ? "stop" : "done", count === 0 ? "faint" : "green")}<span class="anywhere"
        >${count === 0 ? "Nothing applied" : `${counted(count, "file")} applied${into}`}</span
      ><small class="anywhere">${describeChannel(by)}, ${timeOf(at)}${more}</small></span
    >
  </li>`;
}

const KEYS = html`<section class="keys-box by-script">
  <h2>Keys</h2>
  <div class="keys">
    <span><kbd>J</kbd> <kbd>K</kbd></span
    ><span>next, previous change</span><kbd>Space</kbd><span>select or deselect</span><kbd>X</kbd
    ><span>reject with a message</span>
  </div>
</section>`;

function content(place: Place): Html {
  const { change, viewer, screen, question } = place;
  const { run } = screen;
  const isForm = hasForm(place);
  const look = (file: ShownFile): FileLook => ({
    chosen: isForm ? currentChoice(place, file) : undefined,
    hasAgent: question !== undefined,
    id: run.id,
  });
  const files = html`${change.files.map((file) => renderFile(file, look(file)))}`;
  if (!isForm)
    return html`${renderComplaint(place)} ${intro(place)} ${files}
    ${isOpen(place) && html`<div class="panel">${onlyLooks(viewer)}</div>`}`;
  // The buttons stick to the end of the window for as long as the form is in it.
  return html`<form
    class="review-form"
    method="post"
    action="${runPath(run.id)}/change"
    autocomplete="off"
    data-proposed
  >
    ${intro(place)}
    <input type="hidden" name="question" value="${question?.id ?? ""}" />
    ${change.files.map(({ stamp, file }) => html`<input type="hidden" name="seen" value="${`${stamp} ${file.path}`}" />`)}
    ${files} ${bar(place)}
  </form>`;
}

function intro(place: Place): Html {
  const { change, screen, question, now, viewer } = place;
  const { copiedAt, reviews, isRepository, more, commits = [] } = change;
  const isUntouched = reviews.every(
    ({ applied, partly, branch }) => branch !== undefined || applied.length + partly.length === 0,
  );
  const folder =
    screen.folder === undefined
      ? "the folder"
      : html`<code>${displayName(oneLine(screen.folder, MAX.name))}</code>`;
  const why = question?.note === undefined ? "" : oneLine(displayText(question.note), 600);
  const failure =
    why !== "" &&
    html`<p class="notice amber intro" role="status">
      ${icon("ask", "amber")}<span><b>Nothing was applied:</b> ${why}. Review the change again.</span>
    </p>`;
  return html`${failure}
    <div class="notice intro">
      ${icon("folder", "faint")}<span
        >${isUntouched ? "The folder is unchanged." : "The folder has none of this yet."} The agent worked on
        a copy of ${folder} from
        ${nearTime(copiedAt, now)}${isRepository && ", including uncommitted changes"}. ${standing(place)}
        ${more > 0 && `${counted(more, "more file")} will be in the next review.`}
        ${
          commits.length > 0 &&
          `The agent’s commits in the copy are not applied, only the files: ${commits.map(displayName).join("; ")}.`
        }</span
      >
      ${diffLooks(viewer.session)}
    </div>`;
}

/** Explains why nothing can be decided now. */
function standing(place: Place): Html | string | undefined {
  const { run, other } = place.screen;
  if (other !== undefined)
    return html`<a class="link" href="${runPath(other)}/review">Another run of this conversation</a> is
      working on it and will ask for the review.`;
  if (!isOpen(place)) return "The agent is still working. It will ask for a review when it is done.";
  if (isFinal(run.status)) return "The run has ended. You can still apply it.";
  return undefined;
}

function bar(place: Place): Html {
  const { change, question, screen } = place;
  const places = change.files.map((file) => placesChosen(file.file, currentChoice(place, file)));
  // Counts of the form's choices when it is sent to the browser.
  const counts = {
    files: places.filter((count) => count > 0).length,
    all: change.files.length + change.more,
    places: places.reduce((sum, count) => sum + count, 0),
  };
  const hasAgent = question !== undefined;
  const press = (act: string, look: string, text: string): Html =>
    html`<button class="btn ${look}" name="act" value="${act}" data-act="${act}">${text}</button>`;
  /** `field`: the one that is open again with the typed text. */
  const more = (name: string, field: string, title: Html | string, body: (typed: string) => Html): Html => {
    const typed = place.complaint?.form.get(field) ?? "";
    return fold(name, { id: "change" }, typed !== "", title, body(typed));
  };
  const branch = press("branch", "ink", branchText(counts));
  const rest = press("refuse", "no", refuseText(counts));
  const refuse = html`Reject the rest…<kbd aria-hidden="true">X</kbd>`;
  return html`<section class="apply-bar ask" tabindex="-1" aria-label="Decision">
    <div class="ask-foot" data-all-files="${counts.all}">
      <p class="notice amber" role="status" data-moved hidden>
        ${icon("ask", "amber")}<span></span><a class="link end" href="#">Review it</a>
      </p>
      ${renderComplaint(place)} ${NO_DEFAULT}
      <div class="decide proposed-decide">
        ${press("apply", "ok", applyText(counts, hasAgent))}
        ${change.isRepository && more("branch", "branch", "As a branch…", (typed) => branchFields(screen.run, typed, branch))}
        ${hasAgent && more("message", "message", "Message…", messageField)}
        ${more("reject", "restMessage", refuse, (typed) => restFields(hasAgent, typed, rest))}
        <span class="note"
          ><span data-bound>${boundText(counts)}</span>
          <span class="desk">You can apply the rest later.</span></span
        >
      </div>
    </div>
  </section>`;
}

const renderComplaint = ({ complaint }: Place): Html | undefined =>
  complaint &&
  html`<p class="notice red" role="alert">${icon("fail", "red")}<span>${complaint.problem}</span></p>`;

const branchFields = ({ id }: Run, typed: string, press: Html): Html =>
  html`<label
      ><span class="label">Name of the new branch. The folder is not changed.</span>
      <input
        class="field mono"
        name="branch"
        id="branch-name"
        maxlength="${MAX.branch}"
        spellcheck="false"
        placeholder="agent/${id.slice(4, 12)}"
        value="${typed}"
    /></label>
    <label class="check"
      >${tickBox("worktree", "1", false, html`id="branch-tree"`)}In a new worktree next to this folder</label
    >
    <p>${press}</p>`;

const messageField = (typed: string): Html =>
  labelled(
    "Message to the agent (it continues, then asks again)",
    textArea(
      html`class="field" name="message" id="change-message" rows="3" maxlength="${MAX.message}" data-says`,
      typed,
    ),
  );

function restFields(hasAgent: boolean, typed: string, press: Html): Html {
  const label = hasAgent
    ? "Reason for the unselected files (the agent sees this and won’t propose them again)"
    : "Reason for the unselected files (shown to whoever continues this conversation)";
  const field = html`class="field" name="restMessage" id="rest-message" rows="2" maxlength="${MAX.message}"`;
  return html`${labelled(label, textArea(field, typed))}
    <p>${press}</p>`;
}
