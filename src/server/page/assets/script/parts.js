/** Parts of the screen that are loaded into their place: steps, and unchanged lines of diffs. */
import { elementsOf } from "./elements.js";
import { showProposed } from "./proposed.js";
import { isOurs, request } from "./session.js";
import { coloured, prepare } from "./texts.js";

/** Both sides of diffs beside each other, if this browser wants it. Unchanged lines are on both sides then. */
export function dressDiffs() {
  const isSplit = localStorage.getItem("diffs") === "split";
  document.body.classList.toggle("split-diffs", isSplit);
  for (const button of document.querySelectorAll("[data-diffs]")) {
    button.setAttribute("aria-pressed", String((button.dataset.diffs === "split") === isSplit));
  }
  if (!isSplit) return;
  for (const { cells } of document.querySelectorAll(".diff tr.c")) {
    if (cells.length > 4) continue;
    const twin = cells[3].cloneNode(true);
    twin.classList.add("twin");
    twin.setAttribute("aria-hidden", "true");
    cells[3].after(twin);
  }
}

/* A link leads to a screen of its own, and the part of it that matters is shown below the link. */
export async function partAt(address, options) {
  const response = await request(address, options).catch(() => undefined);
  if (!response?.ok || !isOurs(response)) return null;
  const { tree } = await response.json().catch(() => ({ tree: [] }));
  await prepare(tree);
  return elementsOf(tree).querySelector("[data-part]");
}

async function showPart(link) {
  const box = link.parentElement;
  const isOpen = "mounted" in box.dataset;
  if (isOpen) {
    box.querySelector("[data-part]").remove();
    delete box.dataset.mounted;
  } else {
    box.dataset.mounted = "";
    const part = await partAt(link.href);
    if (part === null) return location.assign(link.href);
    box.append(part);
  }
  link.setAttribute("aria-expanded", String(!isOpen));
  link.firstChild.data = isOpen ? "Show all" : "Hide";
  // A file that was read to its end can be chosen there.
  showProposed();
}

/** Gets the results of steps that were opened before their calls ended. */
export function refreshParts() {
  for (const link of document.querySelectorAll("[data-ended] [data-inline]:has(~ [data-part=open])")) {
    void busy(link, refreshPart);
  }
}

async function refreshPart(link) {
  const part = await partAt(link.href);
  if (part !== null) link.nextElementSibling.replaceWith(part);
}

/** Unchanged lines take the place of the link to them. */
async function showLines(link) {
  const part = await partAt(link.href);
  if (part === null) return location.assign(link.href);
  await coloured(part);
  const diff = link.closest(".diff");
  const rows = part.querySelectorAll("tbody");
  if (rows.length === 0) link.replaceWith(part.textContent.trim());
  else link.closest("tbody").replaceWith(...rows);
  diff.focus({ preventScroll: true });
}

/** Follows a link in place, unless that is under way already. */
async function busy(link, show) {
  if (link.getAttribute("aria-busy") === "true") return;
  link.setAttribute("aria-busy", "true");
  await show(link).finally(() => link.removeAttribute("aria-busy"));
  dressDiffs();
}

addEventListener("click", (event) => {
  const link = event.target.closest?.("a[data-inline], a[data-lines]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  void busy(link, "lines" in link.dataset ? showLines : showPart).then(refreshParts);
});

addEventListener("click", ({ target }) => {
  const look = target.closest?.("[data-diffs]");
  if (!look) return;
  localStorage.setItem("diffs", look.dataset.diffs);
  dressDiffs();
});
