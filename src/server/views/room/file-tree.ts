/** The tree of files beside the one that is shown. Folders on the way to that file are open; a script opens others. */
import type { FileInfo } from "../../../backends/backend.ts";
import { groupBy } from "../../../core/group-by.ts";
import { displayText } from "../../../core/text.ts";
import { filePath } from "../../contracts/viewer.ts";
import { type Html, html, icon } from "../html.ts";
import words from "../words.json" with { type: "json" };
import { current, searchField } from "./pieces.ts";

/** Folder in which a person may change and delete files. */
export const MEMORIES = "/memories/";
export const WORKSPACE = "/workspace/";
/** Folders in the root, with their names above their entries and in a list. */
const ROOTS: ReadonlyMap<string, { title: string; row: string }> = new Map([
  [WORKSPACE, { title: "Workspace", row: "Whole workspace" }],
  [MEMORIES, { title: "Memories", row: "All memories" }],
  ["/skills/", { title: "Skills", row: "Skills" }],
]);

/** Change of a file by runs: modified, added or deleted. */
export type Mark = "M" | "A" | "D";

export interface FileTree {
  /** Address prefix of the paths, such as `/files`. */
  base: string;
  /** The file or folder that is shown. */
  path: string;
  /** Entries by folder, for the folders that are open; a text for a folder that could not be read. */
  listings: ReadonlyMap<string, readonly FileInfo[] | string>;
  marks: ReadonlyMap<string, Mark>;
  /** Files that the run of the tree changed; absent for the tree that all runs share. */
  changed?: readonly string[];
  /** True if it has no other files than those. */
  isOnlyChanged?: boolean;
  /** True if the listings are all that is to be shown, so that nothing is opened later. */
  isWhole?: boolean;
  /** The searched text; empty if nothing was searched for. */
  query: string;
}

const MAX_ENTRIES = 1000;
const MAX_CHANGED = 300;

export const folderOf = (path: string): string => path.slice(0, path.replace(/\/$/, "").lastIndexOf("/") + 1);
export const nameOf = (path: string): string => path.slice(folderOf(path).length);

export const renderTree = (tree: FileTree): Html =>
  html`<nav class="tree" aria-label="Files" id="tree">
    ${!tree.isOnlyChanged && html`<form method="get" action="${tree.base}" role="search">${searchField("Search files", "Search names and contents", 200, tree.query)}</form>`}
    ${tree.changed === undefined ? sharedSections(tree) : runSections(tree, tree.changed)}
  </nav>`;

function sharedSections(tree: FileTree): Html {
  const listed = tree.listings.get("/") ?? [];
  if (typeof listed === "string") return html`<p class="note pad">${listed}</p>`;
  if (listed.length === 0) return html`<p class="note pad">Nothing is here.</p>`;
  const files = listed.filter(({ path }) => !path.endsWith("/"));
  const roots = byRank(listed).filter(({ path }) => path.endsWith("/"));
  return html`${roots.map(({ path }) => section(ROOTS.get(path)?.title ?? nameOf(path), path, tree))}
  ${files.length > 0 && section("Files", "/", withRoot(tree, files))}`;
}

/** Renders the run's files first, then all others, folded unless the shown file is only there. */
function runSections(tree: FileTree, changed: readonly string[]): Html {
  const listed = tree.listings.get("/") ?? [];
  const within = (root: string): string[] => changed.filter((path) => path.startsWith(root));
  const notes = changed.filter((path) => [...ROOTS.keys()].every((root) => !path.startsWith(root)));
  const isListed = changed.includes(tree.path);
  const all = isListed ? { ...tree, listings: new Map([["/", listed]]) } : tree;
  return html`${changedSection("Changed by this run", WORKSPACE, within(WORKSPACE), tree)}
  ${changedSection("Notes of this conversation", "/", notes, tree)}
  ${changedSection("Remembered by this run", MEMORIES, within(MEMORIES), tree)}
  ${changed.length === 0 && html`<p class="note pad">This run has not changed any files.</p>`}
  ${!tree.isOnlyChanged && section("All files", "/", typeof listed === "string" ? all : withRoot(all, byRank(listed)))}`;
}

const withRoot = (tree: FileTree, entries: readonly FileInfo[]): FileTree => ({
  ...tree,
  listings: new Map([...tree.listings, ["/", entries]]),
});

/** Sorts the workspace first, then the other roots, then the entries beside them. */
function byRank(entries: readonly FileInfo[]): FileInfo[] {
  const roots = [...ROOTS.keys()];
  const rank = ({ path }: FileInfo): number => (roots.includes(path) ? roots.indexOf(path) : roots.length);
  return entries.toSorted((one, other) => rank(one) - rank(other));
}

/** Folders and files of these paths alone, all of them open. */
function changedSection(title: string, root: string, paths: readonly string[], tree: FileTree): Html | false {
  if (paths.length === 0) return false;
  const way = (at: string): string[] => (at === root ? [] : [at, ...way(folderOf(at))]);
  const all = [...new Set(paths.slice(0, MAX_CHANGED).flatMap(way))].map((at) => ({ path: at }));
  const listings = groupBy(all, (entry) => folderOf(entry.path));
  const rest = paths.length - MAX_CHANGED;
  // A folder that is shown has its part in the section with all of its entries.
  const path = tree.path.endsWith("/") ? "" : tree.path;
  return html`${section(title, root, { ...tree, path, listings, isWhole: true }, paths.length)}
  ${rest > 0 && html`<p class="note pad">${rest} more are not shown.</p>`}`;
}

const section = (title: string, root: string, tree: FileTree, count?: number): Html =>
  html`<section>
    <h2>${title}${count !== undefined && html`<span class="end">${count}</span>`}</h2>
    ${branch(root, tree)}
  </section>`;

/** The entries of one folder, each folder with its own if it is open. */
function branch(folder: string, tree: FileTree): Html | undefined {
  const listed = tree.listings.get(folder);
  if (listed === undefined) return undefined;
  if (typeof listed === "string") return html`<p class="note pad" ${part(folder, tree)}>${listed}</p>`;
  if (listed.length === 0) return html`<p class="note pad" ${part(folder, tree)}>Nothing is here.</p>`;
  const rest = listed.length - MAX_ENTRIES;
  return html`<ul ${part(folder, tree)}>
    ${listed.slice(0, MAX_ENTRIES).map((entry) => row(entry, tree))}
    ${rest > 0 && html`<li class="note pad">${rest} more are not shown.</li>`}
  </ul>`;
}

/** Marks what the script takes into its place when it opens this folder. */
const part = (folder: string, { path }: FileTree): Html | false => folder === path && html` data-part`;

/** The folder that a row ends with: one that holds another folder alone shares its row. */
function endOfRow(path: string, tree: FileTree): string {
  const listed = tree.isWhole === true ? tree.listings.get(path) : undefined;
  const [only, ...others] = Array.isArray(listed) ? listed : [];
  return only?.path.endsWith("/") && others.length === 0 ? endOfRow(only.path, tree) : path;
}

function row({ path: begin }: FileInfo, tree: FileTree): Html {
  const path = endOfRow(begin, tree);
  const name = displayText(ROOTS.get(path)?.row ?? path.slice(folderOf(begin).length).replace(/\/$/, ""));
  const address = filePath(tree.base, path);
  if (path.endsWith("/"))
    return html`<li>
      <a
        data-row
        data-folder
        href="${address}"
        aria-expanded="${String(tree.listings.has(path))}"
        title="${name}"
        >${icon("chev")}${icon("folder")}<span class="cut">${name}</span></a
      >${branch(path, tree)}
    </li>`;
  const mark = tree.marks.get(path);
  return html`<li>
    <a
      data-row
      class="${mark === "D" && "gone"}"
      href="${address}"
      title="${name}"
      ${current(path === tree.path)}
      >${icon(path.startsWith(MEMORIES) ? "mind" : "file")}<span class="cut">${name}</span
      >${mark && html`<span class="m ${words.marks[mark]}"><span class="hide">, ${words.marks[mark]}</span><span aria-hidden="true">${mark}</span></span>`}</a
    >
  </li>`;
}
