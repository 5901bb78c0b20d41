/** Requests a preview of a form's typed values: the first part of the screen with these fields. */
import { partAt } from "./parts.js";

const QUIET_MS = 250;
let timer;
let asked = new AbortController();

async function show(form) {
  asked.abort();
  asked = new AbortController();
  const { signal } = asked;
  const query = new URLSearchParams(new FormData(form));
  for (const name of ["task", "goal"]) query.delete(name);
  const part = await partAt(`${form.dataset.preview}?${query}`, { signal });
  if (part === null || signal.aborted) return;
  // An update of the screen would show the meaning of other fields.
  part.dataset.mounted = "";
  form.querySelector("[data-part]")?.replaceWith(part);
}

addEventListener("input", ({ target }) => {
  const form = target.closest?.("form[data-preview]");
  if (!form || target.matches("textarea")) return;
  clearTimeout(timer);
  timer = setTimeout(() => void show(form), QUIET_MS);
});

/** Suggests the time zone of this browser in place of the server's, unless somebody typed one. */
export function suggestZone() {
  const field = document.querySelector("[data-own-zone]");
  if (field === null || field.value !== field.defaultValue || "asked" in field.dataset) return;
  field.dataset.asked = "";
  const { timeZone } = new Intl.DateTimeFormat().resolvedOptions();
  if (!timeZone || timeZone === field.value || field.matches("[data-wrong]")) return;
  field.value = timeZone;
  void show(field.form);
}
