import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { renderMarkdown } from "../../../src/server/views/content/markdown.ts";
import { attempts } from "../../support/effort.ts";
import { ATTACKS } from "./attacks.ts";
import { parsed } from "./parsed.ts";

/** Without the blanks that templates have around elements. */
const rendered = (text: string): string =>
  renderMarkdown(text)
    .text.replaceAll(/\s*\n\s*/g, "")
    .trim();

const ALLOWED = new Set([
  ..."a blockquote br code del div em h2 h3 h4 h5 h6 hr li ol p pre span strong table tbody td th thead tr ul".split(
    " ",
  ),
  ..."a[class] a[href] a[rel] div[class] div[tabindex] ol[start] p[class] pre[class] pre[tabindex]".split(
    " ",
  ),
  ..."span[aria-label] span[class] span[role] td[class] th[class]".split(" "),
]);

function leadsWhereItSays(target: string): boolean {
  const { protocol, username } = new URL(target);
  return protocol === "mailto:" || (/^https?:$/.test(protocol) && username === "");
}

function check(text: string): void {
  const { used, targets, errors } = parsed(renderMarkdown(text).text);
  expect(used.filter((each) => !ALLOWED.has(each))).toEqual([]);
  expect(targets.filter((target) => !leadsWhereItSays(target))).toEqual([]);
  // Texts may hold characters that mean nothing; no parser is misled by them.
  expect(errors.filter((error) => error !== "noncharacter-in-input-stream")).toEqual([]);
}

describe("elements", () => {
  test.each([
    ["a *b* **c** ~~d~~ `e`", "<p>a <em>b</em> <strong>c</strong> <del>d</del> <code>e</code></p>"],
    ["## a\n### b\n## c", "<h2>a</h2><h3>b</h3><h2>c</h2>"],
    ["# a\n###### b", "<h2>a</h2><h6>b</h6>"],
    ["- a\n  - b\n", "<ul><li>a<ul><li>b</li></ul></li></ul>"],
    ["3. a\n4. b", '<ol start="3"><li>a</li> <li>b</li></ol>'],
    ["- [x] a", '<ul><li><span class="task" role="img" aria-label="Done">☑</span> a</li></ul>'],
    ["> a\n\n---", "<blockquote><p>a</p></blockquote><hr />"],
    [
      "|a|b|\n|-|-:|\n|1|2|",
      '<div class="table" tabindex="0"><table><thead><tr><th>a</th><th class="num">b</th></tr></thead><tbody><tr><td>1</td><td class="num">2</td></tr></tbody></table></div>',
    ],
    ["```js\nlet a;\n```", '<pre tabindex="0"><code><span class="hk">let</span> a;</code></pre>'],
    [
      "[a](https://b.example/?c=1&amp;d)",
      '<p><a class="link" href="https://b.example/?c=1&#38;d" rel="noreferrer noopener">a</a></p>',
    ],
    [
      "![a](https://b.example/c.png)",
      '<p><a class="link" href="https://b.example/c.png" rel="noreferrer noopener">a</a></p>',
    ],
    ["[a](docs/b.md)", "<p>a (<code>docs/b.md</code>)</p>"],
    ["a[^1]\n\n[^1]: https://b.example", "<p>a[^1]</p><p>[^1]: https://b.example</p>"],
    ["a <b>c</b> &amp; &copy; &constructor;", "<p>a &#60;b&#62;c&#60;/b&#62; &#38; © &#38;constructor;</p>"],
  ])("%j", (text, html) => {
    expect(rendered(text)).toBe(html);
  });

  test("code keeps its line breaks and shows what hides in it", () => {
    expect(parsed(renderMarkdown("```\n\na\u202eb\n\n  c\n```").text).text).toBe("\na\\u202eb\n\n  c");
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

  /** Units with which lexers of Markdown take quadratic time, run out of stack, or give very much to show. */
  const UNITS = [
    "*a_",
    "**a* ",
    "*a**b",
    "[",
    "![](",
    "<",
    "> ",
    "1. ",
    "- a\n",
    "> a\n\n",
    "```\n",
    "[a]: b\n",
    "|-|\n",
    "=\n",
  ];

  test.each(UNITS)("of 100 kB of %j only the beginning is read as Markdown", (unit) => {
    const { text } = renderMarkdown(unit.repeat(100_000 / unit.length));
    expect(text.match(/<\w/g)?.length).toBeLessThan(9000);
    expect(parsed(text).used.filter((each) => !ALLOWED.has(each))).toEqual([]);
  });

  test("nested lists and quotations end as text", () => {
    const lists = Array.from({ length: 300 }, (_, depth) => `${"  ".repeat(depth)}- ${depth}\n`).join("");
    expect(parsed(renderMarkdown(lists).text).text).toContain("shown as it was written");
    expect(parsed(renderMarkdown(`${"> ".repeat(50)}a`).text).used).toEqual([
      "p",
      "p[class]",
      "pre",
      "pre[class]",
      "pre[tabindex]",
    ]);
  });

  test("what is too long is shown as it was written", () => {
    const text = "*a*\n".repeat(51_000);
    expect(parsed(renderMarkdown(text).text).text).toContain(text);
  });

  test("ordinary documents are read to their end", () => {
    const section = `## A heading\n\nA paragraph of *some* words with \`code\`, [a link](https://a.example) and **more** of it, as ${"people write ".repeat(20)}.\n\n- one\n- two\n  - three\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n\`\`\`ts\nconst a = 1;\n\`\`\`\n\n`;
    const { text, used } = parsed(renderMarkdown(section.repeat(150)).text);
    expect(text).not.toContain("shown as it was written");
    expect(used).not.toContain("pre[class]");
  });
});
