import { systemClock, type Clock } from "../../../src/core/clock.ts";
import { silentLogger } from "../../../src/core/logger.ts";
import type { RunService } from "../../../src/runs/service.ts";
import type { PagePurpose } from "../../../src/server/page/sessions.ts";
import { type PageServerOptions, openPageServer } from "../../../src/server/page/page-server.ts";
import type { PageServer } from "../../../src/server/protocol/deps.ts";
import { cleanUpWith, ME, note, reach, startRun } from "../../runs/support.ts";
import { send, type RawRequest, type RawResponse } from "../../support/clients-raw.ts";
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
    settings: [],
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
  const view = await reach(service, id, "input_required");
  return { service, notes, runId: id, view };
}

/** A browser as far as headers go. */
export interface Visitor {
  origin: string;
  /** Address of the run's page. */
  path: string;
  setCookie: string;
  get(path: string, headers?: Record<string, string>): Promise<RawResponse>;
  post(path: string, fields: Record<string, string>, headers?: Record<string, string>): Promise<RawResponse>;
  /** Hidden fields of the form for the approval that is shown first. */
  form(): Promise<Record<string, string>>;
}

export async function visit(link: string): Promise<Visitor> {
  const { origin, searchParams } = new URL(link);
  const opened = await post(`${origin}/open`, { token: searchParams.get("token") ?? "" }, { origin });
  const setCookie = opened.headers["set-cookie"]?.[0] ?? "";
  const cookie = setCookie.split(";")[0] ?? "";
  const path = opened.headers.location ?? "";
  const get = (to: string, headers = {}) =>
    send(origin + to, { method: "GET", headers: { cookie, ...headers } });
  return {
    origin,
    path,
    setCookie,
    get,
    post: (to, fields, headers = {}) => post(origin + to, fields, { cookie, origin, ...headers }),
    form: async () => {
      const { body } = await get(`${path}/review`);
      const [form = ""] = /action="[^"]*\/decide"[^]*?<\/form>/.exec(body) ?? [];
      const inputs = form.matchAll(/type="hidden" name="(csrf|approval)" value="([^"]*)"/g);
      return Object.fromEntries([...inputs].map(([, name = "", value = ""]) => [name, value]));
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
