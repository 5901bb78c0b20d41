/** Colours code, and edits it. Loaded when a screen shows code, or somebody edits. */
export { colour } from "./script/colour.js";
export { edit } from "./script/editor.js";
