/** Folders and files to browse, search and read; memories also to change and delete. */
import { grouped } from "../cost-words.ts";
import { groupBy } from "../../../core/group-by.ts";
import { displayText, oneLine } from "../../../core/text.ts";
import type { GrepMatch, ReadResult } from "../../../backends/backend.ts";
import type { MemorySearch } from "../../../runs/service.ts";
import { type PageSession, filePath, filesPath, mayRun } from "../../contracts/viewer.ts";
import { languageOf, markdownText } from "../content/texts.ts";
import { type Html, html, textArea, icon } from "../html.ts";
import { type ShownChange, changeFacts, renderChanges } from "./changes.ts";
import { type FileTree, MEMORIES, folderOf, nameOf, renderTree } from "./file-tree.ts";
import { choice, copyButton, diffLooks, mainOf, marked } from "./pieces.ts";

export interface FilesScreen {
  session: PageSession;
  tree: FileTree;
  /** The file of the tree's path; absent for a folder. */
  file?: ReadResult | undefined;
  /** In bytes, if it is known. */
  size?: number | undefined;
  /** Changes of the file by runs, the newest first. */
  changes: readonly ShownChange[];
  /** The current file, the changes by runs as one change, or each of their changes. */
  look: "file" | "changes" | "history";
  /** All changes by the run of the tree as one; absent where they cannot be joined. */
  joined?: Html | undefined;
  found?: FilesFound | undefined;
  /** Reason why the last change was not made, with the typed text. */
  complaint?: { problem: string; content: string } | undefined;
}

export interface FilesFound {
  /** Paths whose names have the text. */
  names: readonly string[];
  lines: readonly GrepMatch[];
  /** Absent in the files of a run. */
  memories?: MemorySearch | undefined;
  /** Sentences about parts that were not searched. */
  notes: readonly string[];
}

/** `head`: the header of the run whose files they are. */
export function renderFiles(screen: FilesScreen, head?: Html): Html {
  const shows = screen.file !== undefined || screen.found !== undefined;
  const panel = html`<div class="panel files${shows ? " shows" : ""}">
    ${head === undefined && !shows && html`<h1 class="hide">Files</h1>`} ${renderTree(screen.tree)}
    <section aria-label="File">${content(screen)}</section>
  </div>`;
  return html`${head}${mainOf(screen.session, "", panel)}`;
}

const sizeText = (bytes: number): string =>
  bytes < 1000
    ? `${bytes} B`
    : bytes < 1_000_000
      ? `${(bytes / 1000).toFixed(1)} kB`
      : `${(bytes / 1_000_000).toFixed(1)} MB`;

function content(screen: FilesScreen): Html {
  const { found, file, look } = screen;
  if (found !== undefined) return results(found, screen.tree);
  if (screen.tree.path.endsWith("/")) return CHOOSE;
  if (look !== "file") return html`${head(screen)}${renderFileChanges(screen)}`;
  if (file === undefined) return CHOOSE;
  if (file.error !== undefined)
    return html`${head(screen)}
      <p class="notice red">${oneLine(file.error, 500)}</p>`;
  const { content: text } = file;
  if (typeof text !== "string") {
    return html`${head(screen)}
      <div class="empty">
        ${icon("file")}
        <h2>This file is not text</h2>
        <p>${sizeText(text?.byteLength ?? 0)}, ${file.mimeType ?? "unknown type"}</p>
      </div>`;
  }
  const { base, path } = screen.tree;
  const isMarkdown = /\.(md|markdown)$/i.test(path);
  const isWhole = file.nextOffset === undefined && (file.startLine ?? 0) === 0;
  return html`${head(screen, text)}
  ${isMarkdown ? html`<article class="paper">${markdownText(text)}</article>` : source(text, screen)}
  ${file.nextOffset !== undefined && html`<p class="more pad"><a class="link" href="${filePath(base, path, { from: String(file.nextOffset) })}">Show more lines</a></p>`}
  ${isWhole && editor(screen, text)}`;
}

const CHOOSE = html`<div class="empty">
  ${icon("file")}
  <h2>Choose a file</h2>
</div>`;

/** Shows all that one run did to the file as one change, or the changes one by one. */
function renderFileChanges({ tree, session, changes, look, joined }: FilesScreen): Html {
  const [newest] = changes;
  if (newest === undefined) {
    const who = tree.changed === undefined ? "No recent run has" : "This run has not";
    return html`<p class="note pad">${who} changed this file.</p>`;
  }
  if (joined !== undefined)
    return html`<div class="view-meta">${changeFacts(newest)}</div>
      <div class="pad">
        ${diffLooks(session)}
        <div class="panel">${joined}</div>
      </div>`;
  const isApart = tree.changed !== undefined && look === "changes" && changes.length > 1;
  return html`<div class="pad">
    ${
      isApart &&
      html`<p class="note">
        These changes cannot be shown as one: something else changed the file in between, or one of them is
        too long.
      </p>`
    }${renderChanges(session, changes)}
  </div>`;
}

/** For screens with room for either the tree or the file. */
const TO_TREE = html`<a class="phone btn small" href="#tree" aria-label="All files">${icon("folder")}</a>`;

/** `text`: that of the file, if it is shown. */
function head(screen: FilesScreen, text?: string): Html {
  const { tree, changes, look } = screen;
  const { base, path, isOnlyChanged } = tree;
  const to = (name: string, view?: FilesScreen["look"]): Html =>
    choice(name, filePath(base, path, view === undefined ? {} : { view }), look === (view ?? "file"));
  const isOfRun = tree.changed !== undefined;
  const looks = html`<span class="seg"
    >${!isOnlyChanged && to("File")}${to(isOfRun ? "Changes" : `Changes ${changes.length}`, "changes")}${isOfRun && to(`History ${changes.length}`, "history")}</span
  >`;
  const copy = copyButton("Copy content", { address: filePath(base, path, { as: "text" }) });
  return html`<div class="view-head">
      ${TO_TREE}
      <h1 class="file-title anywhere">
        <span class="faint">${displayText(folderOf(path))}</span>${displayText(nameOf(path))}
      </h1>
      ${copyButton("Copy path", { text: path }, "sign")}
      <span class="end">${changes.length > 0 && looks} ${text !== undefined && copy}</span>
    </div>
    ${look === "file" && facts(screen, text)}`;
}

function facts({ file, size, changes }: FilesScreen, text: string | undefined): Html | undefined {
  const lines = file?.totalLines;
  const known = [
    lines !== undefined && `${grouped(lines)} ${lines === 1 ? "line" : "lines"}`,
    size !== undefined && sizeText(size),
  ];
  const told = text === undefined ? "" : known.filter(Boolean).join(", ");
  const [newest] = changes;
  if (told === "" && newest === undefined) return undefined;
  return html`<div class="view-meta">
    ${told && html`<span>${told}</span>`} ${newest && changeFacts(newest)}
  </div>`;
}

function source(text: string, { tree: { path }, file }: FilesScreen): Html {
  const first = (file?.startLine ?? 0) + 1;
  const rows = displayText(text.replace(/\r?\n$/, ""))
    .split("\n")
    .map(
      (line, index) =>
        html`<tr id="L${first + index}">
          <td class="ln">${first + index}</td>
          <td class="cd">${line}</td>
        </tr>`,
    );
  return html`<code-text
    class="source"
    data-language="${languageOf(path)}"
    tabindex="0"
    role="group"
    aria-label="Content"
  >
    <table>
      <tbody>
        ${rows}
      </tbody>
    </table>
  </code-text>`;
}

function editor({ session, tree, file, complaint }: FilesScreen, text: string): Html | undefined {
  const { base, path } = tree;
  if (!mayRun(session) || !path.startsWith(MEMORIES) || base !== filesPath()) return undefined;
  const problem = complaint && html`<p class="notice red" role="alert">${complaint.problem}</p>`;
  return html`<details class="pad" data-fold="change" ${complaint && html` open`}>
    <summary class="btn small">Edit</summary>
    <form method="post" action="/files/save" autocomplete="off" class="stack">
      ${problem}
      <input type="hidden" name="path" value="${path}" />
      <input type="hidden" name="version" value="${file?.version ?? ""}" />
      <label class="hide" for="content">Content</label>
      ${textArea(
        html`id="content" name="content" class="field mono" rows="16" spellcheck="false"`,
        complaint?.content ?? text,
      )}
      <p><button class="btn ink" name="action" value="save">Save</button></p>
    </form>
    <details class="fold">
      <summary class="btn no">Delete this memory…</summary>
      <form method="post" action="/files/delete" autocomplete="off" class="stack">
        <input type="hidden" name="path" value="${path}" />
        <p>Agents can no longer read it. This cannot be undone.</p>
        <p><button class="btn no">Delete this memory</button></p>
      </form>
    </details>
  </details>`;
}

export const LINES_OF_PAGE = 2000;

export function lineAddress(base: string, { path, line }: GrepMatch): string {
  // A page that does not begin with the file begins 20 lines before the found one.
  const from: Record<string, string> = line > LINES_OF_PAGE ? { from: String(line - 20) } : {};
  return `${filePath(base, path, from)}#L${line}`;
}

function results({ names, lines, memories, notes }: FilesFound, { base, query }: FileTree): Html {
  const link = (path: string): Html =>
    html`<a class="link anywhere" data-row href="${filePath(base, path)}">${displayText(path)}</a>`;
  const group = (title: string, items: readonly Html[]): Html | false =>
    items.length > 0 &&
    html`<section>
      <h2 class="group">${title} <span class="count">${items.length}</span></h2>
      <ul class="found">
        ${items}
      </ul>
    </section>`;
  const hits = (memories?.hits ?? []).map(
    ({ path, snippet }) =>
      html`<li>
        ${link(path)}
        <pre class="json">${displayText(snippet)}</pre>
      </li>`,
  );
  const found = (match: GrepMatch): Html =>
    html`<a class="line" data-row href="${lineAddress(base, match)}"
      ><span class="num faint">${match.line}</span
      ><code class="cut">${marked(displayText(oneLine(match.text, 300)), query)}</code></a
    >`;
  const inside = groupBy(lines, ({ path }) => path);
  const all = [...notes, ...(memories?.note === undefined ? [] : [memories.note])];
  return html`<div class="view-head">
      ${TO_TREE}
      <h1 class="file-title">Files with “${oneLine(query, 100)}”</h1>
    </div>
    ${all.map((note) => html`<p class="note pad">${oneLine(note, 500)}</p>`)}
    ${group(
      "Names",
      names.map((path) => html`<li>${link(path)}</li>`),
    )}
    ${group(
      "Contents",
      [...inside].map(([path, matches]) => html`<li>${link(path)} ${matches.map(found)}</li>`),
    )}
    ${group("Memories", hits)}
    ${names.length + lines.length + hits.length === 0 && html`<p class="note pad">No files match your search.</p>`}`;
}
