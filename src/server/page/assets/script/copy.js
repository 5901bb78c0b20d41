/** Copies texts, and confirms it: a tick in place of the icon, and a word for screen readers. */
import { request } from "./session.js";

const TOLD_MS = 2000;

/* Over plain HTTP, browsers deny the clipboard to pages of other machines. */
document.body.classList.toggle("copies", navigator.clipboard?.write !== undefined);

async function textAt(address) {
  const response = await request(address);
  if (!response.ok) throw new Error("no text");
  return response.text();
}

async function textOf({ dataset: { copy, copyOf, copyAddress, linkAddress } }) {
  if (copy !== undefined) return copy;
  if (linkAddress !== undefined) return new URL(linkAddress, location.href).href;
  return copyOf === undefined
    ? textAt(copyAddress)
    : document.getElementById(copyOf).querySelector("md-text").source;
}

/** Begins to write at once: a browser lets a page write only right after a click. */
async function copyWith(button) {
  const blob = textOf(button).then((text) => new Blob([text], { type: "text/plain" }));
  const told = await navigator.clipboard.write([new ClipboardItem({ "text/plain": blob })]).then(
    () => "Copied",
    () => "The text could not be copied",
  );
  document.getElementById("spoken").textContent = told;
  const show = (sign) => button.querySelector("use").setAttribute("href", `#i-${sign}`);
  show(told === "Copied" ? "tick" : "fail");
  setTimeout(() => {
    show("copy");
    document.getElementById("spoken").textContent = "";
  }, TOLD_MS);
}

addEventListener("click", ({ target }) => {
  const button = target.closest?.(".copy");
  if (button) void copyWith(button);
});
