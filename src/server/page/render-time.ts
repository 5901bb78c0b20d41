import { isoTime } from "../../core/clock.ts";
import { html, type Html } from "./html.ts";

/** Hours, minutes and seconds in UTC. */
export const clockTime = (milliseconds: number): string => isoTime(milliseconds).slice(11, 19);

export function renderTime(milliseconds: number): Html {
  const iso = isoTime(milliseconds);
  return html`<time datetime="${iso}">${iso.slice(0, 10)} ${clockTime(milliseconds)} UTC</time>`;
}
