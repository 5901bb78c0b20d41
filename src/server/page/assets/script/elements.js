/** The elements of the screen: shows trees of the server, and follows their changes. */
import { h, render } from "preact";
import { childrenOf, deltaOf, isChanged, isElement, isRange } from "../../../views/tree.ts";

/* A person may have changed these: the server only has their first values. */
const INITIAL = {
  "input value": "defaultValue",
  "input checked": "defaultChecked",
  "option selected": "defaultSelected",
};
const BOOLEAN = new Set([
  "hidden",
  "disabled",
  "required",
  "open",
  "autofocus",
  "multiple",
  "spellcheck",
  "defaultChecked",
  "defaultSelected",
]);
/* The script changes these inside: another text is another element. */
const DRESSED = new Set(["md-text", "code-text", "diff-text"]);
let made = 0;

function propertyOf(element, name, value) {
  const initial = INITIAL[`${element} ${name}`];
  return [initial ?? name, BOOLEAN.has(initial ?? name) ? value !== "false" : value];
}

/** An element with its vnode, which stays the same object while nothing in it changes: Preact then skips it. */
function elementOf(name, attributes, children, { key = ++made, ref = {} } = {}) {
  const given = Object.entries(attributes).map(([attribute, value]) => propertyOf(name, attribute, value));
  const inner = children.map((child) => child.vnode ?? child);
  const typed = name === "textarea" ? { defaultValue: inner.splice(0).join("") } : {};
  const vnode = h(name, { ...Object.fromEntries(given), ...typed, key, ref }, ...inner);
  return { name, attributes, children, key, ref, vnode };
}

const partOf = (tree) => (isElement(tree) ? elementOf(tree[0], tree[1], childrenOf(tree).map(partOf)) : tree);

const treeOf = (part) =>
  typeof part === "string" ? part : [part.name, part.attributes, ...part.children.map(treeOf)];

/* A complaint about an input, and the form that it is in, stay until the next screen. */
const isAlert = ({ attributes: { role, class: look = "" } = {} }) =>
  role === "alert" && look.split(" ").includes("notice");
const isComplaint = ({ name, children }) => name === "form" && children.some(isAlert);
let keepsComplaints = false;

/* A translator puts elements in the place of texts, and Preact would change the texts that are gone. */
function isReplaced({ ref, children }) {
  const texts = [...(ref.current?.childNodes ?? [])].filter((node) => node instanceof Text);
  return texts.length < children.filter((child) => typeof child === "string" && child !== "").length;
}

function changed(part, [, attributes, children]) {
  if (keepsComplaints && (isAlert(part) || isComplaint(part))) return part;
  const all = Object.entries({ ...part.attributes, ...attributes }).filter(([, value]) => value !== null);
  const inner = children ? followed(part.children, children) : part.children;
  const isOther = DRESSED.has(part.name) || (part.name !== "textarea" && isReplaced(part));
  return elementOf(part.name, Object.fromEntries(all), inner, isOther ? undefined : part);
}

function followed(parts, delta) {
  const now = delta.flatMap((step) => {
    if (typeof step === "number") return [parts[step]];
    if (isRange(step)) return parts.slice(step[0], step[1] + 1);
    return [isChanged(step) ? changed(parts[step[0]], step) : partOf(step)];
  });
  for (const [position, part] of keepsComplaints ? parts.entries() : [])
    if (isAlert(part) && !now.includes(part)) now.splice(position, 0, part);
  return now;
}

/** Makes elements of trees, outside the page. */
export function elementsOf(trees) {
  const box = document.createElement("div");
  render(
    trees.map((tree) => partOf(tree).vnode ?? tree),
    box,
  );
  return box;
}

/** The children of the screen. */
let parts = [];
const vnodes = () => parts.map((part) => part.vnode ?? part);
const root = () => document.getElementById("screen");

/** Shows a screen in place of everything else. */
export function showScreen({ frame, tree }) {
  document.body.replaceChildren(...elementsOf(frame).childNodes);
  parts = tree.map(partOf);
  render(vnodes(), root());
}

/** Changes the screen by a delta, or to another tree. `isWhole`: a complaint is not in these trees. */
export function changeScreen({ delta, tree, isWhole = false }) {
  keepsComplaints = isWhole;
  const steps = tree === undefined ? delta : deltaOf(parts.map(treeOf), tree);
  if (steps === undefined) return;
  parts = followed(parts, steps);
  try {
    render(vnodes(), root());
  } catch {
    // Something else, such as a translator, took elements away.
    parts = parts.map(treeOf).map(partOf);
    render(null, root());
    root().replaceChildren();
    render(vnodes(), root());
  }
}
