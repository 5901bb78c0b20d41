/** The dialog with which a person shares one run, and what those see who followed such a link. */
import type { SharedRun } from "../../../runs/shares.ts";
import type { RunView } from "../../../runs/run.ts";
import { type PageSession, runPath } from "../../contracts/viewer.ts";
import { type Html, html, icon } from "../html.ts";
import { dayAndTime } from "./figures.ts";
import { copySign } from "./pieces.ts";

interface ShownLink extends Pick<SharedRun, "id" | "expiresAt" | "opened"> {
  address: string;
}

export interface Sharing {
  links: readonly ShownLink[];
  /** True if only browsers of this machine reach the page. */
  isLocal: boolean;
  /** Opens the dialog at once, after one of its forms was sent. */
  isOpen?: boolean;
  /** Why the last link was not made. */
  problem?: string | undefined;
}

export const LIFETIMES: readonly (readonly [name: string, words: string, milliseconds: number])[] = [
  ["hour", "1 hour", 3_600_000],
  ["day", "1 day", 86_400_000],
  ["week", "7 days", 7 * 86_400_000],
];

export function renderShareDialog({ run }: RunView, { links, isLocal, isOpen, problem }: Sharing): Html {
  const path = runPath(run.id);
  return html`<dialog id="share-run" aria-labelledby="share-h" ${isOpen && html` data-opened`}>
    <h2 id="share-h">Share a read-only link</h2>
    <p class="small dim">
      Anyone with the link can see the task, answer, plan, a one-line summary of each step, decisions, and
      changed lines of files. They can’t decide, write, cancel, or see results of calls, other runs or files.
      ${isLocal && "Only browsers on this machine reach this server, so the link works here, and only while the server runs."}
    </p>
    ${problem && html`<p class="notice red" role="alert">${problem}</p>`}
    <form method="post" action="${path}/share" class="share-new" autocomplete="off">
      <label class="small dim" for="share-for">Expires in</label>
      <select id="share-for" name="for" class="field">
        ${LIFETIMES.map(([name, words]) => html`<option value="${name}" ${name === "day" && html` selected`}>${words}</option>`)}
      </select>
      <button class="btn ink">Create link</button>
    </form>
    ${
      links.length > 0 &&
      html`<ul class="share-links" aria-label="Links that work">
        ${links.map((link) => row(path, link))}
      </ul>`
    }
    <form method="dialog" class="row-end"><button class="btn">Done</button></form>
  </dialog>`;
}

const row = (path: string, { id, address, expiresAt, opened }: ShownLink): Html =>
  html`<li id="share-${id}">
    <div class="copy-line">
      <input class="field mono" readonly aria-label="Link" data-absolute data-address="${address}" />
      ${copySign("Copy the link", html`class="btn bare icon copy" data-link-address="${address}"`)}
    </div>
    <form method="post" action="${path}/unshare" class="share-end">
      <input type="hidden" name="share" value="${id}" />
      <span class="small dim">Expires ${dayAndTime(expiresAt)}. ${openedText(opened)}</span>
      <button class="btn small no">Stop sharing</button>
    </form>
  </li>`;

export const openedText = (times: number): string =>
  ["Not opened yet.", "Opened once."][times] ?? `Opened ${times} times.`;

/** A note at the top of shared pages; empty on others. */
export const sharedNote = ({ sharedUntil }: PageSession): Html | false =>
  sharedUntil !== undefined &&
  html`<span class="shared-note"
    >${icon("eye")}<span
      >Read-only<span class="desk">, shared until ${dayAndTime(sharedUntil)}</span></span
    ></span
  >`;
