/** The menu of settings: it shows those of this browser, and changes them at once. */
import { isNotified, mayNotify } from "./notifications.js";
import { prefer, preference, showTheme } from "./preferences.js";

const BLOCKED =
  "Your browser blocks notifications. Allow them for this address in its site settings, then turn this on.";
const UNAVAILABLE = "Your browser shows notifications only for addresses with HTTPS, or on this machine.";

/** Explains below the switches why they cannot be turned on; hides the text if `reason` is undefined. */
function explain(reason) {
  const line = document.getElementById("notify-blocked");
  line.textContent = reason ?? "";
  line.hidden = reason === undefined;
}

/** Shows the settings in the menu. It is called again after updates, and when another tab may have changed them. */
export function showSettings() {
  showTheme();
  for (const button of document.querySelectorAll("[data-theme-name]")) {
    const isShown = button.dataset.themeName === document.documentElement.dataset.theme;
    button.setAttribute("aria-pressed", String(isShown));
  }
  for (const box of document.querySelectorAll("[data-setting]")) {
    const name = box.dataset.setting;
    box.checked = name === "keys" ? preference(name) !== "off" : isNotified(name);
  }
}

async function change(box) {
  const name = box.dataset.setting;
  const isNotice = name !== "keys";
  if (box.checked && isNotice && !mayNotify()) {
    // The browser asks the person only now.
    await globalThis.Notification?.requestPermission();
    if (!mayNotify()) {
      box.checked = false;
      return explain(globalThis.Notification === undefined ? UNAVAILABLE : BLOCKED);
    }
  }
  if (isNotice) explain();
  prefer(name, box.checked ? "on" : "off");
  showSettings();
}

addEventListener("change", ({ target }) => {
  if (target.matches?.("[data-setting]")) void change(target);
});
addEventListener("click", ({ target }) => {
  const name = target.closest?.("[data-theme-name]")?.dataset.themeName;
  if (name === undefined) return;
  prefer("theme", name);
  showSettings();
});
document.addEventListener("visibilitychange", showSettings);
