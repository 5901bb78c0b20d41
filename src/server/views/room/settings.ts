/** The menu of settings, which are of one browser: the script shows and changes them, and updates leave it alone. */
import { type Html, html } from "../html.ts";
import { accessPath, serversPath } from "../../contracts/viewer.ts";
import { icon } from "./icons.ts";

/** `name`: as the script keeps it. */
const toggle = (name: string, label: string, note: Html | string): Html =>
  html`<label class="setting"
    ><span>${label}<small>${note}</small></span
    ><input type="checkbox" class="switch" role="switch" data-setting="${name}" autocomplete="off"
  /></label>`;

/** `seesAll`: the page is not of one run. */
export const settingsMenu = (seesAll: boolean): Html =>
  html`<details class="drop" name="menu" id="settings" data-mounted>
    <summary class="btn bare icon" aria-label="Settings of this browser" title="Settings">
      ${icon("gear")}
    </summary>
    <div class="menu right wide-menu">
      <h2>Settings of this browser</h2>
      <div class="setting">
        <span id="theme-label">Theme</span>
        <span class="seg" role="group" aria-labelledby="theme-label"
          >${["System", "Light", "Dark"].map(
            (name) =>
              html`<button type="button" data-theme-name="${name.toLowerCase()}" aria-pressed="false">
                ${name}
              </button>`,
          )}</span
        >
      </div>
      <hr />
      ${toggle("asks", "Notify me when something needs me", "Your browser asks for permission when you turn this on. A notification names the run, never its content.")}
      ${toggle("ends", "Notify me when a run finishes", "Only for runs of half a minute or more, and only while this page is in the background.")}
      <p class="notice red small" id="notify-blocked" role="alert" hidden></p>
      <hr />
      ${toggle("keys", "Single-key shortcuts", "When off, only keys together with ⌘ or Ctrl work.")}
      <button type="button" class="menu-item" data-keys data-closes>
        ${icon("help")}<span>Show all keys</span>
      </button>
      ${
        seesAll &&
        html`<hr />
          <a class="menu-item" href="${serversPath()}">${icon("plug")}<span>Other MCP servers</span></a>
          <a class="menu-item" href="${accessPath()}">${icon("link")}<span>Links and subscriptions</span></a>`
      }
    </div>
  </details>`;
