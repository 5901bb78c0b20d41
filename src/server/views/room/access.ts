/** The screen of connected clients, links to runs, and subscriptions to events. */
import { displayText, oneLine } from "../../../core/text.ts";
import type { Access } from "../../../runs/shares.ts";
import { counted } from "../../../tools/format.ts";
import { type PageSession, accessPath, mayRun, runPath } from "../../contracts/viewer.ts";
import { type Html, html, icon } from "../html.ts";
import words from "../words.json" with { type: "json" };
import { dayAndTime } from "./figures.ts";
import { buttonForm, emptyPanel, mainOf } from "./pieces.ts";
import { openedText } from "./share.ts";
import { parsedUrl } from "../../../core/unknown.ts";

export function renderAccess(session: PageSession, all: readonly Access[]): Html {
  const rows = all.map((one) => row(one, mayRun(session)));
  const content = html`<div class="home-head">
      <h1>Clients and links</h1>
      <span class="dim">${counted(all.length, "entry", "entries")}</span>
      ${session.isLoggedIn && all.some(({ kind }) => kind === "client") && buttonForm(`${accessPath()}/revoke`, ["share", "everywhere"], "Log out everywhere", "small no")}
    </div>
    ${all.length === 0 ? emptyPanel("link", words.empty.access) : html`<section class="panel" aria-label="Clients and links">${rows}</section>`}`;
  return mainOf(session, "home", content);
}

function row(
  { kind, id, runId, name, createdAt, expiresAt, usedAt, opened, type, url }: Access,
  mayEnd: boolean,
) {
  const host = parsedUrl(url ?? "")?.host ?? "an address";
  const sends = `Sends ${type ?? ""} to ${host}`;
  const what = { link: "Read-only link", subscription: sends, client: "Connected client" }[kind];
  const run = oneLine(displayText(name ?? runId ?? "All runs"), 160);
  return html`<article class="server" data-row tabindex="-1" id="access-${id}">
    <div class="server-what">
      <h2 class="anywhere">
        ${icon(({ link: "link", subscription: "bell", client: "plug" } as const)[kind])} ${what}
      </h2>
      <p class="small anywhere">
        ${runId === undefined ? run : html`<a class="link" href="${runPath(runId)}">${run}</a>`}
        ${kind === "client" && [url, type].map((part) => part !== undefined && ` · ${part}`)}
      </p>
      <p class="small dim">
        ${createdAt !== undefined && html`Created ${dayAndTime(createdAt)}. `}Expires
        ${dayAndTime(expiresAt)}. ${opened !== undefined && openedText(opened)}
        ${usedAt !== undefined && html`Last used ${dayAndTime(usedAt)}.`}
      </p>
    </div>
    <div class="server-acts">
      ${mayEnd && buttonForm(`${accessPath()}/revoke`, ["share", id], "Revoke", "small no")}
    </div>
  </article>`;
}
