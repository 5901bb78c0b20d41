/** Opens and closes folders in their place. Those that a person opened are open again in the next screen. */
import { partAt } from "./parts.js";

const KEY = "folders";
const opened = () => JSON.parse(sessionStorage.getItem(KEY) ?? "[]");
const pathOf = (link) => link.getAttribute("href");

async function open(link) {
  if (link.nextElementSibling === null) {
    const part = await partAt(link.href);
    if (part === null) return location.assign(link.href);
    link.after(part);
  }
  link.nextElementSibling.hidden = false;
  link.setAttribute("aria-expanded", "true");
}

async function toggle(link) {
  const isOpen = link.getAttribute("aria-expanded") === "true";
  const others = opened().filter((path) => path !== pathOf(link));
  sessionStorage.setItem(KEY, JSON.stringify(isOpen ? others : [...others, pathOf(link)]));
  if (!isOpen) return open(link);
  link.nextElementSibling.hidden = true;
  link.setAttribute("aria-expanded", "false");
}

/** Opens the folders that were open, the outer ones first. */
export async function restoreFolders() {
  for (const path of opened().toSorted((one, other) => one.length - other.length)) {
    const link = document.querySelector(`[data-folder][href="${CSS.escape(path)}"][aria-expanded=false]`);
    if (link !== null) await open(link);
  }
}

addEventListener("click", (event) => {
  const link = event.target.closest?.("[data-folder]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  void toggle(link);
});
