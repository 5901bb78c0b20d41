/** Forms: sends them with the session, and keeps typed text and opened parts. */
import { loadCode } from "./modules.js";
import { request } from "./session.js";

/** Buttons that would send something wrong, each with the problem. */
const refused = new WeakMap();

export function judge(button) {
  const reason = document.body.classList.contains("offline")
    ? "The server does not answer. Your text stays."
    : (refused.get(button) ?? button.dataset.off);
  button.disabled = reason !== undefined;
  button.title = reason ?? "";
}

/* The editor is loaded when somebody edits; a field of text serves until then. */
const LEAST_SEEN = 160;
const EDITING = "details[data-fold=edit][open]";
const LONG_FOLD = "details:is([data-fold=edit], [data-fold=always])";
async function edit(fold) {
  const editor = await loadCode();
  const refuse = (button, problem) => {
    if (problem === undefined) refused.delete(button);
    else refused.set(button, problem);
    judge(button);
  };
  editor.edit(fold, { refuse, request });
}
const tryEdit = (fold) => void edit(fold).catch(() => undefined);

/*
 * Buttons stick to the end of the screen while much of the call above them is still below it. An editor that is opened there
 * stays there, so that the lines a person reads do not move. Elsewhere it stands below the call, and covers nothing.
 */
const MUCH_HIDDEN = 120;
export function holdFoot(fold) {
  const foot = fold.closest(".ask-foot");
  const end = foot.closest(".ask").querySelector("[data-end]");
  const hidden = (end?.getBoundingClientRect().bottom ?? 0) - foot.getBoundingClientRect().top;
  foot.toggleAttribute("data-stuck", hidden > MUCH_HIDDEN);
}
addEventListener(
  "click",
  ({ target }) => {
    const fold = target.closest?.(`${LONG_FOLD}:not([open]) > summary`)?.parentElement;
    if (fold) holdFoot(fold);
  },
  true,
);
addEventListener(
  "toggle",
  ({ target }) => {
    if (target.matches?.(`${LONG_FOLD}:not([open])`))
      target.closest(".ask-foot").removeAttribute("data-stuck");
    if (!target.matches?.(`${LONG_FOLD}[open]`)) return;
    if (target.matches(EDITING)) tryEdit(target);
    const form = target.closest("form");
    const { top } = target.querySelector(".more-form").getBoundingClientRect();
    if (!form.hasAttribute("data-stuck") && (top < 0 || top + LEAST_SEEN > innerHeight))
      form.scrollIntoView({ block: "nearest" });
  },
  true,
);

/* Typed texts, choices and folds that a person opened or closed outlive a reload. */
const FIELDS = "form[method=post] :is(input, textarea, select)[name]";
const UNKEPT = ["hidden", "password", "submit", "button"];
const isDraft = (field) => field.matches?.(FIELDS) && !UNKEPT.includes(field.type);
/** Names a form by its address and its subject. */
const formKey = (form) => {
  const about = form.querySelectorAll(
    ":is([name=request], [name=agent], [name=schedule], [name=edit], [name=path], [name=version])",
  );
  const values = [...about].filter(({ type }) => type === "hidden").map(({ value }) => value);
  return ["draft", location.pathname, form.getAttribute("action"), ...values, ""].join(" ");
};
const draftKey = (field) => {
  const { name, type, value, dataset } = field;
  return [formKey(field.form) + name, dataset.draft ?? "", type === "checkbox" ? value : ""].join(" ");
};
function keepDraft(field) {
  const { type, checked, value } = field;
  if (type === "radio" && !checked) sessionStorage.removeItem(draftKey(field));
  else sessionStorage.setItem(draftKey(field), type === "checkbox" ? String(checked) : value);
}
function restoreDraft(field) {
  const kept = sessionStorage.getItem(draftKey(field));
  if (kept === null) return;
  const isBox = field.type === "checkbox";
  if (isBox || field.type === "radio") field.checked = kept === (isBox ? "true" : field.value);
  else if (field.value !== kept) {
    field.value = kept;
    const fold = field.closest("details[data-fold]");
    if (fold) fold.open = true;
  }
}
/** Drops the drafts of a form that the server took. */
function dropDrafts(key) {
  for (const name of Object.keys(sessionStorage)) if (name.startsWith(key)) sessionStorage.removeItem(name);
}
const foldKey = ({ id }) => `fold ${location.pathname} ${id}`;
addEventListener("input", ({ target }) => {
  if (isDraft(target)) keepDraft(target);
});
addEventListener(
  "toggle",
  ({ target }) => {
    if (target.matches?.("[data-kept]"))
      sessionStorage.setItem(foldKey(target), target.open ? "open" : "closed");
  },
  true,
);

/** Restores the typed text and the opened parts on a new screen. */
export function restoreTyped() {
  [...document.querySelectorAll(FIELDS)].filter(isDraft).forEach(restoreDraft);
  for (const fold of document.querySelectorAll("details[data-kept]")) {
    const kept = sessionStorage.getItem(foldKey(fold));
    if (kept !== null) fold.open = kept === "open";
  }
  document.querySelectorAll(EDITING).forEach(tryEdit);
}

/* Writing another answer chooses it. */
addEventListener("input", ({ target }) => {
  const choice = target.matches?.("[data-other]") && target.closest(".choice, .other").querySelector("input");
  if (!choice) return;
  choice.checked = target.value !== "";
  keepDraft(choice);
});

const sending = new WeakSet();

/**
 * Sends a form, once at a time, and passes the answer to `answered`. Without an answer, the form does not change.
 * Drafts are dropped once the server accepts them.
 */
export async function send(form, button, answered) {
  if (sending.has(form)) return;
  sending.add(form);
  const body = new URLSearchParams(new FormData(form, button));
  // Dialogs of a run leave its tab as it is.
  const tab = form.closest("dialog") && document.querySelector(".tabs [aria-current=page]");
  if (tab) body.set("tab", tab.getAttribute("href").split("/").pop());
  const drafts = formKey(form);
  try {
    const response = await request(form.getAttribute("action"), { method: "POST", body });
    if (response.ok) dropDrafts(drafts);
    await answered(response);
  } finally {
    sending.delete(form);
  }
}
