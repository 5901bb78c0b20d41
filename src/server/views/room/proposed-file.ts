/** One file of a proposed change: its places with their boxes, its conflicts, and its refusal. */
import { grouped } from "../cost-words.ts";
import { capital, cutMiddle, displayBlock, displayName, displayText, oneLine } from "../../../core/text.ts";
import { type ProposedFile, type ProposedPlace, hasConflict, isPlain } from "../../../runs/proposals.ts";
import type { AgentPath } from "../../../runs/run.ts";
import { counted } from "../../../tools/format.ts";
import type { DiffCounts } from "../../../core/diff.ts";
import { runPath } from "../../contracts/viewer.ts";
import { type Html, html, textArea, type IconName, icon } from "../html.ts";
import words from "../words.json" with { type: "json" };
import { choiceInput, copyButton, labelled, shownPath, tickBox } from "./pieces.ts";
import { who } from "./request.ts";

export interface ShownFile {
  file: ProposedFile;
  /** Names this state of the file: another one once the file, or the folder below it, has changed. */
  stamp: string;
  /** The change of each place; none if the file is read by itself. */
  diffs: readonly Html[];
  /** Proves that the person has read it to its end. */
  proof: string | undefined;
  /** The agent that changed it last. Absent: not known, as for commands. */
  agent?: AgentPath | undefined;
}

export interface ChosenOfFile {
  /** Numbers of the places to apply, without those in conflict. `all`: the file has no single places. */
  places: "all" | readonly number[];
  conflict: "keep" | "take" | "fit";
  /** The reason why it is refused. Absent: it is not. */
  refused?: string | undefined;
}

/** A form, or only a look. */
export interface FileLook {
  chosen: ChosenOfFile | undefined;
  /** The agent can read why a file is refused, and fit it. */
  hasAgent: boolean;
  id: string;
}

const MAX = { notes: 20, note: 300, side: 6000, message: 4000, refused: 300, named: 4 };

/** Numbers of the places that have boxes of their own. */
export const boxesOf = ({ conflict, places, stays, unshown }: ProposedFile): number[] =>
  conflict !== undefined ||
  stays ||
  unshown === "text" ||
  (places.length < 2 && places.every((place) => place.conflict === undefined))
    ? []
    : places.flatMap((place, index) => (place.conflict === undefined ? [index] : []));

/** True if one box applies all of a file. That of a file which is read by itself stands behind its end. */
export const hasOneBox = (file: ProposedFile): boolean =>
  !file.stays && !hasConflict(file) && file.unshown !== "text" && boxesOf(file).length === 0;

/** Returns the default choice: all places without conflicts. */
export function plainChoice(file: ProposedFile): ChosenOfFile {
  const all = hasOneBox(file) ? ("all" as const) : boxesOf(file);
  return { places: isPlain(file) && file.decided === undefined ? all : [], conflict: "keep" };
}

export function placesChosen(file: ProposedFile, { places, conflict, refused }: ChosenOfFile): number {
  if (refused !== undefined || conflict === "fit") return 0;
  const taken = conflict === "keep" ? 0 : Math.max(1, file.places.filter((place) => place.conflict).length);
  return places === "all" ? 1 : places.length + taken;
}

/** Counts of lines, without those that are none. */
export const changeCounts = ({ added, removed }: DiffCounts): Html =>
  html`<span class="num small"
    >${added > 0 && html`<span class="plus">+${grouped(added)}</span>`}
    ${removed > 0 && html`<span class="minus">−${grouped(removed)}</span>`}</span
  >`;

export const fileAnchor = (stamp: string): string => `f-${stamp}`;

export const fileIcon = (file: ProposedFile): [IconName, "amber" | "faint"] => {
  if (hasConflict(file)) return ["ask", "amber"];
  return [file.decided?.how === "refused" || file.stays ? "stop" : "diff", "faint"];
};

export function renderFile(shown: ShownFile, look: FileLook): Html {
  const { file, stamp } = shown;
  const anchor = fileAnchor(stamp);
  const isForm = look.chosen !== undefined;
  return html`<article
    class="panel ask proposed"
    id="${anchor}"
    data-file="${stamp}"
    ${file.decided?.how !== "left" && !isPlain(file) && html` data-apart`}
    ${!(isForm && boxesOf(file).length + Number(hasOneBox(file)) > 0) && html` data-row`}
    aria-labelledby="${anchor}-h"
    tabindex="-1"
  >
    ${head(shown, look)} ${isForm && refusal(stamp, look)} ${decidedBefore(file)}
    <div class="proposed-body">
      ${renderNotes(file)} ${inTheWay(file)}
      ${file.unshown === "text" ? longFile(shown, look) : file.places.map((place, index) => renderPlace(shown, place, index, look))}
      ${isForm && hasConflict(file) && conflictChoice(shown, look)}
    </div>
  </article>`;
}

function head({ file, stamp, agent }: ShownFile, look: FileLook): Html {
  const { path, from, change, ignored, decided, unshown } = file;
  const refusing = html`<label class="btn small refuse-word"
    ><input
      type="checkbox"
      class="hide"
      name="x.${stamp}"
      value="1"
      id="x-${stamp}"
      data-refuse
      ${look.chosen?.refused !== undefined && html` checked`}
    /><span class="on">Undo</span><span class="off">Reject…</span></label
  >`;
  return html`<div class="view-head">
    ${headBox(file, stamp, look)}
    <span class="file-name"
      ><h2 id="${fileAnchor(stamp)}-h" class="file-title">${shownPath(path)}</h2>
      ${copyButton("Copy path", { text: path }, "sign")}</span
    >
    ${change !== "edited" && html`<span class="tag">${change === "added" ? "new" : change}</span>`}
    ${from !== undefined && html`<span class="from small dim">from ${shownPath(from)}</span>`}
    ${ignored && html`<span class="tag">ignored by Git</span>`}
    ${unshown && html`<span class="tag">${unshown === "text" ? "read it first" : "not shown"}</span>`}
    ${decided?.how === "left" && html`<span class="tag">skipped before</span>`} ${changeCounts(file)}
    <span class="end"
      >${agent && html`<span class="small dim desk cut">${who({ agent }, 60)}</span>`}
      ${look.chosen && refusing}</span
    >
  </div>`;
}

/** A box for the whole file. Where it has several, only a script can keep them and this one alike. */
function headBox(file: ProposedFile, stamp: string, { chosen }: FileLook): Html | undefined {
  if (chosen === undefined || file.stays) return undefined;
  const label = `Apply ${displayName(file.path)}`;
  if (hasOneBox(file))
    return tickBox(
      `p.${stamp}`,
      "all",
      chosen.places === "all",
      html`id="b-${stamp}" aria-label="${label}" data-row`,
    );
  if (boxesOf(file).length < 2) return undefined;
  return html`<input
    type="checkbox"
    class="tick-box by-script"
    data-whole
    id="w-${stamp}"
    aria-label="${label}"
  />`;
}

/** Seen while its box in the head is ticked. */
function refusal(stamp: string, { chosen, hasAgent }: FileLook): Html {
  const label = hasAgent
    ? "Rejected. Reason (the agent sees this and won’t propose it again in this run)"
    : "Rejected. Reason (shown to whoever continues this conversation)";
  const field = html`class="field" name="m.${stamp}" id="m-${stamp}" rows="1" maxlength="${MAX.message}"
  data-draft`;
  return html`<div class="refusal">
    ${icon("stop", "faint")} ${labelled(label, textArea(field, chosen?.refused ?? ""))}
  </div>`;
}

function decidedBefore({ decided }: ProposedFile): Html | undefined {
  if (decided?.how !== "refused") return undefined;
  const said = decided.message ? `: “${oneLine(displayText(decided.message), MAX.refused)}”` : ".";
  return html`<p class="notice">
    ${icon("stop", "faint")}<span>You rejected this before${said} It is applied only if you select it.</span>
  </p>`;
}

const WITHOUT_LINES: Partial<Record<ProposedFile["change"], string>> = words.withoutLines;

function renderNotes({ notes, places, change, conflict }: ProposedFile): Html | undefined {
  const texts = notes.slice(0, MAX.notes).map((note) => oneLine(displayText(note), MAX.note));
  if (texts.length > 0)
    return html`<ul class="proposed-notes">
      ${texts.map((text) => html`<li>${text.startsWith("can run programs") && icon("ask", "amber")}${capital(text)}</li>`)}
    </ul>`;
  if (places.length > 0 || conflict !== undefined) return undefined;
  return html`<p class="proposed-notes">${WITHOUT_LINES[change] ?? "No lines to show."}</p>`;
}

/** Says what of the folder is in the way of the file. */
function inTheWay(file: ProposedFile): Html | undefined {
  const { conflict, places } = file;
  if (conflict !== undefined)
    return html`<p class="notice amber">${icon("ask", "amber")}<b>${oneLine(conflict, MAX.note)}</b></p>`;
  const opposed = places.filter((place) => place.conflict !== undefined);
  if (opposed.length === 0) return undefined;
  const named = opposed.slice(0, MAX.named).map((place) => placeLines(place).toLowerCase());
  const more = opposed.length - named.length;
  return html`<p class="notice amber">
    ${icon("ask", "amber")}<span
      ><b
        >Changed in the folder since it was copied:
        ${named.join(", ")}${more > 0 ? ` and ${more} more` : ""}.</b
      >
      ${opposed.length < places.length && "The rest of the file fits."}</span
    >
  </p>`;
}

/** Such as `Lines 8–11`. */
function placeLines({ diff }: ProposedPlace): string {
  const hunks = [...diff.matchAll(/^@@ -(\d+)(?:,(\d+))? /gm)];
  const [first, last] = [hunks[0], hunks.at(-1)];
  if (first === undefined || last === undefined) return "This change";
  const [start, from, count] = [Number(first[1]), Number(last[1]), Number(last[2] ?? 1)];
  const end = from + count - 1;
  if (first === last && count === 0) return start === 0 ? "This change" : `After line ${start}`;
  return end <= start ? `Line ${start}` : `Lines ${start}–${end}`;
}

function renderPlace(shown: ShownFile, place: ProposedPlace, index: number, look: FileLook): Html {
  const { file, stamp, diffs } = shown;
  const diff = diffs[index] ?? html``;
  if (place.conflict !== undefined) return opposedSides(place.conflict, diff);
  if (file.places.length < 2) return html`<div class="place">${diff}</div>`;
  const title = placeLines(place);
  const box =
    look.chosen === undefined || !boxesOf(file).includes(index)
      ? html`<span>${title}</span>`
      : html`<label
          >${tickBox(`p.${stamp}`, String(index), look.chosen.places !== "all" && look.chosen.places.includes(index), html`id="p-${stamp}-${index}" data-row`)}${title}</label
        >`;
  return html`<section class="place">
    <div class="place-head">
      ${box}<span class="end"><span class="left-out faint">not selected</span>${changeCounts(place)}</span>
    </div>
    ${diff}
  </section>`;
}

/** A file that is read by itself, part by part. */
function longFile({ file, stamp, proof }: ShownFile, { chosen, id }: FileLook): Html {
  const lines = file.added + file.removed;
  return html`${partLink(id, stamp, 0, lines === 0 ? "Read all of it" : `Read ${counted(lines, "changed line")}`)}
  ${proof !== undefined && endOfFile(stamp, proof, chosen?.places === "all")}`;
}

export function partLink(id: string, stamp: string, part: number, text: string): Html {
  const query = new URLSearchParams({ file: stamp, part: String(part) }).toString();
  return html`<div class="long-place">
    <a class="link" data-inline href="${runPath(id)}/change?${query}">${text}</a>
  </div>`;
}

/** Stands behind the last line of a file: whoever gets there can choose it. */
export const endOfFile = (stamp: string, proof: string, isChosen: boolean): Html =>
  html`<div class="read-end">
    <input type="hidden" name="read" value="${proof}" /><label
      >${tickBox(`p.${stamp}`, "all", isChosen, html`data-row`)}Apply this file, which ends here</label
    >
  </div>`;

/** Lines of the folder beside the change that would replace them. */
const opposedSides = (folder: string, diff: Html): Html =>
  html`<section class="place opposed sides">
    <div>
      <h3>In the folder now</h3>
      ${
        folder.trim() === ""
          ? html`<p class="note">No lines.</p>`
          : html`<pre
              tabindex="0"
              role="region"
              aria-label="In the folder now"
            ><code>${displayBlock(cutMiddle(folder, MAX.side))}</code></pre>`
      }
    </div>
    <div>
      <h3>Proposed, based on the copied file</h3>
      ${diff}
    </div>
  </section>`;

/** Nothing is chosen for the person here. */
function conflictChoice({ file, stamp }: ShownFile, { chosen, hasAgent }: FileLook): Html {
  const radio = (value: ChosenOfFile["conflict"], label: string): Html => {
    const attributes = html`id="c-${stamp}-${value}" data-conflict`;
    return choiceInput(`c.${stamp}`, value, label, chosen?.conflict === value, { attributes });
  };
  return html`<div
    class="choices inline conflict-choice"
    role="radiogroup"
    aria-label="Resolution for ${displayName(file.path)}"
  >
    ${radio("keep", "Keep mine")} ${radio("take", "Use the agent’s version")}
    ${hasAgent && radio("fit", "Ask the agent to merge")}
  </div>`;
}
