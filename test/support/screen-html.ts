import {
  type Delta,
  type Tree,
  childrenOf,
  isChanged,
  isElement,
  isRange,
} from "../../src/server/views/tree.ts";
import type { RawResponse } from "./clients-raw.ts";

const VOID = /^(?:area|br|col|hr|img|input|link|meta)$/;

const escaped = (text: string): string =>
  text.replace(/[&<>"'`]/g, (character) => `&#${character.charCodeAt(0)};`);

/** HTML of trees, as the page's script makes elements of them. */
export function htmlOf(trees: readonly Tree[]): string {
  return trees
    .map((tree) => {
      if (typeof tree === "string") return escaped(tree);
      const [name, attributes, ...children] = tree;
      const own = Object.entries(attributes).map(([key, value]) =>
        value === "" && key !== "value" ? ` ${key}` : ` ${key}="${escaped(value)}"`,
      );
      const open = `<${name}${own.join("")}>${name === "textarea" ? "\n" : ""}`;
      return VOID.test(name) ? open : `${open}${htmlOf(children)}</${name}>`;
    })
    .join("");
}

export interface SentScreen {
  title: string;
  icon: string;
  waiting: number;
  mark?: string;
  address?: string;
  isWhole?: boolean;
  frame: readonly Tree[];
  tree: readonly Tree[];
}

/** What the screens that were sent show, by their marks. */
export const sent = new Map<string, readonly Tree[]>();

/** A screen as a document; other answers as they are. */
export function asDocument<Response extends RawResponse>(response: Response): Response {
  const isJson = response.headers["content-type"]?.startsWith("application/json");
  if (!isJson || !response.body.includes('"frame":')) return response;
  const screen = JSON.parse(response.body) as SentScreen;
  if (screen.mark !== undefined) sent.set(screen.mark, screen.tree);
  return { ...response, body: documentOf(screen) };
}

export const documentOf = ({ title, icon, mark, address, frame, tree }: SentScreen): string =>
  `<title>${escaped(title)}</title><link rel="icon" href="${icon}">` +
  htmlOf(frame).replace(
    '<div id="screen"></div>',
    () => `<div id="screen" data-mark="${mark ?? ""}" data-address="${address ?? ""}">${htmlOf(tree)}</div>`,
  );

/** What a page shows after a delta. */
export const changedBy = (old: readonly Tree[], delta: Delta): Tree[] =>
  delta.flatMap((step): readonly Tree[] => {
    if (typeof step === "number") return old.slice(step, step + 1);
    if (isRange(step)) return old.slice(step[0], step[1] + 1);
    if (!isChanged(step)) return [step];
    const [at, attributes, children] = step;
    const before = old[at];
    if (!isElement(before)) throw new Error(`nothing to change at ${at}`);
    const own = Object.entries({ ...before[1], ...attributes }).filter(
      (entry): entry is [string, string] => entry[1] !== null,
    );
    const inner = childrenOf(before);
    return [[before[0], Object.fromEntries(own), ...(children ? changedBy(inner, children) : inner)]];
  });
