/**
 * The app's side of the MCP Apps protocol: a few JSON-RPC messages to the host that frames it. It shows what
 * the server rendered, and looks again, without waiting and so without asking anybody, while the run is
 * open. It decides nothing: a host could press its buttons.
 */
import { showTexts } from "./script/texts.js";

const PROTOCOL = "2026-01-26";
const LOOK_MS = 2500;
const LOOK_WAITING_MS = 5000;
const host = window.parent;
const note = document.getElementById("note");
const view = document.getElementById("view");
const unanswered = new Map();
let ids = 0;
let canCall = false;
let timer;

const post = (message) => host.postMessage({ jsonrpc: "2.0", ...message }, "*");
const request = (method, params) =>
  new Promise((resolve, reject) => {
    unanswered.set(++ids, { resolve, reject });
    post({ id: ids, method, params });
  });

const REQUESTS = {
  ping: () => ({}),
  "ui/resource-teardown": () => {
    clearTimeout(timer);
    return {};
  },
};
const NOTIFICATIONS = {
  "ui/notifications/tool-input": ({ arguments: args }) => {
    if (typeof args?.task === "string") note.textContent = args.task.slice(0, 300);
  },
  "ui/notifications/tool-result": show,
  "ui/notifications/tool-cancelled": () => {
    note.textContent = "The call was cancelled. If a run had started, it continues.";
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
  const html = result?._meta?.[view.dataset.meta];
  const report = result?.structuredContent;
  if (typeof html !== "string" || report === undefined) {
    const text = result?.content?.find(({ type }) => type === "text")?.text;
    if (typeof text === "string") note.textContent = text.slice(0, 2000);
    return;
  }
  const scrolled = view.querySelector(".tl-body")?.scrollTop ?? 0;
  view.innerHTML = html;
  const rows = view.querySelector(".tl-body");
  if (rows) rows.scrollTop = scrolled;
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
  request("tools/call", { name: "check_deep_agent", arguments: { run_id, wait_seconds: 0 } }).then(
    show,
    () => {
      note.textContent = "Not up to date: this host does not let the view look again.";
    },
  );
}

async function start() {
  const { hostCapabilities, hostContext } = await request("ui/initialize", {
    protocolVersion: PROTOCOL,
    appInfo: { name: "deepagent-run", version: "1" },
    appCapabilities: {},
  });
  canCall = hostCapabilities?.serverTools !== undefined;
  dress(hostContext ?? {});
  post({ method: "ui/notifications/initialized" });
  new ResizeObserver(() => {
    const height = Math.ceil(document.documentElement.getBoundingClientRect().height);
    post({ method: "ui/notifications/size-changed", params: { height } });
  }).observe(document.documentElement);
}
showTexts({ markdown: () => import("./markdown.module.js"), code: () => import("./script/colour.js") });
void start();
