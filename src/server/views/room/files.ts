/** Folders and files to browse and read; memories also to search, change and delete. */
import { displayText, oneLine } from "../../../core/text.ts";
import type { FileInfo, ReadResult } from "../../../backends/backend.ts";
import type { MemorySearch } from "../../../runs/service.ts";
import { type PageSession, mayRun } from "../../page/sessions.ts";
import { languageOf, markdownText } from "../content/texts.ts";
import { type Html, html, textArea } from "../html.ts";
import { icon } from "./icons.ts";
import { current, mainOf, searchField } from "./pieces.ts";

/** Where a person may change and delete files. */
export const MEMORIES = "/memories/";

export interface FilesScreen {
  session: PageSession;
  /** The address that the paths are given to, such as `/files`. */
  base: string;
  /** Ends in `/` where it is a folder. */
  path: string;
  /** What is in the folder of `path`; a text where it could not be read. */
  entries: readonly FileInfo[] | string;
  /** The file of `path`; absent for a folder. */
  file?: ReadResult | undefined;
  /** What was searched for in memories, and found. */
  search?: { query: string; found: MemorySearch } | undefined;
  /** Why the last change was not made, with what was typed. */
  complaint?: { problem: string; content: string } | undefined;
}

const MAX_ENTRIES = 1000;

export function renderFiles(screen: FilesScreen): Html {
  const shows = screen.file !== undefined || screen.search !== undefined;
  const panel = html`<div class="panel files${shows ? " shows" : ""}">
    <nav class="tree" aria-label="Files" id="tree">
      ${screen.base === "/files" ? searchForm(screen) : undefined}
      <h2 class="anywhere">${crumbs(screen)}</h2>
      ${entries(screen)}
    </nav>
    <section aria-label="File">${content(screen)}</section>
  </div>`;
  return mainOf(screen.session, "", panel);
}

const folderOf = (path: string): string => path.slice(0, path.lastIndexOf("/") + 1);

const address = (base: string, path: string, more: Readonly<Record<string, string>> = {}): string =>
  `${base}?${new URLSearchParams({ path, ...more }).toString()}`;

const searchForm = ({ search }: FilesScreen): Html =>
  html`<form method="get" action="/files" role="search">
    ${searchField("Search memories", "Search memories", 500, search?.query)}
  </form>`;

function crumbs({ base, path }: FilesScreen): Html {
  const names = folderOf(path)
    .split("/")
    .filter((name) => name !== "");
  const parts = names.map((name, index) => {
    const to = `/${names.slice(0, index + 1).join("/")}/`;
    return html`<a class="crumb" href="${address(base, to)}">${displayText(name)}</a>/`;
  });
  return html`<span><a class="crumb" href="${address(base, "/")}">/</a>${parts}</span>`;
}

function entries({ base, path, entries: listed }: FilesScreen): Html {
  if (typeof listed === "string") return html`<p class="note pad">${listed}</p>`;
  if (listed.length === 0) return html`<p class="note pad">Nothing is here.</p>`;
  const items = listed.slice(0, MAX_ENTRIES).map((entry) => {
    const isFolder = entry.path.endsWith("/");
    const name = entry.path.slice(folderOf(entry.path.replace(/\/$/, "")).length);
    return html`<li>
      <a data-row href="${address(base, entry.path)}" ${current(entry.path === path)}
        >${icon(isFolder ? "folder" : "file")}<span class="cut">${displayText(name)}</span
        ><span class="end num small faint"
          >${entry.size === undefined || isFolder ? undefined : sizeText(entry.size)}</span
        ></a
      >
    </li>`;
  });
  const rest = listed.length - items.length;
  return html`<ul>
      ${items}
    </ul>
    ${rest > 0 ? html`<p class="note pad">${rest} more are not shown.</p>` : undefined}`;
}

const sizeText = (bytes: number): string =>
  bytes < 1000
    ? `${bytes} B`
    : bytes < 1_000_000
      ? `${(bytes / 1000).toFixed(1)} kB`
      : `${(bytes / 1_000_000).toFixed(1)} MB`;

function content(screen: FilesScreen): Html {
  const { search, file, path } = screen;
  if (search !== undefined) return found(search, screen.base);
  if (file === undefined)
    return html`<div class="empty">
      ${icon("file")}
      <h3>Choose a file</h3>
    </div>`;
  if (file.error !== undefined) return html`<p class="notice red">${oneLine(file.error, 500)}</p>`;
  const { content: text } = file;
  if (typeof text !== "string") {
    return html`${head(screen)}
      <div class="empty">
        ${icon("file")}
        <h3>This is no text</h3>
        <p>${sizeText(text?.byteLength ?? 0)}, ${file.mimeType ?? "of unknown type"}</p>
      </div>`;
  }
  const isMarkdown = /\.(md|markdown)$/i.test(path);
  const isWhole = file.nextOffset === undefined && (file.startLine ?? 0) === 0;
  return html`${head(screen)}
  ${isMarkdown ? html`<article class="paper">${markdownText(text)}</article>` : source(text, screen)}
  ${file.nextOffset === undefined ? undefined : html`<p class="more pad"><a class="link" href="${address(screen.base, path, { from: String(file.nextOffset) })}">Show what follows</a></p>`}
  ${isWhole ? editor(screen, text) : undefined}`;
}

/** Where there is room for one of both. */
const TO_TREE = html`<a class="phone btn small" href="#tree" aria-label="All files">${icon("folder")}</a>`;

function head({ path }: FilesScreen): Html {
  return html`<div class="view-head">
    ${TO_TREE}
    <h1 class="file-title anywhere">${displayText(path)}</h1>
  </div>`;
}

function source(text: string, { path, file }: FilesScreen): Html {
  const first = (file?.startLine ?? 0) + 1;
  const rows = displayText(text)
    .split("\n")
    .map(
      (line, index) =>
        html`<tr>
          <td class="ln">${first + index}</td>
          <td class="cd">${line}</td>
        </tr>`,
    );
  return html`<code-text
    class="source"
    data-language="${languageOf(path)}"
    tabindex="0"
    role="region"
    aria-label="Content"
  >
    <table>
      <tbody>
        ${rows}
      </tbody>
    </table>
  </code-text>`;
}

function editor({ session, path, file, complaint }: FilesScreen, text: string): Html | undefined {
  if (!mayRun(session) || !path.startsWith(MEMORIES) || session.run !== undefined) return undefined;
  const problem = complaint && html`<p class="notice red" role="alert">${complaint.problem}</p>`;
  return html`<details class="pad" data-fold="change" ${complaint === undefined ? undefined : html` open`}>
    <summary class="btn small">Change this memory</summary>
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
    <form method="post" action="/files/delete" autocomplete="off" class="stack">
      <input type="hidden" name="path" value="${path}" />
      <p>
        <button class="btn no">Delete this memory</button>
        <span class="note">Agents no longer know it. This cannot be undone.</span>
      </p>
    </form>
  </details>`;
}

function found({ query, found: { hits, note } }: NonNullable<FilesScreen["search"]>, base: string): Html {
  const items = hits.map(
    ({ path, snippet }) =>
      html`<li class="pad">
        <a class="link" data-row href="${address(base, path)}">${displayText(path)}</a>
        <pre class="json">${displayText(snippet)}</pre>
      </li>`,
  );
  return html`<div class="view-head">
      ${TO_TREE}
      <h1 class="file-title">Memories about “${oneLine(query, 100)}”</h1>
    </div>
    ${note === undefined ? undefined : html`<p class="note pad">${oneLine(note, 500)}</p>`}
    ${
      items.length === 0
        ? html`<p class="note pad">Nothing was found.</p>`
        : html`<ul>
            ${items}
          </ul>`
    }`;
}
