import { isApproval } from "../../../src/runs/run.ts";
import { expect } from "vitest";
import { systemClock, type Clock } from "../../../src/core/clock.ts";
import { silentLogger } from "../../../src/core/logger.ts";
import type { RunService } from "../../../src/runs/service.ts";
import type { PagePurpose } from "../../../src/server/contracts/viewer.ts";
import { type PageServerOptions, openPageServer } from "../../../src/server/page/page-server.ts";
import { type Entrance, SECRET_HEADER } from "../../../src/server/page/tab-secrets.ts";
import type { PageServer } from "../../../src/server/contracts/deps.ts";
import { cleanUpWith, ME, mine, note, reach, startRun } from "../../runs/support.ts";
import { send, type RawRequest, type RawResponse } from "../../support/clients-raw.ts";
import { asDocument } from "../../support/screen-html.ts";
import { approvalRuns, openCommand } from "../support.ts";

const KEY = Buffer.alloc(32, 7);

export async function openPages(
  service: RunService,
  clock: Clock = systemClock,
  more: Partial<PageServerOptions> = {},
): Promise<PageServer> {
  const server = await openPageServer({
    runs: async () => service,
    clock,
    key: KEY,
    openCommand,
    settings: {},
    logger: silentLogger,
    ...more,
  });
  cleanUpWith(() => server.close());
  return server;
}

/** A run that waits for a person to let it note `texts`. */
export async function waitingRun(...texts: string[]) {
  const { service, notes } = approvalRuns(...texts.map(note));
  const { id } = await startRun(service, "note <b>this</b>");
  await reach(service, id, "input_required");
  // Its calls ask one after the other.
  await expect
    .poll(async () => (await mine(service).read.view(id))?.requests.filter(isApproval).length)
    .toBe(texts.length);
  const view = await reach(service, id, "input_required");
  return { service, notes, runId: id, view };
}

/** A tab of a browser, as far as requests go. */
export interface Visitor {
  origin: string;
  /** Address that the link leads to. */
  path: string;
  /** Empty: the link opened nothing. */
  secret: string;
  /** Headers of all requests of the tab. */
  headers: Record<string, string>;
  /** Asks as the script of the page does. */
  get(path: string, headers?: Record<string, string>): Promise<RawResponse>;
  post(path: string, fields: Record<string, string>, headers?: Record<string, string>): Promise<RawResponse>;
  /** The approval that is shown first, as its form has it. */
  form(): Promise<Record<string, string>>;
}

/** Follows a link. */
export async function visit(link: string): Promise<Visitor> {
  const { origin, hash } = new URL(link);
  const opened = await post(`${origin}/open`, { code: hash.slice(1) }, { origin });
  return visitorOf(origin, opened);
}

/** The tab that got this answer to a code or a log-in. */
export function visitorOf(origin: string, { status, body }: RawResponse): Visitor {
  const { at = "", session } = status === 200 ? (JSON.parse(body) as Entrance) : { at: "" };
  const { secret = "" } = session ?? {};
  const headers = { [SECRET_HEADER]: secret };
  const get: Visitor["get"] = (to, more = {}) =>
    send(origin + to, { method: "GET", headers: { ...headers, ...more } }).then(asDocument);
  return {
    origin,
    path: at,
    secret,
    headers,
    get,
    post: (to, fields, more = {}) =>
      post(origin + to, fields, { ...headers, origin, ...more }).then(asDocument),
    form: async () => {
      const { body: review } = await get(`${at}/review`);
      const request = /type="hidden" name="request" value="([^"]*)"/.exec(review)?.[1] ?? "";
      return { request };
    },
  };
}

export function post(
  url: string,
  fields: Record<string, string>,
  headers: Record<string, string>,
): Promise<RawResponse> {
  const request: RawRequest = {
    headers: { "content-type": "application/x-www-form-urlencoded", ...headers },
    body: new URLSearchParams(fields).toString(),
  };
  return send(url, request);
}

export const linkTo = (pages: PageServer, run: string, purpose: PagePurpose, principal = ME): string =>
  pages.link({ run, principal, purpose });
