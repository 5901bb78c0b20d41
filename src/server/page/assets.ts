/** Styles and scripts of the page, and the document of the MCP App, which shows the same picture. */
import { APP_VIEW_META } from "../resources/run-app.ts";
import { Html, html } from "../views/html.ts";

/** Colours of both schemes, as CSS declarations. */
export const PALETTES = {
  light: `
  --back: #f6f7f9; --card: #ffffff; --text: #1c2024; --dim: #5b6570; --line: #d8dde3; --accent: #0b5cad;
  --good: #12703c; --bad: #b3261e; --warn: #8a5300; --warn-back: #fff4de;
  --add: #e3f5e8; --add-text: #0f5a2e; --del: #fdeaea; --del-text: #94201a;`,
  dark: `
  --back: #14171a; --card: #1d2125; --text: #e6e9ec; --dim: #a1abb5; --line: #363d44; --accent: #7db8f5;
  --good: #74cf97; --bad: #f2938c; --warn: #f0bd6c; --warn-back: #2d2516;
  --add: #16301f; --add-text: #9be0b4; --del: #3a1d1c; --del-text: #f5b1ac;`,
} as const;

/** Style of the page: system fonts, both colour schemes, nothing loaded. */
export const PAGE_STYLE = `
:root { color-scheme: light dark; ${PALETTES.light} }
@media (prefers-color-scheme: dark) { :root { ${PALETTES.dark} } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 20px; }
h1 { font-size: 21px; line-height: 1.3; margin: 4px 0 16px; overflow-wrap: anywhere; }
h2 { font-size: 15px; margin: 0 0 8px; }
.approval h2::first-letter { text-transform: uppercase; }
details { margin: 0 0 10px; }
h2 small, li small { color: var(--dim); font-weight: normal; margin-left: 4px; }
a { color: var(--accent); }
p { margin: 0 0 8px; overflow-wrap: anywhere; }
code, pre, textarea { font: 13px/1.5 ui-monospace, Menlo, Consolas, monospace; }
code { overflow-wrap: anywhere; }
.brand, .none, .step, .how, dt, time { color: var(--dim); }
.brand { margin: 0; font-size: 13px; }
#connection { float: right; color: var(--warn); }
section, .summary { background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: 14px 16px; margin: 0 0 16px; }
.approval { border-color: var(--warn); border-left-width: 5px; }
.badge { display: inline-block; padding: 1px 10px; border-radius: 20px; border: 1px solid currentColor;
  color: var(--accent); margin-right: 6px; font-size: 13px; }
.badge.completed { color: var(--good); } .badge.failed { color: var(--bad); }
.badge.input_required, .badge.cancelled { color: var(--warn); }
dl { display: flex; flex-wrap: wrap; gap: 4px 28px; margin: 0; font-size: 13px; }
dl div { display: flex; gap: 8px; } dd { margin: 0; }
.columns { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 0 16px; }
@media (max-width: 800px) { .columns { grid-template-columns: minmax(0, 1fr); } }
ul, ol { list-style: none; margin: 0; padding: 0; }
li { overflow-wrap: anywhere; }
.todos li, .tree li { position: relative; padding-left: 22px; }
.mark { position: absolute; left: 0; color: var(--dim); }
.mark::before { content: "\\25CB"; }
.in_progress > .mark::before, .mark.working::before { content: "\\25B8"; color: var(--accent); }
.completed > .mark::before, .mark.completed::before { content: "\\2714"; color: var(--good); }
.mark.failed::before { content: "\\2716"; color: var(--bad); }
.todos .in_progress { font-weight: 600; } .todos .completed { color: var(--dim); }
.tree p { margin: 0; } li small { white-space: nowrap; } .tree .step { font-size: 13px; margin-bottom: 6px; }
.tree ul { margin-left: -14px; padding-left: 14px; border-left: 1px solid var(--line); }
.events { max-height: 340px; overflow: auto; font-size: 13px; }
pre { margin: 0 0 10px; padding: 10px 12px; background: var(--back); border: 1px solid var(--line);
  border-radius: 6px; overflow: auto; white-space: pre-wrap; overflow-wrap: anywhere; }
.detail { max-height: 460px; }
.add { background: var(--add); color: var(--add-text); } .del { background: var(--del); color: var(--del-text); }
.add, .del { display: inline-block; min-width: 100%; } .hunk { color: var(--accent); } .file { font-weight: 600; }
.how, .problem { background: var(--warn-back); border-radius: 6px; padding: 8px 12px; margin: 0 0 10px; }
.problem { color: var(--warn); font-weight: 600; }
label { display: block; margin: 0 0 10px; } label span, summary { display: block; font-size: 13px; color: var(--dim); }
summary { display: list-item; cursor: pointer; margin-bottom: 6px; }
input, textarea { width: 100%; padding: 7px 9px; color: var(--text); background: var(--back);
  border: 1px solid var(--line); border-radius: 6px; }
input { font: inherit; }
.buttons { display: flex; flex-wrap: wrap; gap: 10px; margin: 0; }
button { font: inherit; font-weight: 600; padding: 7px 18px; border-radius: 6px; cursor: pointer;
  border: 1px solid currentColor; background: var(--card); color: var(--accent); }
button.approve, button.approve_same { color: var(--good); } button.reject { color: var(--bad); }
button:hover { background: var(--back); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.notice { max-width: 620px; padding-top: 12vh; }
@media (prefers-reduced-motion: no-preference) { .mark.working::before { animation: pulse 1.4s infinite; } }
@keyframes pulse { 50% { opacity: 0.35; } }
`;

/**
 * Keeps the page up to date. The server sends HTML it has escaped; what a person is typing stays, and where
 * they have scrolled to.
 */
export const PAGE_SCRIPT = `"use strict";
const main = document.querySelector("main[data-run]");
const run = document.getElementById("run");
const approvals = document.getElementById("approvals");
const connection = document.getElementById("connection");
const idOf = (element) => element.dataset.approval;
function showRun(text) {
  const scrolled = run.querySelector(".events")?.scrollTop ?? 0;
  const focused = run.querySelector(".events") === document.activeElement;
  run.innerHTML = text;
  const events = run.querySelector(".events");
  if (events) { events.scrollTop = scrolled; if (focused) events.focus(); }
}
function showApprovals(text) {
  const next = document.createElement("div");
  next.innerHTML = text;
  const shown = new Map([...approvals.querySelectorAll("[data-approval]")].map((item) => [idOf(item), item]));
  const items = [...next.querySelectorAll("[data-approval]")];
  const wanted = new Set(items.map(idOf));
  for (const [id, item] of shown) if (!wanted.has(id)) item.remove();
  for (const item of items) if (!shown.has(idOf(item))) approvals.append(item);
}
const updates = new EventSource(main.dataset.run + "/updates");
updates.addEventListener("update", ({ data }) => {
  const update = JSON.parse(data);
  connection.textContent = "";
  showRun(update.run);
  showApprovals(update.approvals);
  if (update.ended) updates.close();
});
updates.addEventListener("error", () => {
  connection.textContent = "Not connected: the server has ended or is busy. What is shown may be old.";
});
`;

/** Follows the link for a person who has scripts. */
export const OPEN_SCRIPT = `"use strict";
document.getElementById("open").submit();
`;

/** The host may want another colour scheme than the system has. */
const STYLE = `${PAGE_STYLE}
:root[data-theme="light"] { color-scheme: light; ${PALETTES.light} }
:root[data-theme="dark"] { color-scheme: dark; ${PALETTES.dark} }
main { padding: 12px; }
`;

/** One self-contained document; the pictures of the run come with tool results. */
export function appDocument(): string {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <title>Deep agent run</title>
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <style>
          ${new Html(STYLE)}
        </style>
      </head>
      <body>
        <main>
          <p id="note" class="brand" role="status">Starting …</p>
          <div id="view"></div>
        </main>
        <script>
          ${new Html(APP_SCRIPT)};
        </script>
      </body>
    </html> `.text;
}

/**
 * The app's side of the MCP Apps protocol: a few JSON-RPC messages to the host that frames it. It shows what
 * the server rendered, and looks again, without waiting and so without asking anybody, while the run is
 * open. It decides nothing: a host could press its buttons.
 */
export const APP_SCRIPT = `"use strict";
const PROTOCOL = "2026-01-26", VIEW = ${JSON.stringify(APP_VIEW_META)};
const LOOK_MS = 2500, LOOK_WAITING_MS = 5000;
const host = window.parent;
const note = document.getElementById("note"), view = document.getElementById("view");
const unanswered = new Map();
let ids = 0, canCall = false, timer;

const post = (message) => host.postMessage({ jsonrpc: "2.0", ...message }, "*");
const request = (method, params) => new Promise((resolve, reject) => {
  unanswered.set(++ids, { resolve, reject });
  post({ id: ids, method, params });
});

const REQUESTS = { ping: () => ({}), "ui/resource-teardown": () => { clearTimeout(timer); return {}; } };
const NOTIFICATIONS = {
  "ui/notifications/tool-input": ({ arguments: args }) => {
    if (typeof args?.task === "string") note.textContent = args.task.slice(0, 300);
  },
  "ui/notifications/tool-result": show,
  "ui/notifications/tool-cancelled": () => {
    note.textContent = "The call was cancelled. If a run had started, it goes on.";
  },
  "ui/notifications/host-context-changed": dress,
};

window.addEventListener("message", ({ source, data }) => {
  if (source !== host || data?.jsonrpc !== "2.0") return;
  const { id, method, params = {}, result, error } = data;
  if (method === undefined) {
    const waiting = unanswered.get(id);
    unanswered.delete(id);
    if (error === undefined) waiting?.resolve(result);
    else waiting?.reject(new Error(error.message));
  } else if (id === undefined) NOTIFICATIONS[method]?.(params);
  else if (REQUESTS[method] !== undefined) post({ id, result: REQUESTS[method]() });
  else post({ id, error: { code: -32601, message: "unknown method" } });
});

function dress({ theme }) {
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
}

function show(result) {
  const html = result?._meta?.[VIEW], report = result?.structuredContent;
  if (typeof html !== "string" || report === undefined) {
    const text = result?.content?.find(({ type }) => type === "text")?.text;
    if (typeof text === "string") note.textContent = text.slice(0, 2000);
    return;
  }
  const scrolled = view.querySelector(".events")?.scrollTop ?? 0;
  view.innerHTML = html;
  const events = view.querySelector(".events");
  if (events) events.scrollTop = scrolled;
  note.textContent = "";
  clearTimeout(timer);
  if (!canCall || !["working", "input_required"].includes(report.status)) return;
  timer = setTimeout(look, report.status === "working" ? LOOK_MS : LOOK_WAITING_MS, report.run_id);
}

function look(run_id) {
  if (document.hidden) {
    timer = setTimeout(look, LOOK_MS, run_id);
    return;
  }
  request("tools/call", { name: "check_deep_agent", arguments: { run_id, wait_seconds: 0 } }).then(show, () => {
    note.textContent = "Not up to date: this host does not let the view look again.";
  });
}

request("ui/initialize", {
  protocolVersion: PROTOCOL,
  appInfo: { name: "deepagent-run", version: "1" },
  appCapabilities: {},
}).then(({ hostCapabilities, hostContext }) => {
  canCall = hostCapabilities?.serverTools !== undefined;
  dress(hostContext ?? {});
  post({ method: "ui/notifications/initialized" });
  new ResizeObserver(() => {
    const height = Math.ceil(document.documentElement.getBoundingClientRect().height);
    post({ method: "ui/notifications/size-changed", params: { height } });
  }).observe(document.documentElement);
});
`;
