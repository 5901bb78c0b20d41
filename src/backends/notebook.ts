/**
 * Shows a Jupyter notebook as text, one cell after the other, and applies changes of that text to the file. A line such
 * as `<cell 2: code>` begins a cell, and `<output: text>` an output of it. Everything else in the file stays as it is,
 * byte for byte. Format 4: https://nbformat.readthedocs.io/en/latest/format_description.html
 */
import { createHash } from "node:crypto";
import { type Node, type ParseError, findNodeAtLocation, getNodeValue, parseTree } from "jsonc-parser";
import { z } from "zod";
import { headOf, trimEndOf } from "../core/text.ts";
import { type BackendFailure, errors } from "./errors.ts";
import { terminalText } from "./terminal-screen.ts";
import { type TextEdit, editText } from "./text-edit.ts";

const CELL_TYPES = ["code", "markdown", "raw"] as const;

/** A text, or its lines, as both may stand in the file. */
const SourceText = z.union([z.string(), z.array(z.string()).transform((lines) => lines.join(""))]).catch("");

const Cell = z.object({
  cell_type: z.enum(CELL_TYPES).catch("raw"),
  id: z.string().optional().catch(undefined),
  source: SourceText,
  outputs: z.array(z.record(z.string(), z.unknown()).catch({})).catch([]),
});

type NotebookCell = z.output<typeof Cell>;

interface Notebook {
  text: string;
  list: Node;
  cells: readonly { node: Node; cell: NotebookCell }[];
}

export const isNotebookPath = (path: string): boolean => /\.ipynb$/i.test(path);

const CELL_MARK = /^<(?:cell(?: (\d{1,6}))?: *(code|markdown|raw)|output: [^>]*)>$/;
/** A line of a cell that could be taken for a mark has one more backslash in the text. */
const ESCAPABLE = /^\\*<(?:cell|output)\b.*>$/;

/** The text of a notebook. Returns undefined for any other file, which is read as it is. */
export function notebookText(path: string, text: string): string | undefined {
  const notebook = isNotebookPath(path) ? parseNotebook(text) : undefined;
  return notebook && renderNotebook(notebook);
}

const renderNotebook = ({ cells }: Notebook): string =>
  cells
    .map(({ cell }, index) => {
      const head = `<cell ${index + 1}: ${cell.cell_type}>`;
      return `${head}\n${escapeMarks(cell.source)}\n${outputsText(cell)}`;
    })
    .join("");

/** Applies an edit to a file. In a notebook the strings are looked for in its text, and then in the file itself. */
export function editFileText(
  path: string,
  text: string,
  [oldString, newString]: readonly [string, string],
  replaceAll = false,
): TextEdit {
  const notebook = isNotebookPath(path) ? parseNotebook(text) : undefined;
  if (notebook === undefined) return editText(text, oldString, newString, replaceAll);
  const edited = editText(renderNotebook(notebook), oldString, newString, replaceAll);
  if (edited.ok) {
    const cells = writtenCells(edited.text);
    if (cells === undefined) return { ok: false, ...errors.textBeforeCells() };
    const changed = withCells(notebook, cells);
    return changed.ok ? { ...changed, occurrences: edited.occurrences } : changed;
  }
  const inFile = editText(text, oldString, newString, replaceAll);
  return inFile.ok && parseNotebook(inFile.text) !== undefined ? inFile : edited;
}

/** The content of a notebook that was written as text over `before`. Any other content is returned unchanged. */
export function writtenNotebook(path: string, content: string, before = ""): string {
  const [first = ""] = content.trimStart().split("\n", 1);
  if (!isNotebookPath(path) || !CELL_MARK.test(first.trimEnd())) return content;
  const cells = writtenCells(content.trimStart());
  if (cells === undefined) return content;
  const notebook = parseNotebook(before) ?? parseNotebook(EMPTY_NOTEBOOK);
  if (notebook === undefined) return content;
  // A whole text cannot change outputs, so they are dropped.
  const made = withCells(
    notebook,
    cells.map((cell) => ({ ...cell, outputs: "" })),
  );
  return made.ok ? made.text : content;
}

const EMPTY_NOTEBOOK = `{
 "cells": [],
 "metadata": {},
 "nbformat": 4,
 "nbformat_minor": 5
}
`;

function parseNotebook(text: string): Notebook | undefined {
  const errors: ParseError[] = [];
  const root = parseTree(text.replace(/^\uFEFF/, " "), errors);
  const list = root && findNodeAtLocation(root, ["cells"]);
  if (errors.length > 0 || root?.type !== "object" || list?.type !== "array") return undefined;
  if (findNodeAtLocation(root, ["nbformat"])?.value !== 4) return undefined;
  const cells = (list.children ?? []).map((node) => ({
    node,
    parsed: Cell.safeParse(getNodeValue(node)).data,
  }));
  const known = cells.flatMap(({ node, parsed }) => (parsed === undefined ? [] : [{ node, cell: parsed }]));
  return known.length === cells.length ? { text, list, cells: known } : undefined;
}

const outputsText = ({ outputs }: NotebookCell): string =>
  outputs
    .flatMap(shownOutputs)
    .map(({ kind, text }) => {
      const body = headOf(text, 2000);
      const size = body === text ? "" : `, the first ${body.length} of ${text.length} characters`;
      return `<output: ${kind}${size}>\n${body === "" ? "" : `${escapeMarks(body)}\n`}`;
    })
    .join("");

const escapeMarks = (text: string): string =>
  text
    .split("\n")
    .map((line) => (ESCAPABLE.test(line) ? `\\${line}` : line))
    .join("\n");

/** Texts of an output, and the sizes of its other contents. */
function shownOutputs(output: Record<string, unknown>): { kind: string; text: string }[] {
  if (output["output_type"] === "stream")
    return [{ kind: output["name"] === "stderr" ? "stderr" : "stdout", text: plainOutput(output["text"]) }];
  if (output["output_type"] === "error") {
    const trace = z.array(z.string()).catch([]).parse(output["traceback"]).join("\n");
    const [name, value] = [output["ename"], output["evalue"]].map(plainOutput);
    return [{ kind: "error", text: plainOutput(trace) || `${name}: ${value}` }];
  }
  const data = Object.entries(z.record(z.string(), z.unknown()).catch({}).parse(output["data"]));
  const texts = data.filter(([type]) => type === "text/plain" || type === "text/markdown");
  const others = data.filter(([type]) => !type.startsWith("text/") && !type.endsWith("+json"));
  const shown = texts.slice(0, 1).map(([, value]) => ({ kind: "text", text: plainOutput(value) }));
  // Further forms add nothing to a text or picture. An output with neither, such as one of Plotly, is named.
  const named = shown.length + others.length > 0 ? others : data.slice(0, 1);
  const sizes = named.map(([type, value]) => {
    const { length } = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
    return { kind: `${type.replace(/[^\w/.+-]/g, "")}, ${length} characters, not shown`, text: "" };
  });
  return [...shown, ...sizes];
}

const plainOutput = (value: unknown): string => terminalText(SourceText.parse(value)).trimEnd();

interface WrittenCell {
  /** Number of the cell before the change; absent for a new cell. */
  number?: number;
  type: (typeof CELL_TYPES)[number];
  source: string;
  outputs: string;
}

/** The file with the cells that a changed text has. */
function withCells(
  notebook: Notebook,
  written: readonly WrittenCell[],
): { ok: true; text: string } | ({ ok: false } & BackendFailure) {
  const style = detectStyle(notebook);
  const used = new Set<number>();
  const pieces: { number: number; piece: string }[] = [];
  for (const cell of written) {
    const { number = 0 } = cell;
    const old = used.has(number) ? undefined : notebook.cells[number - 1];
    used.add(number);
    const piece =
      old === undefined ? newCell(cell, pieces.length, style) : changedCell(notebook, old, cell, style);
    if (piece === undefined) return { ok: false, ...errors.changedOutputs(cell.number ?? 0) };
    pieces.push({ number: old === undefined ? -1 : number, piece });
  }
  // Cells that stay neighbours keep the text between them.
  const { text, list, cells } = notebook;
  const ends = [list.offset + 1, ...cells.map(({ node }) => node.offset + node.length)];
  const starts = [...cells.map(({ node }) => node.offset), list.offset + list.length - 1];
  const kept = (from: number, to: number): string | undefined =>
    to === from + 1 ? text.slice(ends[from], starts[from]) : undefined;
  let before = 0;
  let body = "";
  for (const [index, { number, piece }] of pieces.entries()) {
    body += (kept(before, number) ?? style.gap(index === 0 ? "first" : "next")) + piece;
    before = number;
  }
  if (pieces.length > 0) body += kept(before, cells.length + 1) ?? style.gap("last");
  const [head, tail] = [text.slice(0, list.offset + 1), text.slice(list.offset + list.length - 1)];
  return { ok: true, text: head + body + tail };
}

function writtenCells(text: string): WrittenCell[] | undefined {
  const cells: { head: RegExpExecArray; source: string[]; outputs: string[] }[] = [];
  let to: string[] = [];
  const before = to;
  for (const line of text.replace(/\n$/, "").split("\n")) {
    const mark = CELL_MARK.exec(line.trimEnd());
    if (mark?.[2] !== undefined) {
      cells.push({ head: mark, source: [], outputs: [] });
      to = cells.at(-1)?.source ?? to;
    } else if (mark !== null) {
      to = cells.at(-1)?.outputs ?? to;
      to.push(line);
    } else to.push(line);
  }
  if (before.some((line) => line.trim() !== "")) return undefined;
  return cells.map(({ head: [, number, type], source, outputs }) => ({
    ...(number === undefined ? {} : { number: Number(number) }),
    type: CELL_TYPES.find((each) => each === type) ?? "raw",
    source: source
      .map((line) => (line.startsWith("\\") && ESCAPABLE.test(line) ? line.slice(1) : line))
      .join("\n"),
    outputs: outputs.map((line) => `${line}\n`).join(""),
  }));
}

/** A cell of the file with a new source. Returns undefined if its outputs were changed. */
function changedCell(
  { text }: Notebook,
  { node, cell }: { node: Node; cell: NotebookCell },
  written: WrittenCell,
  style: Style,
): string | undefined {
  const isCleared = written.outputs === "";
  if (!isCleared && written.outputs.trimEnd() !== outputsText(cell).trimEnd()) return undefined;
  const isOtherType = written.type !== cell.cell_type;
  const value = z.record(z.string(), z.unknown()).parse(getNodeValue(node));
  if (isOtherType) {
    const { outputs: _outputs, execution_count: _count, attachments: _attachments, ...kept } = value;
    const ran = written.type === "code" ? { execution_count: null, outputs: [] } : {};
    return style.value({ ...kept, cell_type: written.type, ...ran, source: style.lines(written.source) }, 2);
  }
  const replaced: [name: string, value: string][] = [];
  if (written.source !== cell.source) {
    const isText = typeof value["source"] === "string";
    replaced.push(["source", style.value(isText ? written.source : style.lines(written.source), 3)]);
  }
  if (isCleared && outputsText(cell) !== "") replaced.push(["outputs", "[]"], ["execution_count", "null"]);
  return replaced
    .flatMap(([name, to]) => {
      const found = findNodeAtLocation(node, [name]);
      return found === undefined ? [] : [{ from: found.offset, end: found.offset + found.length, to }];
    })
    .sort((one, other) => other.from - one.from)
    .reduce(
      (piece, { from, end, to }) => piece.slice(0, from - node.offset) + to + piece.slice(end - node.offset),
      text.slice(node.offset, node.offset + node.length),
    );
}

function newCell({ type, source: written }: WrittenCell, index: number, style: Style): string {
  const source = trimEndOf(written, "\n");
  // The id depends on the cell alone: a change that was shown must make exactly the file that was shown.
  const id = createHash("sha256").update(`${index}\n${type}\n${source}`).digest("hex").slice(0, 8);
  const ran = type === "code" ? { execution_count: null, outputs: [] } : {};
  const named = style.hasIds ? { id } : {};
  return style.value({ cell_type: type, ...ran, ...named, metadata: {}, source: style.lines(source) }, 2);
}

/** The layout of the file, in which new parts are written. */
interface Style {
  hasIds: boolean;
  lines: (source: string) => string[];
  /** JSON of a value that stands at this depth. */
  value: (value: unknown, depth: number) => string;
  /** The text between the brackets of the list and its cells. */
  gap: (place: "first" | "next" | "last") => string;
}

function detectStyle({ text, list, cells }: Notebook): Style {
  const lineEnd = /\r?\n/.exec(text)?.[0] ?? "";
  const unit = lineEnd === "" ? "" : (/^\s*\{\r?\n([ \t]+)/.exec(text)?.[1] ?? " ");
  const isAscii = !/[^\0-\u007f]/.test(text) && /\\u[0-9a-f]{4}/i.test(text);
  const parent = list.parent?.parent;
  const minor = parent && findNodeAtLocation(parent, ["nbformat_minor"])?.value;
  return {
    hasIds: typeof minor === "number" ? minor >= 5 : cells.some(({ cell }) => cell.id !== undefined),
    lines: (source) => source.split(/(?<=\n)/).filter((line) => line !== ""),
    value: (value, depth) => {
      const json = JSON.stringify(value, null, unit).replaceAll("\n", lineEnd + unit.repeat(depth));
      const escaped = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
      return isAscii ? json.replace(/[^\0-\u007f]/g, escaped) : json;
    },
    gap: (place) => {
      if (place === "last") return lineEnd + unit;
      return (place === "first" ? "" : ",") + lineEnd + unit.repeat(2);
    },
  };
}
