/** The menu of a run. */
import { oneLine } from "../../../core/text.ts";
import { MAX_NAME, type RunView, isFinal, nameOf } from "../../../runs/run.ts";
import { counted } from "../../../tools/format.ts";
import { type PageSession, isShared, mayRun, runPath } from "../../contracts/viewer.ts";
import { type Html, html, type IconName, icon } from "../html.ts";
import { type Sharing, renderShareDialog } from "./share.ts";

/** `canShare`: links to the run can be made. */
export function renderRunMenu(view: RunView, session: PageSession, canShare: boolean): Html {
  const { run } = view;
  const hasEnded = isFinal(run.status);
  const fork = html`<a class="menu-item" href="${runPath(run.id)}/answer#fork" data-closes
    >${icon("fork")}<span>Start from an earlier step…</span></a
  >`;
  const changing = html`<hr />
    ${opener("rename-run", "pen", "Rename…")} ${hasEnded && fork}
    ${
      hasEnded
        ? opener("delete-run", "bin", "Delete run…", "danger")
        : html`<button type="button" class="menu-item" disabled>
            ${icon("bin")}<span>Delete run…</span><small>Cancel it first</small>
          </button>`
    }`;
  return html`<details class="drop" name="menu" id="run-menu">
    <summary class="btn icon bare" aria-label="More about this run" title="More">${icon("dots")}</summary>
    <div class="menu right">
      ${!isShared(session) && copyItem("Copy link", html`data-link-address="${runPath(run.id)}"`)}
      ${copyItem("Copy run id", html`data-copy="${run.id}"`)}
      ${canShare && opener("share-run", "link", "Share a read-only link…")}
      <hr />
      ${exportItem(run.id, "markdown", "md", "Export as Markdown", "What happened, decisions, changes, and the answer")}
      ${exportItem(run.id, "json", "json", "Export as JSON", "The whole report, as clients get it")}
      ${mayRun(session) && changing}
    </div>
  </details>`;
}

const copyItem = (name: string, source: Html): Html =>
  html`<button type="button" class="menu-item copy" ${source}>${icon("copy")}<span>${name}</span></button>`;

const exportItem = (id: string, form: string, ending: string, name: string, note: string): Html =>
  html`<a
    class="menu-item"
    href="${runPath(id)}/export?as=${form}"
    data-download="${id}.${ending}"
    data-closes
    >${icon("out")}<span>${name}</span><small>${note}</small></a
  >`;

const opener = (dialog: string, picture: IconName, name: string, look = ""): Html =>
  html`<button type="button" class="menu-item ${look}" data-dialog="${dialog}" data-closes>
    ${icon(picture)}<span>${name}</span>
  </button>`;

export function renderRunDialogs(view: RunView, sharing: Sharing | undefined): Html {
  const { run } = view;
  const renaming = html`<dialog id="rename-run" aria-labelledby="rename-h">
    <h2 id="rename-h">Rename this run</h2>
    <form method="post" action="${runPath(run.id)}/rename" id="rename-form" autocomplete="off">
      <label class="hide" for="run-name">Name</label>
      <input
        id="run-name"
        class="field"
        name="name"
        maxlength="${MAX_NAME}"
        value="${oneLine(nameOf(run), MAX_NAME)}"
      />
    </form>
    <p class="small dim">Leave empty to show the task.</p>
    ${ends("Cancel", html`<button class="btn ink" form="rename-form">Rename</button>`)}
  </dialog>`;
  return html`${sharing && renderShareDialog(view, sharing)} ${renaming}
  ${isFinal(run.status) && deleting(view)}`;
}

function deleting({ run, filesChanged }: RunView): Html {
  const of = (folder: string): number => filesChanged.filter((path) => path.startsWith(folder)).length;
  const [files, memories] = [of("/workspace/"), of("/memories/")];
  const kept = [
    ...(files === 0 ? [] : [`${counted(files, "changed file")} in the workspace`]),
    ...(memories === 0 ? [] : [counted(memories, "memory", "memories")]),
  ];
  const { unapplied = 0 } = run;
  const goes = unapplied === 0 ? "messages and files" : "messages, files and copy of the folder";
  const stays = kept.join(", ") || "files in the workspace, and memories";
  const lost = html`<p class="notice amber">
    ${icon("ask", "amber")}<span
      >${counted(unapplied, "file")} that it proposed and nobody applied ${unapplied === 1 ? "is" : "are"} in
      that copy.</span
    >
  </p>`;
  return html`<dialog id="delete-run" aria-labelledby="delete-h">
    <h2 id="delete-h">Delete this run?</h2>
    <p class="small dim">
      Its answer, steps and decisions are deleted permanently, for everyone. If no other run continues the
      conversation, its ${goes} are deleted too. Not deleted: ${stays}.
    </p>
    ${unapplied > 0 && lost}
    <form method="post" action="${runPath(run.id)}/delete" id="delete-form"></form>
    ${ends("Keep it", html`<button class="btn no" form="delete-form">Delete run</button>`)}
  </dialog>`;
}

/** The buttons of a dialog. The first one closes it, and gets the focus where there is no field. */
const ends = (close: string, act: Html): Html =>
  html`<form method="dialog" class="row-end"><button class="btn">${close}</button>${act}</form>`;
