/** The frame of every screen: the document, navigation, and the list of keys. */
import { byIdentity } from "../../../core/by-identity.ts";
import { Html, html, type IconName, SPRITE, icon } from "../html.ts";
import type { Tree } from "../tree.ts";
import words from "../words.json" with { type: "json" };
import type { PageSession } from "../../contracts/viewer.ts";
import { mayRun, schedulePath, accessPath, rulesPath, serversPath } from "../../contracts/viewer.ts";
import { current } from "./pieces.ts";
import { FINDER, SEARCH_LINK } from "./search.ts";
import { sharedNote } from "./share.ts";

export const ASSETS = {
  style: "/assets/page.css",
  script: "/assets/page.js",
  /** Runs before anything is painted. */
  theme: "/assets/theme.js",
  /** Loaded by the script when a screen shows Markdown. */
  markdown: "/assets/markdown.js",
  /** Loaded when a screen shows code, or somebody edits. */
  code: "/assets/code.js",
} as const;

type Place = "runs" | "review" | "schedules" | "servers" | "access" | "rules" | "files" | "search";

export interface Screen {
  title: string;
  /** Marked place in the navigation. */
  place: Place;
  /** Number of open decisions. */
  waiting: number;
  /** True if it is kept up to date; otherwise a reload shows news. */
  isLive: boolean;
  /** Session of the browser; one that sees all runs can go from one to another. */
  session: PageSession;
  /** News to notify about while nobody looks at the page. Default: none. */
  news?: readonly News[];
  main: Html;
}

/** An open request, or the end of a run. It names the run without its content. */
export interface News {
  key: string;
  kind: "asks" | "ends";
  name: string;
  text: string;
  address: string;
}

const PLACES: readonly { place: Place; href: string; name: string; icon: IconName }[] = [
  { place: "runs", href: "/", name: "Runs", icon: "list" },
  { place: "review", href: "/review", name: "Needs you", icon: "bell" },
  { place: "schedules", href: schedulePath(), name: "Schedules", icon: "clock" },
  { place: "files", href: "/files", name: "Files", icon: "folder" },
];

/** A screen as the page's script shows it. */
export interface ScreenContent {
  title: string;
  icon: string;
  /** Number of open decisions. */
  waiting: number;
  tree: readonly Tree[];
}

/** Rendered once for each screen: its mark is made of it, too. */
export const renderContent = byIdentity((screen: Screen): ScreenContent => ({
  title: `${screen.waiting > 0 ? `(${screen.waiting}) ` : ""}${screen.title} · deepagent`,
  icon: screen.waiting > 0 ? ICONS.asking : ICONS.calm,
  waiting: screen.waiting,
  tree: renderScreen(screen).trees,
}));

function renderScreen({ place, waiting, isLive, session, news = [], main }: Screen): Html {
  const hasNavigation = session.run === undefined;
  return html`<header class="top">
      ${hasNavigation ? html`<a class="brand" href="/">${MARK}deepagent</a>` : html`<span class="brand">${MARK}deepagent</span>`}
      ${hasNavigation && html`<nav class="top-nav" aria-label="Main">${links(session, place, waiting, false)}</nav>`}
      <div class="top-side">
        ${sharedNote(session)} ${hasNavigation && SEARCH_LINK}
        <span class="live${!isLive && " still"}"
          ><span class="dot"></span><span ${isLive && html`id="live-word"`}>Live</span></span
        >
        ${session.isLoggedIn && html`<form method="post" action="/logout"><button class="btn bare small">Log out</button></form>`}
        ${settingsMenu(hasNavigation)}
        <button class="btn bare icon help" type="button" data-keys aria-label="Keyboard shortcuts">
          ${icon("help")}
        </button>
      </div>
      ${news.map(renderNews)}
    </header>
    ${main}
    ${hasNavigation && html`<nav class="tabbar" aria-label="Main, phone">${links(session, place, waiting, true)}</nav>`}`;
}

/** Only attributes, because it is for the script. */
const renderNews = ({ key, kind, name, text, address }: News): Html =>
  html`<i
    hidden
    data-news="${key}"
    data-kind="${kind}"
    data-name="${name}"
    data-text="${text}"
    data-address="${address}"
  ></i>`;

const MARK = new Html([
  `<svg viewBox="0 0 20 20" aria-hidden="true"><rect width="20" height="20" rx="5" fill="currentColor"/><g fill="none" class="mark" stroke-width="1.8" stroke-linecap="round"><path d="M4.5 6.5h7M7 10h8.5M9.5 13.5h4"/></g></svg>`,
]);

const links = (session: PageSession, shown: Place, waiting: number, withIcons: boolean): Html[] =>
  PLACES.filter(({ place }) => place !== "schedules" || mayRun(session)).map(
    ({ place, href, name, icon: picture }) => {
      const count = place === "review" && waiting > 0 && html`<span class="count amber">${waiting}</span>`;
      return html`<a href="${href}" ${current(place === shown, "page")}
        >${withIcons && icon(picture)}${name}${count}</a
      >`;
    },
  );

/** Stands around a screen, and does not change. */
export const renderFrame = ({ place, session }: Screen): Html =>
  html`${SPRITE}<a class="skip" href="#main">Skip to content</a>
    <div id="screen"></div>
    <div id="spoken" class="hide" aria-live="polite"></div>
    ${place !== "search" && session.run === undefined && FINDER} ${KEYS}`;

const renderPage = ({
  title,
  head,
  bodyAttribute,
  body,
}: {
  title: string;
  head?: Html;
  bodyAttribute?: Html;
  body: Html;
}): Html =>
  html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <title>${title}</title>
        <link rel="icon" href="${ICONS.calm}" id="favicon" />
        ${head}
      </head>
      <body${bodyAttribute}>
        ${body}
      </body>
    </html> `;

export const ICONS = { calm: "/assets/icon.svg", asking: "/assets/icon-asking.svg" } as const;

const KEYS = html`<dialog id="keys" aria-labelledby="keys-h">
  <h2 id="keys-h">Keyboard shortcuts</h2>
  <div class="keys">
    ${words.keys.map(({ keys, effect }) => html`<span>${keys.map((key) => html`<kbd class="${key.startsWith("Ctrl ") && "not-mac"}">${key}</kbd> `)}${keys.includes("Ctrl K") && html`<kbd class="mac">⌘K</kbd>`}</span><span>${effect}</span>`)}
  </div>
  <form method="dialog"><button class="btn">Close</button></form>
</dialog>`;

/** The style of a document that the script does not put into its own. */
export const STYLED = html`<meta name="viewport" content="width=device-width, initial-scale=1" />
  <link rel="stylesheet" href="${ASSETS.style}" />`;

/** A few words in place of a screen, with at most one form. */
export const renderNotice = (title: string, text: string | Html, more?: Html, head?: Html): Html =>
  renderPage({
    title,
    ...(head && { head }),
    body: html`<main class="wrap home" id="main">
      <div class="panel empty">
        <h1>${title}</h1>
        <p>${text}</p>
        ${more}
      </div>
    </main>`,
  });

const shell = (bodyAttribute?: Html): Html =>
  renderPage({
    title: "deepagent",
    head: html`<meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover" />
      <meta name="color-scheme" content="light dark" />
      <script src="${ASSETS.theme}"></script>
      <link rel="stylesheet" href="${ASSETS.style}" />
      <script src="${ASSETS.script}" defer></script>`,
    ...(bodyAttribute === undefined ? {} : { bodyAttribute }),
    body: html`<p class="opening">Opening …</p>
      <noscript>
        <main class="wrap home">
          <div class="panel empty">
            <h1>deepagent needs JavaScript</h1>
            <p>Allow it for this address, then reload the page.</p>
          </div>
        </main>
      </noscript>`,
  });

/**
 * The document that every address answers to a browser that opens it. It holds nothing: the script gets the screen,
 * with the session of its tab.
 */
export const SHELL = shell();

/** The shell for sessions from links: the script then takes over the session of another tab. */
export const LINKED_SHELL = shell(html` data-linked`);

/** `name`: as the script keeps it. */
const toggle = (name: string, label: string, note: Html | string): Html =>
  html`<label class="setting"
    ><span>${label}<small>${note}</small></span
    ><input type="checkbox" class="switch" role="switch" data-setting="${name}" autocomplete="off"
  /></label>`;

/** `seesAll`: the page is not of one run. */
const settingsMenu = (seesAll: boolean): Html =>
  html`<details class="drop" name="menu" id="settings" data-mounted>
    <summary class="btn bare icon" aria-label="Browser settings" title="Settings">${icon("gear")}</summary>
    <div class="menu right wide-menu">
      <h2>Browser settings</h2>
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
      ${toggle("ends", "Notify me when a run finishes", "Only for runs of 30 seconds or more, while this page is in the background.")}
      <p class="notice red small" id="notify-blocked" role="alert" hidden></p>
      <hr />
      ${toggle("keys", "Single-key shortcuts", html`When off, only <span class="mac">⌘</span><span class="not-mac">Ctrl</span> shortcuts work.`)}
      <button type="button" class="menu-item" data-keys data-closes>
        ${icon("help")}<span>Show all keys</span>
      </button>
      ${
        seesAll &&
        html`<hr />
          <a class="menu-item" href="${serversPath()}">${icon("plug")}<span>Other MCP servers</span></a>
          <a class="menu-item" href="${accessPath()}">${icon("link")}<span>Clients and links</span></a>
          <a class="menu-item" href="${rulesPath()}">${icon("tick")}<span>Approval rules</span></a>`
      }
    </div>
  </details>`;
