/** The documentation as a site: the pages of `docs`, and the reference of the library that typedoc writes. */
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitepress";

const docs = fileURLToPath(new URL("../../docs", import.meta.url));
const titleOf = (name: string): string =>
  /^# (.*)$/m.exec(readFileSync(`${docs}/${name}.md`, "utf8"))?.[1] ?? name;
const page = (name: string) => ({ text: titleOf(name), link: `/${name}` });

const PAGES = {
  Begin: ["clients", "models", "approvals", "questions", "web", "page", "recipes"],
  "Set up": ["tools", "http", "scale", "platforms", "reliability", "configuration"],
  "Build on it": ["api", "starter", "guide", "langchain", "ai-sdk"],
  More: ["faq"],
};

/** Where files beside the documentation are read; they are plain text while nobody knows. */
const facts = fileURLToPath(new URL("../../project.json", import.meta.url));
const repository: string | undefined = existsSync(facts)
  ? (JSON.parse(readFileSync(facts, "utf8")).repository ?? undefined)
  : undefined;

export default defineConfig({
  title: "deepagent-mcp",
  description: "An MCP server that gives any client a durable deep agent.",
  srcDir: "pages",
  cleanUrls: true,
  // Titles and addresses of all pages are in one file, not in every page.
  metaChunk: true,
  // Nothing is loaded from elsewhere, and nobody is counted.
  head: [],
  markdown: {
    config: (md) => {
      md.core.ruler.push("files-of-the-repository", ({ tokens }) => {
        for (const link of tokens.flatMap(({ children }) => children ?? [])) {
          const path = /^\.\.\/((?!\w+\.md$|decisions\/).*)$/.exec(link.attrGet("href") ?? "")?.[1];
          if (link.type !== "link_open" || path === undefined) continue;
          if (repository === undefined) link.attrs = [];
          else link.attrSet("href", `${repository}/blob/main/${path}`);
        }
      });
    },
  },
  themeConfig: {
    search: { provider: "local" },
    nav: [
      { text: "Guide", link: "/guide" },
      { text: "Library", link: "/library/" },
      { text: "Decisions", link: "/decisions/000-index" },
    ],
    sidebar: {
      "/decisions/": [
        {
          text: "Decisions",
          items: readdirSync(`${docs}/decisions`)
            .filter((name) => name.endsWith(".md"))
            .map((name) => page(`decisions/${name.slice(0, -3)}`)),
        },
      ],
      "/": [
        ...Object.entries(PAGES).map(([text, names]) => ({
          text,
          items: names.filter((name) => existsSync(`${docs}/${name}.md`)).map(page),
        })),
        { text: "Reference", items: [{ text: "Library", link: "/library/" }] },
      ],
    },
    outline: "deep",
  },
});
