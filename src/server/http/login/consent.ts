/** The pages for logging in and for granting scopes to a client. They need no script. */
import { oneLine } from "../../../core/text.ts";
import { parsedUrl } from "../../../core/unknown.ts";
import { SCOPES } from "../../../runs/run.ts";
import { type Html, html } from "../../views/html.ts";
import { PERSON_FIELDS } from "../../views/room/log-in.ts";
import { tickBox } from "../../views/room/pieces.ts";
import { isOwnComputer } from "./clients.ts";
import texts from "./texts.json" with { type: "json" };

export interface ConnectingClient {
  /** Name from the registration or the document of the client. */
  name: string;
  /** Host of the metadata document that has the name. Absent: nobody checked it. */
  knownBy: string | undefined;
  /** The place that gets the code, as people know it. */
  place: string;
}

export function redirectPlace(redirect: string): string {
  const { host = "", protocol = "" } = parsedUrl(redirect) ?? {};
  if (isOwnComputer(redirect)) return `a program on your computer (${host})`;
  return protocol === "https:" ? host : `the program that opens ${protocol}//${host}`;
}

const clientName = ({ name, knownBy }: ConnectingClient): Html =>
  html`<b>${oneLine(name, 80)}</b>
    ${knownBy === undefined ? "(this name is not checked)" : html`(known by <b>${knownBy}</b>)`}`;

type Question = [text: Html, form: Html];

export const askPerson = (asking: ConnectingClient, problem?: string): Question => [
  html`${clientName(asking)} wants to connect to this server.`,
  html`<form class="log-in" method="post">
    ${problem && html`<p class="notice red" role="alert">${problem}</p>`} ${PERSON_FIELDS}
    <button class="btn ink">Continue</button>
  </form>`,
];

/** `approve` is never ticked beforehand. */
export const askConsent = (asking: ConnectingClient, person: string): Question => [
  html`${clientName(asking)} will act as <b>${person}</b>. Its access goes to <b>${asking.place}</b>.`,
  html`<form class="log-in" method="post">
    ${SCOPES.toReversed().map((scope) => html`<label>${tickBox("scope", scope, scope !== "approve")} ${texts.scopes[scope]}</label>`)}
    <p class="small dim">${texts.approve}</p>
    <button class="btn ink" name="do" value="connect">Connect</button>
    <button class="btn" name="do" value="refuse">Refuse</button>
  </form>`,
];
