/** The parts of the page's script that are loaded when a screen needs them. */
const { src } = document.currentScript;

export const loadMarkdown = () => import(new URL("markdown.js", src).href);
export const loadCode = () => import(new URL("code.js", src).href);
