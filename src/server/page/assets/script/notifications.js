/** Notifies about new requests and finished runs while nobody looks at the page, if turned on. */
import { preference } from "./preferences.js";

/** Requests and ends of runs that the page has shown already. */
let known = new Set();
const news = () => [...document.querySelectorAll("[data-news]")];

/** Marks the news on a new screen as known. */
export function learnNews() {
  known = new Set(news().map(({ dataset }) => dataset.news));
}

export const mayNotify = () => globalThis.Notification?.permission === "granted";

export const isNotified = (kind) => preference(kind) === "on" && mayNotify();

/** Shows each new request and end once, with the name of the run and without its content. */
export function tellNews() {
  for (const { dataset } of news()) {
    const { news: key, kind, name, text, address } = dataset;
    if (known.has(key)) continue;
    known.add(key);
    if (!document.hidden || !isNotified(kind)) continue;
    const shown = new Notification(name, { body: text, tag: key });
    shown.addEventListener("click", () => {
      focus();
      location.assign(address);
    });
  }
}
