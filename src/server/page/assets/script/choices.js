/** Chips of a new run: they show its choices, also after an update from the server. */
import { counted } from "../../../../tools/format.ts";
import { setText } from "./set-text.js";

const wordOf = ({ type, checked, value, dataset: { word, unit, lines, before = "" } }) => {
  if (lines !== undefined) return linesOf(value, lines);
  if (type === "radio") return checked ? (word ?? "") : "";
  const text = value.trim();
  return text === "" ? "" : `${before}${text}${unit === undefined ? "" : ` ${unit}`}`;
};

/** Such as `3 criteria`. */
const linesOf = (text, word) => {
  const count = text.split("\n").filter((line) => line.trim() !== "").length;
  return count === 0 ? "" : counted(count, "criterion", word);
};

/** Another cost counts only where it is chosen. */
const counts = (field) =>
  !("other" in field.dataset) || field.closest(".other").querySelector("input").checked;

export function showChoices() {
  for (const chip of document.querySelectorAll("details.chip")) {
    const words = [...chip.querySelectorAll("input, textarea")].filter(counts).map(wordOf).filter(Boolean);
    const { plain, lead } = chip.dataset;
    const text = words.length === 0 ? plain : lead + words.join(", ");
    setText(chip.querySelector("[data-chip]"), text);
    chip.querySelector("summary").title = text;
  }
}

for (const name of ["change", "input"])
  addEventListener(name, ({ target }) => target.closest?.("details.chip") && showChoices());
