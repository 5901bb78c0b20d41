import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { markdownHtml } from "../../../src/server/views/content/markdown.ts";
import { markdownText } from "../../../src/server/views/content/texts.ts";
import { attempts } from "../../support/effort.ts";
import { ATTACKS } from "./attacks.ts";
import { parsed } from "./parsed.ts";

/** What the script of the page makes of a text that the server sends. */
const shown = (text: string): string => markdownHtml(parsed(markdownText(text).text).text) ?? "";

/** Without the blanks around elements. */
const rendered = (text: string): string =>
  shown(text)
    .replaceAll(/(?<=>)\n|\n(?=<)/g, "")
    .trim();

const ALLOWED = new Set([
  ..."a blockquote br code code-text div em h2 h3 h4 h5 h6 hr li ol p pre s strong table tbody td th thead tr ul".split(
    " ",
  ),
  ..."a[class] a[href] a[rel] code-text[data-language] div[class] div[tabindex] li[class] ol[start]".split(
    " ",
  ),
  ..."pre[tabindex] td[class] th[class]".split(" "),
]);

function leadsWhereItSays(target: string): boolean {
  const { protocol, username } = new URL(target);
  return protocol === "mailto:" || (/^https?:$/.test(protocol) && username === "");
}

function check(text: string): void {
  const { used, targets, errors } = parsed(shown(text));
  expect(used.filter((each) => !ALLOWED.has(each))).toEqual([]);
  expect(targets.filter((target) => !leadsWhereItSays(target))).toEqual([]);
  // Texts may hold characters that mean nothing; no parser is misled by them.
  expect(errors.filter((error) => error !== "noncharacter-in-input-stream")).toEqual([]);
}

describe("elements", () => {
  test.each([
    ["a *b* **c** ~~d~~ `e`", "<p>a <em>b</em> <strong>c</strong> <s>d</s> <code>e</code></p>"],
    ["## a\n### b\n## c", "<h2>a</h2><h3>b</h3><h2>c</h2>"],
    ["# a\n###### b", "<h2>a</h2><h6>b</h6>"],
    ["- a\n  - b\n", "<ul><li>a<ul><li>b</li></ul></li></ul>"],
    ["3. a\n4. b", '<ol start="3"><li>a</li><li>b</li></ol>'],
    ["- [x] a\n- [ ] b", '<ul><li class="task">☑ a</li><li class="task">☐ b</li></ul>'],
    ["> a\n\n---", "<blockquote><p>a</p></blockquote><hr>"],
    [
      "|a|b|\n|-|-:|\n|1|2|",
      '<div class="table" tabindex="0"><table><thead><tr><th>a</th><th class="num">b</th></tr></thead><tbody><tr><td>1</td><td class="num">2</td></tr></tbody></table></div>',
    ],
    ["```js {1}\nlet a;\n```", '<pre tabindex="0"><code-text data-language="js">let a;</code-text></pre>'],
    [
      "[a](https://b.example/?c=1&amp;d)",
      '<p><a class="link" href="https://b.example/?c=1&amp;d" rel="noreferrer noopener">a</a></p>',
    ],
    [
      "https://b.example. notes.md",
      '<p><a class="link" href="https://b.example/" rel="noreferrer noopener">https://b.example</a>. notes.md</p>',
    ],
    [
      "![a](https://b.example/c.png)",
      '<p>!<a class="link" href="https://b.example/c.png" rel="noreferrer noopener">a</a></p>',
    ],
    ["[a](docs/b.md)", "<p>a (<code>docs/b.md</code>)</p>"],
    ["a <b>c</b> &amp; &copy; &constructor;", "<p>a &lt;b&gt;c&lt;/b&gt; &amp; © &amp;constructor;</p>"],
  ])("%j", (text, html) => {
    expect(rendered(text)).toBe(html);
  });

  test("code keeps its line breaks and shows what hides in it", () => {
    const { text } = parsed(shown("```\n\na\u202eb\u200b\n\n  c\n```"));
    expect(text.trimEnd()).toBe("\na\\u202eb\\u200b\n\n  c");
  });
});

describe("hostile texts", () => {
  test.each(ATTACKS)("%j gives nothing but our elements", check);

  test("so does any mixture of attacks and marks", () => {
    const part = fc.oneof(
      fc.constantFrom(...ATTACKS),
      fc.constantFrom(
        "\n",
        "\n\n",
        "    ",
        "- ",
        "> ",
        "1. ",
        "|",
        "\n|-|\n",
        "`",
        "```",
        "*",
        "_",
        "[",
        "](",
        ")",
        "<",
        ">",
        "\\",
        '"',
      ),
      fc.string({ unit: "binary", maxLength: 8 }),
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 12 }), (parts) => check(parts.join(""))),
      attempts(2000),
    );
  });

  test("what is too long, or nests so deeply that a part would be left out, is shown as it was written", () => {
    expect(markdownHtml("*a*\n".repeat(25_001))).toBeUndefined();
    expect(markdownHtml(`${"> ".repeat(101)}a`)).toBeUndefined();
    expect(markdownHtml(`${"- ".repeat(60)}a`)).toBeUndefined();
    expect(parsed(shown(`${"> ".repeat(90)}a`)).text.trim()).toBe("a");
  });
});
