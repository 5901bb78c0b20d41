/** Reads Markdown. Loaded when a screen shows some. */
export { markdownHtml } from "../../views/content/markdown.ts";
