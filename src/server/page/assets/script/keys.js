/** Keys. None decides outside the request that has the focus. */
import { holdFoot } from "./forms.js";
import { preference } from "./preferences.js";
import { refuseFile } from "./proposed.js";
import { openFinder } from "./search.js";

const rows = () => [...document.querySelectorAll("[data-row]")].filter((row) => row.checkVisibility());
const focusRow = (step) => {
  const all = rows();
  const at = all.indexOf(document.activeElement);
  all[Math.min(all.length - 1, Math.max(0, at + step))]?.focus();
};
const ownRequest = () => document.activeElement?.closest("[data-approval]");
/* A file of a proposed change is refused by itself, and elsewhere in its form the rest of them. */
const refuse = () => {
  const file = document.activeElement?.closest("[data-file]");
  if (document.querySelector("[data-proposed]") === null) return unfold("reject");
  if (file) return refuseFile(file);
  const fold = document.querySelector("[data-proposed] details[data-fold=reject]");
  fold.open = true;
  fold.querySelector("textarea").focus();
};
const unfold = (name) => {
  const fold = ownRequest()?.querySelector(`details[data-fold=${name}]`);
  if (!fold) return;
  if (name === "edit" && !fold.open) holdFoot(fold);
  fold.open = true;
  const field = fold.querySelector("textarea");
  const editor = fold.querySelector("[data-mounted] > div")?.shadowRoot;
  (editor?.querySelector("[contenteditable]") ?? field)?.focus();
};
const go = (selector) => document.querySelector(selector)?.click();
const tab = (at) => go(`.tabs a:nth-child(${at})`);

const ACTIONS = {
  "/": openFinder,
  n: () => (document.getElementById("task") ? document.getElementById("task").focus() : go("a.brand")),
  r: () => go('.review-bar a, .top-nav a[href$="/review"]'),
  j: () => focusRow(1),
  k: () => focusRow(-1),
  a: () => ownRequest()?.querySelector("button[value=approve]")?.click(),
  e: () => unfold("edit"),
  x: refuse,
  m: () => document.getElementById("tell")?.focus(),
  w: () => document.body.classList.toggle("wrapped"),
  1: () => tab(1),
  2: () => tab(2),
  3: () => tab(3),
  4: () => tab(4),
  "?": () => document.getElementById("keys").showModal(),
};

/** Presses the button that a field belongs to: a form may have several, one for each decision. */
function press(field) {
  const part = field.closest(".more-form, .refusal") ?? field.form;
  const button = part.querySelector("button:not([type=button], [disabled])");
  if (button !== null) field.form.requestSubmit(button);
}

addEventListener("keydown", (event) => {
  const { key, target, ctrlKey, metaKey, altKey } = event;
  if (event.defaultPrevented || event.composedPath()[0].isContentEditable) return;
  if ((ctrlKey || metaKey) && key === "Enter" && target.form) return press(target);
  /* The return key on a choice would press the first button of the form, which is another decision. */
  if (key === "Enter" && target.matches?.(".more-form input")) return event.preventDefault();
  if (target.matches?.("input:not([type=radio], [type=checkbox]), textarea, select")) {
    if (key === "Escape") target.blur();
    return;
  }
  if (ctrlKey || metaKey || altKey || event.repeat || preference("keys") === "off") return;
  const action = ACTIONS[key.toLowerCase()];
  if (action === undefined) return;
  event.preventDefault();
  action();
});

/** Closes the sheet of a phone, but for clicks in it that lead nowhere else. */
addEventListener("click", ({ target }) => {
  const sheet = document.querySelector(".thumb[open]");
  if (sheet !== null && (!sheet.contains(target) || target.closest("a"))) sheet.open = false;
});

addEventListener("click", ({ target }) => {
  if (target.closest?.("[data-keys]")) document.getElementById("keys").showModal();
});
