/** The files of the page, which are part of the program. */
import { promisify } from "node:util";
import { brotliCompress } from "node:zlib";
import { ASSETS, ICONS } from "../views/room/shell.ts";
import INTER from "./assets/fonts/inter-latin.woff2" with { type: "text" };
import MONO from "./assets/fonts/jetbrains-mono-latin.woff2" with { type: "text" };
// oxlint-disable-next-line import/default -- the build inlines its text
import CODE_SCRIPT from "./assets/code.module.js" with { type: "text" };
// oxlint-disable-next-line import/default -- the build inlines its text
import MARKDOWN_SCRIPT from "./assets/markdown.module.js" with { type: "text" };
// oxlint-disable-next-line import/default -- the build inlines its text
import PAGE_SCRIPT from "./assets/page.browser.js" with { type: "text" };
// oxlint-disable-next-line import/default -- the build inlines its text
import THEME_SCRIPT from "./assets/theme.browser.js" with { type: "text" };
import PAGE_STYLE from "./assets/page.css" with { type: "text" };

export interface Asset {
  type: string;
  body: () => Buffer;
  /** Compresses the asset with Brotli; absent if it is compressed already. */
  packed?: () => Promise<Buffer>;
}

const mark = (colour: string): string =>
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 20"><rect width="20" height="20" rx="5" fill="${colour}"/><g fill="none" stroke="#fff" stroke-width="1.8" stroke-linecap="round"><path d="M4.5 6.5h7M7 10h8.5M9.5 13.5h4"/></g></svg>`;

function text(type: string, content: string): Asset {
  const body = once(() => Buffer.from(content));
  return {
    type: `${type}; charset=utf-8`,
    body,
    packed: once(() => promisify<Buffer, Buffer>(brotliCompress)(body())),
  };
}

const font = (base64: string): Asset => ({
  type: "font/woff2",
  body: once(() => Buffer.from(base64, "base64")),
});

const FILES: Readonly<Record<string, Asset>> = {
  [ASSETS.style]: text("text/css", PAGE_STYLE),
  [ASSETS.script]: text("text/javascript", PAGE_SCRIPT),
  [ASSETS.theme]: text("text/javascript", THEME_SCRIPT),
  [ASSETS.markdown]: text("text/javascript", MARKDOWN_SCRIPT),
  [ASSETS.code]: text("text/javascript", CODE_SCRIPT),
  [ICONS.calm]: text("image/svg+xml", mark("#1b1e24")),
  [ICONS.asking]: text("image/svg+xml", mark("#b86e00")),
  "/assets/inter.woff2": font(INTER),
  "/assets/jetbrains-mono.woff2": font(MONO),
};

export const assetAt = (path: string): Asset | undefined =>
  Object.hasOwn(FILES, path) ? FILES[path] : undefined;

function once<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => (made ??= make());
}
