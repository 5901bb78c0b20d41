/** The screen on which a person enters a token. */
import { type Html, html } from "../html.ts";
import { renderNotice } from "./shell.ts";

/** The token is posted and never becomes a part of an address. `next`: address after the log-in. */
export const renderLogIn = ({ next, problem }: { next: string; problem?: string }): Html =>
  renderNotice(
    "Log in",
    "Use the access token from your MCP client’s configuration.",
    html`<form class="log-in" method="post" action="/login">
      ${problem && html`<p class="notice red" role="alert" id="problem">${problem}</p>`}
      <input type="hidden" name="next" value="${next}" />
      <label class="label" for="token">Token</label>
      <input
        class="field"
        id="token"
        name="token"
        type="password"
        autocomplete="off"
        autocapitalize="off"
        spellcheck="false"
        maxlength="16000"
        required
        autofocus
      />
      <button class="btn ink">Log in</button>
    </form>`,
  );
