/** The review of a proposed change: ticks whole files, and counts the effects of the form. */
import { counted } from "../../../../tools/format.ts";
import {
  applyText,
  boundText,
  branchText,
  placesText,
  refuseText,
} from "../../../views/room/proposed-words.ts";
import { judge } from "./forms.js";
import { setText } from "./set-text.js";

const form = () => document.querySelector("[data-proposed]");
const boxesIn = (file) => [...file.querySelectorAll("input[name^='p.']")];
const isRefusing = (file) => file.querySelector("[data-refuse]")?.checked === true;
const conflictIn = (file) => file.querySelector("[data-conflict]:checked")?.value;

/** Stamps of the files when the screen was shown first; later ones are of files that moved since. */
let [screen, known, moved] = [];

/** Shows the choices everywhere, also after an update from the server. */
export function showProposed() {
  if (form() === null) return;
  noteMoved();
  const files = [...form().querySelectorAll("[data-file]")];
  const counts = {
    files: 0,
    places: 0,
    all: Number(form().querySelector("[data-all-files]").dataset.allFiles),
  };
  for (const file of files) {
    const places = showFile(file);
    counts.places += places;
    counts.files += Number(places > 0);
  }
  showAll(files);
  showBar(counts, files);
}

/** Shows the choice of one file, and returns the number of its applied places. */
function showFile(file) {
  const { file: stamp } = file.dataset;
  const boxes = boxesIn(file);
  const ticked = boxes.filter((box) => box.checked).length;
  const whole = file.querySelector("[data-whole]");
  if (whole !== null) {
    whole.checked = ticked === boxes.length;
    whole.indeterminate = ticked > 0 && ticked < boxes.length;
  }
  const conflict = conflictIn(file);
  const opposed = file.querySelectorAll(".opposed").length;
  const all = boxes.length + opposed;
  const isOut = isRefusing(file) || conflict === "fit";
  const places = isOut ? 0 : ticked + (conflict === "take" ? Math.max(1, opposed) : 0);
  const box = document.querySelector(`[data-box="${stamp}"]`);
  box?.classList.toggle("on", places > 0 && places >= all);
  box?.classList.toggle("some", places > 0 && places < all);
  const note = document.querySelector(`[data-note="${stamp}"]`);
  if (note !== null)
    setText(note, noteOf(file, note.dataset.plain, { ticked, boxes: boxes.length, conflict }));
  return places;
}

function noteOf(file, plain, { ticked, boxes, conflict }) {
  if (isRefusing(file)) return "Rejected";
  if (conflict === "take") return "Conflict: uses the agent’s version";
  if (conflict === "fit") return "Conflict: the agent will merge it";
  return plain === "" && boxes > 1 ? placesText(ticked, boxes) : plain;
}

/* Files that something speaks against are chosen one by one. */
const plainBoxes = (files) =>
  files.filter((file) => !("apart" in file.dataset) && !isRefusing(file)).flatMap(boxesIn);

function showAll(files) {
  const [all, boxes] = [document.querySelector("[data-all]"), plainBoxes(files)];
  if (all === null) return;
  const ticked = boxes.filter((box) => box.checked).length;
  all.checked = boxes.length > 0 && ticked === boxes.length;
  all.indeterminate = ticked > 0 && ticked < boxes.length;
}

const NOTHING = "Select the files to apply.";

function showBar(counts, files) {
  const press = (act) => form().querySelector(`[data-act=${act}]`);
  const says = form().querySelector("[data-says]");
  const isWritten = says !== null && says.value.trim() !== "";
  const goesOn =
    says !== null && (isWritten || files.some((file) => isRefusing(file) || conflictIn(file) === "fit"));
  setText(
    says?.closest("details").querySelector("summary") ?? null,
    isWritten ? "Message written" : "Message…",
  );
  const isLater = form().elements.question.value === "";
  setText(press("apply"), applyText(counts, !isLater));
  setText(press("refuse"), refuseText(counts));
  turnOff(press("apply"), isLater && counts.files === 0 && !files.some(isRefusing));
  if (press("branch") !== null) {
    setText(press("branch"), branchText(counts));
    turnOff(press("branch"), counts.files === 0);
  }
  const then = goesOn ? " The agent will see your message." : "";
  setText(form().querySelector("[data-bound]"), boundText(counts) + then);
}

function turnOff(button, isOff) {
  if (isOff) button.dataset.off = NOTHING;
  else delete button.dataset.off;
  judge(button);
}

/** Shows a note about the files that changed since the screen was opened. */
function noteMoved() {
  const stamps = [...form().querySelectorAll("[name=seen]")].map(({ value }) => value.split(" ")[0]);
  const now = document.getElementById("screen");
  if (screen !== now) [screen, known, moved] = [now, new Set(stamps), new Set()];
  for (const stamp of stamps) if (!known.has(stamp)) moved.add(stamp);
  const shown = stamps.filter((stamp) => moved.has(stamp));
  const notice = form().querySelector("[data-moved]");
  notice.hidden = shown.length === 0;
  if (shown.length === 0) return;
  const text = `${counted(shown.length, "file")} changed while you were here, and ${shown.length === 1 ? "is" : "are"} shown as new.`;
  setText(notice.querySelector("span"), text);
  notice.querySelector("a").setAttribute("href", `#f-${shown[0]}`);
}

/** Refuses a file, and focuses the field for the reason. */
export function refuseFile(file) {
  const box = file.querySelector("[data-refuse]");
  if (box === null) return;
  box.checked = true;
  showProposed();
  file.querySelector(".refusal textarea").focus();
}

addEventListener("change", ({ target }) => {
  if (form() === null || !target.matches?.("input")) return;
  const tick = (boxes) => boxes.forEach((box) => (box.checked = target.checked));
  if (target.matches("[data-all]")) tick(plainBoxes([...form().querySelectorAll("[data-file]")]));
  else if (target.matches("[data-whole]")) tick(boxesIn(target.closest("[data-file]")));
  else if (!form().contains(target)) return;
  showProposed();
  if (target.matches("[data-refuse]") && target.checked)
    target.closest("[data-file]").querySelector(".refusal textarea").focus();
});
addEventListener("input", ({ target }) => target.matches?.("[data-says]") && showProposed());
