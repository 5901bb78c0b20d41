import { expect } from "vitest";
import type { HttpOptions } from "../../../src/server/http/http.ts";
import type { HttpPageOptions } from "../../../src/server/http/http-page.ts";
import { answerApi } from "../../../src/server/api/api.ts";
import { ROUTES } from "../../../src/server/api/routes.ts";
import type { RunService } from "../../../src/runs/service.ts";
import { ME } from "../../runs/support.ts";
import { entry } from "../auth/support.ts";
import { bearer, send } from "../../support/clients-raw.ts";
import { openSite } from "../page/log-in-support.ts";

interface Answer {
  status: number;
  headers: Readonly<Record<string, unknown>>;
  /** The document, or the refusal. */
  answer: any; // oxlint-disable-line typescript/no-explicit-any
}

/** Asks as a front end does. An answer has exactly the fields of its schema. */
export async function ask(
  origin: string,
  token: string,
  name: string,
  body?: unknown,
  more: Record<string, string> = {},
) {
  const [method = "", path = ""] = name.split(" ");
  const {
    status,
    headers,
    body: text,
  } = await send(`${origin}/api${path}`, {
    method,
    headers: { ...(token === "" ? {} : bearer(token)), ...more },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const answer: Answer["answer"] = text === "" ? undefined : JSON.parse(text);
  const route = ROUTES.find((one) => one.method === method && one.pattern.test(path.split("?")[0] ?? ""));
  if (status === 200) expect(route?.answer.parse(answer) ?? answer).toEqual(answer);
  else expect(answer).toEqual({ error: { code: expect.any(String), message: expect.stringMatching(/\S/) } });
  return { status, headers, answer };
}

/** The API over HTTP, with tokens of one principal by scope, and one of bob. */
export async function openApi(
  service: RunService,
  page: Partial<HttpPageOptions> = {},
  http: Partial<HttpOptions> = {},
) {
  const site = await openSite(service, { api: answerApi, ...page }, http);
  site.tokens.push(entry("only-approves", ME, ["approve"]));
  const as = (token: string) => (name: string, body?: unknown, more?: Record<string, string>) =>
    ask(site.origin, token, name, body, more);
  return { ...site, as, mine: as("mine"), bobs: as("bobs") };
}

export interface Frame {
  name: string;
  id?: string;
  data: Answer["answer"];
}

/** The events of a stream, until it ends. */
export async function* frames(response: Response): AsyncGenerator<Frame> {
  let rest = "";
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    const parts = (rest + chunk).split("\n\n");
    rest = parts.pop() ?? "";
    for (const part of parts) {
      const field = (name: string): string | undefined => new RegExp(`^${name}: (.*)$`, "m").exec(part)?.[1];
      const [event, id, data] = ["event", "id", "data"].map(field);
      if (event !== undefined) yield { name: event, data: JSON.parse(data ?? ""), ...(id && { id }) };
    }
  }
}

export const openStream = (
  origin: string,
  run: string,
  headers: Record<string, string> = {},
  token = "mine",
) => fetch(`${origin}/api/runs/${run}/stream`, { headers: { ...bearer(token), ...headers } });
