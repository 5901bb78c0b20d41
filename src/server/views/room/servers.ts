/** The screen of other MCP servers: the state of each, its tools, its last error, and logging in. */
import { displayText, oneLine } from "../../../core/text.ts";
import type { ServerState } from "../../../runs/other-servers.ts";
import { counted } from "../../../tools/format.ts";
import { type PageSession, serversPath } from "../../contracts/viewer.ts";
import { type Html, html, icon } from "../html.ts";
import { dayAndTime } from "./figures.ts";
import { buttonForm, emptyPanel, mainOf } from "./pieces.ts";

/** The outcome of a form. */
export interface ServerNotice {
  /** Absent: it is about none of them. */
  server?: string | undefined;
  problem?: string;
  done?: string;
  address?: URL;
}

export interface ServersScreen {
  session: PageSession;
  servers: readonly ServerState[];
  mayLogIn: boolean;
  notice: ServerNotice | undefined;
}

export function renderServers(screen: ServersScreen): Html {
  const { session, servers, notice } = screen;
  const missing = servers.filter(({ problem }) => problem !== undefined).length;
  const content = html`<div class="home-head">
      <h1>MCP servers</h1>
      <span class="dim"
        >${counted(servers.length, "server")}${missing > 0 && `, ${missing} unavailable`}</span
      >
      ${servers.length > 0 && html`<form method="post" action="${serversPath()}/ask"><button class="btn small">Check now</button></form>`}
    </div>
    ${notice?.server === undefined && notice?.problem && html`<p class="notice red" role="alert">${notice.problem}</p>`}
    ${
      servers.length === 0
        ? emptyPanel("plug", {
            title: "No other MCP servers",
            text: html`Add servers under <code>mcpServers</code> in the configuration to give the agent their
              tools.`,
          })
        : html`<section class="panel" aria-label="MCP servers">
            ${servers.map((one) => row(one, screen))}
          </section>`
    }`;
  return mainOf(session, "home", content);
}

function row(server: ServerState, { mayLogIn, notice }: ServersScreen): Html {
  const { name, place, askedAt, tools, notes, problem, needsLogin } = server;
  const own = notice?.server === name ? notice : undefined;
  const most = 500;
  const toolList = html`<details class="server-tools">
    <summary class="small">Show tools</summary>
    <ul class="small">
      ${tools.slice(0, most).map(({ name, isGated }) => html`<li class="anywhere"><code>${oneLine(displayText(name), 120)}</code>${isGated && html` <span class="tag">approval</span>`}</li>`)}
      ${tools.length > most && html`<li>and ${tools.length - most} more</li>`}
    </ul>
  </details>`;
  const logInForm = buttonForm(`${serversPath()}/login`, ["server", name], "Log in…", "ink");
  // The host stands out: the server itself names this address.
  const opening =
    own?.address &&
    html`<p class="notice">
      <span class="anywhere"
        >You’ll log in at <strong>${own.address.host}</strong> (named by this server), then return here.</span
      >
      <a class="btn ink end" href="${own.address.href}" rel="noreferrer" data-wrong>Continue</a>
    </p>`;
  return html`<article class="server" data-row tabindex="-1">
    <div class="server-what">
      <h2 class="anywhere">
        ${oneLine(name, 80)} <span class="small dim anywhere">${oneLine(place, 120)}</span>
      </h2>
      <p class="small anywhere">${stateWords(server)}</p>
      ${notes.map((note) => html`<p class="small dim anywhere">${oneLine(displayText(note), 400)}</p>`)}
      ${tools.length > 0 && toolList}
      ${own?.problem && html`<p class="notice red anywhere" role="alert" data-wrong>${own.problem}</p>`}
      ${own?.done && html`<p class="notice" role="status">${own.done}</p>`} ${opening}
    </div>
    <div class="server-acts">
      ${askedAt !== undefined && html`<span class="small dim">Checked ${dayAndTime(askedAt)}</span>`}
      ${needsLogin && mayLogIn && own?.address === undefined && logInForm}
      ${needsLogin && !mayLogIn && problem !== undefined && html`<span class="small">The operator of this server logs in: <code>deepagent-mcp login ${name}</code></span>`}
    </div>
  </article>`;
}

function stateWords({ askedAt, tools, problem, needsLogin }: ServerState): Html {
  if (askedAt === undefined) return html`${icon("clock")} Not started yet.`;
  if (needsLogin) return html`${icon("lock", "amber")} Log-in required.`;
  if (problem !== undefined)
    return html`${icon("fail", "red")} Unavailable: ${oneLine(displayText(problem), 400)}.`;
  const asked = tools.filter(({ isGated }) => isGated).length;
  return html`${icon("done", "green")}
  ${counted(tools.length, "tool")}${asked > 0 && `; ${asked} ${asked === 1 ? "needs" : "need"} approval`}.`;
}
