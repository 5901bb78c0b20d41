/** The screen on which a person enters a token, or name, password and code. */
import { Html, html } from "../html.ts";
import fields from "./log-in.json" with { type: "json" };
import { renderNotice } from "./shell.ts";

export const PERSON_FIELDS = new Html([fields.person.join(" ")]);

/** Secrets are posted and never become a part of an address. `next`: address after the log-in. */
export const renderLogIn = (isByPerson: boolean, next: string, problem?: string): Html =>
  renderNotice(
    "Log in",
    isByPerson
      ? "Use your name, your password and a code."
      : "Use the access token from your MCP client’s configuration.",
    html`<form class="log-in" method="post" action="/login">
      ${problem && html`<p class="notice red" role="alert" id="problem">${problem}</p>`}
      <input type="hidden" name="next" value="${next}" />
      ${isByPerson ? PERSON_FIELDS : new Html([fields.token.join(" ")])}
      <button class="btn ink">Log in</button>
    </form>`,
  );
