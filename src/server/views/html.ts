/** The one HTML template that escapes, and the small pieces that pages are made of. */
import { Parser } from "htmlparser2";
import { byIdentity } from "../../core/by-identity.ts";
import { stripControl } from "../../core/text.ts";
import pictures from "./icons.json" with { type: "json" };
import type { Attributes, Tree } from "./tree.ts";

/** HTML: the fixed parts of a template, and the parts between them, which are escaped unless they are HTML. */
export class Html {
  readonly #fixed: readonly string[];
  readonly #parts: readonly Part[];

  /** `fixed`: HTML. */
  constructor(fixed: readonly string[], parts: readonly Part[] = []) {
    this.#fixed = fixed;
    this.#parts = parts;
  }

  get text(): string {
    return this.#fixed.map((fixed, index) => fixed + renderPart(this.#parts[index])).join("");
  }

  get trees(): Tree[] {
    return fill(compile(this.#fixed), this.#parts);
  }
}

/** Nothing is shown of `undefined` and `false`. */
type Part = Html | string | number | undefined | false | readonly Part[];

/**
 * HTML with every interpolated text escaped, for element content and double-quoted attributes. One in place of an
 * attribute is HTML of attributes. Every element ends where it began.
 */
export const html = (strings: TemplateStringsArray, ...parts: readonly Part[]): Html =>
  new Html(strings, parts);

/**
 * Renders a text area. A browser drops one line break at its beginning, and takes all other white space for text:
 * a template that a formatter lays out would change the text that a person saves.
 */
export const textArea = (attributes: Html, text: string): Html => new Html(TEXT_AREA, [attributes, text]);

const TEXT_AREA = ["<textarea ", ">\n", "</textarea>"];

function renderPart(part: Part): string {
  if (part === undefined || part === false) return "";
  if (part instanceof Html) return part.text;
  if (typeof part === "object") return part.map(renderPart).join("");
  return stripControl(String(part)).replace(/[&<>"'`]/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** A template as a tree. Text and values are divided at the places of parts, and those are numbers. */
type Template = readonly (string | number | TemplateElement)[];
interface TemplateElement {
  name: string;
  /** A number in place of a name stands for several attributes. */
  attributes: (readonly [name: string | number, value: readonly (string | number)[]])[];
  children: (string | number | TemplateElement)[];
}

/** Reads the fixed parts of a template, once. */
const compile = byIdentity((fixed: readonly string[]): Template => {
  const root: TemplateElement = { name: "", attributes: [], children: [] };
  const open = [root];
  const inner = (): TemplateElement => open.at(-1) ?? root;
  const parser = new Parser(
    {
      onopentag(name, attributes) {
        const own = Object.entries(attributes).map(
          ([key, value]) => [divided(key)[0] ?? "", divided(value)] as const,
        );
        const element = { name, attributes: own, children: [] };
        inner().children.push(element);
        open.push(element);
      },
      ontext(text) {
        const { name, children } = inner();
        // Browsers drop a line break at the beginning of these two.
        const isFirst = children.length === 0 && /^(?:pre|textarea)$/.test(name);
        const shown = isFirst ? text.replace(/^\n/, "") : text;
        children.push(...divided(AS_WRITTEN.has(name) ? shown : shown.replaceAll(/\n\s*/g, " ")));
      },
      onclosetag: () => void open.pop(),
    },
    { lowerCaseTags: false, lowerCaseAttributeNames: false, recognizeSelfClosing: true },
  );
  parser.end(fixed.map((text, index) => (index === 0 ? text : `\uE000${index - 1}\uE001${text}`)).join(""));
  return root.children;
});

/** Elements whose white space counts. */
const AS_WRITTEN = new Set(["pre", "textarea", "code-text", "md-text"]);

const divided = (text: string): (string | number)[] =>
  text.split(/\uE000(\d+)\uE001/).flatMap((piece, index) => (index % 2 === 1 ? Number(piece) : piece || []));

function fill(template: Template, parts: readonly Part[]): Tree[] {
  const trees: Tree[] = [];
  for (const piece of template) {
    if (typeof piece === "string") trees.push(piece);
    else if (typeof piece === "number") addPart(trees, parts[piece]);
    else {
      const attributes: Record<string, string> = {};
      for (const [name, value] of piece.attributes) {
        if (typeof name === "string")
          attributes[name] = fill(value, parts)
            .filter((tree) => typeof tree === "string")
            .join("");
        else Object.assign(attributes, readAttributes(renderPart(parts[name])));
      }
      trees.push([piece.name, attributes, ...fill(piece.children, parts)]);
    }
  }
  return trees;
}

function addPart(trees: Tree[], part: Part): void {
  if (part === undefined || part === false) return;
  if (part instanceof Html) trees.push(...part.trees);
  else if (typeof part === "object") for (const each of part) addPart(trees, each);
  else trees.push(stripControl(String(part)));
}

/** Reads attributes that we wrote. */
function readAttributes(text: string): Attributes {
  let read: Attributes = {};
  if (text !== "") new Parser({ onopentag: (_, attributes) => void (read = attributes) }).end(`<a ${text}>`);
  return read;
}

/** Drawn on 16 by 16 units, in the colour of the text around. */
const symbols = Object.entries(pictures).map(
  ([name, picture]) => `<symbol id="i-${name}" viewBox="0 0 16 16">${picture}</symbol>`,
);

/** Goes into a document once. */
export const SPRITE = new Html([
  `<svg class="hide" aria-hidden="true"><defs>${symbols.join("")}` +
    '<pattern id="hatch-amber" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="6" height="6"/><path d="M0 0v6" stroke-width="3"/></pattern>' +
    '<pattern id="hatch-red" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)"><rect width="6" height="6"/><path d="M0 0v6" stroke-width="3"/></pattern>' +
    "</defs></svg>",
]);

export type IconName = keyof typeof pictures;

export type Tone = "blue" | "green" | "amber" | "red" | "faint";

export const icon = (name: IconName, tone?: Tone): Html =>
  html`<svg class="${tone === undefined ? "i" : `i i-${tone}`}" aria-hidden="true">
    <use href="#i-${name}" />
  </svg>`;
