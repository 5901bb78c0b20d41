/** Writes hast as Markdown for models: names as they are, short tables, and each item of a list with its number. */
import type { Element, ElementContent } from "hast";
import { defaultHandlers, toMdast } from "hast-util-to-mdast";
import { gfmTableToMarkdown } from "mdast-util-gfm-table";
import { type Handle, type State, toMarkdown } from "mdast-util-to-markdown";

const value = ({ children: [text] }: Element): string => (text?.type === "text" ? text.value : "");
const isInside = ({ stack }: State, construct: State["stack"][number]): boolean => stack.includes(construct);

/** Text cannot end the cell that it is in. */
const inCell = (text: string, state: State): string =>
  isInside(state, "tableCell") ? text.replaceAll("|", String.raw`\|`).replaceAll("\n", " ") : text;

/** A handler that is not called a second time for its first character: that would double the time at each level. */
const phrase = (handle: Handle): Handle => Object.assign(handle, { peek: () => "x" });

const marked = (mark: string): Handle =>
  phrase((node, _parent, state, info) => {
    const inner = state.containerPhrasing(node, info);
    const words = inner.trim();
    return words === "" ? inner : inner.replace(words, () => mark + words + mark);
  });

const HANDLERS: Record<string, Handle> = {
  text: phrase((node, _parent, state) => inCell(node.value, state)),
  inlineCode: phrase(({ value: code }: { value: string }, _parent, state) => {
    const longest = (code.match(/`+/g) ?? []).reduce((most, run) => Math.max(most, run.length), 0);
    const [fence, pad] = ["`".repeat(longest + 1), /^`|`$/.test(code) ? " " : ""];
    return inCell(fence + pad + code + pad + fence, state);
  }),
  break: phrase((_node, _parent, state) =>
    isInside(state, "tableCell") ? "<br>" : isInside(state, "headingAtx") ? " " : "\n",
  ),
  link: phrase((node, _parent, state, info) => {
    const label = state.containerPhrasing(node, info).trim();
    return label === "" ? "" : `[${label}](${inCell(node.url, state)})`;
  }),
  strong: marked("**"),
  emphasis: marked("*"),
  delete: marked("~~"),
  listItem(node, _parent, state, info) {
    const bullet = node.data?.number ? `${node.data.number}. ` : "- ";
    return state.indentLines(state.containerFlow(node, info), (line, index, isBlank) =>
      index === 0 ? bullet + line : isBlank ? "" : " ".repeat(bullet.length) + line,
    );
  },
};

export function writeMarkdown(children: ElementContent[]): string {
  const handlers: NonNullable<Parameters<typeof toMdast>[1]>["handlers"] = {
    code: (_state, node) => ({ type: "inlineCode", value: value(node) }),
    pre: (_state, node) => ({
      type: "code",
      lang: node.properties["language"] ?? null,
      value: value(node),
    }),
    li: (state, node) => ({ ...defaultHandlers.li(state, node), data: { number: node.properties["value"] } }),
  };
  const tree = toMdast({ type: "root", children }, { document: true, handlers });
  const extensions = [gfmTableToMarkdown({ tablePipeAlign: false })];
  return toMarkdown(tree, { bullet: "-", listItemIndent: "one", extensions, handlers: HANDLERS }).trim();
}
