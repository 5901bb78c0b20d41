/** Saves the response of an address as a file. The browser cannot request it itself, because it has no session. */
import { request } from "./session.js";

async function save({ href, dataset: { download } }) {
  const response = await request(href);
  if (!response.ok) throw new Error("no file");
  const address = URL.createObjectURL(await response.blob());
  Object.assign(document.createElement("a"), { href: address, download }).click();
  setTimeout(() => URL.revokeObjectURL(address), KEPT_MS);
}
const KEPT_MS = 60_000;

addEventListener("click", (event) => {
  const link = event.target.closest?.("a[data-download]");
  if (!link) return;
  event.preventDefault();
  void save(link).catch(() => {
    document.getElementById("spoken").textContent = "The file could not be saved";
  });
});
