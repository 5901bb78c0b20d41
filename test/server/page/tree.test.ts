import fc from "fast-check";
import { parseFragment, serialize } from "parse5";
import { expect, test } from "vitest";
import { html } from "../../../src/server/views/html.ts";
import { type Tree, deltaOf } from "../../../src/server/views/tree.ts";
import { changedBy, htmlOf } from "../../support/screen-html.ts";
import { attempts } from "../../support/effort.ts";

const attributes = fc
  .tuple(fc.constantFrom("", "a", "b", "c", "d"), fc.constantFrom("", "one", "two"))
  .map(([id, look]) => ({ ...(id && { id }), ...(look && { class: look }) }));
const { tree } = fc.letrec<{ tree: Tree }>((tie) => ({
  tree: fc.oneof(
    { depthSize: "small" },
    fc.constantFrom("text", "other text", ""),
    fc
      .tuple(fc.constantFrom("p", "li"), attributes, fc.array(tie("tree"), { maxLength: 5 }))
      .map(([name, own, children]): Tree => [name, own, ...children]),
  ),
}));
const trees = fc.array(tree, { maxLength: 6 });

test("a delta leads from any screen to any other, and there is none between equal ones", () => {
  fc.assert(
    fc.property(trees, trees, (old, now) => {
      const delta = deltaOf(old, now);
      if (delta === undefined) expect(now).toEqual(old);
      else expect(changedBy(old, JSON.parse(JSON.stringify(delta)) as typeof delta)).toEqual(now);
      expect(deltaOf(now, structuredClone(now))).toBeUndefined();
    }),
    { numRuns: attempts(300).numRuns },
  );
});

const row = (id: number, text: string): Tree => ["li", { id: `step-${id}` }, text];

test("a row that is added, moved or changed costs as much as the row, however long the list is", () => {
  const rows = Array.from({ length: 1000 }, (_, id) => row(id, `step ${id}`));
  expect(deltaOf(rows, [row(1000, "new"), ...rows])).toEqual([row(1000, "new"), [0, 999]]);
  expect(deltaOf(rows, [...rows.slice(1), ...rows.slice(0, 1)])).toEqual([[1, 999], 0]);
  expect(deltaOf(rows, rows.with(500, row(500, "done")))).toEqual([
    [0, 499],
    [500, {}, ["done"]],
    [501, 999],
  ]);
  const [list, looks] = [["ol", {}, ...rows] as const, ["ol", { class: "wide" }, ...rows] as const];
  expect(deltaOf([list], [looks])).toEqual([[0, { class: "wide" }]]);
  expect(deltaOf([looks], [list])).toEqual([[0, { class: null }]]);
});

test("how long something has been going on is no change", () => {
  const since = (text: string, time: string): Tree => ["span", { "data-since": time }, text];
  expect(deltaOf([since("5s", "100")], [since("9s", "100")])).toBeUndefined();
  expect(deltaOf([since("5s", "100")], [since("9s", "500")])).toEqual([[0, { "data-since": "500" }, ["9s"]]]);
});

const normal = (text: string): string => serialize(parseFragment(text)).replaceAll(/\s+/g, " ");

test("the tree of a template is what a browser reads in its text", () => {
  const part = fc.oneof(
    fc.string(),
    fc.constantFrom("<b>", "&amp;", '"', "\uE0000\uE001", undefined, false as const),
    fc.integer(),
  );
  fc.assert(
    fc.property(part, part, part, (one, two, three) => {
      const more = html`data-more="${two}" hidden`;
      const shown = html`<ul class="list ${one}" ${more}>
        ${[one, html`<li title="${two}">${three}<br />x</li>`, two]}
        <svg viewBox="0 0 1 1"><path d="M0" /></svg>
        <p>${html`${three} & &lt;more&gt;`}</p>
      </ul>`;
      expect(normal(htmlOf(shown.trees))).toBe(normal(shown.text));
    }),
    { numRuns: attempts(200).numRuns },
  );
});

test("text of others becomes neither an element nor an attribute", () => {
  const evil = `"><img src=x onerror=alert(1)> data-x="1`;
  const [tree] = html`<p class="${evil}" ${html`title="${evil}"`}>${evil}</p>`.trees;
  expect(tree).toEqual(["p", { class: evil, title: evil }, evil]);
});
