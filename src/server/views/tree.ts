/** Screens as trees, of which the page is sent only what changes. */

/** Text, or an element: its name, its attributes, its children. */
export type Tree = string | readonly [name: string, attributes: Attributes, ...children: Tree[]];

export type Attributes = Readonly<Record<string, string>>;

/**
 * The children of an element by those that it had, in order: the position of one that stays as it was, the first and the
 * last of several that do, one that changed, or a new one.
 */
export type Delta = readonly (number | readonly [first: number, last: number] | Changed | Tree)[];

/** An element: its old position, the attributes that differ (`null`: removed), and its children, if they do. */
export type Changed = readonly [
  position: number,
  attributes: Readonly<Record<string, string | null>>,
  children?: Delta,
];

export const isElement = (tree: Tree | undefined): tree is Exclude<Tree, string> =>
  tree !== undefined && typeof tree !== "string";

export const childrenOf = (tree: Tree): readonly Tree[] =>
  isElement(tree) ? (tree.slice(2) as readonly Tree[]) : []; // Behind name and attributes are children only.

/** Returns the difference between two lists of children; `undefined`: there is none. */
export function deltaOf(old: readonly Tree[], now: readonly Tree[]): Delta | undefined {
  const free = new Map<string, number[]>();
  for (const [position, tree] of old.entries()) {
    const name = identify(tree);
    const same = free.get(name);
    if (same === undefined) free.set(name, [position]);
    else same.push(position);
  }
  const steps = now.map((tree): Delta[number] => {
    const at = free.get(identify(tree))?.shift();
    const before = at === undefined ? undefined : old[at];
    if (at === undefined || before === undefined) return tree;
    if (!isElement(tree) || !isElement(before)) return before === tree ? at : tree;
    return change(at, before, tree);
  });
  return steps.length === old.length && steps.every((step, position) => step === position)
    ? undefined
    : joined(steps);
}

/** Elements with an ID are found again wherever they are; of the others, the first stays the first of its kind. */
const identify = (tree: Tree): string => (isElement(tree) ? `${tree[0]} ${tree[1]["id"] ?? ""}` : "");

function change(at: number, old: Exclude<Tree, string>, now: Exclude<Tree, string>): Changed | number {
  const attributes: Record<string, string | null> = {};
  for (const name of Object.keys(old[1])) if (!(name in now[1])) attributes[name] = null;
  for (const [name, value] of Object.entries(now[1])) if (old[1][name] !== value) attributes[name] = value;
  const hasNew = Object.keys(attributes).length > 0;
  // The page itself counts how long something takes.
  const isCounted = !hasNew && "data-since" in now[1];
  const children = isCounted ? undefined : deltaOf(childrenOf(old), childrenOf(now));
  if (children !== undefined) return [at, attributes, children];
  return hasNew ? [at, attributes] : at;
}

/** Positions that follow each other become one range. */
function joined(steps: Delta): Delta {
  const result: Delta[number][] = [];
  for (const step of steps) {
    const last = result.at(-1);
    const [first, end] = typeof last === "number" ? [last, last] : isRange(last) ? last : [];
    if (typeof step === "number" && first !== undefined && end === step - 1)
      result.splice(-1, 1, [first, step]);
    else result.push(step);
  }
  return result;
}

export const isRange = (step: Delta[number] | undefined): step is readonly [number, number] =>
  Array.isArray(step) && typeof step[1] === "number";

export const isChanged = (step: Delta[number]): step is Changed =>
  Array.isArray(step) && typeof step[0] === "number" && typeof step[1] !== "number";
